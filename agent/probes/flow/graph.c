// SPDX-License-Identifier: GPL-2.0-or-later
/* The graph of functions, as Graphviz reads it, and folded stacks. */
#include <inttypes.h>

#include "probes/flow/graph.h"
#include "probes/flow/priv.h"

const char *flow_name(const struct flow_names *names, uint32_t function)
{
	return function < names->n ? names->v[function] : "[deeper]";
}

/* The length of the UTF-8 character at s, 0: it is none. Surrogates and what is above U+10FFFF are
 * left out by the least and greatest second bytes. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (n == 0 || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void flow_put_name(const char *s, void (*put)(FILE *f, const char *c, size_t len), FILE *f)
{
	while (*s) {
		unsigned char c = (unsigned char)*s;
		size_t n = utf8_length((const unsigned char *)s);
		char latin[2] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))};

		if (c < ' ' || c == 0x7f || (c == 0xc2 && n == 2 && (unsigned char)s[1] < 0xa0) ||
		    (!n && c < 0xa0))
			put(f, "?", 1);
		else if (!n)
			put(f, latin, sizeof(latin));
		else
			put(f, s, n);
		s += n ? n : 1;
	}
}

/* --- the graph --- */

struct maker {
	const struct flow_tree *t;
	struct flow_graph *g;
	struct flow_index index; /* from, to -> edge */
	size_t size;
	uint32_t *on_path, *edge_on_path; /* how often each is in what is around the node */
	uint32_t *edge_of;		  /* of each node */
};

static void maker_free(struct maker *m)
{
	free(m->index.v);
	free(m->on_path);
	free(m->edge_on_path);
	free(m->edge_of);
}

void flow_graph_free(struct flow_graph *g)
{
	free(g->v);
	free(g->edges);
	*g = (struct flow_graph){0};
}

static int find_edge(struct maker *m, uint32_t from, uint32_t to, uint32_t *ret)
{
	struct flow_graph *g = m->g;
	int r;

	*ret = flow_index_find(&m->index, from, to);
	if (*ret != FLOW_NONE)
		return 0;
	if (g->n_edges == m->size) {
		size_t size = m->size ? m->size * 2 : 64;
		struct flow_edge *v = realloc(g->edges, size * sizeof(*v));

		if (!v)
			return -ENOMEM;
		g->edges = v;
		m->size = size;
	}
	*ret = (uint32_t)g->n_edges;
	r = flow_index_add(&m->index, from, to, *ret);
	if (r == 0)
		g->edges[g->n_edges++] = (struct flow_edge){.from = from, .to = to};
	return r;
}

/* What is too deep to be told apart is function number n. */
static uint32_t function_of(const struct maker *m, uint32_t node)
{
	uint32_t f = m->t->v[node].function;

	return f == FLOW_NONE ? (uint32_t)m->g->n - 1 : f;
}

static int make_edges(struct maker *m)
{
	for (uint32_t i = 1; i < m->t->n; i++) {
		uint32_t parent = m->t->v[i].parent;
		uint32_t from = parent ? function_of(m, parent) : FLOW_NONE;
		int r = find_edge(m, from, function_of(m, i), &m->edge_of[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static void enter_node(struct maker *m, uint32_t i)
{
	const struct flow_node *n = &m->t->v[i];
	uint32_t function = function_of(m, i), edge = m->edge_of[i];

	m->g->v[function].calls += n->calls;
	m->g->v[function].self_ns += n->self_ns;
	if (!m->on_path[function]++)
		m->g->v[function].total_ns += n->total_ns;
	m->g->edges[edge].calls += n->calls;
	if (!m->edge_on_path[edge]++)
		m->g->edges[edge].total_ns += n->total_ns;
}

static void leave_node(struct maker *m, uint32_t i)
{
	m->on_path[function_of(m, i)]--;
	m->edge_on_path[m->edge_of[i]]--;
}

static void walk(struct maker *m)
{
	const struct flow_node *v = m->t->v;
	uint32_t i = v[0].child;

	while (i) {
		enter_node(m, i);
		if (v[i].child) {
			i = v[i].child;
			continue;
		}
		leave_node(m, i);
		while (!v[i].next && v[i].parent) {
			i = v[i].parent;
			leave_node(m, i);
		}
		i = v[i].next;
	}
}

/* The most expensive first. */
static int compare_edges(const void *a, const void *b)
{
	const struct flow_edge *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

int flow_graph_make(const struct flow_tree *t, size_t n, struct flow_graph *ret)
{
	struct maker m = {.t = t, .g = ret};
	int r = -ENOMEM;

	*ret = (struct flow_graph){.n = n + 1};
	ret->v = calloc(ret->n, sizeof(*ret->v));
	m.on_path = calloc(ret->n, sizeof(*m.on_path));
	m.edge_of = calloc(t->n, sizeof(*m.edge_of));
	m.edge_on_path = calloc(t->n, sizeof(*m.edge_on_path)); /* not more edges than nodes */
	if (ret->v && m.on_path && m.edge_of && m.edge_on_path)
		r = make_edges(&m);
	if (r == 0) {
		walk(&m);
		if (ret->n_edges)
			qsort(ret->edges, ret->n_edges, sizeof(*ret->edges), compare_edges);
	} else {
		flow_graph_free(ret);
	}
	maker_free(&m);
	return r;
}

/* --- for Graphviz --- */

static void put_dot(FILE *f, const char *c, size_t len)
{
	if (*c == '"' || *c == '\\')
		putc('\\', f);
	fwrite(c, 1, len, f);
}

static void put_us(FILE *f, uint64_t ns)
{
	fprintf(f, "%" PRIu64 ".%" PRIu64 " us", ns / 1000, ns % 1000 / 100);
}

/* From white to red, by the part of the time that is spent in the function alone. */
static void put_node(const struct flow_node *n, size_t i, const char *name, uint64_t all_ns,
		     FILE *f)
{
	double part = all_ns ? (double)n->self_ns / (double)all_ns : 0;

	fprintf(f, "\tf%zu [label=\"", i);
	flow_put_name(name, put_dot, f);
	fprintf(f, "\\n%" PRIu64 " call%s\\ntotal ", n->calls, n->calls == 1 ? "" : "s");
	put_us(f, n->total_ns);
	fputs("\\nself ", f);
	put_us(f, n->self_ns);
	fprintf(f, "\", fillcolor=\"0.030 %.3f 1.000\"];\n", 0.05 + 0.75 * part);
}

static void put_edge(const struct flow_edge *e, uint64_t all_ns, FILE *f)
{
	double part = all_ns ? (double)e->total_ns / (double)all_ns : 0;

	if (e->from == FLOW_NONE)
		return;
	fprintf(f, "\tf%" PRIu32 " -> f%" PRIu32 " [label=\"%" PRIu64 " x\\n", e->from, e->to,
		e->calls);
	put_us(f, e->total_ns);
	fprintf(f, "\", penwidth=%.2f];\n", 1 + 4 * (part > 1 ? 1 : part));
}

int flow_write_dot(const struct flow_tree *t, const struct flow_names *names, FILE *f)
{
	struct flow_graph g = {0};
	uint64_t all_ns = 0;
	int r = flow_graph_make(t, names->n, &g);

	if (r < 0)
		return r;
	for (size_t i = 0; i < g.n; i++)
		all_ns += g.v[i].self_ns;
	fputs("digraph calls {\n\trankdir=TB;\n\tnode [shape=box, style=\"filled,rounded\", "
	      "fontname=\"sans-serif\", fontsize=11];\n\tedge [fontname=\"sans-serif\", "
	      "fontsize=9];\n",
	      f);
	for (size_t i = 0; i < g.n; i++)
		if (g.v[i].calls)
			put_node(&g.v[i], i, flow_name(names, (uint32_t)i), all_ns, f);
	for (size_t i = 0; i < g.n_edges; i++)
		put_edge(&g.edges[i], all_ns, f);
	fputs("}\n", f);
	flow_graph_free(&g);
	return ferror(f) ? -EIO : 0;
}

/* --- folded stacks --- */

static void put_folded(FILE *f, const char *c, size_t len)
{
	/* it divides names */
	fwrite(*c == ';' ? ":" : c, 1, len, f);
}

int flow_write_folded(const struct flow_tree *t, const struct flow_names *names, bool calls,
		      FILE *f)
{
	autofree uint32_t *path = NULL;
	uint32_t most = 0;

	for (size_t i = 1; i < t->n; i++)
		if (t->v[i].depth > most)
			most = t->v[i].depth;
	path = calloc(most + 1, sizeof(*path));
	if (!path)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n; i++) {
		const struct flow_node *n = &t->v[i];
		uint64_t count = calls ? n->calls : (n->self_ns + 500) / 1000;

		if (!count)
			continue;
		for (uint32_t at = i; at; at = t->v[at].parent)
			path[t->v[at].depth - 1] = t->v[at].function;
		for (uint32_t d = 0; d < n->depth; d++) {
			if (d)
				putc(';', f);
			flow_put_name(flow_name(names, path[d]), put_folded, f);
		}
		fprintf(f, " %" PRIu64 "\n", count);
	}
	return ferror(f) ? -EIO : 0;
}
