// SPDX-License-Identifier: GPL-2.0-or-later
// build: unsanitized
/* Elements of large sets that come and go in an arena which is in use. (With sanitizers:
 * prog/test_filter_lists.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/mman.h>

#include "tests/lib/arena_eval.h"
#include "tests/lib/compiled.h"

#define MANY 40000

static struct prefix prefix4(uint32_t addr, unsigned len)
{
	struct prefix p = {.len = len + 96};

	p.addr = addr_from_v4(htonl(len ? addr & ~0u << (32 - len) : 0));
	return p;
}

static void many_prefixes(struct rnd *r, struct rule_set_def *s)
{
	struct rule_set_def more = {.kind = SET_PREFIXES};

	more.prefixes = rnd_alloc(MANY, sizeof(*more.prefixes));
	for (; more.n < MANY; more.n++)
		more.prefixes[more.n] = prefix4((uint32_t)rnd_next(r),
						rnd_one_in(r, 3) ? 32 : 18 + rnd_below(r, 15));
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
	add_set(&l, "some", SET_PREFIXES, "10.0.0.0/8 10.1.0.0/16 172.16.3.0/24");
	add_set(&l, "web", SET_PORTS, "80 443");
	many_prefixes(&r, &l.sets[0]);
	for (; *rules; rules++)
		add_rule(&l, *rules);
	return l;
}

static struct lazy_view view_of(const struct compiled *c)
{
	return (struct lazy_view){.data = c->a.data, .size = c->a.size};
}

static int change(struct compiled *c, const char *set, struct prefix p, bool gone,
		  struct set_changed *done)
{
	const struct set_change ch = {.set = set, .gone = gone, .prefix = p};
	struct lazy_view v = view_of(c);

	return arena_change_set(&v, &ch, done);
}

/* The same in the list. */
static bool change_list(struct rule_list *l, size_t set, struct prefix p, bool gone)
{
	struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
	size_t missing = 0;

	if (gone)
		assert_int_equal(set_remove(&l->sets[set], &one, &missing), 0);
	else
		assert_int_equal(set_merge(&l->sets[set], &one), 0);
	return missing;
}

static void same_rule(const struct compiled *a, const struct compiled *b, uint32_t addr)
{
	struct match_packet p = packet("1.1.1.1", "1.1.1.1", 6, 80);

	for (int side = 0; side < 4; side++) {
		p.src = addr_from_v4(htonl(side & 1 ? addr : 0x01010101));
		p.dst = addr_from_v4(htonl(side & 1 ? 0x01010101 : addr));
		p.dport = side & 2 ? 80 : 81;
		if (compiled_judge(a, &p) != compiled_judge(b, &p))
			fail_msg("%#x, side %d: rule %zu instead of %zu", addr, side,
				 compiled_judge(a, &p), compiled_judge(b, &p));
	}
}

/* At the ends of the set's prefixes, and anywhere. */
static void same_rules(const struct rule_list *l, const struct compiled *a,
		       const struct compiled *b, struct rnd *r)
{
	const struct rule_set_def *s = &l->sets[0];

	for (unsigned i = 0; i < 4000; i++) {
		const struct prefix *p = &s->prefixes[rnd_below(r, (uint32_t)s->n)];
		uint32_t addr = ntohl(p->addr.w[3]);

		same_rule(a, b, addr);
		same_rule(a, b, addr - 1);
		same_rule(a, b, addr + (p->len > 96 ? 1u << (128 - p->len) : 1));
		same_rule(a, b, (uint32_t)rnd_next(r));
	}
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
	assert_int_equal(arena_set_size(&v, "none", &n), -ENOENT);
}

/* One that is there, one in it or around it, or any. */
static struct prefix pick(struct rnd *r, const struct rule_set_def *s)
{
	struct prefix p = s->prefixes[rnd_below(r, (uint32_t)s->n)];
	unsigned len;

	if (!addr_is_v4(&p.addr) || p.len < 112 || rnd_one_in(r, 2))
		return prefix4((uint32_t)rnd_next(r), 16 + rnd_below(r, 17));
	len = p.len - 96;
	if (rnd_one_in(r, 4))
		len = 16 + rnd_below(r, 17);
	return prefix4(ntohl(p.addr.w[3]) ^ (rnd_one_in(r, 4) ? 0x100 : 0), len);
}

/* Returns how many changes were made in place. */
static unsigned random_changes(const char *const *rules, enum ax_match match, uint64_t seed)
{
	CLEANUP(rule_list_free) struct rule_list l = list_of(rules, seed);
	struct compiled c = compile(&l);
	struct rnd r = {seed};
	unsigned in_place = 0;

	assert_int_equal(c.l.match, match);
	for (unsigned i = 1; i <= 900; i++) {
		struct prefix p = pick(&r, &l.sets[0]);
		struct set_changed done;
		bool gone = rnd_one_in(&r, 2), missing;
		int did = change(&c, "big", p, gone, &done);

		missing = change_list(&l, 0, p, gone);
		assert_true(did >= 0);
		if (did) {
			assert_int_equal(done.missing, missing);
			assert_int_equal(done.n, l.sets[0].n);
			in_place++;
		}
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

	(void)state;
	assert_true(random_changes(single, AX_MATCH_SINGLE, 1) > 500);
	assert_true(random_changes(product, AX_MATCH_PRODUCT, 2) > 500);
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
	assert_true(random_changes(rules, AX_MATCH_BITMAP, 3) > 300);
	for (size_t i = 1; i < n; i++)
		free((void *)(uintptr_t)rules[i]);
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
	static const char *const one[] = {"src @big action drop", "src @some action pass", NULL};
	static const char *const both[] = {"src @big action drop", "dst @big action pass", NULL};
	static const char *const around[] = {"src @big action drop", "src 0.0.0.0/0 action pass",
					     NULL};
	static const char *const small[] = {"src @some action drop", NULL};

	(void)state;
	not_in_place(one, "big", "11.0.0.0/15", false);
	not_in_place(one, "big", "fd77::/16", false);
	not_in_place(one, "big", "fd00::/8", true);
	not_in_place(one, "big", "10.1.2.3/32", false); /* in one of @some */
	not_in_place(one, "some", "172.16.0.0/16", false);
	not_in_place(one, "some", "10.1.0.0/16", true); /* in 10.0.0.0/8 */
	not_in_place(one, "none", "192.0.2.1", false);
	not_in_place(one, "web", "192.0.2.1", false);
	not_in_place(both, "big", "192.0.2.1/32", false);
	not_in_place(around, "big", "192.0.2.1/32", false);
	not_in_place(small, "some", "192.0.2.1/32", false);
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
	struct set_changed done;

	(void)state;
	assert_int_equal(change(&c, "big", p, false, &done), 1);
	assert_int_equal(change(&c, "big", p, false, &done), 1);
	assert_int_equal(j->n, 1);
	j->applied = 0;
	assert_int_equal(change(&c, "big", p, false, &done), 0);
	assert_int_equal(change(&c, "big", prefix4(0xc0000301, 32), false, &done), 0);
	change_list(&l, 0, p, false);
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
	struct set_change ch = {.set = "big", .prefix = prefix4(0xf0000201, 32)};
	struct set_changed done;
	size_t n = 0;

	(void)state;
	assert_int_equal(arena_set_size(&g.v, "big", &n), 0);
	assert_int_equal(n, l.sets[0].n);
	assert_true(g.fetched < 64 << 10);
	assert_int_equal(arena_change_set(&g.v, &ch, &done), 1);
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
	struct set_change ch = {.set = "big", .prefix = prefix4(0xf0000201, 32)};
	struct set_changed done;

	(void)state;
	for (size_t front = 0; front < c.a.size; front += 65536) {
		struct guarded g = guard(&c);
		int r;

		/* what comes first is there, then nothing more */
		fetch_guarded(&g.v, 0, front);
		g.fail = -ENOMEM;
		r = arena_change_set(&g.v, &ch, &done);
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
		cmocka_unit_test(other_changes_need_a_new_list),
		cmocka_unit_test(a_full_journal_needs_a_new_list),
		cmocka_unit_test(what_was_left_undone_needs_a_new_list),
		cmocka_unit_test(little_of_a_large_list_is_looked_at),
		cmocka_unit_test(what_cannot_be_fetched_is_not_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
