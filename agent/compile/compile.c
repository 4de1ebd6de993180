// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rule compiler: which rules there are, then their classes, then tables and actions.
 *
 * Balancing by ports: later fragments of a packet have none, and would go another way than the
 * first. So such a rule is followed by a companion for the later fragments between the same
 * addresses, which does and counts the same.
 */
#include <netinet/in.h>
#include <sys/random.h>

#include "compile/priv.h"

void compiler_free(struct compiler *c)
{
	for (int f = 0; f < AX_FIELDS; f++) {
		classes_free(&c->field[f].classes);
		free(c->field[f].v4.v);
		free(c->field[f].cuts.v);
		free(c->field[f].timed);
	}
	free(c->rules);
	free(c->list_rule);
	free(c->companions);
	free(c->off);
	name_tree_free(&c->names);
	arena_free(&c->rows);
}

int compile_failed(struct compiler *c, int64_t r, const char *field)
{
	if (c->e->code) /* a sentence was found already */
		return c->e->code;
	if (r == -E2BIG)
		return error_set(c->e, -E2BIG,
				 "the rules tell more than %u kinds of '%s' apart: use fewer "
				 "different values there, or fewer that overlap",
				 CLASSES_MAX, field);
	if (r == -EFBIG)
		return error_set(c->e, -E2BIG,
				 "the compiled rules are bigger than %u MiB: use smaller sets, or "
				 "fewer rules with different values of the same field",
				 ARENA_MAX >> 20);
	return error_set(c->e, (int)r, "cannot compile the rules: %s", strerror((int)-r));
}

/* --- which rules --- */

static bool holds(const struct condition *c, uint32_t v)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->ranges[i].lo <= v && v <= c->ranges[i].hi)
			return true;
	return !c->n;
}

/* Whether packets of the protocol have all the headers that the rule has conditions on. */
static bool has_headers(const struct rule *r, uint8_t proto)
{
	for (size_t i = 0; i < AX_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];

		if (row->header && !condition_is_empty(&r->in[row->number]) &&
		    row->header->protos[0] != proto && row->header->protos[1] != proto)
			return false;
	}
	return true;
}

static bool asks_headers(const struct rule *r)
{
	for (size_t i = 0; i < AX_FIELDS; i++)
		if (rule_fields[i].header && !condition_is_empty(&r->in[rule_fields[i].number]))
			return true;
	return false;
}

static bool needs_companion(const struct rule *r)
{
	return r->verdict == AX_VERDICT_BALANCE && asks_headers(r) &&
	       holds(&r->in[AX_FIELD_FRAGMENT], AX_FRAGMENT_LATER);
}

static bool is_off(const struct compiler *c, uint32_t i)
{
	return c->bind && c->bind[c->list_rule[i]].off;
}

/* A field that is looked at for other rules, too, if there is one; none that sets change in place,
 * or that is asked late. */
static enum ax_field cheapest(const struct compiler *c)
{
	for (size_t k = 0; k < RULE_FIELDS; k++) {
		const struct rule_field *row = &rule_fields[k];

		if (row->kind != FIELD_NUMBER || row->sets || row->unasked)
			continue;
		for (uint32_t i = 0; i < c->shape.rules; i++)
			if (!is_off(c, i) && c->rules[i]->in[row->number].n)
				return row->number;
	}
	return AX_FIELD_PROTO;
}

/* Changes of sets in place go by the list alone: what they look at stays as the list has it. */
static void never_hold(struct compiler *c, enum ax_field field, struct rule *r)
{
	for (size_t k = 0; k < RULE_FIELDS; k++)
		if (!c->in_place || !rule_fields[k].sets)
			r->in[rule_fields[k].number] = (struct condition){0};
	r->in[field] = (struct condition){.ranges = &c->never, .n = 1};
}

/* Rules that are not for this interface keep their places, and so their counters, but hold for no
 * packet. */
static int take_out(struct compiler *c)
{
	enum ax_field field = cheapest(c);
	size_t n = 0;

	for (uint32_t i = 0; i < c->shape.rules; i++)
		n += is_off(c, i);
	if (!n)
		return 0;
	c->off = calloc(n, sizeof(*c->off));
	if (!c->off)
		return -ENOMEM;
	c->never = (struct range){1, 0};
	n = 0;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		if (!is_off(c, i))
			continue;
		c->off[n] = *c->rules[i];
		never_hold(c, field, &c->off[n]);
		c->rules[i] = &c->off[n++];
	}
	return 0;
}

/* Of the rule's protocols those whose packets its conditions can hold for. */
static void companion_of(const struct rule *r, struct companion *to)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP};
	struct rule *rule = &to->rule;
	size_t n = 0;

	*rule = *r;
	for (size_t i = 0; i < AX_FIELDS; i++)
		if (rule_fields[i].header)
			rule->in[rule_fields[i].number] = (struct condition){0};
	to->later = (struct range){AX_FRAGMENT_LATER, AX_FRAGMENT_LATER};
	rule->in[AX_FIELD_FRAGMENT] = (struct condition){.ranges = &to->later, .n = 1};
	for (size_t i = 0; i < ARRAY_SIZE(protos); i++)
		if (holds(&r->in[AX_FIELD_PROTO], protos[i]) && has_headers(r, protos[i]))
			to->protos[n++] = (struct range){protos[i], protos[i]};
	if (!n) /* such a rule never holds: nor does its companion */
		to->protos[n++] = (struct range){1, 0};
	rule->in[AX_FIELD_PROTO] = (struct condition){.ranges = to->protos, .n = n};
}

static int too_many_rules(struct compiler *c, size_t n, size_t companions)
{
	if (companions)
		return error_set(c->e, -E2BIG,
				 "there are %zu rules, and %zu more for the fragments of packets "
				 "that are balanced by port: use at most %u",
				 n, companions, AX_XDP_RULES_MAX);
	return error_set(c->e, -E2BIG, "there are %zu rules: use at most %u", n, AX_XDP_RULES_MAX);
}

/* Nothing comes behind the first rule without conditions. */
static size_t rules_that_count(const struct rule_list *l, size_t *companions)
{
	size_t n = 0;

	*companions = 0;
	while (n < l->n_rules) {
		const struct rule *r = &l->rules[n++];

		*companions += needs_companion(r);
		if (rule_catches_all(r))
			break;
	}
	return n;
}

static void set_shape(struct shape *s, size_t rules)
{
	s->rules = (uint32_t)rules;
	s->words = (s->rules + 63) / 64;
	s->summary = (s->words + 63) / 64;
	s->row_size = (s->words + s->summary) * (uint32_t)sizeof(uint64_t);
}

int compile_rules(struct compiler *c)
{
	size_t companions, n = rules_that_count(c->list, &companions), all = n + companions, k = 0;

	if (all > AX_XDP_RULES_MAX || c->list->n_rules > UINT16_MAX)
		return too_many_rules(c, n, companions);
	set_shape(&c->shape, all);
	c->rules = calloc(all + 1, sizeof(*c->rules));
	c->list_rule = calloc(all + 1, sizeof(*c->list_rule));
	c->companions = calloc(companions + 1, sizeof(*c->companions));
	if (!c->rules || !c->list_rule || !c->companions)
		return -ENOMEM;
	companions = 0;
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &c->list->rules[i];

		c->list_rule[k] = (uint16_t)i;
		c->rules[k++] = r;
		if (!needs_companion(r))
			continue;
		companion_of(r, &c->companions[companions]);
		c->list_rule[k] = (uint16_t)i;
		c->rules[k++] = &c->companions[companions++].rule;
	}
	return take_out(c);
}

/* --- classes --- */

/* A field in which all rules hold for all packets need not be looked at. */
static bool tells_apart(const struct compiler *c, const struct classes *classes)
{
	const uint64_t *bits = class_bits(classes, 0);
	uint32_t n = 0;

	for (uint32_t w = 0; w < c->shape.words; w++)
		n += (uint32_t)__builtin_popcountll(bits[w]);
	return classes->n > 1 || n < c->shape.rules;
}

static int classify_field(struct compiler *c, const struct rule_field *row)
{
	static int (*const classify[FIELD_KINDS])(struct compiler * c,
						  const struct rule_field *row) = {
		[FIELD_ADDRESS] = compile_addresses, [FIELD_NUMBER] = compile_numbers,
		[FIELD_BITS] = compile_bits,	     [FIELD_MAC] = compile_macs,
		[FIELD_PAYLOAD] = compile_payloads,  [FIELD_NAME] = compile_names,
		[FIELD_FLOW] = compile_flows,	     [FIELD_MARK] = compile_marks,
	};
	struct field *field = &c->field[row->number];
	int r = classes_init(&field->classes, &c->shape, &c->rows);

	if (r < 0)
		return r;
	r = classify[row->kind](c, row);
	if (r == 0)
		r = compile_timed(c, row);
	if (r == 0)
		field->used = tells_apart(c, &field->classes);
	return r;
}

static int classify(struct compiler *c)
{
	if (arena_add(&c->rows, sizeof(struct ax_layout), 64) < 0)
		return -ENOMEM;
	for (int f = 0; f < AX_FIELDS; f++) {
		const struct rule_field *row = rule_field((enum ax_field)f);
		bool any = false;
		int r;

		for (uint32_t i = 0; i < c->shape.rules && !any; i++)
			any = !condition_is_empty(&c->rules[i]->in[f]);
		if (!any)
			continue;
		r = classify_field(c, row);
		if (r < 0)
			return compile_failed(c, r, rule_field_name(row->number));
	}
	return 0;
}

/* --- the rest of the arena --- */

/* The default, or the rule without conditions that stands before it. */
static enum ax_verdict last_verdict(const struct compiler *c)
{
	for (uint32_t i = 0; i < c->shape.rules; i++)
		if (rule_takes_any_packet(c->rules[i]))
			return c->rules[i]->verdict;
	return c->list->default_action;
}

static void describe(const struct compiler *c, struct ax_layout *layout)
{
	const uint8_t *policy = c->list->policy;

	memcpy(layout->policy, policy, AX_REASON_POLICIES);
	layout->quotes = last_verdict(c) == AX_VERDICT_DROP &&
			 policy[AX_REASON_ICMP_ERROR] == AX_POLICY_PASS;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		if (is_off(c, i))
			continue;
		layout->flow_learns |= c->rules[i]->learn_flow;
		if (c->rules[i]->verdict == AX_VERDICT_BALANCE)
			layout->balance_first = 1;
		else if (c->rules[i]->verdict == AX_VERDICT_ROUTE)
			layout->routes = 1;
		else if (c->rules[i]->verdict == AX_VERDICT_CHALLENGE)
			layout->challenges = 1;
	}
	layout->words = c->shape.words;
	layout->summary = c->shape.summary;
	layout->row_size = c->shape.row_size;
	compile_write_payloads(c, layout);
	compile_write_marks(c, layout);
}

static int write_state(struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	autofree void *text = NULL;
	size_t len;
	int r = rule_list_save(c->list, &text, &len);
	int64_t at;

	if (r < 0)
		return r;
	at = arena_add(a, len, 64);
	if (at < 0)
		return (int)at;
	memcpy(a->data + at, text, len);
	layout->state = (uint32_t)at;
	layout->state_size = (uint32_t)len;
	return 0;
}

#define IN_PLACE_FROM 16384 /* lists of smaller sets are compiled anew in no time */

static bool has_many_elements(const struct rule_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_sets; i++)
		n += l->sets[i].n;
	return n >= IN_PLACE_FROM;
}

/* What changes in place is written down there. */
static int add_journal(const struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	int64_t at;

	if (!c->in_place)
		return 0;
	at = arena_add(a, sizeof(struct ax_journal), 64);
	if (at < 0)
		return (int)at;
	layout->journal = (uint32_t)at;
	return 0;
}

static int random_key(__u64 *ret)
{
	do
		if (getrandom(ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
			return errno == EINTR ? -EAGAIN : -errno;
	while (!*ret);
	return 0;
}

/* The layout in front, and what is read at once behind the last byte is there too. */
static int finish(struct arena *a, struct ax_layout *layout)
{
	int64_t at = arena_add(a, 64, 64);
	int r = at < 0 ? (int)at : random_key(&layout->explain_key);

	if (r < 0)
		return r;
	layout->magic = AX_ARENA_MAGIC;
	layout->size = (uint32_t)a->size;
	memcpy(a->data, layout, sizeof(*layout));
	return 0;
}

static int compile(struct compiler *c, const struct real_binding *reals, struct arena *a,
		   struct ax_layout *layout)
{
	int r;

	c->in_place = has_many_elements(c->list);
	r = compile_rules(c);
	c->n_timed = (uint32_t)rule_list_timed_sets(c->list, c->timed);
	if (c->n_timed > AX_TIMED_SETS) /* no list that was checked */
		return -EINVAL;
	if (r == 0)
		r = classify(c);
	if (r < 0)
		return r;
	describe(c, layout);
	r = compile_match(c, a, layout);
	if (r == 0)
		r = write_timed(c, a, layout);
	if (r == 0)
		r = compile_write_names(c, a, layout);
	if (r == 0)
		r = compile_actions(c, a, layout);
	if (r == 0)
		r = balancers_compile(c->list, reals, a, layout, c->e);
	if (r == 0)
		r = write_state(c, a, layout);
	compile_clocks(layout);
	if (r == 0)
		r = add_journal(c, a, layout);
	return r < 0 ? r : finish(a, layout);
}

int rule_compile(const struct rule_list *l, const struct rule_binding *bind,
		 const struct real_binding *reals, struct arena *a, struct ax_layout *layout,
		 struct error *e)
{
	struct error own = {0};
	struct compiler c CLEANUP(compiler_free) = {.list = l, .bind = bind, .e = &own};
	struct ax_layout made = {0};
	struct arena arena CLEANUP(arena_free) = {0};
	int r = compile(&c, reals, &arena, &made);

	if (r < 0) {
		r = compile_failed(&c, r, "any field");
		return error_set(e, r, "%s", own.text);
	}
	*layout = made;
	*a = arena;
	arena = (struct arena){0};
	return 0;
}
