// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a rule says about each field, and the classes of the fields that are looked up by index:
 * where the ranges of the rules begin and end, the vector of the rules that hold changes.
 */
#include "compile/priv.h"

static int add_user(struct compiler *c, uint32_t rule, const char *name, enum set_kind kind,
		    struct set_users *u)
{
	const struct rule_set_def *s = rule_list_set(c->list, name);
	size_t i;

	if (!s)
		return error_set(c->e, -ENOENT,
				 "rule %u names the set %s, which is not defined: define it",
				 c->list_rule[rule] + 1u, name);
	if (s->kind != kind)
		return error_set(
			c->e, -EINVAL, "rule %u names the set %s, which holds %s: name a set of %s",
			c->list_rule[rule] + 1u, name, set_kind_name(s->kind), set_kind_name(kind));
	i = (size_t)(s - c->list->sets);
	if (!u->who[i])
		u->who[i] = calloc(c->shape.words, sizeof(uint64_t));
	if (!u->who[i])
		return -ENOMEM;
	bit_set(u->who[i], rule);
	return 0;
}

int set_users_init(struct compiler *c, const struct rule_field *row, struct set_users *ret)
{
	ret->n = c->list->n_sets;
	ret->who = calloc(ret->n + 1, sizeof(*ret->who));
	if (!ret->who)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct strv *names = &c->rules[i]->in[row->number].sets;

		for (size_t k = 0; k < names->n; k++) {
			int r = add_user(c, i, names->v[k], field_set_kind(row), ret);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

void set_users_free(struct set_users *u)
{
	for (size_t i = 0; u->who && i < u->n; i++)
		free(u->who[i]);
	free(u->who);
	*u = (struct set_users){0};
}

#define SPARE_CLASSES 1024 /* no more than there are then in all */

/* That of what `bits` are of, and one of the sets besides. */
static int add_classes(struct classes *classes, const struct set_users *users, const uint64_t *bits,
		       uint64_t *room)
{
	uint32_t words = classes->shape->words;
	int r = 0;

	for (size_t i = 0; i < users->n && r >= 0; i++) {
		if (!users->who[i])
			continue;
		memcpy(room, bits, words * sizeof(*bits));
		bits_or(room, users->who[i], words);
		r = class_of(classes, room);
	}
	return r;
}

int compile_set_classes(struct compiler *c, enum ax_field f, const struct set_users *users)
{
	struct classes *classes = &c->field[f].classes;
	autofree uint64_t *bits = compile_base(c, f);
	autofree uint64_t *room = calloc(c->shape.words, sizeof(*room));
	uint32_t n = classes->n;
	size_t sets = 0;
	int r = 0;

	for (size_t i = 0; i < users->n; i++)
		sets += users->who[i] != NULL;
	if (!c->in_place || !sets)
		return 0;
	if (!bits || !room)
		return -ENOMEM;
	r = class_of(classes, bits);
	r = r < 0 ? r : add_classes(classes, users, bits, room);
	for (uint32_t i = 0; i < n && n * (sets + 1) <= SPARE_CLASSES && r >= 0; i++) {
		/* adding may move them */
		memcpy(bits, class_bits(classes, i), c->shape.words * sizeof(*bits));
		r = add_classes(classes, users, bits, room);
	}
	return r < 0 ? r : 0;
}

uint64_t *compile_base(const struct compiler *c, enum ax_field f)
{
	uint64_t *bits = calloc(c->shape.words, sizeof(*bits));

	for (uint32_t i = 0; bits && i < c->shape.rules; i++)
		if (condition_is_empty(&c->rules[i]->in[f]))
			bit_set(bits, i);
	return bits;
}

/* --- ranges --- */

/* Where a range of a rule begins, or is over. Sets are numbered behind the rules. */
struct event {
	uint32_t value;
	uint32_t who;
	bool begins;
};
struct sweep {
	struct compiler *c;
	const struct rule_field *row;
	struct set_users users;
	struct event *events; /* by value */
	size_t n;
	uint32_t *depth; /* of rules and sets: how many of their ranges are open */
	size_t open_sets;
	uint64_t *now, *with_sets; /* the rules that hold by themselves; and through sets */
};

static void sweep_free(struct sweep *s)
{
	set_users_free(&s->users);
	free(s->events);
	free(s->depth);
	free(s->now);
	free(s->with_sets);
}

static void add_range(struct sweep *s, uint32_t who, const struct range *r)
{
	uint32_t last = s->row->last, hi = r->hi < last ? r->hi : last;

	if (r->lo > hi)
		return;
	s->events[s->n++] = (struct event){r->lo, who, true};
	s->events[s->n++] = (struct event){hi + 1, who, false};
}

static size_t count_ranges(const struct sweep *s)
{
	const struct compiler *c = s->c;
	size_t n = 0;

	for (uint32_t i = 0; i < c->shape.rules; i++)
		n += c->rules[i]->in[s->row->number].n;
	for (size_t i = 0; i < s->users.n; i++)
		n += s->users.who[i] ? c->list->sets[i].n : 0;
	return n;
}

static void add_ranges(struct sweep *s)
{
	const struct compiler *c = s->c;

	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct condition *own = &c->rules[i]->in[s->row->number];

		for (size_t k = 0; k < own->n; k++)
			add_range(s, i, &own->ranges[k]);
	}
	for (size_t i = 0; i < s->users.n; i++) {
		const struct rule_set_def *set = &c->list->sets[i];

		for (size_t k = 0; s->users.who[i] && k < set->n; k++)
			add_range(s, c->shape.rules + (uint32_t)i, &set->ports[k]);
	}
}

static int event_cmp(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	return a->value < b->value ? -1 : a->value > b->value;
}

static int collect_events(struct sweep *s)
{
	size_t n = count_ranges(s);

	if (n > ITEMS_MAX)
		return error_set(s->c->e, -E2BIG,
				 "the rules have more than %u values of '%s': write ranges instead",
				 ITEMS_MAX, rule_field_name(s->row->number));
	s->events = calloc(2 * n + 1, sizeof(*s->events));
	if (!s->events)
		return -ENOMEM;
	add_ranges(s);
	qsort(s->events, s->n, sizeof(*s->events), event_cmp);
	return 0;
}

static void take_event(struct sweep *s, const struct event *e)
{
	uint32_t rules = s->c->shape.rules;
	bool changes = e->begins ? s->depth[e->who]++ == 0 : --s->depth[e->who] == 0;

	if (!changes)
		return;
	if (e->who >= rules && e->begins)
		s->open_sets++;
	else if (e->who >= rules)
		s->open_sets--;
	else if (e->begins)
		bit_set(s->now, e->who);
	else
		bit_clear(s->now, e->who);
}

static int class_now(struct sweep *s, struct classes *classes)
{
	const struct shape *shape = &s->c->shape;

	if (!s->open_sets)
		return class_of(classes, s->now);
	memcpy(s->with_sets, s->now, shape->words * sizeof(*s->now));
	for (size_t i = 0; i < s->users.n; i++)
		if (s->depth[shape->rules + i])
			bits_or(s->with_sets, s->users.who[i], shape->words);
	return class_of(classes, s->with_sets);
}

static int sweep_init(struct sweep *s)
{
	const struct compiler *c = s->c;
	int r = set_users_init(s->c, s->row, &s->users);

	if (r < 0)
		return r;
	s->depth = calloc(c->shape.rules + c->list->n_sets, sizeof(*s->depth));
	s->now = compile_base(c, s->row->number);
	s->with_sets = calloc(c->shape.words, sizeof(*s->with_sets));
	if (!s->depth || !s->now || !s->with_sets)
		return -ENOMEM;
	return collect_events(s);
}

/* The value, behind all others, for which every condition holds. */
static int add_unasked(struct sweep *s)
{
	struct field *field = &s->c->field[s->row->number];
	int cls;

	for (uint32_t i = 0; i < s->c->shape.rules; i++)
		bit_set(s->now, i);
	cls = class_of(&field->classes, s->now);
	return cls < 0 ? cls : cuts_add(&field->cuts, s->row->unasked, 0, (uint32_t)cls);
}

/* The ends at one value may come before its beginnings or behind: only what is open then counts.
 * The value of packets without the field comes behind those that ranges speak of. */
int compile_numbers(struct compiler *c, const struct rule_field *row)
{
	struct sweep s CLEANUP(sweep_free) = {.c = c, .row = row};
	struct field *field = &c->field[row->number];
	int cls, r = sweep_init(&s);
	uint32_t value = 0;
	size_t i = 0;

	while (r == 0 && value < row->size) {
		for (; i < s.n && s.events[i].value == value; i++)
			take_event(&s, &s.events[i]);
		cls = class_now(&s, &field->classes);
		r = cls < 0 ? cls : cuts_add(&field->cuts, value, 0, (uint32_t)cls);
		value = i < s.n ? s.events[i].value : UINT32_MAX;
	}
	if (r == 0 && row->unasked)
		r = add_unasked(&s);
	return r < 0 ? r : compile_set_classes(c, row->number, &s.users);
}

/* --- bits --- */

static bool bits_fit(const struct condition *c, uint32_t value)
{
	for (size_t i = 0; i < c->n; i++)
		if ((value & c->bits[i].mask) == c->bits[i].value)
			return true;
	return false;
}

int compile_bits(struct compiler *c, const struct rule_field *row)
{
	struct field *field = &c->field[row->number];
	size_t size = c->shape.words * sizeof(uint64_t);
	autofree uint64_t *base = compile_base(c, row->number);
	autofree uint64_t *bits = malloc(size);
	int r = 0;

	if (!base || !bits)
		return -ENOMEM;
	for (uint32_t v = 0; v < row->size && r == 0; v++) {
		int cls;

		memcpy(bits, base, size);
		for (uint32_t i = 0; i < c->shape.rules && v <= row->last; i++)
			if (bits_fit(&c->rules[i]->in[row->number], v))
				bit_set(bits, i);
		cls = class_of(&field->classes, bits);
		r = cls < 0 ? cls : cuts_add(&field->cuts, v, 0, (uint32_t)cls);
	}
	return r;
}
