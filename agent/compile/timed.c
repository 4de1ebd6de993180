// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sets whose elements come for a time, while packets are judged: programs look which of them an
 * address is in, and have its class from a table, by that and by the class that it has without. So
 * all classes that can come about so are made.
 */
#include "compile/priv.h"

#define FRESH_PART 8 /* an element is renewed once this part of its time is over */

/* Which of the timed sets rules ask for in the field. */
static uint32_t asked_sets(const struct compiler *c, const struct set_users *users)
{
	uint32_t asked = 0;

	for (uint32_t i = 0; i < c->n_timed; i++)
		if (users->who[c->timed[i].set])
			asked |= 1u << i;
	return asked;
}

/* The class that values of class `cls` have when they are in the sets of `mask`, too. */
static int class_with(struct compiler *c, struct classes *classes, const struct set_users *users,
		      uint32_t cls, uint32_t mask, uint64_t *room)
{
	uint32_t words = c->shape.words;

	memcpy(room, class_bits(classes, cls), words * sizeof(*room));
	for (uint32_t i = 0; i < c->n_timed; i++)
		if (mask & 1u << i)
			bits_or(room, users->who[c->timed[i].set], words);
	return class_of(classes, room);
}

/* All sets at once and one after the other: what is made for a class on the way is looked at, too.
 */
static int add_classes(struct compiler *c, struct classes *classes, const struct set_users *users,
		       uint32_t asked, uint64_t *room)
{
	int r = 0;

	for (uint32_t cls = 0; cls < classes->n && r >= 0; cls++)
		for (uint32_t i = 0; i < c->n_timed && r >= 0; i++)
			if (asked & 1u << i)
				r = class_with(c, classes, users, cls, 1u << i, room);
	return r < 0 ? r : 0;
}

static int make_table(struct compiler *c, struct field *field, const struct set_users *users,
		      uint64_t *room)
{
	struct classes *classes = &field->classes;
	uint32_t n = classes->n, masks = 1u << c->n_timed;

	field->timed = calloc((size_t)masks * n, sizeof(*field->timed));
	if (!field->timed)
		return -ENOMEM;
	for (uint32_t mask = 0; mask < masks; mask++)
		for (uint32_t cls = 0; cls < n; cls++) {
			int r = class_with(c, classes, users, cls, mask & field->timed_asked, room);

			if (r < 0)
				return r;
			field->timed[(size_t)mask * n + cls] = (uint16_t)r;
		}
	return 0;
}

int compile_timed(struct compiler *c, const struct rule_field *row)
{
	struct set_users users CLEANUP(set_users_free) = {0};
	autofree uint64_t *room = calloc(c->shape.words + 1, sizeof(*room));
	struct field *field = &c->field[row->number];
	int r;

	if (!c->n_timed || row->kind != FIELD_ADDRESS)
		return 0;
	if (!room)
		return -ENOMEM;
	r = set_users_init(c, row, &users);
	if (r < 0)
		return r;
	field->timed_asked = asked_sets(c, &users);
	if (!field->timed_asked)
		return 0;
	r = add_classes(c, &field->classes, &users, field->timed_asked, room);
	return r < 0 ? r : make_table(c, field, &users, room);
}

/* The values are which sets a flow is in. */
int compile_flows(struct compiler *c, const struct rule_field *row)
{
	struct set_users users CLEANUP(set_users_free) = {0};
	size_t size = c->shape.words * sizeof(uint64_t);
	autofree uint64_t *base = compile_base(c, row->number);
	autofree uint64_t *bits = malloc(size);
	struct field *field = &c->field[row->number];
	int r;

	if (!base || !bits)
		return -ENOMEM;
	r = set_users_init(c, row, &users);
	if (r == 0)
		field->timed_asked = asked_sets(c, &users);
	for (uint32_t mask = 0; mask < row->size && r == 0; mask++) {
		int cls;

		memcpy(bits, base, size);
		for (uint32_t i = 0; i < c->n_timed; i++)
			if (mask & field->timed_asked & 1u << i)
				bits_or(bits, users.who[c->timed[i].set], c->shape.words);
		cls = class_of(&field->classes, bits);
		r = cls < 0 ? cls : cuts_add(&field->cuts, mask, 0, (uint32_t)cls);
	}
	return r;
}

int write_timed(const struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	layout->timed_n = c->n_timed;
	for (uint32_t i = 0; i < c->n_timed; i++)
		layout->timed[i] = (struct ax_timed_set){
			.set = (uint16_t)c->timed[i].set,
			.slot = (uint8_t)i,
			.len4 = c->timed[i].len4,
			.len6 = c->timed[i].len6,
			.flows = c->timed[i].flows,
		};
	for (int f = 0; f < AX_FIELDS; f++) {
		const struct field *field = &c->field[f];
		size_t size = ((size_t)field->classes.n << c->n_timed) * sizeof(*field->timed);
		int64_t at;

		if (field->used)
			layout->field[f].timed_asked = field->timed_asked;
		if (!field->used || !field->timed)
			continue;
		at = arena_add(a, size, 64);
		if (at < 0)
			return (int)at;
		memcpy(a->data + at, field->timed, size);
		layout->field[f].timed = (uint32_t)at;
	}
	return 0;
}

struct ax_learn learn_of(const struct compiler *c, const struct rule *r)
{
	struct ax_learn l = {
		.time = r->learn_ms * 1000000ull,
		.dst = r->learn_dst,
		.limited = r->learn_above,
		.flow = r->learn_flow,
		.proto = r->learn_proto,
		.port_be = r->learn_port_be,
	};

	l.fresh = l.time - l.time / FRESH_PART;
	for (uint32_t i = 0; i < c->n_timed; i++)
		if (streq(c->list->sets[c->timed[i].set].name, r->learn))
			l.set = (uint8_t)i;
	return l;
}
