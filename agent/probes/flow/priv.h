/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_FLOW_PRIV_H
#define AX_PROBES_FLOW_PRIV_H

#include "probes/flow/flow.h"

/* A table from two numbers to the index of something. */
struct flow_index {
	struct flow_slot {
		uint64_t a, b;
		uint32_t value; /* FLOW_NONE: free */
	} * v;
	size_t n, size; /* size: a power of two */
};
uint32_t flow_index_find(const struct flow_index *x, uint64_t a, uint64_t b);
/* It must not be there yet. -ENOMEM. */
int flow_index_add(struct flow_index *x, uint64_t a, uint64_t b, uint32_t value);

/* Nodes of a tree that is being made. */
struct flow_paths {
	struct flow_tree tree;
	size_t size;
	struct flow_index index;
};
int flow_paths_begin(struct flow_paths *p);
void flow_paths_free(struct flow_paths *p);
/* The node of a call from another one. -ENOMEM. */
int flow_paths_enter(struct flow_paths *p, uint32_t parent, uint32_t function, uint32_t *ret);

#endif
