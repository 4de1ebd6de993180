/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_TALLY_SYSCALLS_H
#define AX_PROBES_TALLY_SYSCALLS_H

#include "tally_event.h"
#include "probes/watch/watch.h"

/* Its tables: "calls" (struct ax_syscall_key, struct ax_syscall_cell), "errors" (the same key, a
 * number), "groups" (uint64_t, struct ax_tally_group). */
int tally_syscalls_load(const struct watch_options *o, enum ax_tally_by by, struct watch **ret,
			struct error *e);

#endif
