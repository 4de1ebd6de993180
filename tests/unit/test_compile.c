// SPDX-License-Identifier: GPL-2.0-or-later
/* The rule compiler, held against the plain meaning of a rule list (matcher.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <time.h>

#include "arena_eval.h"
#include "rule_random.h"

#define RANDOM_LISTS	 4000
#define RANDOM_PACKETS	 40
#define ALL_FIELDS	 ((1u << AX_FIELDS) - 1)
#define NS_PER_SECOND	 1000000000ull
#define LIMIT_PER_SECOND (NS_PER_SECOND << AX_LIMIT_NS_SHIFT)

struct compiled {
	struct arena a;
	struct ax_layout l;
};

static int try_compile(const struct rule_list *l, struct compiled *c, struct error *e)
{
	autofree struct rule_binding *bind = calloc(l->n_rules + 1, sizeof(*bind));
	autofree struct real_binding *slots = calloc(64, sizeof(*slots));

	assert_non_null(bind);
	assert_non_null(slots);
	for (size_t i = 0; i <= l->n_rules; i++)
		bind[i] = (struct rule_binding){(uint16_t)(i + 1000), (uint16_t)(i + 2), 7};
	memset(c, 0, sizeof(*c));
	return rule_compile(l, bind, slots, &c->a, &c->l, e);
}

static struct compiled compile(const struct rule_list *l)
{
	struct error e = {0};
	struct compiled c;

	if (try_compile(l, &c, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(c.l.magic, AX_ARENA_MAGIC);
	assert_int_equal(c.l.size, c.a.size);
	assert_memory_equal(&c.l, c.a.data, sizeof(c.l));
	assert_true(c.l.explain_key != 0);
	return c;
}

/* The list's rule for a packet, as the arena has it. */
static size_t judge(const struct compiled *c, const struct match_packet *p)
{
	return eval_action(&c->a, &c->l, eval_rule(&c->a, &c->l, p))->rule;
}

static void check_packets(const struct rule_list *l, const struct compiled *c, struct rnd *r,
			  unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct match_packet p;
		uint64_t seed = r->s;

		rnd_packet(r, l, &p);
		if (judge(c, &p) != match_first(l, &p))
			fail_msg("packet of seed %#llx: rule %zu instead of %zu of %zu, mode %u",
				 (unsigned long long)seed, judge(c, &p), match_first(l, &p),
				 l->n_rules, c->l.match);
	}
}

static void check_list(const struct rule_list *l, uint64_t seed, unsigned packets)
{
	struct compiled c = compile(l);
	struct rnd r = {seed};

	check_packets(l, &c, &r, packets);
	arena_free(&c.a);
}

/* --- lists from text --- */

static void add_set(struct rule_list *l, const char *name, enum set_kind kind, const char *elements)
{
	struct rule_set_def *s;
	struct error e = {0};

	l->sets = realloc(l->sets, (l->n_sets + 1) * sizeof(*l->sets));
	assert_non_null(l->sets);
	s = &l->sets[l->n_sets++];
	*s = (struct rule_set_def){.name = strdup(name), .kind = kind};
	if (set_parse(s, elements, strlen(elements), "test", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(set_sort(s), 0);
}

static void add_rule(struct rule_list *l, const char *line)
{
	autofree char *text = strdup(line);
	const char *words[64];
	struct error e = {0};
	struct rule r = {0};
	char *save = NULL;
	size_t n = 0;

	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	if (rule_parse(words, n, &r, &e) < 0 || rule_list_insert(l, SIZE_MAX, &r) < 0)
		fail_msg("%s: %s", line, e.text);
}

static struct match_packet packet(const char *src, const char *dst, uint8_t proto, uint16_t dport)
{
	struct match_packet p = {
		.ip = true,
		.proto = proto,
		.has_l4 = proto == 6 || proto == 17,
		.sport = 40000,
		.dport = dport,
		.vlan = AX_VLAN_NONE,
		.len = 64,
		.mac = {2, 0, 0, 0, 0, 1},
	};

	assert_int_equal(addr_parse(src, &p.src), 0);
	assert_int_equal(addr_parse(dst, &p.dst), 0);
	p.v4 = addr_is_v4(&p.src);
	p.has_icmp = proto == (p.v4 ? 1 : 58);
	return p;
}

static const struct match_packet not_ip = {
	.fragment = AX_FRAGMENT_NOT_IP, .vlan = AX_VLAN_NONE, .len = 60, .mac = {2}};

/* A list of a single rule, which holds or does not hold for the packet. */
static bool holds(const char *line, const struct match_packet *p)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;
	size_t got;

	rule_list_init(&l);
	add_rule(&l, line);
	c = compile(&l);
	got = judge(&c, p);
	assert_int_equal(got, match_first(&l, p));
	arena_free(&c.a);
	return got == 0;
}

/* --- random lists --- */

static void random_lists_mean_what_they_say(void **state)
{
	unsigned modes[4] = {0};

	(void)state;
	for (uint64_t i = 0; i < RANDOM_LISTS; i++) {
		CLEANUP(rule_list_free) struct rule_list l;
		struct rnd r = {i * 7919 + 1};
		struct compiled c;

		rnd_list(&r, ALL_FIELDS, i % 4 == 0, &l);
		c = compile(&l);
		modes[c.l.match]++;
		check_packets(&l, &c, &r, RANDOM_PACKETS);
		arena_free(&c.a);
	}
	for (int i = 0; i < 4; i++) /* or nothing was tested */
		assert_true(modes[i] >= RANDOM_LISTS / 100);
}

/* --- modes --- */

static void no_conditions_need_no_lookup(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_NONE);
	assert_int_equal(c.l.only, 0);
	assert_int_equal(c.l.rules, 0);
	assert_int_equal(judge(&c, &not_ip), 0);
	arena_free(&c.a);

	add_rule(&l, "action drop");
	add_rule(&l, "src 10.0.0.0/8 dport 1-65535 proto tcp action pass");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_NONE);
	assert_int_equal(c.l.only, 0);
	assert_int_equal(c.l.rules, 1);
	assert_int_equal(judge(&c, &not_ip), 0);
	arena_free(&c.a);
}

static void one_field_holds_the_rules_themselves(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "src 10.1.0.0/16 action drop");
	add_rule(&l, "src 10.0.0.0/8,fd00::/8 action pass");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	assert_int_equal(c.l.field[AX_FIELD_SRC].none, 2);
	p = packet("10.1.2.3", "1.1.1.1", 6, 80);
	assert_int_equal(judge(&c, &p), 0);
	p = packet("10.2.2.3", "1.1.1.1", 6, 80);
	assert_int_equal(judge(&c, &p), 1);
	p = packet("fd00::1", "::1", 6, 80);
	assert_int_equal(judge(&c, &p), 1);
	p = packet("11.0.0.0", "1.1.1.1", 6, 80);
	assert_int_equal(judge(&c, &p), 2);
	assert_int_equal(judge(&c, &not_ip), 2);
	arena_free(&c.a);
}

static void few_classes_are_multiplied_and_many_are_not(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;
	char line[128];

	(void)state;
	rule_list_init(&l);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(line, sizeof(line), "src 10.%u.0.0/16 dport %u proto tcp action drop", i,
			 1000 + i);
		add_rule(&l, line);
	}
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_PRODUCT);
	assert_int_equal(c.l.products_n, 21 * 21 * 2);
	arena_free(&c.a);
	check_list(&l, 1, 2000);

	for (unsigned i = 0; i < 600; i++) {
		snprintf(line, sizeof(line), "src 1%u.0.%u.0/24 dport %u proto tcp action drop",
			 i / 256, i & 255, 10000 + 4 * i);
		add_rule(&l, line);
	}
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_BITMAP);
	assert_int_equal(c.l.words, 10);
	assert_int_equal(c.l.summary, 1);
	assert_int_equal(c.l.row_size, 88);
	arena_free(&c.a);
	check_list(&l, 2, 2000);
}

static void what_is_behind_a_rule_for_all_costs_nothing(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "proto tcp action pass");
	add_rule(&l, "action drop");
	add_rule(&l, "src 10.0.0.0/8 action pass");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	assert_int_equal(c.l.rules, 2);
	assert_false(c.l.field[AX_FIELD_SRC].used);
	assert_int_equal(judge(&c, &not_ip), 1);
	assert_int_equal(eval_action(&c.a, &c.l, 1)->flags, AX_ACTION_CATCH_ALL);
	assert_int_equal(eval_action(&c.a, &c.l, 2)->rule, 3);
	arena_free(&c.a);
}

/* --- fields --- */

static void each_field_is_told_from_its_absence(void **state)
{
	struct match_packet tcp = packet("10.0.0.1", "10.0.0.2", 6, 80),
			    udp = packet("10.0.0.1", "10.0.0.2", 17, 80),
			    icmp = packet("10.0.0.1", "10.0.0.2", 1, 0),
			    icmp6 = packet("fd00::1", "fd00::2", 58, 0),
			    esp = packet("10.0.0.1", "10.0.0.2", 50, 0), later = tcp, tagged = tcp;

	(void)state;
	later.fragment = AX_FRAGMENT_LATER;
	later.has_l4 = false;
	tagged.vlan = 0;
	icmp.icmp_type = 8;
	icmp6.icmp_type = 128;
	tcp.tcp_flags = 0x02;

	assert_true(holds("proto tcp action drop", &tcp));
	assert_true(holds("proto 0-255 action drop", &esp));
	assert_false(holds("proto 0-255 action drop", &not_ip));
	assert_true(holds("proto tcp dport 0-65535 action drop", &tcp));
	assert_false(holds("proto tcp dport 0-65535 action drop", &udp));
	assert_false(holds("proto tcp dport 0-65535 action drop", &later));
	assert_true(holds("proto tcp sport 40000 action drop", &tcp));
	assert_false(holds("proto tcp sport 40001 action drop", &tcp));
	assert_true(holds("proto tcp flags syn,!ack action drop", &tcp));
	assert_false(holds("proto tcp flags !syn action drop", &tcp));
	assert_false(holds("proto tcp flags !ack action drop", &later));
	assert_true(holds("icmp echo-request action drop", &icmp));
	assert_false(holds("icmp echo-request action drop", &icmp6));
	assert_true(holds("icmp6 echo-request action drop", &icmp6));
	assert_true(holds("icmp 3,8/0,9 action drop", &icmp));
	assert_false(holds("icmp 0/0 action drop", &tcp));
	assert_true(holds("vlan none action drop", &tcp));
	assert_true(holds("vlan 0 action drop", &tagged));
	assert_false(holds("vlan none action drop", &tagged));
	assert_false(holds("vlan 0-4095 action drop", &tcp));
	assert_true(holds("fragment later action drop", &later));
	assert_false(holds("fragment none action drop", &later));
	assert_false(holds("fragment none,first,later action drop", &not_ip));
	assert_true(holds("length 64 action drop", &tcp));
	assert_true(holds("length 60- action drop", &not_ip));
	assert_false(holds("length 65- action drop", &tcp));
	assert_true(holds("mac 02:00:00:00:00:01 action drop", &tcp));
	assert_false(holds("mac 02:00:00:00:00:00,02:00:00:00:00:02 action drop", &tcp));
	assert_true(holds("mac 02:00:00:00:00:00 action drop", &not_ip));
}

static void lengths_above_the_table_are_its_last(void **state)
{
	struct match_packet p = packet("10.0.0.1", "10.0.0.2", 6, 80);

	(void)state;
	p.len = 70000;
	assert_true(holds("length 1500- action drop", &p));
	assert_false(holds("length 0-65534 action drop", &p));
}

static void addresses_of_one_family_never_match_the_other(void **state)
{
	struct match_packet v4 = packet("10.0.0.1", "10.0.0.2", 6, 80),
			    v6 = packet("fd00::1", "fd00::2", 6, 80), mapped = v6;

	(void)state;
	mapped.src = v4.src;
	assert_true(holds("src 0.0.0.0/0 action drop", &v4));
	assert_false(holds("src 0.0.0.0/0 action drop", &v6));
	assert_false(holds("src 0.0.0.0/0 action drop", &mapped));
	assert_true(holds("src ::/0 action drop", &v6));
	assert_true(holds("src ::/0 action drop", &mapped));
	assert_false(holds("src ::/0 action drop", &v4));
	assert_false(holds("src ::/0,0.0.0.0/0 action drop", &not_ip));
}

static void ends_of_the_address_space_are_addresses(void **state)
{
	static const char *const edges[] = {"0.0.0.0",
					    "255.255.255.255",
					    "::",
					    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
					    "ffff:ffff:ffff:ffff::",
					    "0:0:0:0:ffff:ffff:ffff:ffff"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		for (size_t k = 0; k < ARRAY_SIZE(edges); k++) {
			struct match_packet p = packet(edges[k], edges[k], 6, 80);
			char line[128];

			snprintf(line, sizeof(line), "dst %s action drop", edges[i]);
			assert_int_equal(holds(line, &p), i == k);
		}
}

/* Every prefix length around one address, each a rule, the longest first. By its port a packet also
 * gets to the rules whose prefixes are around others. */
static void nested_prefixes_are_told_apart(void **state)
{
	static const struct {
		const char *addr;
		unsigned bits;
	} around[] = {{"10.11.12.13", 32}, {"255.255.255.255", 32},
		      {"0.0.0.0", 32},	   {"fd00:1:2:3:4:5:6:7", 128},
		      {"::", 128},	   {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 128}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
		CLEANUP(rule_list_free) struct rule_list l;
		struct rule_addrs *src;

		rule_list_init(&l);
		for (unsigned len = 0; len <= around[i].bits; len++) {
			struct rule r = {.verdict = AX_VERDICT_DROP};

			src = len % 2 ? &r.src : &r.dst;
			r.dport.v = rnd_alloc(1, sizeof(*r.dport.v));
			r.dport.v->lo = r.dport.v->hi = 1 + len % 5;
			r.dport.n = 1;
			src->v = calloc(1, sizeof(*src->v));
			src->n = 1;
			assert_int_equal(addr_parse(around[i].addr, &src->v->addr), 0);
			src->v->len = len + 128 - around[i].bits;
			rnd_mask(src->v);
			assert_int_equal(rule_list_insert(&l, 0, &r), 0);
		}
		check_list(&l, i + 100, 3000);
	}
}

static void sets_belong_to_several_rules(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "a", SET_PREFIXES, "10.0.0.0/8 10.1.0.0/16 fd00::/8 0.0.0.0");
	add_set(&l, "b", SET_PREFIXES, "10.1.0.0/16 10.1.2.0/24 fd00:1::/32");
	add_set(&l, "empty", SET_PREFIXES, "");
	add_set(&l, "web", SET_PORTS, "80 443 8000-8100 8050-8200");
	add_rule(&l, "src @empty action drop");
	add_rule(&l, "src @b,10.1.0.0/16 dst @a proto tcp dport @web,22 action drop");
	add_rule(&l, "src @a dst @b action pass");
	add_rule(&l, "src @a,@b,192.168.0.0/16 proto udp sport @web action pass");
	add_rule(&l, "dst @a proto tcp dport 8000-8300,@web action pass");
	c = compile(&l);
	p = packet("10.1.9.9", "10.9.9.9", 6, 8150);
	assert_int_equal(judge(&c, &p), 1);
	p = packet("10.1.9.9", "10.9.9.9", 6, 8201);
	assert_int_equal(judge(&c, &p), 4);
	p = packet("10.1.9.9", "10.1.9.9", 6, 8301);
	assert_int_equal(judge(&c, &p), 2);
	p = packet("fd00:1::1", "fd00:1::2", 17, 8301);
	assert_int_equal(judge(&c, &p), 2);
	p = packet("9.0.0.0", "9.0.0.0", 17, 1);
	assert_int_equal(judge(&c, &p), 5);
	arena_free(&c.a);
	check_list(&l, 3, 5000);
}

static void a_set_without_elements_matches_nothing(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p = packet("10.0.0.1", "10.0.0.2", 6, 80);
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "none", SET_PREFIXES, "");
	add_rule(&l, "src @none action pass");
	c = compile(&l);
	assert_int_equal(judge(&c, &p), 1);
	assert_int_equal(judge(&c, &not_ip), 1);
	arena_free(&c.a);
	add_rule(&l, "length 0- vlan 0-4095,none action drop"); /* which every packet has */
	c = compile(&l);
	assert_int_equal(judge(&c, &p), 1);
	assert_false(c.l.field[AX_FIELD_LENGTH].used);
	assert_false(c.l.field[AX_FIELD_VLAN].used);
	arena_free(&c.a);
}

static void lists_of_one_family_have_no_tables_of_the_other(void **state)
{
	CLEANUP(rule_list_free) struct rule_list v4, v6;
	struct compiled c;

	(void)state;
	rule_list_init(&v4);
	add_rule(&v4, "src 10.0.0.0/8,10.0.0.1,11.0.0.0/25 action drop");
	c = compile(&v4);
	assert_int_equal(c.l.field[AX_FIELD_SRC].log2, 0);
	assert_int_equal(c.l.field[AX_FIELD_SRC].subs6_end, 0);
	assert_true(c.l.field[AX_FIELD_SRC].buckets4_size > 0);
	arena_free(&c.a);
	rule_list_init(&v6);
	add_rule(&v6, "src fd00::/64,fd00::1:0:0:0:1 action drop");
	c = compile(&v6);
	assert_int_equal(c.l.field[AX_FIELD_SRC].buckets4_size, 0);
	assert_true(c.l.field[AX_FIELD_SRC].subs6_end > 0);
	arena_free(&c.a);
}

/* --- what rules do --- */

static void actions_carry_what_the_rule_says(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	const struct ax_action *a;
	const struct ax_rewrite *w;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "proto udp action redirect eth1 dmac 02:00:00:00:00:09 to 10.0.0.9 to-port 99 "
		     "checksum recompute");
	add_rule(&l, "proto tcp action cpu 3");
	add_rule(&l, "proto icmp action drop capture 100,ring,slot=x,frame sample 8 log yes");
	c = compile(&l);
	a = eval_action(&c.a, &c.l, 0);
	assert_int_equal(a->verdict, AX_VERDICT_REDIRECT);
	assert_int_equal(a->flags, AX_ACTION_CHECKSUM);
	assert_int_equal(a->counter, 1000);
	assert_int_equal(a->target, 2);
	assert_int_equal(a->rewrite, 1);
	assert_int_equal(c.l.rewrites_n, 1);
	w = (const struct ax_rewrite *)(c.a.data + c.l.rewrites);
	assert_int_equal(w->flags, AX_REWRITE_DMAC | AX_REWRITE_DST | AX_REWRITE_DPORT);
	assert_int_equal(w->dport_be, htons(99));
	assert_int_equal(w->dst.w[3], htonl(0x0a000009));
	assert_int_equal(w->dmac[5], 9);
	assert_int_equal(a[1].verdict, AX_VERDICT_CPU);
	assert_int_equal(a[1].target, 3);
	assert_int_equal(a[1].rewrite, 0);
	assert_int_equal(a[2].flags,
			 AX_ACTION_RING | AX_ACTION_SLOT | AX_ACTION_FRAME | AX_ACTION_LOG);
	assert_int_equal(a[2].capture, 100);
	assert_int_equal(a[2].slot, 7);
	assert_int_equal(a[2].sample, 8);
	assert_int_equal(a[3].verdict, AX_VERDICT_PASS);
	assert_int_equal(a[3].flags, AX_ACTION_CATCH_ALL);
	assert_int_equal(a[3].counter, 1003);
	assert_int_equal(a[3].rule, 3);
	arena_free(&c.a);
}

/* Packets of `len` bytes that pass in `ns` at full speed, one at each `gap` ns. */
static uint64_t admitted(const struct ax_limit *lim, uint64_t len, uint64_t gap, uint64_t ns)
{
	uint64_t cost = lim->bytes ? lim->cost * len >> AX_LIMIT_BYTE_SHIFT : lim->cost;
	uint64_t stamp = 0, n = 0;

	for (uint64_t t = NS_PER_SECOND; t < NS_PER_SECOND + ns; t += gap) {
		uint64_t now = t << AX_LIMIT_NS_SHIFT, from = stamp < now ? now : stamp;

		if (from - now > lim->tolerance)
			continue;
		stamp = from + cost;
		n++;
	}
	return n;
}

static struct ax_limit limit_of(const char *rate)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct ax_limit lim;
	struct compiled c;
	char line[128];

	rule_list_init(&l);
	snprintf(line, sizeof(line), "proto udp action pass rate %s", rate);
	add_rule(&l, "proto tcp action drop");
	add_rule(&l, line);
	c = compile(&l);
	assert_int_equal(c.l.limits_n, 1);
	assert_int_equal(eval_action(&c.a, &c.l, 0)->limit, 0);
	assert_int_equal(eval_action(&c.a, &c.l, 1)->limit, 1);
	lim = *(const struct ax_limit *)(c.a.data + c.l.limits);
	arena_free(&c.a);
	return lim;
}

static void limits_let_through_what_they_say(void **state)
{
	struct ax_limit lim;

	(void)state;
	lim = limit_of("1000pps,burst=50");
	assert_int_equal(lim.cost, LIMIT_PER_SECOND / 1000);
	assert_int_equal(admitted(&lim, 64, 10, 10), 1);
	assert_int_equal(admitted(&lim, 64, 1, 10000), 50);
	assert_in_range(admitted(&lim, 64, 10000, NS_PER_SECOND), 1049, 1051);
	lim = limit_of("1pps,burst=1");
	assert_int_equal(admitted(&lim, 64, NS_PER_SECOND / 10, 10 * NS_PER_SECOND), 10);
	lim = limit_of("100gbit,burst=15000"); /* 12.5 bytes in a ns: 1000 in 80 ns */
	assert_int_equal(lim.bytes, 1);
	assert_int_equal(admitted(&lim, 1000, 1, 1), 1);
	assert_in_range(admitted(&lim, 1000, 10, 1000000), 12500, 12520);
	lim = limit_of("10mbit,burst=12500");
	assert_int_equal(admitted(&lim, 1250, 1, 100), 10);
	assert_in_range(admitted(&lim, 1250, 100000, NS_PER_SECOND), 1008, 1011);
	lim = limit_of("10pps,per=src/24/64");
	assert_int_equal(lim.per_source, 1);
	assert_int_equal(lim.len4, 24);
	assert_int_equal(lim.len6, 64);
}

/* Whatever somebody asks for, a stamp does not overflow. */
static void limits_do_not_overflow(void **state)
{
	static const struct {
		uint64_t rate, burst;
		bool bits;
	} odd[] = {{1, UINT64_MAX, true},  {1, UINT64_MAX, false}, {UINT64_MAX, UINT64_MAX, true},
		   {UINT64_MAX, 0, false}, {UINT64_MAX, 1, true},  {7, 0, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct rule r = {
			.rate = odd[i].rate, .burst = odd[i].burst, .rate_bits = odd[i].bits};
		struct rule_list l = {.rules = &r, .n_rules = 1};
		struct compiled c = compile(&l);
		const struct ax_limit *lim = (const void *)(c.a.data + c.l.limits);

		assert_in_range(lim->cost, 1, (1ull << 47) - 1);
		assert_true(lim->tolerance <= 1ull << 60);
		arena_free(&c.a);
	}
}

static void balanced_fragments_follow_their_first(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p = packet("10.0.0.1", "10.0.0.2", 17, 53);
	const struct ax_action *a;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	l.balancers = calloc(1, sizeof(*l.balancers));
	l.n_balancers = 1;
	l.balancers->name = strdup("dns");
	add_rule(&l, "src 9.0.0.0/8 action drop");
	add_rule(&l, "dst 10.0.0.2 proto udp dport 53 action balance dns rate 10pps");
	add_rule(&l, "action drop");
	c = compile(&l);
	assert_int_equal(c.l.balance_first, 1);
	assert_int_equal(c.l.rules, 4);
	assert_int_equal(judge(&c, &p), 1);
	p.dport = 54;
	assert_int_equal(judge(&c, &p), 2);
	p.fragment = AX_FRAGMENT_LATER;
	p.has_l4 = false;
	assert_int_equal(judge(&c, &p), 1);
	p.proto = 6;
	assert_int_equal(judge(&c, &p), 2);
	a = eval_action(&c.a, &c.l, 1);
	assert_memory_equal(a, a + 1, sizeof(*a));
	assert_int_equal(a->limit, 1);
	assert_int_equal(a->verdict, AX_VERDICT_BALANCE);
	assert_int_equal(a->target, 0);
	assert_int_equal(c.l.limits_n, 1);
	arena_free(&c.a);
}

static void errors_are_quoted_where_the_last_word_is_drop(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	l.policy[AX_REASON_ICMP_ERROR] = AX_POLICY_PASS;
	c = compile(&l);
	assert_int_equal(c.l.quotes, 0);
	assert_memory_equal(c.l.policy, l.policy, sizeof(l.policy));
	arena_free(&c.a);
	l.default_action = AX_VERDICT_DROP;
	c = compile(&l);
	assert_int_equal(c.l.quotes, 1);
	arena_free(&c.a);
	add_rule(&l, "action pass");
	c = compile(&l);
	assert_int_equal(c.l.quotes, 0);
	arena_free(&c.a);
	rule_list_remove(&l, 0);
	l.policy[AX_REASON_ICMP_ERROR] = AX_POLICY_RULES;
	c = compile(&l);
	assert_int_equal(c.l.quotes, 0);
	arena_free(&c.a);
}

static void the_list_itself_is_in_the_arena(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l, back;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "a", SET_PREFIXES, "10.0.0.0/8 fd00::/8");
	add_rule(&l, "name x src @a action drop");
	c = compile(&l);
	assert_true(c.l.state + c.l.state_size <= c.l.size);
	rule_list_init(&back);
	assert_int_equal(rule_list_restore(c.a.data + c.l.state, c.l.state_size, &back), 0);
	assert_int_equal(back.n_rules, 1);
	assert_true(rule_eq(&back.rules[0], &l.rules[0]));
	arena_free(&c.a);
}

/* --- size --- */

static void add_random_rule(struct rnd *r, struct rule *to)
{
	to->verdict = AX_VERDICT_DROP;
	to->src.v = calloc(1, sizeof(*to->src.v));
	to->src.n = 1;
	to->src.v[0].addr = addr_from_v4((__be32)rnd_next(r));
	to->src.v[0].len = 96 + 8 + rnd_below(r, 25);
	rnd_mask(&to->src.v[0]);
	to->proto.v = calloc(1, sizeof(*to->proto.v));
	to->proto.n = 1;
	to->proto.v[0].lo = to->proto.v[0].hi = rnd_one_in(r, 2) ? 6 : 17;
	to->dport.v = calloc(1, sizeof(*to->dport.v));
	to->dport.n = 1;
	to->dport.v[0].lo = rnd_below(r, 65536);
	to->dport.v[0].hi = to->dport.v[0].lo + rnd_below(r, 65536 - to->dport.v[0].lo);
}

static void make_big(struct rule_list *l, size_t n, uint64_t seed)
{
	struct rnd r = {seed};

	rule_list_init(l);
	l->rules = calloc(n, sizeof(*l->rules));
	l->n_rules = n;
	for (size_t i = 0; i < n; i++)
		add_random_rule(&r, &l->rules[i]);
}

static void as_many_rules_as_there_may_be(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l, one_more;
	struct error e = {0};
	struct compiled c;
	struct rnd r = {5};

	(void)state;
	make_big(&l, AX_XDP_RULES_MAX, 11);
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_BITMAP);
	assert_int_equal(c.l.words, 256);
	assert_int_equal(c.l.summary, AX_SUMMARY_MAX);
	check_packets(&l, &c, &r, 500);
	arena_free(&c.a);
	make_big(&one_more, AX_XDP_RULES_MAX + 1, 12);
	assert_int_equal(try_compile(&one_more, &c, &e), -E2BIG);
	assert_non_null(strstr(e.text, "16384"));
	assert_null(c.a.data);
}

/* Each port range of its own, in many rules: more classes than 16 bits can tell. */
static void too_many_classes_are_refused(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct error e = {0};
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	l.rules = calloc(17, sizeof(*l.rules));
	l.n_rules = 17;
	for (unsigned bit = 0; bit < 17; bit++) {
		struct rule_addrs *src = &l.rules[bit].src;

		/* of /17 networks those whose number has this bit */
		src->v = calloc(1 << 16, sizeof(*src->v));
		for (uint32_t i = 0; i < 1u << 17; i++) {
			if (!(i >> bit & 1))
				continue;
			src->v[src->n].addr = addr_from_v4(htonl(i << 15));
			src->v[src->n++].len = 96 + 17;
		}
	}
	assert_int_equal(try_compile(&l, &c, &e), -E2BIG);
	assert_non_null(strstr(e.text, "65536"));
	assert_non_null(strstr(e.text, "'src'"));
	l.n_rules = 16; /* which is as many as there may be: 65536 classes */
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(l.rules[i].src.n, 65536);
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	arena_free(&c.a);
	rule_free(&l.rules[16]);
}

static void a_million_prefixes_are_found(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	const size_t n = 1000000;
	struct rule_set_def *s;
	struct rnd r = {77};
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "big", SET_PREFIXES, "");
	add_set(&l, "other", SET_PREFIXES, "10.0.0.0/8 fd00::/8");
	s = &l.sets[0];
	s->prefixes = realloc(s->prefixes, n * sizeof(*s->prefixes));
	assert_non_null(s->prefixes);
	for (s->n = 0; s->n < n; s->n++) {
		bool v4 = s->n % 4;
		struct prefix *p = &s->prefixes[s->n];

		p->addr = (struct ax_addr){.w = {(__be32)rnd_next(&r), (__be32)rnd_next(&r)}};
		if (v4)
			p->addr = addr_from_v4((__be32)rnd_next(&r));
		p->len = v4 ? 96 + 24 + rnd_below(&r, 9) : 32 + rnd_below(&r, 33);
		rnd_mask(p);
	}
	assert_int_equal(set_sort(s), 0);
	add_rule(&l, "src @other action pass");
	add_rule(&l, "src @big action drop");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	check_packets(&l, &c, &r, 20);
	arena_free(&c.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lists_mean_what_they_say),
		cmocka_unit_test(no_conditions_need_no_lookup),
		cmocka_unit_test(one_field_holds_the_rules_themselves),
		cmocka_unit_test(few_classes_are_multiplied_and_many_are_not),
		cmocka_unit_test(what_is_behind_a_rule_for_all_costs_nothing),
		cmocka_unit_test(each_field_is_told_from_its_absence),
		cmocka_unit_test(lengths_above_the_table_are_its_last),
		cmocka_unit_test(addresses_of_one_family_never_match_the_other),
		cmocka_unit_test(ends_of_the_address_space_are_addresses),
		cmocka_unit_test(nested_prefixes_are_told_apart),
		cmocka_unit_test(sets_belong_to_several_rules),
		cmocka_unit_test(a_set_without_elements_matches_nothing),
		cmocka_unit_test(lists_of_one_family_have_no_tables_of_the_other),
		cmocka_unit_test(actions_carry_what_the_rule_says),
		cmocka_unit_test(limits_let_through_what_they_say),
		cmocka_unit_test(limits_do_not_overflow),
		cmocka_unit_test(balanced_fragments_follow_their_first),
		cmocka_unit_test(errors_are_quoted_where_the_last_word_is_drop),
		cmocka_unit_test(the_list_itself_is_in_the_arena),
		cmocka_unit_test(as_many_rules_as_there_may_be),
		cmocka_unit_test(too_many_classes_are_refused),
		cmocka_unit_test(a_million_prefixes_are_found),
	};

	return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
