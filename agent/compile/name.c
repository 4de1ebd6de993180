// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The names that rules ask for: their tree, and the classes of packets whose name ends at one of
 * its nodes. A node holds what its parents do, so the last one that is found is all that is to be
 * known.
 */
#include <sys/random.h>

#include "compile/priv.h"

#define NODES_MAX (8u << 20)

void name_tree_free(struct names *n)
{
	free(n->nodes);
	free(n->slots);
	free(n->uses);
}

/* --- numbers, as include/xdp.h has them --- */

static uint64_t label_number(const struct names *n, const char *label, size_t len)
{
	uint64_t h = n->key[0];

	while (len > 0) {
		h = (h ^ (uint8_t)label[--len]) * n->key[1];
		h ^= h >> 32;
	}
	return h;
}

static uint64_t node_number(const struct names *n, uint64_t parent, uint64_t label)
{
	uint64_t h = (parent ^ label) * n->key[1];

	h ^= h >> 32;
	h *= n->key[1];
	h ^= h >> 32;
	return h ? h : 1;
}

static int random_keys(struct names *n)
{
	if (getrandom(n->key, sizeof(n->key), 0) != (ssize_t)sizeof(n->key))
		return errno == EINTR ? -EAGAIN : -errno;
	n->key[1] |= 1;
	return 0;
}

/* --- the tree --- */

static uint32_t *slot_of(const struct names *n, uint64_t number)
{
	uint32_t mask = n->n_slots - 1, i = (uint32_t)number & mask;

	while (n->slots[i] && n->nodes[n->slots[i] - 1].number != number)
		i = (i + 1) & mask;
	return &n->slots[i];
}

static int more_nodes(struct names *n)
{
	uint32_t cap = n->cap ? n->cap * 2 : 64;
	struct name_node *nodes = realloc(n->nodes, cap * sizeof(*nodes));
	uint32_t *slots = calloc((size_t)cap * 2, sizeof(*slots));

	if (nodes)
		n->nodes = nodes;
	if (!nodes || !slots) {
		free(slots);
		return -ENOMEM;
	}
	free(n->slots);
	n->slots = slots;
	n->n_slots = cap * 2;
	n->cap = cap;
	for (uint32_t i = 0; i < n->n; i++)
		*slot_of(n, n->nodes[i].number) = i + 1;
	return 0;
}

/* Returns its index, or -errno. */
static int64_t add_node(struct names *n, uint64_t number, uint32_t parent)
{
	uint32_t *slot;

	if (n->n == n->cap && more_nodes(n) < 0)
		return -ENOMEM;
	slot = slot_of(n, number);
	if (*slot)
		return *slot - 1;
	if (n->n == NODES_MAX)
		return -EFBIG;
	n->nodes[n->n] = (struct name_node){.number = number, .parent = parent};
	*slot = ++n->n;
	return n->n - 1;
}

/* Where the name ends. */
static int64_t add_path(struct names *n, const struct rule_name *name)
{
	size_t end = streq(name->text, ".") ? 0 : strlen(name->text);
	int64_t node = name->kind;

	while (end > 0 && node >= 0) {
		size_t from = end;
		uint64_t label;

		while (from > 0 && name->text[from - 1] != '.')
			from--;
		label = label_number(n, name->text + from, end - from);
		node = add_node(n, node_number(n, n->nodes[node].number, label), (uint32_t)node);
		end = from ? from - 1 : 0;
	}
	return node;
}

static int add_names(struct compiler *c, enum ax_field f)
{
	struct names *n = &c->names;
	size_t all = 0;

	for (uint32_t i = 0; i < c->shape.rules; i++)
		all += c->rules[i]->in[f].n;
	if (all > ITEMS_MAX)
		return -EFBIG;
	n->uses = calloc(all + 1, sizeof(*n->uses));
	if (!n->uses)
		return -ENOMEM;
	for (uint32_t kind = 0; kind < AX_NAME_KINDS; kind++)
		if (add_node(n, kind, 0) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct condition *in = &c->rules[i]->in[f];

		for (size_t k = 0; k < in->n; k++) {
			int64_t node = add_path(n, &in->names[k]);

			if (node < 0)
				return (int)node;
			n->uses[n->n_uses++] = (struct name_use){(uint32_t)node, i};
			n->kinds |= 1u << in->names[k].kind;
		}
	}
	return 0;
}

/* --- classes --- */

static int by_node(const void *pa, const void *pb)
{
	const struct name_use *a = pa, *b = pb;

	return a->node < b->node ? -1 : a->node > b->node;
}

static int class_nodes(struct compiler *c, struct classes *classes, const uint64_t *base,
		       uint64_t *bits)
{
	struct names *n = &c->names;
	size_t use = 0;

	for (uint32_t i = 0; i < n->n; i++) {
		struct name_node *node = &n->nodes[i];
		bool own = use < n->n_uses && n->uses[use].node == i;
		int cls;

		if (i >= AX_NAME_KINDS && !own) {
			node->cls = n->nodes[node->parent].cls;
			continue;
		}
		memcpy(bits,
		       i < AX_NAME_KINDS ? base : class_bits(classes, n->nodes[node->parent].cls),
		       c->shape.words * sizeof(*bits));
		for (; use < n->n_uses && n->uses[use].node == i; use++)
			bit_set(bits, n->uses[use].rule);
		cls = class_of(classes, bits);
		if (cls < 0)
			return cls;
		node->cls = (uint32_t)cls;
	}
	return 0;
}

/* What stands in the field's table: for packets without a name, which are of the class of the first
 * node; before it is known; and the classes. */
static int cut_classes(struct compiler *c, struct field *field, uint64_t *bits)
{
	int r, unasked;

	for (uint32_t i = 0; i < c->shape.rules; i++)
		bit_set(bits, i);
	unasked = class_of(&field->classes, bits);
	if (unasked < 0)
		return unasked;
	if (field->classes.n > UINT16_MAX - AX_NAME_FIRST)
		return -E2BIG;
	r = cuts_add(&field->cuts, AX_NAME_NONE, 0, c->names.nodes[0].cls);
	if (r == 0)
		r = cuts_add(&field->cuts, AX_NAME_UNASKED, 0, (uint32_t)unasked);
	for (uint32_t cls = 0; cls < field->classes.n && r == 0; cls++)
		r = cuts_add(&field->cuts, AX_NAME_FIRST + cls, 0, cls);
	return r;
}

int compile_names(struct compiler *c, const struct rule_field *row)
{
	struct field *field = &c->field[row->number];
	autofree uint64_t *base = compile_base(c, row->number);
	autofree uint64_t *bits = calloc(c->shape.words, sizeof(*bits));
	struct names *n = &c->names;
	int r;

	if (!base || !bits)
		return -ENOMEM;
	r = random_keys(n);
	if (r == 0)
		r = add_names(c, row->number);
	if (r < 0)
		return r;
	qsort(n->uses, n->n_uses, sizeof(*n->uses), by_node);
	r = class_nodes(c, &field->classes, base, bits);
	return r < 0 ? r : cut_classes(c, field, bits);
}

/* --- the table --- */

static uint16_t value_of(const struct name_node *node)
{
	return (uint16_t)(AX_NAME_FIRST + node->cls);
}

static size_t taken(const struct ax_name *bucket)
{
	size_t n = 0;

	while (n < AX_NAME_BUCKET && bucket[n].node)
		n++;
	return n;
}

/* Into that of its two buckets which has more room. False: both are full. */
static bool put_node(struct ax_name *table, uint32_t buckets, const struct name_node *node)
{
	struct ax_name *low = table + ((uint32_t)node->number & (buckets - 1)) * AX_NAME_BUCKET;
	struct ax_name *high = table + (node->number >> 32 & (buckets - 1)) * AX_NAME_BUCKET;
	struct ax_name *to = taken(low) < taken(high) ? low : high;
	size_t n = taken(to);

	if (n == AX_NAME_BUCKET)
		return false;
	to[n] = (struct ax_name){.node = node->number, .value = value_of(node)};
	return true;
}

static bool put_nodes(const struct names *n, struct ax_name *table, uint32_t buckets)
{
	memset(table, 0, (size_t)buckets * AX_NAME_BUCKET * sizeof(*table));
	for (uint32_t i = AX_NAME_KINDS; i < n->n; i++)
		if (!put_node(table, buckets, &n->nodes[i]))
			return false;
	return true;
}

/* With as many buckets as it takes, twice as many each time. */
static int make_table(const struct names *n, struct ax_name **ret, uint32_t *buckets)
{
	*buckets = 1;
	while (*buckets * AX_NAME_BUCKET < n->n + n->n / 2)
		*buckets *= 2;
	for (;; *buckets *= 2) {
		size_t size = (size_t)*buckets * AX_NAME_BUCKET * sizeof(**ret);

		if (size > ARENA_MAX)
			return -EFBIG;
		*ret = malloc(size);
		if (!*ret)
			return -ENOMEM;
		if (put_nodes(n, *ret, *buckets))
			return 0;
		free(*ret);
		*ret = NULL;
	}
}

int compile_write_names(const struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	const struct names *n = &c->names;
	autofree struct ax_name *table = NULL;
	uint32_t buckets;
	size_t size;
	int64_t at;
	int r;

	if (!c->field[AX_FIELD_NAME].used)
		return 0;
	r = make_table(n, &table, &buckets);
	if (r < 0)
		return r;
	size = (size_t)buckets * AX_NAME_BUCKET * sizeof(*table);
	at = arena_add(a, size, 64);
	if (at < 0)
		return (int)at;
	memcpy(a->data + at, table, size);
	layout->names = (uint32_t)at;
	layout->names_n = buckets * AX_NAME_BUCKET;
	layout->name_kinds = n->kinds;
	for (uint32_t kind = 0; kind < AX_NAME_KINDS; kind++)
		layout->name_roots[kind] = value_of(&n->nodes[kind]);
	memcpy(layout->name_key, n->key, sizeof(n->key));
	return 0;
}
