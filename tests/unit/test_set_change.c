// SPDX-License-Identifier: GPL-2.0-or-later
// timeout: 300
// build: unsanitized
/* Elements of large sets that come and go in an arena which is in use. (With sanitizers:
 * prog/test_filter_sets.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/mman.h>

#include "tests/lib/arena_eval.h"
#include "tests/lib/compiled.h"
#include "tests/lib/quick.h"

#define MANY 60000

static struct prefix prefix4(uint32_t addr, unsigned len)
{
	struct prefix p = {.len = len + 96};

	p.addr = addr_from_v4(htonl(len ? addr & ~0u << (32 - len) : 0));
	return p;
}

/* Neighbours: most are in few networks. */
static struct prefix prefix6(struct rnd *r, unsigned len)
{
	struct prefix p = {.len = len};

	p.addr.w[0] = htonl(rnd_one_in(r, 3) ? (uint32_t)rnd_next(r) | 1 : 0x20010db8);
	p.addr.w[1] = htonl(rnd_below(r, 300));
	p.addr.w[2] = rnd_one_in(r, 3) ? (uint32_t)rnd_next(r) : 0;
	p.addr.w[3] = (uint32_t)rnd_next(r);
	rnd_mask(&p);
	return p;
}

static struct prefix any_prefix(struct rnd *r)
{
	if (rnd_one_in(r, 2))
		return prefix6(r, rnd_one_in(r, 2) ? 128 : 40 + rnd_below(r, 88));
	return prefix4((uint32_t)rnd_next(r), rnd_one_in(r, 3) ? 32 : 18 + rnd_below(r, 15));
}

static void many_prefixes(struct rnd *r, struct rule_set_def *s)
{
	struct rule_set_def more = {.kind = SET_PREFIXES};

	more.prefixes = rnd_alloc(MANY, sizeof(*more.prefixes));
	for (; more.n < MANY; more.n++)
		more.prefixes[more.n] = any_prefix(r);
	assert_int_equal(set_sort(&more), 0);
	assert_int_equal(set_merge(s, &more), 0);
	free(more.prefixes);
}

/* A list with a large set `big`, whose rules are these. */
static struct rule_list list_of(const char *const *rules, uint64_t seed)
{
	struct rnd r = {seed};
	struct rule_list l;

	rule_list_init(&l);
	add_set(&l, "big", SET_PREFIXES, "fd00::/8");
	add_set(&l, "some", SET_PREFIXES, "10.0.0.0/8 10.1.0.0/16 172.16.3.0/24 fd77::/16 fd00::7");
	add_set(&l, "web", SET_PORTS, "80 443 440-450");
	add_set(&l, "none", SET_PREFIXES, "");
	many_prefixes(&r, &l.sets[0]);
	for (; *rules; rules++)
		add_rule(&l, *rules);
	return l;
}

static struct lazy_view view_of(const struct compiled *c)
{
	return (struct lazy_view){.data = c->a.data, .size = c->a.size};
}

static int change_all(struct compiled *c, const char *set, const struct rule_set_def *elements,
		      bool gone, struct set_changed *done)
{
	const struct set_change ch = {.set = set, .gone = gone, .elements = elements};
	struct lazy_view v = view_of(c);

	return arena_change_sets(&v, &ch, 1, done);
}

static int change(struct compiled *c, const char *set, struct prefix p, bool gone,
		  struct set_changed *done)
{
	const struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};

	return change_all(c, set, &one, gone, done);
}

/* The same in the list. */
static size_t change_list(struct rule_list *l, size_t set, const struct rule_set_def *elements,
			  bool gone)
{
	size_t missing = 0;

	if (gone)
		assert_int_equal(set_remove(&l->sets[set], elements, &missing), 0);
	else
		assert_int_equal(set_merge(&l->sets[set], elements), 0);
	return missing;
}

static void same_rule(const struct compiled *a, const struct compiled *b,
		      const struct ax_addr *addr, uint16_t port)
{
	char text[ADDR_STRLEN];
	bool v4 = addr_is_v4(addr);

	for (int side = 0; side < 4; side++) {
		struct match_packet p =
			packet(v4 ? "1.1.1.1" : "::1", v4 ? "1.1.1.1" : "::1", 6, 80);

		*(side & 1 ? &p.src : &p.dst) = *addr;
		*(side & 2 ? &p.sport : &p.dport) = port;
		if (compiled_judge(a, &p) != compiled_judge(b, &p))
			fail_msg("%s port %u, side %d: rule %zu instead of %zu",
				 addr_format(addr, text), port, side, compiled_judge(a, &p),
				 compiled_judge(b, &p));
	}
}

static struct ax_addr beside(struct ax_addr a, int by)
{
	for (int i = 15, n = by; i >= 0 && n; i--) {
		n += a.b[i];
		a.b[i] = (uint8_t)n;
		n >>= 8;
	}
	return a;
}

static struct ax_addr last_of(const struct prefix *p)
{
	struct ax_addr a = p->addr;

	for (unsigned i = p->len; i < 128; i++)
		a.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return a;
}

/* At the ends of elements, and anywhere. */
static void same_rules(const struct rule_list *l, const struct compiled *a,
		       const struct compiled *b, struct rnd *r)
{
	const struct rule_set_def *s = &l->sets[0];

	for (unsigned i = 0; i < quick_or(500, 3000); i++) {
		const struct prefix *p = &s->prefixes[rnd_below(r, (uint32_t)s->n)];
		struct ax_addr end = last_of(p);
		struct prefix any = any_prefix(r);
		uint16_t port = (uint16_t)(rnd_one_in(r, 2) ? rnd_next(r) : rnd_below(r, 500));

		for (int by = -1; by <= 1; by++) {
			struct ax_addr first = beside(p->addr, by), last = beside(end, by);

			same_rule(a, b, &first, port);
			same_rule(a, b, &last, port);
		}
		same_rule(a, b, &any.addr, port);
	}
	for (uint32_t port = 0; port < 65536; port += quick_or(17, 1))
		same_rule(a, b, &s->prefixes[0].addr, (uint16_t)port);
}

static void same_list(const struct rule_list *l, const struct compiled *c)
{
	struct lazy_view v = view_of(c);
	struct rule_list back;
	size_t n = 0;

	assert_int_equal(arena_list(c->a.data, &back), 0);
	assert_true(rule_list_eq(l, &back));
	rule_list_free(&back);
	for (size_t i = 0; i < l->n_sets; i++) {
		assert_int_equal(arena_set_size(&v, l->sets[i].name, &n), 0);
		assert_int_equal(n, l->sets[i].n);
	}
	assert_int_equal(arena_set_size(&v, "nobody", &n), -ENOENT);
}

/* One that is there, one in it or around it, or any. */
static struct prefix pick(struct rnd *r, const struct rule_set_def *s)
{
	struct prefix p = s->prefixes[rnd_below(r, (uint32_t)s->n)];
	bool v4 = addr_is_v4(&p.addr) && p.len >= 96;
	unsigned min = v4 ? 108 : 62;

	if (p.len < min || rnd_one_in(r, 2))
		return any_prefix(r);
	if (rnd_one_in(r, 4))
		p.len = min + rnd_below(r, 129 - min);
	if (rnd_one_in(r, 4))
		p.addr.b[14] ^= 1;
	if (rnd_one_in(r, 8))
		p.addr.w[3] = (uint32_t)rnd_next(r);
	rnd_mask(&p);
	return p;
}

#define AT_ONCE 20

/* Some elements for set 0 or set 2, in room for AT_ONCE of either kind. */
static struct rule_set_def pick_some(struct rnd *r, const struct rule_list *l, bool ports,
				     struct prefix *prefixes, struct range *ranges)
{
	struct rule_set_def s = {.kind = ports ? SET_PORTS : SET_PREFIXES};
	size_t n = rnd_one_in(r, 2) ? 1 : 1 + rnd_below(r, AT_ONCE);

	for (; s.n < n; s.n++) {
		uint32_t lo = rnd_one_in(r, 2) ? rnd_below(r, 500) : (uint32_t)rnd_next(r) & 0xffff;

		prefixes[s.n] = pick(r, &l->sets[0]);
		ranges[s.n] = (struct range){lo, lo + rnd_below(r, rnd_one_in(r, 2) ? 1 : 30)};
		if (ranges[s.n].hi > 65535)
			ranges[s.n].hi = 65535;
		if (ports && l->sets[2].n && rnd_one_in(r, 2))
			ranges[s.n] = l->sets[2].ports[rnd_below(r, (uint32_t)l->sets[2].n)];
	}
	s.prefixes = ports ? NULL : prefixes;
	s.ports = ports ? ranges : NULL;
	assert_int_equal(set_sort(&s), 0);
	return s;
}

/* Changes of `big` or `web`, and often at once of `some`, which has to do with the same values. */
static int change_both(struct compiled *c, struct rule_list *l, struct rnd *r)
{
	struct prefix prefixes[2][AT_ONCE + 1];
	struct range ranges[2][AT_ONCE + 1];
	bool ports = rnd_one_in(r, 4);
	const size_t set[2] = {ports ? 2 : 0, 1};
	size_t n = rnd_one_in(r, 3) ? 2 : 1;
	struct rule_set_def some[2];
	struct set_change ch[2];
	struct set_changed done[2];
	struct lazy_view v = view_of(c);
	int did;

	for (size_t i = 0; i < n; i++) {
		some[i] = pick_some(r, l, ports && i == 0, prefixes[i], ranges[i]);
		ch[i] = (struct set_change){l->sets[set[i]].name, rnd_one_in(r, 2), &some[i]};
	}
	did = arena_change_sets(&v, ch, n, done);
	for (size_t i = 0; i < n; i++) {
		size_t missing = change_list(l, set[i], &some[i], ch[i].gone);

		if (did > 0) {
			assert_int_equal(done[i].missing, missing);
			assert_int_equal(done[i].n, l->sets[set[i]].n);
		}
	}
	return did;
}

/* Returns how many changes were made in place. */
static unsigned random_changes(const char *const *rules, enum ax_match match, uint64_t seed)
{
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, seed);
	struct compiled c = compile(&l);
	struct rnd r = {seed};
	unsigned in_place = 0;

	assert_int_equal(c.l.match, match);
	for (unsigned i = 1; i <= quick_or(300, 900); i++) {
		int did = change_both(&c, &l, &r);

		assert_true(did >= 0);
		in_place += did > 0;
		if (!did || i % 150 == 0) {
			struct compiled fresh = compile(&l);

			if (did) {
				same_rules(&l, &c, &fresh, &r);
				same_list(&l, &c);
			}
			if (did && i % 300) {
				arena_free(&fresh.a);
				continue;
			}
			arena_free(&c.a);
			c = fresh;
		}
	}
	arena_free(&c.a);
	return in_place;
}

static void packets_get_the_rules_of_the_changed_list(void **state)
{
	static const char *const single[] = {"src @big action drop", NULL};
	static const char *const product[] = {
		"src @big proto tcp dport @web action drop",
		"src @some,192.168.0.0/16 action pass",
		"dst @some proto tcp dport 81 action drop",
		NULL,
	};
	static const char *const sides[] = {
		"src @big dst @some action drop",
		"dst @big sport @web proto tcp action pass",
		"src 2001:db8::/34 dport @web proto tcp action drop",
		NULL,
	};

	(void)state;
	assert_true(random_changes(single, AX_MATCH_SINGLE, 1) > quick_or(260, 800));
	assert_true(random_changes(product, AX_MATCH_PRODUCT, 2) > quick_or(260, 800));
	assert_true(random_changes(sides, AX_MATCH_PRODUCT, 4) > quick_or(260, 800));
}

/* So many rules that their classes have rows. */
static void rules_by_the_thousand(void **state)
{
	const char *rules[700];
	size_t n = 0;

	(void)state;
	rules[n++] = "dst @big proto tcp dport @web action drop";
	for (unsigned i = 0; i < 600; i++) {
		char *line;

		assert_true(asprintf(&line,
				     "src 10.%u.0.0/16 dport %u,%u vlan %u proto tcp action pass",
				     i % 250, 1000 + i, 3000 + i, i) > 0);
		rules[n++] = line;
	}
	rules[n] = NULL;
	assert_true(random_changes(rules, AX_MATCH_BITMAP, 3) > quick_or(260, 800));
	for (size_t i = 1; i < n; i++)
		free((void *)(uintptr_t)rules[i]);
}

/* --- hosts alone, which are kept in another way than prefixes --- */

#define HOSTS	 30000
#define HOSTS_UP 200 /* upper halves that have them */

static struct prefix any_host(struct rnd *r)
{
	uint32_t low = rnd_below(r, 2049) * 32 + rnd_below(r, 3) - 2; /* often neighbours */

	return prefix4(rnd_below(r, HOSTS_UP) << 16 | (low & 0xffff), 32);
}

static struct rule_list list_of_hosts(struct rnd *r)
{
	struct rule_set_def hosts = {.kind = SET_PREFIXES};
	struct rule_list l;

	rule_list_init(&l);
	add_set(&l, "big", SET_PREFIXES, "");
	add_rule(&l, "src @big action drop");
	hosts.prefixes = rnd_alloc(HOSTS, sizeof(*hosts.prefixes));
	for (; hosts.n < HOSTS; hosts.n++)
		hosts.prefixes[hosts.n] = any_host(r);
	assert_int_equal(set_sort(&hosts), 0);
	assert_int_equal(set_merge(&l.sets[0], &hosts), 0);
	free(hosts.prefixes);
	return l;
}

static size_t buckets_of_points(const struct compiled *c)
{
	const struct ax_field_layout *src = &c->l.field[AX_FIELD_SRC];
	const uint32_t *root = (const uint32_t *)(c->a.data + src->table);
	size_t n = 0;

	for (uint32_t up = 0; up < HOSTS_UP; up++)
		n += !(root[up] >> AX_ROOT_OFFSET_BITS);
	return n;
}

static void same_hosts(const struct compiled *a, const struct compiled *b)
{
	struct match_packet p = packet("1.1.1.1", "1.1.1.1", 6, 80);

	for (uint32_t i = 0; i < HOSTS_UP << 16; i += quick_or(13, 1)) {
		p.src = addr_from_v4(htonl(i));
		if (compiled_judge(a, &p) != compiled_judge(b, &p))
			fail_msg("%#x: rule %zu instead of %zu", i, compiled_judge(a, &p),
				 compiled_judge(b, &p));
	}
}

static void hosts_come_and_go(void **state)
{
	struct rnd r = {21};
	CLEANUP(rule_list_free) struct rule_list l = list_of_hosts(&r);
	struct compiled c = compile(&l), fresh;
	size_t points = buckets_of_points(&c), in_place = 0;

	(void)state;
	assert_true(points > HOSTS_UP / 2);
	for (unsigned i = 0; i < 600; i++) {
		struct prefix p = any_host(&r);
		struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
		bool gone = rnd_one_in(&r, 2);
		struct set_changed done;
		int did;

		if (gone)
			p = l.sets[0].prefixes[rnd_below(&r, (uint32_t)l.sets[0].n)];
		else if (rnd_one_in(&r, 20)) /* a network among them, which may go again */
			p = prefix4(ntohl(p.addr.w[3]), 20 + rnd_below(&r, 12));
		did = change(&c, "big", p, gone, &done);
		change_list(&l, 0, &one, gone);
		assert_true(did >= 0);
		in_place += did > 0;
		if (did == 0) { /* there is no room left for buckets */
			arena_free(&c.a);
			c = compile(&l);
		}
	}
	assert_true(in_place > 590);
	fresh = compile(&l);
	same_hosts(&c, &fresh);
	same_list(&l, &c);
	/* what hosts came to is of points still */
	assert_true(buckets_of_points(&c) > points / 2);
	arena_free(&c.a);
	arena_free(&fresh.a);
}

/* --- what cannot be done so --- */

static void not_in_place(const char *const *rules, const char *set, const char *prefix, bool gone)
{
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, 7);
	struct compiled c = compile(&l);
	struct set_changed done;
	struct prefix p;

	assert_int_equal(prefix_parse(prefix, &p), 0);
	if (change(&c, set, p, gone, &done))
		fail_msg("%s in %s was changed in place", prefix, set);
	same_list(&l, &c);
	arena_free(&c.a);
}

static void other_changes_need_a_new_list(void **state)
{
	static const char *const one[] = {"src @big action drop", "src @some action pass",
					  "src @none dport 7 proto tcp action drop", NULL};

	(void)state;
	not_in_place(one, "big", "0.0.0.0/0", false);
	not_in_place(one, "big", "::/0", false);
	not_in_place(one, "nobody", "192.0.2.1", false);
	not_in_place(one, "web", "192.0.2.1", false);
}

/* Of several changes all are done or none: the last one names nobody's set, another kind's, or
 * comes when there is no room left to write it down. */
static void all_is_changed_or_nothing(void **state)
{
	static const char *const rules[] = {"src @big dst @some dport @web proto tcp action drop",
					    NULL};
	static const char *const last[] = {"nobody", "web", "some"};
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, 17);
	struct compiled c = compile(&l);
	struct ax_journal *j = (struct ax_journal *)(c.a.data + c.l.journal);
	struct prefix p = prefix4(0xf0000201, 32);
	const struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
	uint8_t *before = rnd_alloc(c.a.size, 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(last); i++) {
		const struct set_change ch[] = {{"big", false, &one}, {last[i], false, &one}};
		struct lazy_view v = view_of(&c);
		struct set_changed done[2];

		j->n = j->applied = i == 2 ? AX_JOURNAL_MAX - 1 : 0;
		memcpy(before, c.a.data, c.a.size);
		assert_int_equal(arena_change_sets(&v, ch, 2, done), 0);
		assert_memory_equal(before, c.a.data, c.a.size);
	}
	free(before);
	arena_free(&c.a);
}

/* Each changes 256 words, and nothing is there: compiling the list is faster. */
static void too_wide_together(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct rule_set_def near = {.kind = SET_PREFIXES};
	struct prefix wide[100];
	const struct rule_set_def some = {
		.kind = SET_PREFIXES, .prefixes = wide, .n = ARRAY_SIZE(wide)};
	struct compiled c;
	struct set_changed done;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "big", SET_PREFIXES, "");
	add_rule(&l, "src @big action drop");
	near.prefixes = rnd_alloc(MANY, sizeof(*near.prefixes));
	for (; near.n < MANY; near.n++)
		near.prefixes[near.n] = prefix4(0x0a000000 + 2 * (uint32_t)near.n, 32);
	change_list(&l, 0, &near, false);
	free(near.prefixes);
	c = compile(&l);
	for (uint32_t i = 0; i < ARRAY_SIZE(wide); i++)
		wide[i] = prefix4((100 + i) << 24, 8);
	assert_int_equal(change_all(&c, "big", &some, false, &done), 0);
	same_list(&l, &c);
	assert_int_equal(change(&c, "big", wide[0], false, &done), 1);
	arena_free(&c.a);
}

/* In others, around them, and the first one of a set. */
static void whatever_overlaps_is_changed_in_place(void **state)
{
	static const char *const rules[] = {"src @big action drop",
					    "src @none dport 7 proto tcp action drop",
					    "src @some,192.168.0.0/16 action pass", NULL};
	static const struct {
		const char *set, *prefix;
		bool gone;
	} changes[] = {
		{"big", "10.1.2.3/32", false},	  {"big", "10.1.2.3/32", true},
		{"big", "fd77::1/128", false},	  {"big", "fd00::/8", true},
		{"big", "192.168.0.0/17", false}, {"some", "172.16.0.0/16", false},
		{"some", "10.1.0.0/16", true},	  {"some", "10.1.2.0/24", false},
		{"none", "203.0.113.9", false},	  {"none", "2001:db9::9", false},
		{"none", "10.77.2.3", false},
	};
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, 8);
	struct compiled c = compile(&l), fresh;
	struct rnd r = {8};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct rule_set_def one = {.kind = SET_PREFIXES};
		size_t set = (size_t)(rule_list_set(&l, changes[i].set) - l.sets);
		struct set_changed done;
		struct prefix p;

		assert_int_equal(prefix_parse(changes[i].prefix, &p), 0);
		one.prefixes = &p;
		one.n = 1;
		if (change_all(&c, changes[i].set, &one, changes[i].gone, &done) != 1)
			fail_msg("%s in %s needs a new list", changes[i].prefix, changes[i].set);
		change_list(&l, set, &one, changes[i].gone);
		fresh = compile(&l);
		same_rule(&c, &fresh, &p.addr, 7);
		same_rules(&l, &c, &fresh, &r);
		same_list(&l, &c);
		arena_free(&fresh.a);
	}
	arena_free(&c.a);
}

static void a_full_journal_needs_a_new_list(void **state)
{
	static const char *const rules[] = {"src @big action drop", NULL};
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, 9);
	struct prefix p = prefix4(0xc0000201, 32);
	struct set_changed done;
	struct rule_set_def came = {.kind = SET_PREFIXES};
	struct compiled c = compile(&l);
	struct ax_journal *j;

	(void)state;
	j = (struct ax_journal *)(c.a.data + c.l.journal);
	came.prefixes = rnd_alloc(65536, sizeof(*came.prefixes));
	for (uint32_t i = 0; i < 65536; i++) {
		struct prefix one = prefix4(i << 16 | 0x0a17, 32);

		if (change(&c, "big", one, false, &done) > 0)
			came.prefixes[came.n++] = one;
	}
	/* either has an end: the room for buckets, or that for what is written down */
	assert_true(came.n > 500 && came.n < 60000 && j->n <= AX_JOURNAL_MAX);
	assert_int_equal(set_merge(&l.sets[0], &came), 0);
	free(came.prefixes);
	same_list(&l, &c);
	arena_free(&c.a);
	c = compile(&l);
	assert_int_equal(change(&c, "big", p, false, &done), 1);
	j = (struct ax_journal *)(c.a.data + c.l.journal);
	j->n = AX_JOURNAL_MAX;
	j->applied = AX_JOURNAL_MAX;
	assert_int_equal(change(&c, "big", prefix4(0xc0000209, 32), false, &done), 0);
	arena_free(&c.a);
}

/* Killed when it was written down, but not in the tables yet. */
static void what_was_left_undone_needs_a_new_list(void **state)
{
	static const char *const rules[] = {"src @big action drop", NULL};
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, 11);
	struct compiled c = compile(&l);
	struct ax_journal *j = (struct ax_journal *)(c.a.data + c.l.journal);
	struct prefix p = prefix4(0xc0000201, 32);
	struct rule_set_def one = {.kind = SET_PREFIXES, .n = 1};
	struct set_changed done;

	(void)state;
	assert_int_equal(change(&c, "big", p, false, &done), 1);
	assert_int_equal(change(&c, "big", p, false, &done), 1);
	assert_int_equal(j->n, 1);
	j->applied = 0;
	assert_int_equal(change(&c, "big", p, false, &done), 0);
	assert_int_equal(change(&c, "big", prefix4(0xc0000301, 32), false, &done), 0);
	one.prefixes = &p;
	change_list(&l, 0, &one, false);
	same_list(&l, &c);
	arena_free(&c.a);
}

/* --- how much of the arena is looked at --- */

/* An arena that cannot be reached but where it was fetched. */
struct guarded {
	struct lazy_view v;
	size_t page, fetched; /* bytes */
	int fail;	      /* what fetch returns then */
	uint8_t *there;	      /* by page */
};

static int fetch_guarded(struct lazy_view *v, size_t at, size_t len)
{
	struct guarded *g = (struct guarded *)v;

	for (size_t i = at / g->page; len && i <= (at + len - 1) / g->page; i++) {
		if (g->there[i])
			continue;
		if (g->fail)
			return g->fail;
		g->there[i] = 1;
		g->fetched += g->page;
		assert_int_equal(mprotect(v->data + i * g->page, g->page, PROT_READ | PROT_WRITE),
				 0);
	}
	return 0;
}

static struct guarded guard(const struct compiled *c)
{
	struct guarded g = {.page = (size_t)sysconf(_SC_PAGESIZE)};
	void *p = mmap(NULL, c->a.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	memcpy(p, c->a.data, c->a.size);
	assert_int_equal(mprotect(p, c->a.size, PROT_NONE), 0);
	g.v = (struct lazy_view){.data = p, .size = c->a.size, .fetch = fetch_guarded};
	g.there = rnd_alloc(c->a.size / g.page + 1, 1);
	memset(g.there, 0, c->a.size / g.page + 1);
	return g;
}

static void unguard(struct guarded *g)
{
	munmap(g->v.data, g->v.size);
	free(g->there);
}

/* 340,000 prefixes. */
static struct rule_list huge_list(void)
{
	static const char *const rules[] = {"src @big action drop", NULL};
	struct rule_list l = list_of(rules, 13);
	struct rule_set_def more = {.kind = SET_PREFIXES};

	more.prefixes = rnd_alloc(300000, sizeof(*more.prefixes));
	for (uint32_t i = 0; i < 300000; i++)
		more.prefixes[more.n++] = prefix4(0x20000000 + i * 4096 + i % 7, 32);
	assert_int_equal(set_sort(&more), 0);
	assert_int_equal(set_merge(&l.sets[0], &more), 0);
	free(more.prefixes);
	return l;
}

static void little_of_a_large_list_is_looked_at(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l = huge_list();
	struct compiled c = compile(&l);
	struct guarded g = guard(&c);
	struct prefix p = prefix4(0xf0000201, 32);
	const struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
	const struct set_change ch = {.set = "big", .elements = &one};
	struct set_changed done;
	size_t n = 0;

	(void)state;
	assert_int_equal(arena_set_size(&g.v, "big", &n), 0);
	assert_int_equal(n, l.sets[0].n);
	assert_true(g.fetched < 128 << 10);
	assert_int_equal(arena_change_sets(&g.v, &ch, 1, &done), 1);
	assert_int_equal(done.n, n + 1);
	if (g.fetched > c.a.size / 10)
		fail_msg("%zu of %zu bytes were fetched", g.fetched, c.a.size);
	unguard(&g);
	arena_free(&c.a);
}

static void what_cannot_be_fetched_is_not_changed(void **state)
{
	static const char *const rules[] = {"src @big action drop", NULL};
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, 15);
	struct compiled c = compile(&l);
	struct prefix p = prefix4(0xf0000201, 32);
	const struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
	const struct set_change ch = {.set = "big", .elements = &one};
	struct set_changed done;

	(void)state;
	for (size_t front = 0; front < c.a.size; front += 65536) {
		struct guarded g = guard(&c);
		int r;

		/* what comes first is there, then nothing more */
		fetch_guarded(&g.v, 0, front);
		g.fail = -ENOMEM;
		r = arena_change_sets(&g.v, &ch, 1, &done);
		if (r != -ENOMEM)
			fail_msg("%d with %zu of %zu bytes", r, front, c.a.size);
		mprotect(g.v.data, g.v.size, PROT_READ);
		assert_memory_equal(g.v.data, c.a.data, c.a.size);
		unguard(&g);
	}
	arena_free(&c.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_get_the_rules_of_the_changed_list),
		cmocka_unit_test(rules_by_the_thousand),
		cmocka_unit_test(hosts_come_and_go),
		cmocka_unit_test(other_changes_need_a_new_list),
		cmocka_unit_test(all_is_changed_or_nothing),
		cmocka_unit_test(too_wide_together),
		cmocka_unit_test(whatever_overlaps_is_changed_in_place),
		cmocka_unit_test(a_full_journal_needs_a_new_list),
		cmocka_unit_test(what_was_left_undone_needs_a_new_list),
		cmocka_unit_test(little_of_a_large_list_is_looked_at),
		cmocka_unit_test(what_cannot_be_fetched_is_not_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
