// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a rule says about each field, and the classes of the fields that are looked up by index:
 * where the ranges of the rules begin and end, the vector of the rules that hold changes.
 */
#include "compile/priv.h"

const char *const compile_field_names[AX_FIELDS] = {
	[AX_FIELD_SRC] = "src",	      [AX_FIELD_DST] = "dst",	  [AX_FIELD_PROTO] = "proto",
	[AX_FIELD_SPORT] = "sport",   [AX_FIELD_DPORT] = "dport", [AX_FIELD_TCP_FLAGS] = "flags",
	[AX_FIELD_ICMP] = "icmp",     [AX_FIELD_VLAN] = "vlan",	  [AX_FIELD_FRAGMENT] = "fragment",
	[AX_FIELD_LENGTH] = "length", [AX_FIELD_MAC] = "mac",
};

/* How long a field's table is, and which values a rule can speak of: not that of packets without
 * the field, but "untagged" is a value of its own. */
static const struct {
	uint32_t size, last;
} index_fields[AX_FIELDS] = {
	[AX_FIELD_PROTO] = {AX_PROTO_NONE + 1, AX_PROTO_NONE - 1},
	[AX_FIELD_SPORT] = {AX_PORT_NONE + 1, AX_PORT_NONE - 1},
	[AX_FIELD_DPORT] = {AX_PORT_NONE + 1, AX_PORT_NONE - 1},
	[AX_FIELD_TCP_FLAGS] = {AX_TCP_FLAGS_NONE + 1, AX_TCP_FLAGS_NONE - 1},
	[AX_FIELD_ICMP] = {AX_ICMP_NONE + 1, AX_ICMP_NONE - 1},
	[AX_FIELD_VLAN] = {AX_VLAN_NONE + 1, AX_VLAN_NONE},
	[AX_FIELD_FRAGMENT] = {AX_FRAGMENTS, AX_FRAGMENTS - 1},
	[AX_FIELD_LENGTH] = {65536, 65535},
};

size_t compile_index_size(enum ax_field f)
{
	return index_fields[f].size;
}

const struct rule_addrs *rule_addrs_of(const struct rule *r, enum ax_field f)
{
	return f == AX_FIELD_SRC ? &r->src : f == AX_FIELD_DST ? &r->dst : NULL;
}

const struct ranges *rule_ranges_of(const struct rule *r, enum ax_field f)
{
	switch (f) {
	case AX_FIELD_PROTO:
		return &r->proto;
	case AX_FIELD_SPORT:
		return &r->sport;
	case AX_FIELD_DPORT:
		return &r->dport;
	case AX_FIELD_ICMP:
		return &r->icmp;
	case AX_FIELD_VLAN:
		return &r->vlan;
	case AX_FIELD_FRAGMENT:
		return &r->fragment;
	case AX_FIELD_LENGTH:
		return &r->length;
	default:
		return NULL;
	}
}

bool rule_has(const struct rule *r, enum ax_field f)
{
	const struct rule_addrs *a = rule_addrs_of(r, f);
	const struct ranges *v = rule_ranges_of(r, f);

	if (a)
		return a->n || a->sets.n;
	if (v)
		return v->n || v->sets.n;
	return f == AX_FIELD_MAC ? r->n_mac > 0 : r->flags_mask != 0;
}

static const struct strv *set_names(const struct rule *r, enum ax_field f)
{
	const struct rule_addrs *a = rule_addrs_of(r, f);
	const struct ranges *v = rule_ranges_of(r, f);

	return a ? &a->sets : v ? &v->sets : NULL;
}

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
			c->list_rule[rule] + 1u, name, s->kind == SET_PORTS ? "ports" : "prefixes",
			kind == SET_PORTS ? "ports" : "prefixes");
	i = (size_t)(s - c->list->sets);
	if (!u->who[i])
		u->who[i] = calloc(c->shape.words, sizeof(uint64_t));
	if (!u->who[i])
		return -ENOMEM;
	bit_set(u->who[i], rule);
	return 0;
}

int set_users_init(struct compiler *c, enum ax_field f, enum set_kind kind, struct set_users *ret)
{
	ret->n = c->list->n_sets;
	ret->who = calloc(ret->n + 1, sizeof(*ret->who));
	if (!ret->who)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct strv *names = set_names(c->rules[i], f);

		for (size_t k = 0; k < names->n; k++) {
			int r = add_user(c, i, names->v[k], kind, ret);

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

uint64_t *compile_base(const struct compiler *c, enum ax_field f)
{
	uint64_t *bits = calloc(c->shape.words, sizeof(*bits));

	for (uint32_t i = 0; bits && i < c->shape.rules; i++)
		if (!rule_has(c->rules[i], f))
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
	enum ax_field f;
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
	uint32_t last = index_fields[s->f].last, hi = r->hi < last ? r->hi : last;

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
		n += rule_ranges_of(c->rules[i], s->f)->n;
	for (size_t i = 0; i < s->users.n; i++)
		n += s->users.who[i] ? c->list->sets[i].n : 0;
	return n;
}

static void add_ranges(struct sweep *s)
{
	const struct compiler *c = s->c;

	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct ranges *v = rule_ranges_of(c->rules[i], s->f);

		for (size_t k = 0; k < v->n; k++)
			add_range(s, i, &v->v[k]);
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
				 ITEMS_MAX, compile_field_names[s->f]);
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
	int r = set_users_init(s->c, s->f, SET_PORTS, &s->users);

	if (r < 0)
		return r;
	s->depth = calloc(c->shape.rules + c->list->n_sets, sizeof(*s->depth));
	s->now = compile_base(c, s->f);
	s->with_sets = calloc(c->shape.words, sizeof(*s->with_sets));
	if (!s->depth || !s->now || !s->with_sets)
		return -ENOMEM;
	return collect_events(s);
}

/* The ends at one value may come before its beginnings or behind: only what is open then counts.
 * The value of packets without the field comes behind those that ranges speak of. */
static int sweep_ranges(struct compiler *c, enum ax_field f)
{
	struct sweep s CLEANUP(sweep_free) = {.c = c, .f = f};
	struct field *field = &c->field[f];
	int cls, r = sweep_init(&s);
	uint32_t value = 0;
	size_t i = 0;

	while (r == 0 && value < index_fields[f].size) {
		for (; i < s.n && s.events[i].value == value; i++)
			take_event(&s, &s.events[i]);
		cls = class_now(&s, &field->classes);
		r = cls < 0 ? cls : cuts_add(&field->cuts, value, 0, (uint32_t)cls);
		value = i < s.n ? s.events[i].value : UINT32_MAX;
	}
	return r;
}

/* --- TCP flags --- */

static int classify_flags(struct compiler *c)
{
	struct field *field = &c->field[AX_FIELD_TCP_FLAGS];
	size_t size = c->shape.words * sizeof(uint64_t);
	autofree uint64_t *base = compile_base(c, AX_FIELD_TCP_FLAGS);
	autofree uint64_t *bits = malloc(size);
	int r = 0;

	if (!base || !bits)
		return -ENOMEM;
	for (uint32_t v = 0; v <= AX_TCP_FLAGS_NONE && r == 0; v++) {
		int cls;

		memcpy(bits, base, size);
		for (uint32_t i = 0; i < c->shape.rules && v < AX_TCP_FLAGS_NONE; i++) {
			const struct rule *rule = c->rules[i];

			if (rule->flags_mask && (v & rule->flags_mask) == rule->flags_value)
				bit_set(bits, i);
		}
		cls = class_of(&field->classes, bits);
		r = cls < 0 ? cls : cuts_add(&field->cuts, v, 0, (uint32_t)cls);
	}
	return r;
}

int compile_index_field(struct compiler *c, enum ax_field f)
{
	return f == AX_FIELD_TCP_FLAGS ? classify_flags(c) : sweep_ranges(c, f);
}
