/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_TALLY_HEAP_H
#define AX_PROBES_TALLY_HEAP_H

#include "base/strv.h"
#include "tally_event.h"
#include "probes/watch/watch.h"

struct tally_heap_options {
	const struct strv *files; /* that have malloc(); empty: the C library */
	bool of_pids; /* as the processes that are watched see them, not a program that is started
		       */
};
/* Its tables: "sites" (struct ax_heap_site, struct ax_heap_cell), "blocks" (struct ax_heap_key,
 * struct ax_heap_block). It has no records. */
int tally_heap_load(const struct watch_options *o, const struct tally_heap_options *x,
		    struct watch **ret, struct error *e);
/* The addresses of a call stack of a site, the innermost first. Their number, 0: it was not kept.
 */
size_t tally_stack(const struct watch *w, int32_t id, uint64_t addresses[AX_TALLY_FRAMES]);

#endif
