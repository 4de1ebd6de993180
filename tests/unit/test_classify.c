// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The very code that the XDP programs match with, compiled for this machine, against the plain
 * meaning of random rule lists: far more of them than could be loaded into a kernel.
 *
 * A hundred thousand rule lists would take minutes with sanitizers; test_compile has some with
 * them.
 */
// build: unsanitized
// timeout: 600
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compile/compile.h"

/* What the programs get from the kernel. libbpf's header of the helpers stays out by its guard. */
#define __BPF_HELPERS__
#define SEC(name)
/* NOLINTBEGIN(bugprone-macro-parentheses): these declare members, as libbpf's do */
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
/* NOLINTEND(bugprone-macro-parentheses) */
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline	__attribute__((noinline, unused))
#define AX_RULES_MAP	static __attribute__((unused))
#define AX_ON_TC	/* where packets have all fields */
/* a constant of a program; here of whichever list is looked at */
#define layout (*layout_now)

static const volatile struct ax_layout *layout_now;
static uint8_t *arena_now;

static void *bpf_map_lookup_elem(const void *map, const void *key);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function" /* no caller needs all of it */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "../../xdp/classify.bpf.h"
#pragma GCC diagnostic pop
#undef layout
#include "tests/lib/arena_eval.h"
#include "tests/lib/quick.h"
#include "tests/lib/rule_random.h"

/* The arena is the only map that matching reads. */
static void *bpf_map_lookup_elem(const void *map, const void *key)
{
	assert_ptr_equal(map, &arena);
	assert_int_equal(*(const uint32_t *)key, 0);
	return arena_now;
}

#define LISTS	    100000
#define LISTS_QUICK 10000 /* in `make check-quick` */
#define PACKETS	    20	  /* for each of them */

static const struct ax_action *action_of(uint32_t rule)
{
	return (const struct ax_action *)(arena_now + layout_now->actions) + rule;
}

static uint32_t judge(const struct match_packet *m)
{
	const struct arena evaluated = {.data = arena_now, .size = layout_now->size};
	struct packet p = match_parsed(m);
	struct judged j = {.p = &p, .len = m->len, .minute = m->minute};
	uint32_t rule, at;

	p.marks = (__u16)eval_marks((const struct ax_layout *)layout_now, m);
	if (p.has_l4)
		p.name = AX_NAME_UNASKED;
	for (int i = 0; i < 6; i++)
		j.mac = j.mac << 8 | m->mac[i];
	rule = classify(arena_now, &j, &at);
	for (int asked = 0; asked < 2; asked++) { /* as the filter does */
		uint32_t flags;

		assert_true(rule <= layout_now->rules);
		flags = action_of(rule)->flags;
		if (flags & AX_ACTION_ASKS_PAYLOAD && p.payload == AX_PAYLOAD_UNASKED) {
			p.payload = (uint16_t)eval_payload((const struct ax_layout *)layout_now, m);
			if (p.has_l4)
				p.name = (uint16_t)eval_name(
					&evaluated, (const struct ax_layout *)layout_now, m);
			rule = layout_now->match == AX_MATCH_BITMAP ||
					       layout_now->field[AX_FIELD_NAME].used
				       ? classify(arena_now, &j, &at)
				       : classify_payload(arena_now, &j, at);
		} else if (flags & AX_ACTION_ASKS_STATE && p.state == AX_STATE_UNASKED) {
			p.state = m->ip ? m->state : AX_STATE_NONE;
			rule = classify(arena_now, &j, &at);
		}
	}
	assert_true(rule <= layout_now->rules);
	return action_of(rule)->rule;
}

/* The arena in memory of exactly its size, so that the sanitizer sees what lies outside. */
static uint8_t *compile(const struct rule_list *l, struct ax_layout *made)
{
	autofree struct rule_binding *bind = calloc(l->n_rules + 1, sizeof(*bind));
	CLEANUP(arena_free) struct arena a = {0};
	struct error e = {0};
	uint8_t *exact;

	assert_non_null(bind);
	if (rule_compile(l, bind, NULL, &a, made, &e) < 0)
		fail_msg("%s", e.text);
	exact = malloc(a.size);
	assert_non_null(exact);
	return memcpy(exact, a.data, a.size);
}

static void check_list(const struct rule_list *l, struct rnd *r, unsigned packets, unsigned *modes)
{
	struct ax_layout made;

	arena_now = compile(l, &made);
	layout_now = &made;
	modes[made.match]++;
	for (unsigned i = 0; i < packets; i++) {
		struct match_packet p;
		uint64_t seed = r->s;

		rnd_packet(r, l, &p);
		if (judge(&p) != match_first(l, &p))
			fail_msg("packet of seed %#llx: rule %u instead of %zu of %zu, mode %u",
				 (unsigned long long)seed, judge(&p), match_first(l, &p),
				 l->n_rules, made.match);
	}
	free(arena_now);
	layout_now = NULL;
}

static void random_lists_match_as_they_say(void **state)
{
	const unsigned lists = quick_or(LISTS_QUICK, LISTS);
	unsigned modes[4] = {0};

	(void)state;
	for (unsigned n = 0; n < lists; n++) {
		CLEANUP(rule_list_free) struct rule_list l;
		struct rnd r = {n * 104729ull + 3};

		rnd_list(&r, (1u << AX_FIELDS) - 1, false, &l);
		check_list(&l, &r, PACKETS, modes);
	}
	for (int i = 0; i < 4; i++)
		assert_true(modes[i] >= lists / 100);
	print_message("# %u lists: %u without conditions, %u of one field, %u products, %u rows\n",
		      lists, modes[0], modes[1], modes[2], modes[3]);
}

/* All four words of the summary, and rules at the end of long rows. */
static void long_lists_match_to_their_end(void **state)
{
	const size_t n = AX_XDP_RULES_MAX;
	unsigned modes[4] = {0};
	struct rnd r = {99};

	(void)state;
	for (int round = 0; round < 2; round++) {
		CLEANUP(rule_list_free) struct rule_list l = {0};

		l.rules = calloc(n, sizeof(*l.rules));
		assert_non_null(l.rules);
		for (l.n_rules = 0; l.n_rules < n; l.n_rules++) {
			struct rule *to = &l.rules[l.n_rules];
			struct condition *port;

			rnd_condition(&r, &l, AX_FIELD_DPORT, to);
			port = &to->in[AX_FIELD_DPORT];
			port->ranges[port->n - 1].hi = port->ranges[port->n - 1].lo;
			port->n = 1;
			rnd_condition(&r, &l, round ? AX_FIELD_SPORT : AX_FIELD_DST, to);
			rnd_condition(&r, &l, AX_FIELD_TCP_FLAGS, to);
		}
		check_list(&l, &r, 300, modes);
	}
	assert_int_equal(modes[AX_MATCH_BITMAP], 2);
}

/* A million addresses are searched in no more steps than these. */
static void deep_tables_are_searched_to_their_end(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct rule r = {.verdict = AX_VERDICT_DROP};
	struct rnd rnd = {8};
	const struct ax_field_layout *src;
	struct ax_layout made;

	(void)state;
	rule_list_init(&l);
	l.sets = rnd_alloc(1, sizeof(*l.sets));
	l.n_sets = 1;
	l.sets->name = strdup("dense");
	dense_set(l.sets);
	rnd_name(&r.in[AX_FIELD_SRC].sets, "dense");
	assert_int_equal(rule_list_insert(&l, 0, &r), 0);
	arena_now = compile(&l, &made);
	layout_now = &made;
	src = &made.field[AX_FIELD_SRC];
	assert_int_equal(src->buckets4_size - src->spare4, 65536 * 4);
	assert_in_range(src->entries, 1 << 14, 1 << AX_ROOT6_LOG2_MAX);
	for (unsigned i = 0; i < 200000; i++) {
		struct match_packet p = {.ip = true, .proto = 6, .vlan = AX_VLAN_NONE, .len = 60};
		bool in;

		p.src = dense_pick(&rnd, &in);
		p.v4 = addr_is_v4(&p.src);
		if (judge(&p) != !in)
			fail_msg("address %u of %#x", ntohl(p.src.w[3]), p.src.b[0]);
	}
	free(arena_now);
}

/* --- hosts --- */

#define HOSTS_UP 240 /* upper halves with hosts, 0.0 and on */

/* More and more of them: every fourth upper half has a seventh more hosts than the one before, and
 * one in four hosts is right beside another; the first and last address are some, now and then. */
static bool *many_hosts(struct rule_set_def *s, struct rnd *r)
{
	bool *in = rnd_alloc((size_t)HOSTS_UP << 16, sizeof(*in));
	uint32_t n = 1, at = 0;
	size_t room = 0;

	for (uint32_t up = 0; up < HOSTS_UP; up++) {
		for (uint32_t i = 0; i < n; i++) {
			at = rnd_one_in(r, 4) ? (at + 1) & 0xffff : rnd_below(r, 65536);
			in[up << 16 | at] = true;
		}
		in[up << 16] |= up % 5 == 1;
		in[up << 16 | 0xffff] |= up % 3 == 1;
		room += n + 2;
		n = up % 4 ? n : n + n / 7 + 1;
	}
	s->prefixes = rnd_alloc(room, sizeof(*s->prefixes));
	for (uint32_t i = 0; i < HOSTS_UP << 16; i++)
		if (in[i])
			s->prefixes[s->n++] = (struct prefix){addr_from_v4(htonl(i)), 128};
	return in;
}

/* Whether the bucket of an upper half is of points. */
static bool has_points(uint32_t up)
{
	const volatile struct ax_field_layout *src = &layout_now->field[AX_FIELD_SRC];

	return !(((const uint32_t *)(arena_now + src->table))[up] >> AX_ROOT_OFFSET_BITS);
}

/* Every address of all of them, and those of networks without any. */
static void check_hosts(const bool *in)
{
	struct match_packet p = {.ip = true, .v4 = true, .proto = 6, .vlan = AX_VLAN_NONE};
	unsigned rows = 0, others = 0;

	for (uint32_t up = 0; up < HOSTS_UP; up++)
		*(has_points(up) ? &rows : &others) += 1;
	assert_true(rows > HOSTS_UP / 3 && others > HOSTS_UP / 20);
	for (uint32_t i = 0; i < (HOSTS_UP + 1) << 16; i++) {
		p.src = addr_from_v4(htonl(i));
		if (judge(&p) != !(i < HOSTS_UP << 16 && in[i]))
			fail_msg("address %#x of an upper half with %s", i,
				 has_points(i >> 16) ? "points" : "a search");
	}
}

static void hosts_are_found_among_others(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct rule r = {.verdict = AX_VERDICT_DROP};
	struct rnd rnd = {5};
	struct ax_layout made;
	autofree bool *in = NULL;

	(void)state;
	rule_list_init(&l);
	l.sets = rnd_alloc(1, sizeof(*l.sets));
	l.n_sets = 1;
	l.sets->name = strdup("hosts");
	in = many_hosts(l.sets, &rnd);
	rnd_name(&r.in[AX_FIELD_SRC].sets, "hosts");
	assert_int_equal(rule_list_insert(&l, 0, &r), 0);
	arena_now = compile(&l, &made);
	layout_now = &made;
	check_hosts(in);
	free(arena_now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lists_match_as_they_say),
		cmocka_unit_test(long_lists_match_to_their_end),
		cmocka_unit_test(deep_tables_are_searched_to_their_end),
		cmocka_unit_test(hosts_are_found_among_others),
	};

	return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
