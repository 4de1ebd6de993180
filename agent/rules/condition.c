// SPDX-License-Identifier: GPL-2.0-or-later
/* Conditions: their life, and their values as text, all by what the field's row says. */
#include "rules/field.h"
#include "rules/priv.h"

const struct rule_field *rule_field(enum ax_field number)
{
	const struct rule_field *row = rule_fields;

	while (row->number != number)
		row++;
	return row;
}

const char *rule_field_name(enum ax_field number)
{
	return rule_field(number)->keys[0].name;
}

static size_t item_size(enum field_kind kind)
{
	static const size_t sizes[FIELD_KINDS] = {
		[FIELD_ADDRESS] = sizeof(struct prefix),
		[FIELD_NUMBER] = sizeof(struct range),
		[FIELD_BITS] = sizeof(struct rule_bits),
		[FIELD_MAC] = sizeof(struct rule_mac),
		[FIELD_PAYLOAD] = sizeof(struct rule_payload),
		[FIELD_NAME] = sizeof(struct rule_name),
		[FIELD_FLOW] = sizeof(struct ax_set_flow),
		[FIELD_MARK] = sizeof(struct rule_mark),
		[FIELD_GROUP] = sizeof(struct rule_group),
	};

	return sizes[kind];
}

enum set_kind field_set_kind(const struct rule_field *row)
{
	if (row->kind == FIELD_FLOW)
		return SET_FLOWS;
	return row->kind == FIELD_ADDRESS ? SET_PREFIXES : SET_PORTS;
}

/* --- their life --- */

void condition_free(struct condition *c)
{
	free(c->items);
	strv_free(&c->sets);
	*c = (struct condition){0};
}

int condition_copy(enum field_kind kind, const struct condition *from, struct condition *to)
{
	size_t size = item_size(kind);
	struct condition copy = {.items = array_new(from->n, size), .n = from->n};

	if ((from->n && !copy.items) || strv_copy(&from->sets, &copy.sets) < 0) {
		free(copy.items);
		return -ENOMEM;
	}
	if (from->n)
		memcpy(copy.items, from->items, from->n * size);
	*to = copy;
	return 0;
}

/* No item's type has padding. */
bool condition_eq(enum field_kind kind, const struct condition *a, const struct condition *b)
{
	return a->n == b->n && (!a->n || memcmp(a->items, b->items, a->n * item_size(kind)) == 0) &&
	       strv_eq(&a->sets, &b->sets);
}

/* --- from text --- */

struct reading {
	const struct rule_field *row;
	const struct field_key *key;
	struct condition *c;
};

/* "@NAME" */
static int add_set(struct strv *sets, const char *item, struct rule_fault *f)
{
	if (!value_is_name(item + 1))
		return fault_set(f, NULL, "@ and a set's name: letters, digits and . _ - :");
	return strv_add(sets, item + 1);
}

static int add_item(void *arg, char *item, struct rule_fault *f)
{
	struct reading *r = arg;

	if (r->row->sets && item[0] == '@')
		return add_set(&r->c->sets, item, f);
	return r->key->add(r->row, r->c, item, f);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Sorts ranges, and makes one of those that touch. */
static void join_ranges(struct condition *c)
{
	size_t n = 0;

	if (c->n == 0)
		return;
	qsort(c->ranges, c->n, sizeof(*c->ranges), compare_ranges);
	for (size_t i = 1; i < c->n; i++) {
		struct range *last = &c->ranges[n];

		if (c->ranges[i].lo > last->hi + 1) /* no field's values come near UINT32_MAX */
			c->ranges[++n] = c->ranges[i];
		else if (c->ranges[i].hi > last->hi)
			last->hi = c->ranges[i].hi;
	}
	c->n = n + 1;
}

int field_read(const struct rule_field *row, const struct field_key *key, struct condition *c,
	       const char *value, struct rule_fault *f)
{
	struct reading reading = {row, key, c};
	int r = value_each(value, RULE_LIST_MAX, f, add_item, &reading);

	if (r == 0 && row->kind == FIELD_NUMBER)
		join_ranges(c);
	if (r == 0 && row->kind == FIELD_NAME)
		names_sort(c);
	return r;
}

/* --- to text --- */

/* The part of a range that the key speaks of. */
static bool cut_range(const struct field_key *key, struct range *r)
{
	if (!key->part.hi)
		return true;
	if (r->lo < key->part.lo)
		r->lo = key->part.lo;
	if (r->hi > key->part.hi)
		r->hi = key->part.hi;
	return r->lo <= r->hi;
}

/* Whether an item that is no range is this key's. */
static bool is_own(const struct rule_field *row, const struct field_key *key, const void *item)
{
	const struct rule_name *name = item;

	return row->kind != FIELD_NAME ||
	       (name->kind >= key->part.lo && name->kind <= key->part.hi);
}

static void write_items(const struct rule_field *row, const struct field_key *key,
			const struct condition *c, struct field_text *to)
{
	size_t size = item_size(row->kind);

	if (key->write_all)
		key->write_all(to, c);
	for (size_t i = 0; i < c->n && key->write; i++) {
		const char *item = (const char *)c->items + i * size;
		struct range part;

		if (row->kind != FIELD_NUMBER) {
			if (is_own(row, key, item))
				key->write(to, row, item);
			continue;
		}
		part = c->ranges[i];
		if (cut_range(key, &part))
			key->write(to, row, &part);
	}
	for (size_t i = 0; i < c->sets.n; i++)
		fprintf(to->f, "%s@%s", to->n++ ? "," : "", c->sets.v[i]);
}

/* Whether the condition says anything that is this key's. */
static bool speaks(const struct rule_field *row, const struct field_key *key,
		   const struct condition *c)
{
	if (c->sets.n || (row->kind != FIELD_NUMBER && row->kind != FIELD_NAME))
		return true;
	for (size_t i = 0; i < c->n && row->kind == FIELD_NAME; i++)
		if (is_own(row, key, &c->names[i]))
			return true;
	for (size_t i = 0; i < c->n && row->kind == FIELD_NUMBER; i++) {
		struct range r = c->ranges[i];

		if (cut_range(key, &r))
			return true;
	}
	return false;
}

void field_write(const struct rule_field *row, const struct condition *c, FILE *f)
{
	if (condition_is_empty(c))
		return;
	for (size_t i = 0; i < FIELD_KEYS_MAX && row->keys[i].name; i++) {
		struct field_text to = {.f = f};

		if (!speaks(row, &row->keys[i], c))
			continue;
		fprintf(f, "%s ", row->keys[i].name);
		write_items(row, &row->keys[i], c, &to);
		putc(' ', f);
	}
}
