// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section xdp: what arrives in the struct, and where mistakes are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/config.h"
#include "config/parse.h"

static struct config parse(const char *text)
{
	struct config_errors errs;
	struct config c;

	if (config_parse(text, strlen(text), &c, &errs) != 0) {
		config_errors_print(&errs, "text", stderr);
		config_errors_free(&errs);
		fail_msg("refused");
	}
	assert_int_equal(errs.n, 0);
	config_errors_free(&errs);
	return c;
}

static void assert_errors(const char *text, const char *expected)
{
	autofree char *printed = NULL;
	struct config_errors errs;
	struct config c;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	assert_int_equal(config_parse(text, strlen(text), &c, &errs), -EINVAL);
	config_errors_print(&errs, "f", f);
	fclose(f);
	config_errors_free(&errs);
	assert_string_equal(printed, expected);
}

static void assert_rule(const struct rule_list *l, size_t i, const char *line)
{
	autofree char *text = NULL;

	assert_true(i < l->n_rules);
	text = rule_format(&l->rules[i]);
	assert_string_equal(text, line);
}

/* The interfaces come before what they share. */
static const char whole[] =
	"xdp:\n"
	"  interfaces:\n"
	"    eth0:\n"
	"      mode: native\n"
	"      priority: 7\n"
	"      default: drop\n"
	"      classes: {mld: drop}\n"
	"      sets: {own: [22]}\n"
	"      balancers: {mine: {backends: [10.0.0.9]}}\n"
	"      rules:\n"
	"        - {src: '@bad', action: drop}\n"
	"        - {dport: '@own', action: pass}\n"
	"        - {action: balance web}\n"
	"    eth1.5: {rules-file: /etc/ax/eth1.yaml}\n"
	"    eth2:\n"
	"  sets:\n"
	"    bad: {file: bad.txt}\n"
	"    ports: [80]\n"
	"  balancers:\n"
	"    web: {service: api}\n"
	"  triggers:\n"
	"    restart: {key-file: /etc/key, command: systemctl restart 'a b'}\n"
	"    stop: {key-file: /k, command: [stop, ''], user: nobody, window: 5s}\n"
	"services:\n"
	"  api: {backends: [x]}\n";

static void the_section_arrives(void **state)
{
	struct config c = parse(whole);
	const struct rule_list *l = &c.interfaces[0].list;

	(void)state;
	assert_int_equal(c.n_interfaces, 3);
	assert_string_equal(c.interfaces[0].name, "eth0");
	assert_null(c.interfaces[0].rules_file);
	assert_int_equal(l->mode, ATTACH_NATIVE);
	assert_int_equal(l->priority, 7);
	assert_int_equal(l->default_action, AX_VERDICT_DROP);
	assert_int_equal(l->policy[AX_REASON_MLD], AX_POLICY_DROP);
	assert_int_equal(l->policy[AX_REASON_ARP], AX_POLICY_PASS);
	assert_int_equal(l->n_sets, 3);
	assert_string_equal(rule_list_set(l, "bad")->file, "bad.txt");
	assert_int_equal(rule_list_set(l, "own")->kind, SET_PORTS);
	assert_int_equal(l->n_balancers, 2);
	assert_string_equal(rule_list_balancer(l, "web")->service, "api");
	assert_int_equal(rule_list_balancer(l, "mine")->n, 1);
	assert_int_equal(l->n_rules, 3);
	assert_rule(l, 0, "src @bad action drop");
	assert_rule(l, 2, "action balance web");
	assert_string_equal(c.interfaces[1].name, "eth1.5");
	assert_string_equal(c.interfaces[1].rules_file, "/etc/ax/eth1.yaml");
	l = &c.interfaces[2].list; /* all defaults, and what is shared */
	assert_int_equal(l->n_rules, 0);
	assert_int_equal(l->default_action, AX_VERDICT_PASS);
	assert_int_equal(l->policy[AX_REASON_RUNT], AX_POLICY_DROP);
	assert_int_equal(l->n_sets, 2);
	assert_int_equal(l->n_balancers, 1);

	assert_int_equal(c.n_triggers, 2);
	assert_string_equal(c.triggers[0].name, "restart");
	assert_string_equal(c.triggers[0].key_file, "/etc/key");
	assert_int_equal(c.triggers[0].command.n, 3);
	assert_string_equal(c.triggers[0].command.v[2], "a b");
	assert_null(c.triggers[0].user);
	assert_int_equal(c.triggers[0].window_ms, 30000);
	assert_int_equal(c.triggers[1].command.n, 2);
	assert_string_equal(c.triggers[1].user, "nobody");
	assert_int_equal(c.triggers[1].window_ms, 5000);
	config_free(&c);
}

static void parts_are_copied_and_compared(void **state)
{
	struct config c = parse(whole), d = parse(whole);
	struct config_interface i;
	struct config_trigger t;

	(void)state;
	assert_true(config_interface_eq(&c.interfaces[0], &d.interfaces[0]));
	assert_true(config_interface_eq(&c.interfaces[1], &d.interfaces[1]));
	assert_false(config_interface_eq(&c.interfaces[0], &c.interfaces[1]));
	assert_int_equal(config_interface_copy(&c.interfaces[0], &i), 0);
	assert_true(config_interface_eq(&c.interfaces[0], &i));
	i.list.rules[1].log = true;
	assert_false(config_interface_eq(&c.interfaces[0], &i));
	config_interface_free(&i);
	assert_int_equal(config_interface_copy(&c.interfaces[1], &i), 0);
	i.rules_file[0] = 'x';
	assert_false(config_interface_eq(&c.interfaces[1], &i));
	config_interface_free(&i);
	assert_true(config_trigger_eq(&c.triggers[1], &d.triggers[1]));
	assert_false(config_trigger_eq(&c.triggers[0], &c.triggers[1]));
	assert_int_equal(config_trigger_copy(&c.triggers[1], &t), 0);
	assert_true(config_trigger_eq(&c.triggers[1], &t));
	t.window_ms++;
	assert_false(config_trigger_eq(&c.triggers[1], &t));
	t.window_ms--;
	t.user[0] = 'x';
	assert_false(config_trigger_eq(&c.triggers[1], &t));
	config_trigger_free(&t);
	config_free(&c);
	config_free(&d);
}

static void nothing_is_the_default(void **state)
{
	struct config c = parse("xdp:\n");

	(void)state;
	assert_int_equal(c.n_interfaces, 0);
	assert_int_equal(c.n_triggers, 0);
	assert_null(c.interfaces);
	config_free(&c);
}

static void mistakes_have_a_place(void **state)
{
#define IFACE_KEYS \
	"mode, priority, default, classes, rules, rules-file, sets, balancers, direction, track"
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{"xdp: {eth0: x}\n",
		 "f:1:7: xdp.eth0: found unknown key \"eth0\", expected one of sets, balancers, "
		 "triggers, interfaces\n"},
		{"xdp: on\n",
		 "f:1:6: xdp: found \"on\", expected a mapping of sets, balancers, triggers, "
		 "interfaces\n"},
		{"xdp: {interfaces: [eth0]}\n", "f:1:19: xdp.interfaces: found a list, expected a "
						"mapping of interfaces by name\n"},
		{"xdp: {interfaces: {a/b: , sixteenletters16: }}\n",
		 "f:1:20: xdp.interfaces.\"a/b\": found \"a/b\", expected an interface's name of 1 "
		 "to 15 characters\n"
		 "f:1:27: xdp.interfaces.sixteenletters16: found \"sixteenletters16\", expected an "
		 "interface's name of 1 to 15 characters\n"},
		{"xdp: {interfaces: {eth0: {rule: []}}}\n",
		 "f:1:27: xdp.interfaces.eth0.rule: found unknown key \"rule\", expected one "
		 "of " IFACE_KEYS "; did you mean \"rules\"?\n"},
		{"xdp:\n  interfaces:\n    eth0:\n      rules:\n        - {dport: 22}\n"
		 "        - {dport: 22x, action: pass}\n",
		 "f:5:11: xdp.interfaces.eth0.rules[0]: found a rule without action, expected "
		 "action "
		 "pass, drop, reflect, redirect IFACE, cpu N, balance NAME, route or challenge\n"
		 "f:6:19: xdp.interfaces.eth0.rules[1].dport: found \"22x\", expected ports of 0 "
		 "to "
		 "65535 such as 22, 8000-8099, ssh or @SET\n"},
		{"xdp: {interfaces: {eth0: {rules-file: a, rules: []}}}\n",
		 "f:1:26: xdp.interfaces.eth0: found a mapping, expected rules-file alone, or with "
		 "direction, since "
		 "all "
		 "the rest is in that file\n"},
		{"xdp: {interfaces: {eth0: {rules-file: }}}\n",
		 "f:1:39: xdp.interfaces.eth0.rules-file: found nothing, expected a rule file's "
		 "path\n"},
		{"xdp:\n  sets: {a: [80], b: []}\n  balancers: {w: {backends: []}}\n  interfaces:\n"
		 "    eth0: {sets: {a: [81]}, balancers: {w: {backends: []}}}\n",
		 "f:5:19: xdp.interfaces.eth0.sets.a: found \"a\", expected a name that no set of "
		 "the whole section has\n"
		 "f:5:41: xdp.interfaces.eth0.balancers.w: found \"w\", expected a name that no "
		 "balancer of the whole section has\n"},
		{"xdp:\n  sets: {block: []}\n  interfaces:\n    eth0:\n      rules:\n"
		 "        - {action: drop}\n        - {src: '@blok', action: drop}\n",
		 "f:7:11: xdp.interfaces.eth0.rules[1]: found rule 2 with src @blok, expected a "
		 "set "
		 "that is defined; did you mean \"block\"?\n"},
		{"services: {api: {}, web: {}}\nxdp: {balancers: {a: {service: wbe}, b: {service: "
		 "api}}}\n",
		 "f:2:32: xdp.balancers.a.service: found \"wbe\", expected a service of this file; "
		 "did you mean \"web\"?\n"},
		{"xdp: {balancers: {a: {service: web}}}\n",
		 "f:1:32: xdp.balancers.a.service: found \"web\", expected a service of this "
		 "file\n"},
		{"xdp: {interfaces: {e: {balancers: {a: {service: web}}}}}\nservices: []\n",
		 "f:1:49: xdp.interfaces.e.balancers.a.service: found \"web\", expected a service "
		 "of "
		 "this file\n"
		 "f:2:11: services: found an empty list, expected a mapping of services by name\n"},
		{"xdp: {triggers: {a: , A: {key-file: /k, command: x}}}\n",
		 "f:1:21: xdp.triggers.a: found nothing, expected a mapping with key-file and "
		 "command\n"
		 "f:1:23: xdp.triggers.A: found \"A\", expected a name of 1 to 63 lower-case "
		 "letters, digits and hyphens (none at its ends)\n"},
		{"xdp: {triggers: {a: {key-file: k, command: [], user: 'a b', window: 0s}}}\n",
		 "f:1:32: xdp.triggers.a.key-file: found \"k\", expected an absolute path\n"
		 "f:1:44: xdp.triggers.a.command: found an empty list, expected a program and its "
		 "arguments, as a list or as text\n"
		 "f:1:54: xdp.triggers.a.user: found \"a b\", expected a user's name or number\n"
		 "f:1:69: xdp.triggers.a.window: found \"0s\", expected a duration above 0 such as "
		 "30s\n"},
		{"xdp: {triggers: {a: {key: k}}}\n",
		 "f:1:22: xdp.triggers.a.key: found unknown key \"key\", expected one of key-file, "
		 "command, user, window\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_errors(cases[i].text, cases[i].errors);
}

/* An interface has a list for each direction, of which what the section shares is part. */
static void both_directions_arrive(void **state)
{
	static const char text[] =
		"xdp:\n"
		"  sets: {s: [80]}\n"
		"  balancers: {b: {backends: [192.0.2.1]}}\n"
		"  interfaces:\n"
		"    eth0:\n"
		"      - {rules: [{dport: \"@s\", action: drop}]}\n"
		"      - {direction: egress, rules: [{sport: \"@s\", action: drop}]}\n"
		"    eth1: {direction: egress, rules-file: out.yaml}\n"
		"    eth2: [{direction: ingress}]\n";
	struct config c = parse(text);

	(void)state;
	assert_int_equal(c.n_interfaces, 4);
	assert_string_equal(c.interfaces[0].name, "eth0");
	assert_int_equal(c.interfaces[0].list.direction, DIRECTION_INGRESS);
	assert_int_equal(c.interfaces[0].list.n_balancers, 1);
	assert_rule(&c.interfaces[0].list, 0, "dport @s action drop");
	assert_string_equal(c.interfaces[1].name, "eth0:egress");
	assert_int_equal(c.interfaces[1].list.direction, DIRECTION_EGRESS);
	assert_int_equal(c.interfaces[1].list.n_balancers, 0); /* there are none there */
	assert_int_equal(c.interfaces[1].list.n_sets, 1);
	assert_rule(&c.interfaces[1].list, 0, "sport @s action drop");
	assert_string_equal(c.interfaces[2].name, "eth1:egress");
	assert_string_equal(c.interfaces[2].rules_file, "out.yaml");
	assert_string_equal(c.interfaces[3].name, "eth2");
	config_free(&c);
}

static void one_list_for_each_direction(void **state)
{
#define ONE "one list of an interface for each direction\n"
	(void)state;
	assert_errors("xdp: {interfaces: {e: [{}, {direction: ingress}]}}\n",
		      "f:1:28: xdp.interfaces.e[1]: found a mapping, expected " ONE);
	assert_errors("xdp: {interfaces: {e: [{}, {direction: egress}, {}]}}\n",
		      "f:1:23: xdp.interfaces.e: found a list, expected " ONE);
	assert_errors("xdp: {interfaces: {e: []}}\n",
		      "f:1:23: xdp.interfaces.e: found an empty list, expected " ONE);
	assert_errors("xdp: {interfaces: {'e:egress': {}}}\n",
		      "f:1:20: xdp.interfaces.\"e:egress\": found \"e:egress\", expected an "
		      "interface's name of 1 to 15 characters\n");
	assert_errors("xdp: {interfaces: {e: [{}, {direction: egress, rules: [{name: r, action: "
		      "reflect}]}]}}\n",
		      "f:1:56: xdp.interfaces.e[1].rules[0]: found rule 1 (r) with its action and "
		      "direction: egress, expected pass or drop: what leaves came from this side, "
		      "and reflect sends back to the other\n");
}

/* Wherever in the text the direction stands. */
static void marks_are_for_what_leaves(void **state)
{
	static const char text[] =
		"xdp:\n"
		"  interfaces:\n"
		"    eth0: {rules: [{mark: [0x10, 0x20/0xf0], action: drop}], direction: egress}\n"
		"    eth1: {direction: egress, rules: [{mark: 7, action: pass}]}\n";
	struct config c = parse(text);

	(void)state;
	assert_int_equal(c.n_interfaces, 2);
	assert_rule(&c.interfaces[0].list, 0, "mark 0x10,0x20/0xf0 action drop");
	assert_rule(&c.interfaces[1].list, 0, "mark 0x7 action pass");
	config_free(&c);
	assert_errors("xdp: {interfaces: {e: {rules: [{action: pass, dport: 1}, {name: m, mark: 1, "
		      "action: pass}]}}}\n",
		      "f:1:58: xdp.interfaces.e.rules[1]: found rule 2 (m) with mark and "
		      "direction: ingress, expected no mark: packets have none where XDP sees "
		      "them, before the kernel's stack; lists with direction: egress know it, and "
		      "rules of nft(8) do in both directions\n");
}

/* What no rule is to blame for is told at the interface. */
static void lists_are_checked_with_what_they_share(void **state)
{
	char text[8192], *p = stpcpy(text, "xdp:\n  sets: {");

	(void)state;
	for (unsigned i = 0; i < SETS_MAX; i++)
		p += sprintf(p, "s%u: [],", i);
	strcpy(p, "}\n  interfaces:\n    eth0: {}\n    eth1: {sets: {one: []}}\n");
	assert_errors(text, "f:5:5: xdp.interfaces.eth1: found too many sets, expected at most "
			    "256\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_section_arrives),
		cmocka_unit_test(parts_are_copied_and_compared),
		cmocka_unit_test(nothing_is_the_default),
		cmocka_unit_test(mistakes_have_a_place),
		cmocka_unit_test(both_directions_arrive),
		cmocka_unit_test(one_list_for_each_direction),
		cmocka_unit_test(marks_are_for_what_leaves),
		cmocka_unit_test(lists_are_checked_with_what_they_share),
	};

	return cmocka_run_group_tests_name("config_xdp", tests, NULL, NULL);
}
