// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/compiled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/arena_eval.h"

int try_compile(const struct rule_list *l, struct compiled *c, struct error *e)
{
	autofree struct rule_binding *bind = calloc(l->n_rules + 1, sizeof(*bind));
	autofree struct real_binding *slots = calloc(64, sizeof(*slots));

	assert_non_null(bind);
	assert_non_null(slots);
	for (size_t i = 0; i <= l->n_rules; i++)
		bind[i] = (struct rule_binding){
			.counter = (uint16_t)(i + 1000), .target = (uint16_t)(i + 2), .slot = 7};
	memset(c, 0, sizeof(*c));
	return rule_compile(l, bind, slots, &c->a, &c->l, e);
}

struct compiled compile(const struct rule_list *l)
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

size_t compiled_judge(const struct compiled *c, const struct match_packet *p)
{
	return eval_action(&c->a, &c->l, eval_rule(&c->a, &c->l, p))->rule;
}

void check_packets(const struct rule_list *l, const struct compiled *c, struct rnd *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct match_packet p;
		uint64_t seed = r->s;

		rnd_packet(r, l, &p);
		if (compiled_judge(c, &p) != match_first(l, &p))
			fail_msg("packet of seed %#llx: rule %zu instead of %zu of %zu, mode %u",
				 (unsigned long long)seed, compiled_judge(c, &p),
				 match_first(l, &p), l->n_rules, c->l.match);
	}
}

void check_list(const struct rule_list *l, uint64_t seed, unsigned packets)
{
	struct compiled c = compile(l);
	struct rnd r = {seed};

	check_packets(l, &c, &r, packets);
	arena_free(&c.a);
}

/* --- lists from text --- */

void add_set(struct rule_list *l, const char *name, enum set_kind kind, const char *elements)
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

void add_rule(struct rule_list *l, const char *line)
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

struct match_packet packet(const char *src, const char *dst, uint8_t proto, uint16_t dport)
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

const struct match_packet not_ip = {
	.fragment = AX_FRAGMENT_NOT_IP, .vlan = AX_VLAN_NONE, .len = 60, .mac = {2}};
