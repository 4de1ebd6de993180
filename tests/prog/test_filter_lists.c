// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* Lists that change: counters and their names, edits, and lists that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>

#include "iface/iface.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/filter_judge.h"
#include "tests/lib/rule_lists.h"

#define UDP_TO(port) "udp 10.0.0.1:5 > 10.0.0.2:" #port

static void assert_packets(const char *rule, uint64_t n)
{
	struct ax_rule_count c = filter_rule_count(rule);

	if (c.packets != n)
		fail_msg("%s counted %d packets, not %d", rule, (int)c.packets, (int)n);
}

static void run_times(const char *spec, int n)
{
	while (n--)
		filter_run(spec);
}

/* --- counters --- */

static void counters_follow_their_names(void **state)
{
	(void)state;
	filter_load_afresh(
		"rules: [{name: a, dport: 1, action: drop}, {name: b, dport: 2, action: drop}]\n");
	run_times(UDP_TO(1), 3);
	run_times(UDP_TO(2), 4);
	run_times(UDP_TO(3), 5);
	/* moved */
	filter_load(
		"rules: [{name: b, dport: 2, action: drop}, {name: a, dport: 1, action: drop}]\n");
	assert_packets("a", 3);
	assert_packets("b", 4);
	assert_packets("default", 5);
	/* changed */
	filter_load("default: drop\nrules: [{name: new, dport: 3, action: pass},\n"
		    "  {name: b, dport: 1, action: pass, log: yes}, {name: a, src: 10.9.0.0/16, "
		    "action: "
		    "drop}]\n");
	run_times(UDP_TO(1), 10);
	run_times("udp 10.9.0.1:5 > 10.0.0.2:9", 20);
	run_times(UDP_TO(3), 40);
	run_times(UDP_TO(4), 80);
	assert_packets("a", 23);
	assert_packets("b", 14);
	assert_packets("new", 40);
	assert_packets("default", 85);
	/* renamed */
	filter_load("rules: [{name: c, dport: 1, action: drop}]\n");
	assert_packets("c", 0);
	assert_packets("default", 85);
	/* what was gone begins anew, whoever had its place */
	filter_load("rules: [{name: a, dport: 1, action: drop}, {name: d, dport: 1, action: drop}, "
		    "{name: "
		    "b,\n"
		    "  dport: 7, action: pass}]\n");
	assert_packets("a", 0);
	assert_packets("b", 0);
	assert_packets("d", 0);
	run_times(UDP_TO(1), 2);
	assert_packets("a", 2);
	assert_packets("d", 0);
}

static void reasons_are_the_interfaces(void **state)
{
	(void)state;
	filter_load_afresh("");
	run_times("udp 10.0.0.1:5 > 10.0.0.2:9 | cut20", 3);
	filter_load("default: drop\n");
	assert_int_equal(filter_reason_count(AX_REASON_RUNT), 3);
	filter_load_afresh("default: drop\n");
	assert_int_equal(filter_reason_count(AX_REASON_RUNT), 0);
}

/* A rule that no packet can reach counts nothing, and what is behind it neither. */
static void unreachable_rules(void **state)
{
	(void)state;
	filter_load_afresh("rules: [{name: a, dport: 1, action: drop}, {name: all, action: pass},\n"
			   "  {name: b, dport: 2, action: drop}]\n");
	run_times(UDP_TO(2), 4);
	assert_packets("all", 4);
	assert_packets("b", 0);
	assert_packets("default", 0);
	filter_load(
		"rules: [{name: a, dport: 1, action: drop}, {name: b, dport: 2, action: drop}]\n");
	run_times(UDP_TO(2), 4);
	assert_packets("b", 4);
}

static void names_of_rules(void **state)
{
	static const char *const names[] = {"dport 1 action drop", "first",
					    "dport 1 action drop #2",
					    "src 10.0.0.0/8 proto udp action pass", "default"};
	struct xdp_stats s;
	struct error e = {0};

	(void)state;
	filter_load_afresh(
		"rules: [{dport: 1, action: drop}, {name: first, dport: 1, action: drop},\n"
		"  {action: drop, dport: 1}, {src: 10.0.0.0/8, proto: udp, action: pass}]\n");
	assert_int_equal(xdp_stats(filter.x, &s, &e), 0);
	assert_int_equal(s.names.n, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(s.names.v[i], names[i]);
	xdp_stats_free(&s);
	run_times(UDP_TO(1), 2);
	run_times(UDP_TO(2), 3);
	filter_load(
		"rules: [{src: 10.0.0.0/8, proto: udp, action: pass}, {action: drop, dport: 1}]\n");
	assert_packets(names[0], 2);
	assert_packets(names[3], 3);
}

/* --- edits --- */

static struct rule parse_rule(const char *line)
{
	autofree char *text = strdup(line);
	const char *words[32];
	struct error e = {0};
	struct rule r = {0};
	char *save, *word;
	size_t n = 0;

	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	if (rule_parse(words, n, &r, &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

static int insert_rule(void *arg, struct rule_list *l, struct error *e)
{
	struct rule r = parse_rule(arg);

	(void)e;
	return rule_list_insert(l, 0, &r);
}

static int delete_rule(void *arg, struct rule_list *l, struct error *e)
{
	size_t at;
	int r = rule_list_find(l, arg, &at, e);

	if (!r)
		rule_list_remove(l, at);
	return r;
}

static int move_last(void *arg, struct rule_list *l, struct error *e)
{
	(void)arg;
	(void)e;
	return rule_list_move(l, 0, l->n_rules - 1);
}

static int refuse(void *arg, struct rule_list *l, struct error *e)
{
	(void)arg;
	rule_list_remove(l, 0);
	return error_set(e, -ECANCELED, "not today");
}

typedef int (*edit_fn)(void *arg, struct rule_list *l, struct error *e);

static int edit(edit_fn f, const char *arg, struct error *e)
{
	const struct xdp_load_options o = {.force = true};
	autofree char *copy = strdup(arg ? arg : "");
	int r;

	*e = (struct error){0};
	r = xdp_edit(&filter.inst, IFNAME, f, copy, &o, e);
	filter_reopen();
	return r;
}

static void edits(void **state)
{
	struct error e;

	(void)state;
	filter_load_afresh("default: drop\nrules: [{name: a, dport: 1, action: pass}]\n");
	run_times(UDP_TO(1), 3);
	assert_int_equal(edit(insert_rule, "name b dport 1-9 action drop", &e), 0);
	judge(UDP_TO(1), &(struct expect)BY_DROP("b"));
	assert_int_equal(edit(move_last, NULL, &e), 0);
	judge(UDP_TO(1), &(struct expect)BY_PASS("a"));
	judge(UDP_TO(2), &(struct expect)BY_DROP("b"));
	assert_int_equal(filter.g.layout.generation, 3);
	assert_int_equal(edit(delete_rule, "a", &e), 0);
	judge(UDP_TO(1), &(struct expect)BY_DROP("b"));
	assert_int_equal(edit(delete_rule, "nobody", &e), -ENOENT);
	assert_int_equal(edit(refuse, NULL, &e), -ECANCELED);
	assert_string_equal(e.text, "not today");
	judge(UDP_TO(1), &(struct expect)BY_DROP("b"));
	assert_int_equal(edit(insert_rule, "name b dport 7 action drop", &e), -EINVAL);
	assert_int_equal(edit(insert_rule, "src @nowhere action drop", &e), -EINVAL);
	assert_int_equal(edit(insert_rule, "dport 1 action cpu 8000", &e), -EINVAL);
	judge(UDP_TO(1), &(struct expect)BY_DROP("b"));
	assert_int_equal(filter.g.layout.generation, 4);
}

/* --- sets --- */

static int add_to_set(void *arg, struct rule_list *l, struct error *e)
{
	struct rule_set_def *s = rule_list_set(l, "s");
	const char *text = arg;

	return s ? set_parse(s, text, strlen(text), "the test", e) : -ENOENT;
}

static int remove_from_set(void *arg, struct rule_list *l, struct error *e)
{
	struct rule_set_def *s = rule_list_set(l, "s"), gone = {0};
	const char *text = arg;
	size_t missing = 0;
	int r;

	if (!s)
		return -ENOENT;
	gone.kind = s->kind;
	r = set_parse(&gone, text, strlen(text), "the test", e);
	if (!r)
		r = set_remove(s, &gone, &missing);
	free(gone.prefixes);
	free(gone.ports);
	return r ? r : (int)missing ? -ESRCH : 0;
}

static void sets_of_addresses(void **state)
{
	const struct expect hit = BY_DROP("bad"), miss = BY_PASS("default");
	struct error e;

	(void)state;
	filter_load_afresh("sets: {s: {prefixes: []}}\n"
			   "rules: [{name: bad, src: '@s', action: drop}]\n");
	judge("udp 10.1.2.3:5 > 10.0.0.2:9", &miss);
	assert_int_equal(edit(add_to_set, "10.1.0.0/16, 10.2.3.4 # and\nfd01::/16", &e), 0);
	judge("udp 10.1.2.3:5 > 10.0.0.2:9", &hit);
	judge("udp 10.2.3.4:5 > 10.0.0.2:9", &hit);
	judge("udp 10.2.3.5:5 > 10.0.0.2:9", &miss);
	judge("udp [fd01::5]:5 > [fd00::2]:9", &hit);
	judge("udp [fd02::5]:5 > [fd00::2]:9", &miss);
	assert_int_equal(edit(add_to_set, "fd02::5", &e), 0);
	judge("udp [fd02::5]:5 > [fd00::2]:9", &hit);
	assert_int_equal(edit(remove_from_set, "10.1.0.0/16 fd01::/16", &e), 0);
	judge("udp 10.1.2.3:5 > 10.0.0.2:9", &miss);
	judge("udp [fd01::5]:5 > [fd00::2]:9", &miss);
	judge("udp 10.2.3.4:5 > 10.0.0.2:9", &hit);
	assert_int_equal(edit(remove_from_set, "10.9.9.9", &e), -ESRCH);
	assert_int_equal(edit(add_to_set, "10.9.9.9 nonsense", &e), -EINVAL);
	judge("udp 10.9.9.9:5 > 10.0.0.2:9", &miss);
	assert_packets("bad", 5);
}

static void sets_of_ports(void **state)
{
	const struct expect hit = BY_DROP("bad"), miss = BY_PASS("default");
	struct error e;

	(void)state;
	filter_load_afresh(
		"sets: {s: [80]}\nrules: [{name: bad, dport: ['@s', 22], action: drop}]\n");
	judge(UDP_TO(80), &hit);
	judge(UDP_TO(22), &hit);
	judge(UDP_TO(8000), &miss);
	assert_int_equal(edit(add_to_set, "8000-8099", &e), 0);
	judge(UDP_TO(8000), &hit);
	judge(UDP_TO(8099), &hit);
	judge(UDP_TO(8100), &miss);
	assert_int_equal(edit(remove_from_set, "80", &e), 0);
	judge(UDP_TO(80), &miss);
	judge(UDP_TO(22), &hit);
}

#define MANY 50000

static void a_large_set(void **state)
{
	const struct expect hit = BY_DROP("bad"), miss = BY_PASS("default");
	autofree char *text = malloc(MANY * 24 + 100);
	char packet[100];
	struct error e;
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	filter_load_afresh("sets: {s: {prefixes: []}}\n"
			   "rules: [{name: bad, src: '@s', proto: udp, action: drop}]\n");
	for (unsigned i = 0; i < MANY; i++)
		n += (size_t)sprintf(text + n, "%u.%u.%u.%u/31\n", 11 + i % 100, i / 100 % 256,
				     i / 25600, i % 128 * 2);
	assert_int_equal(edit(add_to_set, text, &e), 0);
	for (unsigned i = 0; i < MANY; i += 2777) {
		snprintf(packet, sizeof(packet), "udp %u.%u.%u.%u:5 > 10.0.0.2:9", 11 + i % 100,
			 i / 100 % 256, i / 25600, i % 128 * 2 + 1);
		judge(packet, &hit);
		snprintf(packet, sizeof(packet), "udp %u.%u.%u.%u:5 > 10.0.0.2:9", 11 + i % 100,
			 i / 100 % 256, i / 25600, (i % 128 * 2 + 2) % 256);
		judge(packet, &miss);
	}
	assert_int_equal(edit(remove_from_set, text, &e), 0);
	judge("udp 11.0.0.0:5 > 10.0.0.2:9", &miss);
}

/* --- what is refused --- */

static void assert_refused(const char *list, int code, const char *sentence)
{
	const struct xdp_load_options o = {.force = true};
	struct error e;

	assert_int_equal(filter_try_load(list, &o, &e), code);
	if (!strstr(e.text, sentence))
		fail_msg("'%s' does not say '%s'", e.text, sentence);
}

static void refused_lists_change_nothing(void **state)
{
	uint32_t generation;

	(void)state;
	filter_load("rules: [{name: a, dport: 1, action: drop, capture: [4, slot=kept]}]\n");
	generation = filter.g.layout.generation;
	assert_refused("rules: [{action: cpu 8000}]\n", -EINVAL,
		       "rule 1 redirects to CPU 8000: there is no such CPU");
	assert_refused("rules: [{name: b, dport: 1, action: pass},\n"
		       "  {action: redirect " TARGET "}, {dport: 3, action: cpu 8000}]\n",
		       -EINVAL, "rule 3 redirects to CPU 8000");
	assert_refused("mode: generic\nrules: [{action: drop}]\n", -EINVAL, "another mode");
	judge(UDP_TO(1), &(struct expect)BY_DROP("a"));
	filter_reopen();
	assert_int_equal(filter.g.layout.generation, generation);
	judge(UDP_TO(1), &(struct expect)BY_DROP("a"));
}

static void interfaces_that_are_not_there(void **state)
{
	const struct xdp_load_options o = {0};
	struct rule_list l = rule_list_of("default: drop\n");
	struct xdp *x = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(xdp_apply(&filter.inst, "nowhere0", &l, &o, &e), -ENODEV);
	assert_non_null(strstr(e.text, "there is no interface 'nowhere0'"));
	assert_int_equal(xdp_open(&filter.inst, "nowhere0", &x, &e), -ENODEV);
	assert_int_equal(xdp_unload(&filter.inst, "nowhere0", &e), -ENODEV);
	assert_int_equal(xdp_open(&filter.inst, TARGET, &x, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no rules of ax are loaded on " TARGET));
	e = (struct error){0};
	assert_int_equal(xdp_edit(&filter.inst, TARGET, refuse, NULL, &o, &e), -ENOENT);
	assert_int_equal(xdp_confirm(&filter.inst, TARGET, &e), -ENOENT);
	assert_int_equal(xdp_rollback(&filter.inst, TARGET, &e), -ENOENT);
	assert_int_equal(xdp_unload(&filter.inst, TARGET, &e), -ENOENT);
	rule_list_free(&l);
}

static int apply_rules(size_t n, bool slots, struct error *e)
{
	const struct xdp_load_options o = {.force = true};
	struct rule_list l;
	char line[120];
	int r = 0;

	rule_list_init(&l);
	for (size_t i = 0; i < n && !r; i++) {
		struct rule rule;

		if (slots)
			snprintf(line, sizeof(line), "sport %zu action drop capture 4,slot=s%zu", i,
				 i);
		else
			snprintf(line, sizeof(line), "src 10.%zu.%zu.1 action drop", i / 256,
				 i % 256);
		rule = parse_rule(line);
		r = rule_list_insert(&l, SIZE_MAX, &rule);
	}
	assert_int_equal(r, 0);
	*e = (struct error){0};
	r = xdp_apply(&filter.inst, IFNAME, &l, &o, e);
	rule_list_free(&l);
	return r;
}

static void as_many_as_there_may_be(void **state)
{
	struct error e;

	(void)state;
	filter_load("rules: [{name: a, dport: 1, action: drop}]\n");
	assert_int_equal(apply_rules(AX_XDP_RULES_MAX + 1, false, &e), -EINVAL);
	assert_non_null(strstr(e.text, "at most 16384"));
	assert_int_equal(apply_rules(AX_SLOTS + 1, true, &e), -EINVAL);
	if (!strstr(e.text, "64"))
		fail_msg("%s", e.text);
	judge(UDP_TO(1), &(struct expect)BY_DROP("a"));
	if (apply_rules(AX_SLOTS, true, &e))
		fail_msg("%s", e.text);
	if (apply_rules(AX_XDP_RULES_MAX, false, &e))
		fail_msg("%s", e.text);
	filter_reopen();
	assert_int_equal(filter_run("udp 10.63.255.1:5 > 10.0.0.2:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.63.255.2:5 > 10.0.0.2:9"), XDP_PASS);
	assert_packets("src 10.63.255.1/32 action drop", 1);
	/* and all of them again by other names, while the former ones still count */
	if (apply_rules(3, false, &e))
		fail_msg("%s", e.text);
	filter_reopen();
	assert_int_equal(filter_run("udp 10.0.2.1:5 > 10.0.0.2:9"), XDP_DROP);
}

#define BIGGER 1500 /* rules, which need more counters than a short list gets */

/* An agent asks for as long as it runs. */
static void asking_leaves_no_descriptor(void **state)
{
	struct xdp_load_options o = {0};
	struct strv names = {0};
	struct error e = {0};
	unsigned before;

	(void)state;
	filter_load("rules: [{action: pass}]\n");
	before = count_descriptors();
	for (int i = 0; i < 5; i++) {
		struct xdp_status s;

		assert_int_equal(xdp_status(filter.x, &s, &e), 0);
		xdp_status_free(&s);
		assert_int_equal(xdp_interfaces(&filter.inst, &names, &e), 0);
		assert_int_equal(filter_try_load("rules: [{action: drop}]\n", &o, &e), 0);
	}
	assert_int_equal(names.n, 5);
	strv_free(&names);
	assert_int_equal(count_descriptors(), before);
}

static void load_bigger(uint32_t confirm_ms)
{
	const struct xdp_load_options o = {.confirm_ms = confirm_ms};
	autofree char *text = NULL;
	struct error e = {0};
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fprintf(f, "rules:\n");
	for (int i = 0; i < BIGGER; i++)
		fprintf(f, "- {sport: %d, dport: 9, action: drop}\n", 1000 + i);
	assert_int_equal(fclose(f), 0);
	if (filter_try_load(text, &o, &e) < 0)
		fail_msg("%s", e.text);
	filter_reopen();
}

static void count_default(unsigned times)
{
	while (times--)
		assert_int_equal(filter_run(UDP_TO(2)), XDP_PASS);
}

/* Both lists count where everybody looks, whichever of them it is in the end. */
static void a_longer_list_on_trial(void **state)
{
	struct error e = {0};

	(void)state;
	filter_load_afresh("rules: [{name: a, dport: 1, action: drop}]\n");
	count_default(3);
	load_bigger(60000);
	assert_packets("default", 3);
	count_default(2);
	assert_packets("default", 5);
	if (xdp_rollback(&filter.inst, IFNAME, &e) < 0)
		fail_msg("%s", e.text);
	filter_reopen();
	count_default(4);
	assert_packets("default", 9);
	filter_load("rules: [{name: b, dport: 1, action: drop}]\n");
	count_default(1);
	assert_packets("default", 10);
}

/* As if the command that put the bigger maps there had been killed when `pinned` of the three that
 * belong together were in place, the last ones of these. */
static void killed_when(size_t pinned)
{
	static const enum xdp_map maps[] = {XDP_MAP_RULE_COUNTS, XDP_MAP_LIMITS, XDP_MAP_CARRIED};
	struct datapath_xdp before;
	char dir[256];

	filter_load_afresh("rules: [{name: a, dport: 1, action: drop}]\n");
	count_default(3);
	snprintf(dir, sizeof(dir), "%s", filter.dir);
	assert_int_equal(datapath_xdp_open(dir, &before), 0);
	load_bigger(0);
	for (size_t i = 0; i + pinned < ARRAY_SIZE(maps); i++)
		assert_int_equal(datapath_xdp_repin(&before, maps[i]), 0);
	datapath_xdp_close(&before);
	filter_reopen();
	count_default(2);
	filter_load("rules: [{name: b, dport: 1, action: drop}]\n");
	count_default(4);
	assert_packets("default", 9);
	load_bigger(0);
	assert_packets("default", 9);
	assert_int_equal(filter_run("udp 10.0.0.1:2400 > 10.0.0.2:9"), XDP_DROP);
	assert_packets("sport 2400 dport 9 action drop", 1);
}

static void a_command_that_was_killed(void **state)
{
	(void)state;
	for (int pinned = 0; pinned < 3; pinned++)
		killed_when(pinned);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_follow_their_names),
		cmocka_unit_test(reasons_are_the_interfaces),
		cmocka_unit_test(unreachable_rules),
		cmocka_unit_test(names_of_rules),
		cmocka_unit_test(edits),
		cmocka_unit_test(sets_of_addresses),
		cmocka_unit_test(sets_of_ports),
		cmocka_unit_test(a_large_set),
		cmocka_unit_test(refused_lists_change_nothing),
		cmocka_unit_test(interfaces_that_are_not_there),
		cmocka_unit_test(as_many_as_there_may_be),
		cmocka_unit_test(asking_leaves_no_descriptor),
		cmocka_unit_test(a_longer_list_on_trial),
		cmocka_unit_test(a_command_that_was_killed),
	};

	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
