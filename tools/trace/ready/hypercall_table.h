/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ax trace hypercall has counted, as text and JSON. */
#ifndef AX_TOOLS_TRACE_READY_HYPERCALL_TABLE_H
#define AX_TOOLS_TRACE_READY_HYPERCALL_TABLE_H

#include "probes/watch/hypercall.h"
#include "tools/trace/ready/ready.h"
#include "tools/trace/ready/vms.h"

/* "42", "10 SEND_IPI" */
#define HYPERCALL_NAME 48
const char *hypercall_name(uint64_t nr, char buf[HYPERCALL_NAME]);
/* Sorts the rows. A table of all of them, and a histogram for each vCPU. -ENOMEM. `all`: they are
 * of exits, not of calls. */
int hypercall_put_table(struct ready *r, const struct vms *vms, struct watch_hypercall_row *rows,
			size_t n, bool all);

#endif
