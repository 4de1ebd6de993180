/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_WATCH_HYPERCALL_H
#define AX_PROBES_WATCH_HYPERCALL_H

#include "hypercall_event.h"
#include "probes/watch/watch.h"

int watch_hypercall_load(const struct watch_options *o, const struct ax_hypercall_config *wanted,
			 struct watch **ret, struct error *e);

/* The numbers of the tracepoints, as their format files have them. */
struct watch_hypercall_places {
	uint32_t exit, hypercall, entry;
};
/* After attaching: to what the options leave to the caller to find. */
int watch_hypercall_attach(struct watch *w, const struct watch_hypercall_places *p,
			   struct error *e);

struct watch_hypercall_row {
	struct ax_hypercall_key key;
	struct ax_hypercall_cell cell;
};
/* What was counted, in no order. The caller frees *ret. Returns the number of rows or a negative
 * errno with a sentence. */
ssize_t watch_hypercall_table(struct watch *w, struct watch_hypercall_row **ret, struct error *e);

#endif
