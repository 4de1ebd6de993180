// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree of all ways in which functions were called. */
#include "probes/flow/priv.h"

/* Recursion makes a node of each level: what is deeper than this shares one, and so does what is
 * new when there are very many. */
#define DEPTH_MAX 1024
#define NODES_MAX (1u << 20)

static size_t hash(const struct flow_index *x, uint64_t a, uint64_t b)
{
	uint64_t h = (a * UINT64_C(0x9e3779b97f4a7c15)) ^ (b + (a >> 29));

	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return (size_t)(h >> 32) & (x->size - 1);
}

static struct flow_slot *slot(const struct flow_index *x, uint64_t a, uint64_t b)
{
	size_t i = hash(x, a, b);

	while (x->v[i].value != FLOW_NONE && (x->v[i].a != a || x->v[i].b != b))
		i = (i + 1) & (x->size - 1);
	return &x->v[i];
}

uint32_t flow_index_find(const struct flow_index *x, uint64_t a, uint64_t b)
{
	return x->size ? slot(x, a, b)->value : FLOW_NONE;
}

static int grow(struct flow_index *x)
{
	struct flow_index y = {.size = x->size ? x->size * 2 : 64};

	y.v = calloc(y.size, sizeof(*y.v));
	if (!y.v)
		return -ENOMEM;
	for (size_t i = 0; i < y.size; i++)
		y.v[i].value = FLOW_NONE;
	for (size_t i = 0; i < x->size; i++)
		if (x->v[i].value != FLOW_NONE)
			*slot(&y, x->v[i].a, x->v[i].b) = x->v[i];
	y.n = x->n;
	free(x->v);
	*x = y;
	return 0;
}

int flow_index_add(struct flow_index *x, uint64_t a, uint64_t b, uint32_t value)
{
	int r = 4 * (x->n + 1) > 3 * x->size ? grow(x) : 0;

	if (r < 0)
		return r;
	*slot(x, a, b) = (struct flow_slot){a, b, value};
	x->n++;
	return 0;
}

static struct flow_node *add_node(struct flow_paths *p)
{
	if (p->tree.n == p->size) {
		size_t size = p->size ? p->size * 2 : 64;
		struct flow_node *v = realloc(p->tree.v, size * sizeof(*v));

		if (!v)
			return NULL;
		p->tree.v = v;
		p->size = size;
	}
	return &p->tree.v[p->tree.n++];
}

int flow_paths_begin(struct flow_paths *p)
{
	struct flow_node *root = add_node(p);

	if (!root)
		return -ENOMEM;
	*root = (struct flow_node){.function = FLOW_NONE};
	return 0;
}

void flow_paths_free(struct flow_paths *p)
{
	free(p->tree.v);
	free(p->index.v);
}

int flow_paths_enter(struct flow_paths *p, uint32_t parent, uint32_t function, uint32_t *ret)
{
	const struct flow_tree *t = &p->tree;
	uint32_t node = (uint32_t)t->n;
	struct flow_node *n;

	if (parent && t->v[parent].function == FLOW_NONE) {
		*ret = parent;
		return 0;
	}
	*ret = flow_index_find(&p->index, parent, function);
	if (*ret != FLOW_NONE)
		return 0;
	if (t->v[parent].depth + 1 >= DEPTH_MAX || t->n >= NODES_MAX) {
		p->tree.cut = true;
		function = FLOW_NONE;
		*ret = flow_index_find(&p->index, parent, function);
		if (*ret != FLOW_NONE)
			return 0;
	}
	n = add_node(p);
	if (!n || flow_index_add(&p->index, parent, function, node) < 0)
		return -ENOMEM;
	*n = (struct flow_node){.function = function,
				.parent = parent,
				.depth = t->v[parent].depth + 1,
				.next = t->v[parent].child};
	t->v[parent].child = node;
	*ret = node;
	return 0;
}
