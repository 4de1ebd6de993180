// SPDX-License-Identifier: GPL-2.0-or-later
/* Rule files: what arrives in the list, and where mistakes are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include "config/config.h"
#include "config/rule_file.h"

static struct rule_list parse(const char *text)
{
	struct config_errors errs;
	struct rule_list l;

	if (rule_file_parse(text, strlen(text), DIRECTION_INGRESS, &l, &errs) != 0) {
		config_errors_print(&errs, "text", stderr);
		config_errors_free(&errs);
		fail_msg("refused");
	}
	assert_int_equal(errs.n, 0);
	config_errors_free(&errs);
	return l;
}

static void assert_rule(const struct rule_list *l, size_t i, const char *line)
{
	autofree char *text = NULL;

	assert_true(i < l->n_rules);
	text = rule_format(&l->rules[i]);
	assert_string_equal(text, line);
}

static void assert_addr(const struct ax_addr *a, const char *expected)
{
	char buf[ADDR_STRLEN];

	assert_string_equal(addr_format(a, buf), expected);
}

static void assert_errors(const char *text, const char *expected)
{
	autofree char *printed = NULL;
	struct config_errors errs;
	struct rule_list l;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	assert_int_equal(rule_file_parse(text, strlen(text), DIRECTION_INGRESS, &l, &errs),
			 -EINVAL);
	config_errors_print(&errs, "f", f);
	fclose(f);
	config_errors_free(&errs);
	assert_string_equal(printed, expected);
}

/* What the file does not say is as who reads it has it, before anything is judged by it. */
static void the_direction_may_come_from_outside(void **state)
{
	static const char marks[] = "rules: [{mark: 1, action: drop}]\n";
	static const char in[] = "direction: ingress\nrules: []\n";
	struct config_errors errs;
	struct rule_list l;

	(void)state;
	assert_int_equal(rule_file_parse(marks, strlen(marks), DIRECTION_EGRESS, &l, &errs), 0);
	assert_int_equal(l.direction, DIRECTION_EGRESS);
	assert_rule(&l, 0, "mark 0x1 action drop");
	rule_list_free(&l);
	config_errors_free(&errs);
	assert_int_equal(rule_file_parse(in, strlen(in), DIRECTION_EGRESS, &l, &errs), 0);
	assert_int_equal(l.direction, DIRECTION_INGRESS);
	rule_list_free(&l);
	config_errors_free(&errs);
	assert_errors(marks, "f:1:9: rules[0]: found rule 1 with mark and direction: ingress, "
			     "expected no mark: packets have none where XDP sees them, before the "
			     "kernel's stack; lists with direction: egress know it, and rules of "
			     "nft(8) do in both directions\n");
}

static void an_empty_file_is_an_empty_list(void **state)
{
	static const char *const texts[] = {"", "# nothing\n", "{}",
					    "rules: []\nsets: {}\nbalancers:\nclasses: {}\n",
					    "rules:\n"};
	struct rule_list empty;

	(void)state;
	rule_list_init(&empty);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct rule_list l = parse(texts[i]);

		assert_true(rule_list_eq(&l, &empty));
		rule_list_free(&l);
	}
}

static void a_whole_file(void **state)
{
	static const char text[] =
		"mode: generic\n"
		"priority: 10\n"
		"default: drop\n"
		"classes: {arp: rules, runt: pass, tunnel: drop}\n"
		"rules:\n"
		"  - {name: ssh, src: [10.0.0.0/8, \"@nets\"], proto: tcp, dport: 22,\n"
		"     action: pass}\n"
		"  - dport: [22, 8000-8099, '@web,81']\n"
		"    flags: [syn, '!ack']\n"
		"    log: yes\n"
		"    action: drop\n"
		"  - action: redirect eth1\n"
		"    dmac: 02:00:00:00:00:01\n"
		"    to-port: 80\n"
		"    checksum: recompute\n"
		"  - {icmp: [echo-request, 3/4], capture: [16, slot=x], action: pass,\n"
		"     rate: [10kpps, per=src/24]}\n"
		"  - {vlan: none, trigger: no, fragment: none, action: balance web}\n"
		"sets:\n"
		"  nets: [192.0.2.0/24, 10.0.0.0/9]\n"
		"  web: [80, 8080-8089]\n"
		"balancers:\n"
		"  web: {backends: [10.0.0.1:80]}\n";
	struct rule_list l = parse(text);

	(void)state;
	assert_int_equal(l.mode, ATTACH_GENERIC);
	assert_int_equal(l.priority, 10);
	assert_int_equal(l.default_action, AX_VERDICT_DROP);
	assert_int_equal(l.policy[AX_REASON_ARP], AX_POLICY_RULES);
	assert_int_equal(l.policy[AX_REASON_RUNT], AX_POLICY_PASS);
	assert_int_equal(l.policy[AX_REASON_TUNNEL], AX_POLICY_DROP);
	assert_int_equal(l.policy[AX_REASON_BAD_TCP], AX_POLICY_DROP);
	assert_int_equal(l.n_rules, 5);
	assert_rule(&l, 0, "name ssh src 10.0.0.0/8,@nets proto tcp dport 22 action pass");
	assert_rule(&l, 1, "dport 22,81,8000-8099,@web flags syn,!ack action drop log yes");
	assert_rule(&l, 2,
		    "action redirect eth1 dmac 02:00:00:00:00:01 to-port 80 checksum recompute");
	assert_rule(&l, 3,
		    "icmp frag-needed,echo-request action pass capture 16,slot=x rate 10kpps,"
		    "per=src/24/64");
	assert_rule(&l, 4, "vlan none fragment none action balance web");
	rule_list_free(&l);
}

static void json_is_read_too(void **state)
{
	struct rule_list l =
		parse("{\n\t\"default\": \"drop\",\n\t\"sets\": {\"a\": [\"10.0.0.0/8\"]},"
		      "\n\t\"rules\": [\n\t\t{\"src\": \"@a\", \"dport\": 22, \"log\": true,"
		      " \"action\": \"pass\"}\n\t]\n}\n");

	(void)state;
	assert_int_equal(l.default_action, AX_VERDICT_DROP);
	assert_rule(&l, 0, "src @a dport 22 action pass log yes");
	rule_list_free(&l);
}

static void sets_have_many_forms(void **state)
{
	struct rule_list l = parse("sets:\n"
				   "  a: [10.0.0.0/8, fd00::/8, 10.0.0.0/8]\n"
				   "  b: [443, 80-90]\n"
				   "  c: {file: lists/c.txt}\n"
				   "  d: {ports-file: /etc/d}\n"
				   "  e: {ports: [1, 2]}\n"
				   "  f: 10.0.0.1,10.0.0.0\n"
				   "  g:\n"
				   "  h: {ports: []}\n"
				   "  i: {prefixes: ['::/0']}\n"
				   "  j: '22,23'\n"
				   "  k: {ports: 7}\n");
	static const struct {
		const char *name, *file;
		enum set_kind kind;
		size_t n;
	} sets[] = {
		{"a", NULL, SET_PREFIXES, 2},
		{"b", NULL, SET_PORTS, 2},
		{"c", "lists/c.txt", SET_PREFIXES, 0},
		{"d", "/etc/d", SET_PORTS, 0},
		{"e", NULL, SET_PORTS, 2},
		{"f", NULL, SET_PREFIXES, 2},
		{"g", NULL, SET_PREFIXES, 0},
		{"h", NULL, SET_PORTS, 0},
		{"i", NULL, SET_PREFIXES, 1},
		{"j", NULL, SET_PORTS, 2},
		{"k", NULL, SET_PORTS, 1},
	};

	(void)state;
	assert_int_equal(l.n_sets, ARRAY_SIZE(sets));
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		const struct rule_set_def *s = rule_list_set(&l, sets[i].name);

		assert_non_null(s);
		assert_int_equal(s->kind, sets[i].kind);
		assert_int_equal(s->n, sets[i].n);
		if (sets[i].file)
			assert_string_equal(s->file, sets[i].file);
		else
			assert_null(s->file);
	}
	assert_int_equal(l.sets[1].ports[0].lo, 80); /* sorted */
	assert_int_equal(l.sets[1].ports[0].hi, 90);
	rule_list_free(&l);
}

static void balancers_have_many_forms(void **state)
{
	struct rule_list l = parse(
		"balancers:\n"
		"  web:\n"
		"    backends:\n"
		"      - 10.0.0.1\n"
		"      - 10.0.0.1:80\n"
		"      - '[fd00::1]:8080'\n"
		"      - {address: 10.0.0.2, port: 81, weight: 1000, drain: yes}\n"
		"      - {address: '10.0.0.2:82', weight: 2, drain: no, quic-id: 65535}\n"
		"      - {address: 10.0.0.3, quic-id: 0}\n"
		"      - {address: 'fd00::3', quic-id: 0}\n"
		"    source: 192.0.2.1,2001:db8::1\n"
		"  tunnel: {mode: gue, port: 7000, source: 2001:db8::2, backends: [10.0.0.1]}\n"
		"  ipip: {mode: ipip, affinity: src, backends: []}\n"
		"  api: {mode: nat, service: some-api}\n");
	const struct balancer *b = rule_list_balancer(&l, "web");

	(void)state;
	assert_int_equal(l.n_balancers, 4);
	assert_int_equal(b->mode, BALANCE_NAT);
	assert_int_equal(b->affinity, BALANCE_BY_FLOW);
	assert_int_equal(b->n, 7);
	assert_addr(&b->backends[0].addr, "10.0.0.1");
	assert_int_equal(b->backends[0].port, 0);
	assert_int_equal(b->backends[0].weight, 1);
	assert_int_equal(b->backends[1].port, 80);
	assert_addr(&b->backends[2].addr, "fd00::1");
	assert_int_equal(b->backends[2].port, 8080);
	assert_int_equal(b->backends[3].port, 81);
	assert_int_equal(b->backends[3].weight, 1000);
	assert_true(b->backends[3].drain);
	assert_int_equal(b->backends[4].port, 82);
	assert_false(b->backends[4].drain);
	assert_false(b->backends[3].has_quic_id);
	assert_true(b->backends[4].has_quic_id);
	assert_int_equal(b->backends[4].quic_id, 65535);
	assert_true(b->backends[5].has_quic_id && b->backends[6].has_quic_id);
	assert_int_equal(b->backends[6].quic_id, 0); /* IPv4's and IPv6's are the same server */
	assert_addr(&b->source4, "192.0.2.1");
	assert_addr(&b->source6, "2001:db8::1");
	assert_null(b->service);
	b = rule_list_balancer(&l, "tunnel");
	assert_int_equal(b->mode, BALANCE_GUE);
	assert_int_equal(b->gue_port, 7000);
	assert_true(addr_is_zero(&b->source4));
	assert_addr(&b->source6, "2001:db8::2");
	b = rule_list_balancer(&l, "ipip");
	assert_int_equal(b->mode, BALANCE_IPIP);
	assert_int_equal(b->affinity, BALANCE_BY_SRC);
	assert_int_equal(b->gue_port, 6080);
	b = rule_list_balancer(&l, "api"); /* whose service only the config knows */
	assert_string_equal(b->service, "some-api");
	rule_list_free(&l);
}

struct wrong {
	const char *text, *errors;
};

/* The text with the keys of rules where it says <keys>. malloc'ed. */
static char *with_keys(const char *text)
{
	const char *at = strstr(text, "<keys>");
	char *full = NULL;
	size_t size;
	FILE *f;

	if (!at)
		return strdup(text);
	f = open_memstream(&full, &size);
	assert_non_null(f);
	fprintf(f, "%.*s", (int)(at - text), text);
	for (size_t i = 0; rule_key_name(i); i++)
		fprintf(f, "%s%s", i ? ", " : "", rule_key_name(i));
	fputs(at + strlen("<keys>"), f);
	fclose(f);
	return full;
}

static void assert_all(const struct wrong *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		autofree char *errors = with_keys(cases[i].errors);

		assert_errors(cases[i].text, errors);
	}
}

#define KEYS	"<keys>" /* all keys of rules, of which test_rule.c has the list */
#define PORTS	"ports of 0 to 65535 such as 22, 8000-8099, ssh or @SET"
#define ACTIONS "pass, drop, reflect, redirect IFACE, cpu N, balance NAME, route or challenge"
#define FLAGS                                                                                      \
	"TCP flags: fin, syn, rst, psh, ack, urg, ece or cwr, with ! before it one that must not " \
	"be set, in quotes then"

static void wrong_rules(void **state)
{
	static const struct wrong cases[] = {
		{"rules:\n  - {dport: 100-200x, action: drop}\n",
		 "f:2:13: rules[0].dport: found \"100-200x\", expected " PORTS "\n"},
		{"rules:\n  - {dport: [22, \"80,x\", 9], action: drop}\n",
		 "f:2:18: rules[0].dport[1]: found \"x\", expected the number of the "
		 "port, which has no name here\n"},
		{"rules:\n  - {dport: [22, [1]], action: drop}\n",
		 "f:2:18: rules[0].dport[1]: found a list, expected " PORTS "\n"},
		{"rules:\n  - {dport: [], action: drop}\n",
		 "f:2:13: rules[0].dport: found an empty list, expected " PORTS "\n"},
		{"rules:\n  - {dport: , action: drop}\n",
		 "f:2:13: rules[0].dport: found nothing, expected " PORTS "\n"},
		{"rules:\n  - {dport: {a: b}, action: drop}\n",
		 "f:2:13: rules[0].dport: found a mapping, expected " PORTS "\n"},
		{"rules:\n  - {dprot: 22, action: drop}\n",
		 "f:2:6: rules[0].dprot: found unknown key \"dprot\", expected one of " KEYS
		 "; did you mean \"dport\"?\n"},
		{"rules:\n  - {dport: 22, dport: 23, action: drop}\n",
		 "f:2:17: rules[0].dport: found \"dport\", which is there since line 2, expected "
		 "each key once\n"},
		{"rules:\n  - {src: 10.0.0.1/8, action: drop}\n",
		 "f:2:11: rules[0].src: found \"10.0.0.1/8\", expected a prefix without host bits: "
		 "10.0.0.0/8\n"},
		{"rules:\n  - {dport: 22}\n  - {action: dorp}\n",
		 "f:2:5: rules[0]: found a rule without action, expected action " ACTIONS "\n"
		 "f:3:14: rules[1].action: found \"dorp\", expected " ACTIONS
		 "; did you mean \"drop\"?\n"},
		{"rules:\n  - {action: [drop]}\n",
		 "f:2:14: rules[0].action: found a list, expected " ACTIONS "\n"},
		{"rules:\n  -\n",
		 "f:2:4: rules[0]: found a rule without action, expected action " ACTIONS "\n"},
		{"rules:\n  - drop\n",
		 "f:2:5: rules[0]: found \"drop\", expected a mapping of " KEYS "\n"},
		{"rules: {action: drop}\n",
		 "f:1:8: rules: found a mapping, expected a list of rules\n"},
		{"rules: [{flags: !ack , action: drop}]\n",
		 "f:1:17: rules[0].flags: found nothing, expected " FLAGS "\n"},
		{"rules: [{flags: [syn, !ack ], action: drop}]\n",
		 "f:1:23: rules[0].flags[1]: found nothing, expected " FLAGS "\n"},
		{"rules: [{src: @a, action: drop}]\n",
		 "f:1:15: found while scanning for the next token: found character that cannot "
		 "start any token, expected quotes around a text that starts with @\n"},
		{"rules:\n  - {proto: udp, flags: syn, action: drop}\n",
		 "f:2:5: rules[0]: found flags with another protocol than tcp, expected proto tcp, "
		 "or no proto, with flags\n"},
		{"rules:\n  - {rate: [10pps, brust=5], action: drop}\n",
		 "f:2:20: rules[0].rate[1]: found \"brust=5\", expected burst=N or per=src behind "
		 "the rate, each once\n"},
		/* what only the list shows, where the rule is */
		{"rules:\n  - {action: drop}\n  - {src: '@blok', action: drop}\nsets: {block: "
		 "[]}\n",
		 "f:3:5: rules[1]: found rule 2 with src @blok, expected a set that is defined; "
		 "did "
		 "you mean \"block\"?\n"},
		{"sets: {p: [80]}\nrules:\n  - {src: '@p', dst: '@x', action: balance y}\n"
		 "  - {name: a, action: drop}\n  - {name: a, action: drop}\n",
		 "f:3:5: rules[0]: found rule 1 with src @p, expected a set of prefixes there, not "
		 "of ports\n"
		 "f:3:5: rules[0]: found rule 1 with dst @x, expected a set that is defined\n"
		 "f:3:5: rules[0]: found rule 1 with balance y, expected a balancer that is "
		 "defined\n"
		 "f:5:5: rules[2]: found rule 3 (a), expected a name that no rule before it has\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void wrong_files(void **state)
{
#define CLASSES                                                                                    \
	"runt, too-many-tags, bad-version, bad-header, bad-length, mapped-address, "               \
	"too-many-headers, short-fragment, short-l4, bad-tcp, bad-udp, split-header, ip-options, " \
	"later-fragment, tunnel, arp, neighbour, mld, icmp-error, exposed"
	static const struct wrong cases[] = {
		{"mode: fast\n",
		 "f:1:7: mode: found \"fast\", expected auto, native, generic or offload\n"},
		{"mode: natvie\n",
		 "f:1:7: mode: found \"natvie\", expected auto, native, generic or "
		 "offload; did you mean \"native\"?\n"},
		{"priority: 0\n", "f:1:11: priority: found \"0\", expected a number of 1 to 65535 "
				  "(lower runs earlier, 50 is usual)\n"},
		{"priority: 65536\n",
		 "f:1:11: priority: found \"65536\", expected a number of 1 to "
		 "65535 (lower runs earlier, 50 is usual)\n"},
		{"direction: out\n",
		 "f:1:12: direction: found \"out\", expected ingress or egress\n"},
		{"track: yes\n", "f:1:8: track: found \"yes\", expected auto, kernel or own\n"},
		{"default: reflect\n",
		 "f:1:10: default: found \"reflect\", expected pass or drop\n"},
		{"default:\n", "f:1:9: default: found nothing, expected pass or drop\n"},
		{"classes: {rutn: drop, arp: maybe}\n",
		 "f:1:11: classes.rutn: found unknown key \"rutn\", expected one of " CLASSES
		 "; did you mean \"runt\"?\n"
		 "f:1:28: classes.arp: found \"maybe\", expected rules, pass or drop\n"},
		{"classes: {rate-limited: drop}\n",
		 "f:1:11: classes.rate-limited: found unknown key \"rate-limited\", expected one "
		 "of " CLASSES "\n"},
		{"rule: []\n", "f:1:1: rule: found unknown key \"rule\", expected one of mode, "
			       "priority, default, classes, sets, balancers, rules, direction, "
			       "track; did you mean "
			       "\"rules\"?\n"},
		{"- action: drop\n",
		 "f:1:1: found a list, expected a mapping of mode, priority, "
		 "default, classes, sets, balancers, rules, direction, track\n"},
		{"mode: [\n",
		 "f:2:1: found while parsing a flow node: did not find expected node content, "
		 "expected valid YAML\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

/* What lists for packets that leave do not have. */
static void wrong_in_this_direction(void **state)
{
#define OUT(more)  "{direction: egress, " more "}\n"
#define RULE(more) OUT("rules: [{name: r, " more "}]")
#define AT_RULE \
	"f:1:29: rules[0]: found rule 1 (r) with its action and direction: egress, expected "
	static const struct wrong cases[] = {
		{RULE("action: reflect"),
		 AT_RULE "pass or drop: what leaves came from this side, and "
			 "reflect sends back to the other\n"},
		{RULE("action: redirect eth1"),
		 AT_RULE "pass or drop: where packets leave was decided "
			 "before, by this host's routes\n"},
		{RULE("action: cpu 1"), AT_RULE "pass or drop: what leaves is past the work that "
						"another CPU would do\n"},
		{RULE("proto: udp, action: balance b"),
		 AT_RULE "pass or drop: balancers take packets where they come in\n"
			 "f:1:29: rules[0]: found rule 1 (r) with balance b, expected a balancer "
			 "that is defined\n"},
		{RULE("proto: tcp, action: challenge"),
		 AT_RULE "pass or drop: who asks for connections here comes in\n"},
		{RULE("proto: udp, action: drop, trigger: yes"),
		 "f:1:29: rules[0]: found rule 1 (r) with a trigger and direction: egress, "
		 "expected no "
		 "trigger: what starts commands comes in\n"},
		{OUT("mode: native"),
		 "f:1:1: found a mode with direction: egress, expected none: modes "
		 "are XDP's, and what leaves is judged by tc\n"},
		{OUT("priority: 5"),
		 "f:1:1: found a priority with direction: egress, expected none: "
		 "what leaves is judged behind all other programs, in its last "
		 "form\n"},
		{OUT("classes: {exposed: drop}"), "f:1:1: found the class exposed with direction: "
						  "egress, expected rules: to exposed "
						  "ports packets come in\n"},
		{OUT("balancers: {b: {backends: [192.0.2.1]}}"),
		 "f:1:1: found a balancer with direction: egress, expected none: balancers take "
		 "packets "
		 "where they come in\n"},
	};
	struct rule_list l =
		parse(OUT("sets: {s: [80]}, classes: {arp: drop}, rules: [{dport: '@s', "
			  "rate: 5pps, capture: 16, action: pass}]"));

	(void)state;
	assert_int_equal(l.direction, DIRECTION_EGRESS);
	assert_int_equal(l.n_rules, 1);
	rule_list_free(&l);
	assert_all(cases, ARRAY_SIZE(cases));
}

static void wrong_sets(void **state)
{
#define PREFIX "a prefix such as 10.0.0.0/8 or fd00::/8, or an address"
	static const struct wrong cases[] = {
		{"sets: {a: [10.0.0.0/8, 80]}\n",
		 "f:1:24: sets.a[1]: found \"80\", expected " PREFIX "\n"},
		{"sets: {a: [80, 10.0.0.0/8]}\n",
		 "f:1:16: sets.a[1]: found \"10.0.0.0/8\", expected a "
		 "port of 0 to 65535 or a range of them\n"},
		{"sets: {a: [10.0.0.1/8]}\n", "f:1:12: sets.a[0]: found \"10.0.0.1/8\", expected a "
					      "prefix without host bits: 10.0.0.0/8\n"},
		{"sets: {a: [x]}\n", "f:1:12: sets.a[0]: found \"x\", expected " PREFIX "\n"},
		{"sets: {a: [[1]]}\n",
		 "f:1:12: sets.a[0]: found a list, expected a prefix or a port\n"},
		{"sets: {a: {ports: [10.0.0.0/8]}}\n",
		 "f:1:20: sets.a.ports[0]: found \"10.0.0.0/8\", expected a port of 0 to 65535 or "
		 "a "
		 "range of them\n"},
		{"sets: {a: {prefixes: [80]}}\n",
		 "f:1:23: sets.a.prefixes[0]: found \"80\", expected " PREFIX "\n"},
		{"sets: {a: {file: x, ports: [1]}}\n", "f:1:11: sets.a: found a mapping, expected "
						       "exactly one of file, prefixes, ports-file"
						       ", ports and flows, and timed if wanted\n"},
		{"sets: {a: {flows: [10.0.0.1]}}\n",
		 "f:1:19: sets.a.flows: found a list, expected []: flows come for a time only, by "
		 "rules or 'ax xdp set add --for'\n"},
		{"sets: {a: {flows: yes}}\n",
		 "f:1:19: sets.a.flows: found \"yes\", expected []: flows come for a time only, by "
		 "rules or 'ax xdp set add --for'\n"},
		{"sets: {a: {timed: x}}\n", "f:1:19: sets.a.timed: found \"x\", expected true or "
					    "false\n"},
		{"sets: {a: {file: x, ports: [1], timed: yes}}\n",
		 "f:1:11: sets.a: found a mapping, expected exactly one of file, prefixes, "
		 "ports-file, ports and flows, and timed if wanted\n"},
		{"sets: {a: {}}\n",
		 "f:1:11: sets.a: found an empty mapping, expected exactly one of "
		 "file, prefixes, ports-file, ports and flows, and timed if wanted\n"},
		{"sets: {a: {fiel: x}}\n",
		 "f:1:12: sets.a.fiel: found unknown key \"fiel\", expected "
		 "one of file, prefixes, ports-file, ports, flows, timed; did you mean "
		 "\"file\"?\n"},
		{"sets: {a: {file: }}\n",
		 "f:1:18: sets.a.file: found nothing, expected a file's path\n"},
		{"sets: {a: {file: ''}}\n",
		 "f:1:18: sets.a.file: found \"\", expected a file's path\n"},
		{"sets: {a b: []}\n",
		 "f:1:8: sets.\"a b\": found \"a b\", expected a name of 1 to 63 "
		 "letters, digits and . _ - :\n"},
		{"sets: {a: [], a: []}\n",
		 "f:1:15: sets.a: found \"a\", which is there since line 1, expected each key "
		 "once\n"},
		{"sets: [a]\n", "f:1:7: sets: found a list, expected a mapping of sets by name\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void wrong_balancers(void **state)
{
	static const struct wrong cases[] = {
		{"balancers: {b: }\n", "f:1:16: balancers.b: found nothing, expected exactly one "
				       "of service and backends\n"},
		{"balancers: {b: {service: a, backends: []}}\n",
		 "f:1:16: balancers.b: found a mapping, expected exactly one of service and "
		 "backends\n"},
		{"balancers: {b: {mode: dsr, backends: []}}\n",
		 "f:1:23: balancers.b.mode: found \"dsr\", expected nat, ipip or gue\n"},
		{"balancers: {b: {affinity: app, backends: []}}\n",
		 "f:1:27: balancers.b.affinity: found \"app\", expected none or src\n"},
		{"balancers: {b: {backends: [{address: 10.0.0.1, quic-id: 65536}]}}\n",
		 "f:1:57: balancers.b.backends[0].quic-id: found \"65536\", expected a whole "
		 "number of 0 to 65535\n"},
		{"balancers: {b: {backends: [{address: 10.0.0.1, quic-id: 7}, {address: 10.0.0.2, "
		 "quic-id: 7}]}}\n",
		 "f:1:61: balancers.b.backends[1]: found a quic-id that another backend has, "
		 "expected another quic-id for each backend of a family\n"},
		{"balancers: {b: {port: 7, backends: []}}\n",
		 "f:1:23: balancers.b: found port, expected it with mode gue only: it is the "
		 "tunnel's\n"},
		{"balancers: {b: {mode: gue, port: 0, backends: []}}\n",
		 "f:1:34: balancers.b.port: found \"0\", expected a port of 1 to 65535\n"},
		{"balancers: {b: {mode: ipip, backends: [10.0.0.1:80]}}\n",
		 "f:1:16: balancers.b: found a backend's port, expected none with mode ipip: the "
		 "packet inside keeps its own\n"},
		{"balancers: {b: {source: x, backends: []}}\n",
		 "f:1:25: balancers.b.source: found \"x\", expected an IPv4 or IPv6 address, or "
		 "one "
		 "of each with a comma between\n"},
		{"balancers: {b: {service: A}}\n",
		 "f:1:26: balancers.b.service: found \"A\", expected a name of 1 to 63 lower-case "
		 "letters, digits and hyphens (none at its ends)\n"},
		{"balancers: {b: {backends: [10.0.0.1, 127.0.0.1, {port: 1}, {address: x}]}}\n",
		 "f:1:38: balancers.b.backends[1]: found \"127.0.0.1\", expected a unicast "
		 "address, "
		 "not a loopback one\n"
		 "f:1:49: balancers.b.backends[2]: found a mapping, expected a mapping with the "
		 "key "
		 "address\n"
		 "f:1:70: balancers.b.backends[3].address: found \"x\", expected an address or "
		 "address:port ([address]:port for IPv6)\n"},
		{"balancers: {b: {backends: [10.0.0.1, {address: 10.0.0.1}]}}\n",
		 "f:1:38: balancers.b.backends[1]: found a mapping, expected each backend once (a "
		 "weight gives it more)\n"},
		{"balancers: {b: {backends: [{address: 10.0.0.1, weight: 0, drain: x, prot: "
		 "1}]}}\n",
		 "f:1:56: balancers.b.backends[0].weight: found \"0\", expected a whole number of "
		 "1 "
		 "to 1000\n"
		 "f:1:66: balancers.b.backends[0].drain: found \"x\", expected true or false\n"
		 "f:1:69: balancers.b.backends[0].prot: found unknown key \"prot\", expected one "
		 "of "
		 "address, port, weight, drain, quic-id; did you mean \"port\"?\n"},
		{"balancers: {a/b: {backends: []}}\n",
		 "f:1:13: balancers.\"a/b\": found \"a/b\", expected a name of 1 to 63 letters, "
		 "digits and . _ - :\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

/* Each line has one, and all of them are told at once. */
static void all_mistakes_are_told(void **state)
{
	(void)state;
	assert_errors(
		"mode: x\n"
		"rules:\n"
		"  - {src: 1, action: drop}\n"
		"  - {vlan: 4096, length: 1-0,\n"
		"     action: cpu}\n"
		"default: y\n",
		"f:1:7: mode: found \"x\", expected auto, native, generic or offload\n"
		"f:3:11: rules[0].src: found \"1\", expected prefixes such as 10.0.0.0/8 or "
		"fd00::/8, or @SET\n"
		"f:4:12: rules[1].vlan: found \"4096\", expected VLAN ids of 0 to 4095 such as "
		"100 or 200-299, or none\n"
		"f:4:26: rules[1].length: found \"1-0\", expected lengths of 0 to 65535 bytes "
		"such as 64, 0-64 or 1500-\n"
		"f:5:14: rules[1].action: found \"cpu\", expected cpu and its number of 0 to "
		"8191\n"
		"f:6:10: default: found \"y\", expected pass or drop\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_is_an_empty_list),
		cmocka_unit_test(the_direction_may_come_from_outside),
		cmocka_unit_test(a_whole_file),
		cmocka_unit_test(json_is_read_too),
		cmocka_unit_test(sets_have_many_forms),
		cmocka_unit_test(balancers_have_many_forms),
		cmocka_unit_test(wrong_rules),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(wrong_in_this_direction),
		cmocka_unit_test(wrong_sets),
		cmocka_unit_test(wrong_balancers),
		cmocka_unit_test(all_mistakes_are_told),
	};

	return cmocka_run_group_tests_name("rule_file", tests, NULL, NULL);
}
