// SPDX-License-Identifier: GPL-2.0-or-later
/* Rule lists: edits, checks, names of counters, and their state in the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include "rules/list.h"

static struct rule rule_of(const char *line)
{
	autofree char *copy = strdup(line);
	const char *words[128];
	char *rest = copy, *word;
	struct error e = {0};
	struct rule r;
	size_t n = 0;

	while ((word = strsep(&rest, " ")))
		words[n++] = word;
	if (rule_parse(words, n, &r, &e) < 0)
		fail_msg("%s: %s", line, e.text);
	return r;
}

static void add(struct rule_list *l, const char *line)
{
	struct rule r = rule_of(line);

	assert_int_equal(rule_list_insert(l, SIZE_MAX, &r), 0);
	assert_null(r.name);
}

static struct rule_list list_of(const char *const *lines)
{
	struct rule_list l;

	rule_list_init(&l);
	for (; *lines; lines++)
		add(&l, *lines);
	return l;
}

static void add_set(struct rule_list *l, const char *name, enum set_kind kind, const char *text)
{
	struct rule_set_def *s = rule_list_set(l, name);
	struct error e;

	if (!s)
		assert_int_equal(rule_list_add_set(l, name, kind, &s), 0);
	assert_int_equal(set_parse(s, text, strlen(text), name, &e), 0);
}

static struct balancer *add_balancer(struct rule_list *l, const char *name)
{
	struct balancer *b = realloc(l->balancers, 512 * sizeof(*b));

	assert_non_null(b);
	l->balancers = b;
	b += l->n_balancers++;
	*b = (struct balancer){.name = strdup(name), .gue_port = 6080};
	return b;
}

static void add_backend(struct balancer *b, const char *addr, uint16_t port)
{
	struct balance_backend *v = realloc(b->backends, 8192 * sizeof(*v));

	assert_non_null(v);
	b->backends = v;
	v[b->n] = (struct balance_backend){.port = port, .weight = 1};
	assert_int_equal(addr_parse(addr, &v[b->n].addr), 0);
	b->n++;
}

/* The rules' names and lines with a | after each. */
static void assert_names(const struct rule_list *l, const char *expected)
{
	struct strv names;
	char buf[1024] = "";

	assert_int_equal(rule_list_counter_names(l, &names), 0);
	assert_int_equal(names.n, l->n_rules + 1);
	for (size_t i = 0; i < names.n; i++) {
		strcat(buf, names.v[i]);
		strcat(buf, "|");
	}
	assert_string_equal(buf, expected);
	strv_free(&names);
}

static void a_list_starts_empty(void **state)
{
	struct rule_list l;

	(void)state;
	rule_list_init(&l);
	assert_int_equal(l.default_action, AX_VERDICT_PASS);
	assert_int_equal(l.mode, ATTACH_AUTO);
	assert_int_equal(l.priority, 0);
	for (int i = AX_REASON_RUNT; i <= AX_REASON_SPLIT; i++)
		assert_int_equal(l.policy[i], AX_POLICY_DROP);
	for (int i = AX_REASON_IP_OPTIONS; i <= AX_REASON_TUNNEL; i++)
		assert_int_equal(l.policy[i], AX_POLICY_RULES);
	for (int i = AX_REASON_ARP; i <= AX_REASON_ICMP_ERROR; i++)
		assert_int_equal(l.policy[i], AX_POLICY_PASS);
	assert_int_equal(l.policy[AX_REASON_EXPOSED], AX_POLICY_RULES);
	assert_int_equal(rule_list_check(&l, NULL), 0);
	assert_names(&l, "default|");
	rule_list_free(&l);
}

static void rules_are_inserted_moved_and_removed(void **state)
{
	static const char *const lines[] = {"name a action pass", "name b action pass",
					    "name c action pass", "name d action pass", NULL};
	struct rule_list l = list_of(lines);
	struct rule r = rule_of("name e action drop");

	(void)state;
	assert_int_equal(rule_list_insert(&l, 0, &r), 0);
	assert_names(&l, "e|a|b|c|d|default|");
	r = rule_of("name f action drop");
	assert_int_equal(rule_list_insert(&l, 5, &r), 0);
	assert_names(&l, "e|a|b|c|d|f|default|");
	r = rule_of("name g action drop");
	assert_int_equal(rule_list_insert(&l, 2, &r), 0);
	assert_names(&l, "e|a|g|b|c|d|f|default|");
	assert_int_equal(rule_list_move(&l, 0, 2), 0);
	assert_names(&l, "a|g|e|b|c|d|f|default|");
	assert_int_equal(rule_list_move(&l, 6, 1), 0);
	assert_names(&l, "a|f|g|e|b|c|d|default|");
	assert_int_equal(rule_list_move(&l, 3, 3), 0);
	assert_int_equal(rule_list_move(&l, 0, 100), 0);
	assert_names(&l, "f|g|e|b|c|d|a|default|");
	assert_int_equal(rule_list_move(&l, 7, 0), -ENOENT);
	rule_list_remove(&l, 6);
	rule_list_remove(&l, 0);
	rule_list_remove(&l, 2);
	rule_list_remove(&l, 100);
	assert_names(&l, "g|e|c|d|default|");
	while (l.n_rules)
		rule_list_remove(&l, 0);
	add(&l, "name z action pass");
	assert_names(&l, "z|default|");
	rule_list_free(&l);
}

static void rules_are_found(void **state)
{
	static const char *const lines[] = {"name ssh action pass", "action drop",
					    "name 7up action pass", NULL};
	static const struct {
		const char *which;
		size_t at;
	} good[] = {{"ssh", 0}, {"1", 0}, {"#1", 0}, {"2", 1}, {"7up", 2}, {"#3", 2}};
	static const struct {
		const char *which, *error;
	} bad[] = {
		{"shs", "there is no rule \"shs\": use a rule's name or its number; did you mean "
			"\"ssh\"?"},
		{"web", "there is no rule \"web\": use a rule's name or its number"},
		{"", "there is no rule \"\": use a rule's name or its number"},
		{"#", "there is no rule \"#\": use a rule's name or its number"},
		{"0", "there is no rule 0: use a number of 1 to 3, or a rule's name"},
		{"#4", "there is no rule #4: use a number of 1 to 3, or a rule's name"},
		{"##1", "there is no rule \"##1\": use a rule's name or its number"},
		{"1x", "there is no rule \"1x\": use a rule's name or its number"},
	};
	struct rule_list l = list_of(lines);
	struct error e;
	size_t at;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(rule_list_find(&l, good[i].which, &at, &e), 0);
		assert_int_equal(at, good[i].at);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(rule_list_find(&l, bad[i].which, &at, &e), -ENOENT);
		assert_string_equal(e.text, bad[i].error);
	}
	rule_list_free(&l);
	rule_list_init(&l);
	assert_int_equal(rule_list_find(&l, "1", &at, &e), -ENOENT);
	assert_string_equal(e.text, "there is no rule 1: the list has none");
	rule_list_free(&l);
}

static void counters_have_names_of_their_own(void **state)
{
	static const char *const lines[] = {"dport 22 action pass",
					    "action drop",
					    "name x action drop",
					    "dport 22 action pass",
					    "dport 22 action pass",
					    "dport 23 action pass",
					    NULL};
	struct rule_list l = list_of(lines);

	(void)state;
	assert_names(&l, "dport 22 action pass|action drop|x|dport 22 action pass #2|"
			 "dport 22 action pass #3|dport 23 action pass|default|");
	rule_list_free(&l);
}

static void assert_check(const struct rule_list *l, const char *expected)
{
	struct error e = {0};

	assert_int_equal(rule_list_check(l, &e), *expected ? -EINVAL : 0);
	assert_string_equal(e.text, expected);
	assert_int_equal(rule_list_check(l, NULL), *expected ? -EINVAL : 0);
}

static void lists_are_checked(void **state)
{
	static const struct {
		const char *line, *error;
	} cases[] = {
		{"src @nets dst @nets dport @ports sport @ports action balance web", ""},
		{"name b action pass", ""},
		{"src @net action pass", "rule 2 with src @net is not valid: use a set that is "
					 "defined; did you mean \"nets\"?"},
		{"dst @other action pass",
		 "rule 2 with dst @other is not valid: use a set that is defined"},
		{"name s src @ports action pass", "rule 2 (s) with src @ports is not valid: use a "
						  "set of prefixes there, not of ports"},
		{"dport @nets action pass", "rule 2 with dport @nets is not valid: use a set of "
					    "ports there, not of prefixes"},
		{"sport @x action pass",
		 "rule 2 with sport @x is not valid: use a set that is defined"},
		{"action balance wbe", "rule 2 with balance wbe is not valid: use a balancer that "
				       "is defined; did you mean \"web\"?"},
		{"name a action drop",
		 "rule 2 (a) is not valid: use a name that no rule before it has"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rule_list l;

		rule_list_init(&l);
		add_set(&l, "nets", SET_PREFIXES, "10.0.0.0/8");
		add_set(&l, "ports", SET_PORTS, "80");
		add_balancer(&l, "web");
		add(&l, "name a action drop");
		add(&l, cases[i].line);
		assert_check(&l, cases[i].error);
		rule_list_free(&l);
	}
}

static void sizes_are_checked(void **state)
{
	struct rule_list l;
	struct balancer *b;

	(void)state;
	rule_list_init(&l);
	for (int i = 0; i < AX_XDP_RULES_MAX; i++)
		add(&l, "action pass");
	assert_check(&l, "");
	add(&l, "action pass");
	assert_check(&l, "too many rules is not valid: use at most 16384; one rule with a set does "
			 "the work of many");
	rule_list_free(&l);

	rule_list_init(&l);
	for (int i = 0; i <= AX_SLOTS; i++) {
		char line[64];

		snprintf(line, sizeof(line), "action pass capture 16,slot=s%d", i);
		assert_check(&l, "");
		add(&l, line);
		add(&l, "action pass capture 16,slot=s0");
	}
	assert_check(&l, "rule 129 is not valid: use at most 64 different slots in a list");
	rule_list_free(&l);

	rule_list_init(&l);
	for (unsigned i = 0; i <= SETS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%u", i);
		if (i < SETS_MAX)
			add_set(&l, name, SET_PORTS, "1");
		add_balancer(&l, name);
	}
	assert_check(&l, "too many balancers is not valid: use at most 256");
	free(l.balancers[--l.n_balancers].name);
	assert_check(&l, "");
	l.sets[3].name[1] = '2';
	assert_check(&l, "set s2 twice is not valid: use each name once");
	l.sets[3].name[1] = '3';
	l.balancers[3].name[1] = '2';
	assert_check(&l, "balancer s2 twice is not valid: use each name once");
	rule_list_free(&l);

	rule_list_init(&l);
	b = add_balancer(&l, "b");
	add_backend(b, "10.0.0.1", 0);
	add_backend(b, "10.0.0.1", 80);
	assert_check(&l, "");
	b->mode = BALANCE_GUE;
	assert_check(&l,
		     "balancer b with a backend's port is not valid: use no ports with ipip and "
		     "gue: the packet inside keeps its own");
	b->mode = BALANCE_NAT;
	add_backend(b, "10.0.0.1", 80);
	assert_check(&l, "balancer b with 10.0.0.1 twice is not valid: use each backend once (a "
			 "weight gives it more)");
	b->backends[2].port = 81;
	b->backends[0].has_quic_id = b->backends[2].has_quic_id = true;
	b->backends[2].quic_id = 9;
	assert_check(&l, "");
	add_backend(b, "fd00::1", 81);
	b->backends[3].has_quic_id = true;
	b->backends[3].quic_id = 9;
	assert_check(&l, ""); /* the same server, by its other address */
	b->backends[0].quic_id = 9;
	assert_check(&l, "balancer b with quic-id 9 twice is not valid: use another quic-id for "
			 "each backend of a family");
	for (b->n = 0; b->n < 4096;) {
		char addr[32];

		snprintf(addr, sizeof(addr), "10.1.%zu.%zu", b->n / 256, b->n % 256);
		add_backend(b, addr, 80);
	}
	assert_check(&l, "");
	add_backend(add_balancer(&l, "c"), "10.0.0.1", 80);
	assert_check(&l, "too many backends is not valid: use at most 4096 in all balancers of a "
			 "list");
	rule_list_free(&l);

	rule_list_init(&l);
	l.default_action = AX_VERDICT_REFLECT;
	assert_check(&l, "the default action is not valid: use pass or drop");
	l.default_action = AX_VERDICT_DROP;
	l.priority = 65536;
	assert_check(&l, "the priority is not valid: use 1 to 65535");
	rule_list_free(&l);
}

/* One with everything in it. */
static struct rule_list full_list(void)
{
	struct rule_list l;
	struct balancer *b;

	rule_list_init(&l);
	l.default_action = AX_VERDICT_DROP;
	l.mode = ATTACH_GENERIC;
	l.priority = 65535;
	l.policy[AX_REASON_ARP] = AX_POLICY_RULES;
	l.policy[AX_REASON_RUNT] = AX_POLICY_PASS;
	l.policy[AX_REASON_ICMP_ERROR] = AX_POLICY_DROP;
	add_set(&l, "empty", SET_PREFIXES, "");
	add_set(&l, "mixed", SET_PREFIXES,
		"::/0 ::1 10.0.0.0/8 0.0.0.0/0 255.255.255.255 fd00::/8 ::fffe:0:0/95 "
		"10.0.0.0/9 10.0.0.0");
	add_set(&l, "none", SET_PORTS, "");
	add_set(&l, "ports", SET_PORTS, "1-65535 0 80 80-90");
	b = add_balancer(&l, "web");
	b->mode = BALANCE_GUE;
	b->gue_port = 7000;
	assert_int_equal(addr_parse("192.0.2.1", &b->source4), 0);
	assert_int_equal(addr_parse("2001:db8::1", &b->source6), 0);
	add_backend(b, "10.0.0.1", 0);
	add_backend(b, "fd00::1", 0);
	b->backends[0].weight = 1000;
	b->backends[0].drain = true;
	b->backends[1].down = true;
	b->backends[1].has_quic_id = true;
	b->backends[1].quic_id = 513;
	b = add_balancer(&l, "svc");
	b->service = strdup("api");
	b->affinity = BALANCE_BY_SRC;
	add(&l, "name ssh src @mixed,10.0.0.0/8 proto tcp dport 22,@ports action pass");
	add(&l, "action balance web");
	add(&l, "vlan 5 action redirect eth0 smac 02:00:00:00:00:01 dmac 02:00:00:00:00:02 to "
		"10.0.0.9 checksum recompute capture 99,ring,slot=x,frame rate 5mbit,per=src/9 "
		"sample 3 log yes");
	add(&l, "proto udp action cpu 3 trigger yes");
	return l;
}

static void lists_are_copied(void **state)
{
	struct rule_list l = full_list(), copy, empty;
	struct rule r = rule_of("action pass");

	(void)state;
	assert_int_equal(rule_list_copy(&l, &copy), 0);
	assert_true(rule_list_eq(&l, &copy));
	/* the copy is a list that goes on growing */
	assert_int_equal(rule_list_insert(&copy, 1, &r), 0);
	assert_false(rule_list_eq(&l, &copy));
	rule_list_remove(&copy, 1);
	assert_true(rule_list_eq(&l, &copy));
	copy.balancers[0].backends[1].down = false;
	assert_false(rule_list_eq(&l, &copy));
	copy.balancers[0].backends[1].down = true;
	copy.balancers[0].backends[1].quic_id++;
	assert_false(rule_list_eq(&l, &copy));
	copy.balancers[0].backends[1].quic_id--;
	copy.balancers[0].backends[1].has_quic_id = false;
	assert_false(rule_list_eq(&l, &copy));
	copy.balancers[0].backends[1].has_quic_id = true;
	copy.balancers[1].affinity = BALANCE_BY_FLOW;
	assert_false(rule_list_eq(&l, &copy));
	copy.balancers[1].affinity = BALANCE_BY_SRC;
	assert_true(rule_list_eq(&l, &copy));
	copy.sets[1].prefixes[3].len++;
	assert_false(rule_list_eq(&l, &copy));
	rule_list_free(&copy);
	rule_list_init(&empty);
	assert_int_equal(rule_list_copy(&empty, &copy), 0);
	assert_true(rule_list_eq(&empty, &copy));
	rule_list_free(&copy);
	rule_list_free(&l);
}

static void shared_things_are_added(void **state)
{
	struct rule_list shared = full_list(), l;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "ports", SET_PORTS, "7");
	add_balancer(&l, "web");
	assert_int_equal(rule_list_share(&l, &shared), 0);
	assert_int_equal(l.n_sets, 4);
	assert_int_equal(l.n_balancers, 2);
	assert_int_equal(l.n_rules, 0);
	assert_int_equal(rule_list_set(&l, "ports")->n, 1);
	assert_int_equal(rule_list_set(&l, "mixed")->n, 9);
	assert_string_equal(rule_list_balancer(&l, "svc")->service, "api");
	assert_int_equal(rule_list_balancer(&l, "web")->n, 0);
	rule_list_free(&l);
	rule_list_free(&shared);
}

static void sets_are_added(void **state)
{
	struct rule_set_def *s;
	struct rule_list l;
	char name[16];

	(void)state;
	rule_list_init(&l);
	for (unsigned i = 0; i < SETS_MAX; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(rule_list_add_set(&l, name, SET_PORTS, &s), 0);
		assert_ptr_equal(s, rule_list_set(&l, name));
		assert_int_equal(s->kind, SET_PORTS);
		assert_int_equal(s->n, 0);
	}
	assert_int_equal(rule_list_add_set(&l, "s7", SET_PORTS, &s), -EEXIST);
	assert_int_equal(rule_list_add_set(&l, "more", SET_PORTS, &s), -E2BIG);
	assert_int_equal(rule_list_add_set(&l, "a b", SET_PORTS, &s), -EINVAL);
	rule_list_free(&l);
}

static void a_rule_of_many_words_is_saved_and_restored(void **state)
{
	char line[1024] = "payload";
	struct rule_list l, again;
	autofree void *data = NULL;
	size_t len;

	(void)state;
	/* as many pieces as there may be in a payload, of eight bytes; and again, with others */
	for (unsigned i = 0; i < 2 * AX_PAYLOAD_PIECES; i++) {
		char *end = line + strlen(line);

		sprintf(end, "%sat %u", i == AX_PAYLOAD_PIECES ? "," : " ", 8 * i);
		for (unsigned k = 0; k < AX_PAYLOAD_BYTES; k++)
			sprintf(line + strlen(line), " 0x%02x", 16 * i + k);
	}
	strcat(line, " action drop");
	rule_list_init(&l);
	add(&l, line);
	assert_int_equal(rule_list_save(&l, &data, &len), 0);
	assert_int_equal(rule_list_restore(data, len, &again), 0);
	assert_true(rule_list_eq(&l, &again));
	rule_list_free(&again);
	rule_list_free(&l);
}

static void state_is_saved_and_restored(void **state)
{
	struct rule_list l = full_list(), again;
	autofree void *data = NULL, *second = NULL;
	size_t len, second_len;

	(void)state;
	assert_int_equal(rule_list_save(&l, &data, &len), 0);
	assert_int_equal(rule_list_restore(data, len, &again), 0);
	assert_true(rule_list_eq(&l, &again));
	assert_int_equal(rule_list_save(&again, &second, &second_len), 0);
	assert_int_equal(len, second_len);
	assert_memory_equal(data, second, len);
	rule_list_free(&again);
	/* a list that is not right is not kept */
	free(l.rules[0].name);
	l.rules[0].name = NULL;
	free(l.sets[0].name);
	l.sets[0].name = strdup("mixed");
	assert_int_equal(rule_list_save(&l, &second, &second_len), -EINVAL);
	rule_list_free(&l);

	for (int d = DIRECTION_INGRESS; d <= DIRECTION_EGRESS; d++) {
		rule_list_init(&l);
		l.direction = (enum xdp_direction)d;
		l.track = d ? TRACK_OWN : TRACK_AUTO;
		free(take_ptr(&data));
		assert_int_equal(rule_list_save(&l, &data, &len), 0);
		assert_int_equal(rule_list_restore(data, len, &again), 0);
		assert_int_equal(again.direction, d);
		assert_true(rule_list_eq(&l, &again));
		l.track = TRACK_KERNEL;
		assert_false(rule_list_eq(&l, &again));
		l.track = again.track;
		l.direction = d ? DIRECTION_INGRESS : DIRECTION_EGRESS;
		assert_false(rule_list_eq(&l, &again));
		rule_list_free(&again);
		rule_list_free(&l);
	}
}

/* Whatever is cut off or changed, it is refused, or another list that can be saved. */
static void damaged_state_is_refused(void **state)
{
	struct rule_list l = full_list(), again;
	autofree void *data = NULL;
	uint8_t *bytes;
	size_t len, taken = 0;

	(void)state;
	assert_int_equal(rule_list_save(&l, &data, &len), 0);
	for (size_t i = 0; i < len; i++) {
		autofree void *part = malloc(i + 1); /* so that reading beyond it is seen */

		memcpy(part, data, i);
		assert_int_equal(rule_list_restore(part, i, &again), -EINVAL);
	}
	bytes = data;
	for (size_t i = 0; i < len; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			autofree void *saved = NULL;
			size_t saved_len;
			int r;

			bytes[i] ^= (uint8_t)(1 << bit);
			r = rule_list_restore(data, len, &again);
			bytes[i] ^= (uint8_t)(1 << bit);
			if (r < 0) {
				assert_int_equal(r, -EINVAL);
				continue;
			}
			taken++;
			assert_int_equal(rule_list_save(&again, &saved, &saved_len), 0);
			rule_list_free(&again);
		}
	}
	assert_true(taken > 0); /* numbers, names */
	assert_int_equal(rule_list_restore(data, len, &again), 0);
	assert_true(rule_list_eq(&l, &again));
	rule_list_free(&again);
	rule_list_free(&l);
	assert_int_equal(rule_list_restore("", 0, &again), -EINVAL);
}

static void a_million_prefixes_take_8_mb(void **state)
{
	struct rule_set_def *s;
	struct rule_list l, again;
	autofree void *data = NULL;
	size_t len;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "s", SET_PREFIXES, "");
	s = &l.sets[0];
	s->prefixes = calloc(1000000, sizeof(*s->prefixes));
	assert_non_null(s->prefixes);
	for (; s->n < 1000000; s->n++) /* backwards: they are sorted when they are saved */
		s->prefixes[s->n] = (struct prefix){
			addr_from_v4(htonl(0xfffffff0 - (uint32_t)s->n * 4099)), 128};
	add(&l, "src @s action drop");
	assert_int_equal(rule_list_save(&l, &data, &len), 0);
	assert_true(len <= 8000000);
	assert_int_equal(rule_list_restore(data, len, &again), 0);
	assert_int_equal(again.sets[0].n, 1000000);
	assert_int_equal(set_sort(s), 0);
	assert_true(rule_list_eq(&l, &again));
	rule_list_free(&again);
	rule_list_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_starts_empty),
		cmocka_unit_test(rules_are_inserted_moved_and_removed),
		cmocka_unit_test(rules_are_found),
		cmocka_unit_test(counters_have_names_of_their_own),
		cmocka_unit_test(lists_are_checked),
		cmocka_unit_test(sizes_are_checked),
		cmocka_unit_test(lists_are_copied),
		cmocka_unit_test(shared_things_are_added),
		cmocka_unit_test(sets_are_added),
		cmocka_unit_test(a_rule_of_many_words_is_saved_and_restored),
		cmocka_unit_test(state_is_saved_and_restored),
		cmocka_unit_test(damaged_state_is_refused),
		cmocka_unit_test(a_million_prefixes_take_8_mb),
	};

	return cmocka_run_group_tests_name("rule_list", tests, NULL, NULL);
}
