/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is made of a tree of calls: a graph of functions, folded stacks, a picture. */
#ifndef AX_PROBES_FLOW_GRAPH_H
#define AX_PROBES_FLOW_GRAPH_H

#include "probes/flow/flow.h"

/* Names of functions, by their numbers. */
struct flow_names {
	const char *const *v;
	size_t n;
};

/* The time of a function or an edge is that of its outermost calls: recursion counts once. */
struct flow_edge {
	uint32_t from; /* FLOW_NONE: who called is unknown */
	uint32_t to;
	uint64_t calls, total_ns;
};
struct flow_graph {
	struct flow_node *v; /* of each function; only calls, total_ns, self_ns are set */
	size_t n;
	struct flow_edge *edges; /* sorted */
	size_t n_edges;
};
/* n: of functions. -ENOMEM. */
int flow_graph_make(const struct flow_tree *t, size_t n, struct flow_graph *ret);
void flow_graph_free(struct flow_graph *g);

/* Graphviz's language. */
int flow_write_dot(const struct flow_tree *t, const struct flow_names *names, FILE *f);
/* "a;b;c N", as tools that draw flame graphs take them. N: microseconds in c alone, or how often c
 * was called that way. */
int flow_write_folded(const struct flow_tree *t, const struct flow_names *names, bool calls,
		      FILE *f);
/* What the width of a function in a picture is. Of calls, callers are above what they call; of the
 * others (flame graphs) below it. */
enum flow_amount {
	FLOW_CALLS,   /* the time of calls */
	FLOW_SAMPLES, /* how often it was on a call stack: a nanosecond stands for a sample */
	FLOW_WAITS,   /* how long was waited in it */
};
struct flow_picture {
	const char *title;
	enum flow_amount amount;
};
/* Nothing in the picture is loaded from elsewhere, and no script runs. */
int flow_write_svg(const struct flow_tree *t, const struct flow_names *names,
		   const struct flow_picture *p, FILE *f);

/* Call stacks that were sampled, as a tree in which `calls` is how often a node was the innermost
 * one. */
struct flow_stacks;
struct flow_stacks *flow_stacks_new(void);
void flow_stacks_free(struct flow_stacks *s);
static inline void flow_stacks_freep(struct flow_stacks **s)
{
	if (*s)
		flow_stacks_free(*s);
}
/* The outermost function first. -ENOMEM. */
int flow_stacks_add(struct flow_stacks *s, const uint32_t *functions, size_t n, uint64_t times,
		    uint64_t ns);
const struct flow_tree *flow_stacks_tree(const struct flow_stacks *s);

/* A name as valid UTF-8 without control characters. Bytes that are none are taken for Latin-1. For
 * each character, `put` writes it or what stands for it. */
const char *flow_name(const struct flow_names *names, uint32_t function);
void flow_put_name(const char *s, void (*put)(FILE *f, const char *c, size_t len), FILE *f);

#endif
