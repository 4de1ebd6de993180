// SPDX-License-Identifier: GPL-2.0-or-later
/* Every mistake in a config file is reported with its place, path, and what was expected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/config.h"
#include "config/parse.h"

/* Parses a text that is wrong and compares all that is printed about it. */
#define EGRESS                                                                                \
	"all, none, or addresses, prefixes and DNS names, maybe with a port and a protocol, " \
	"such as 10.0.0.0/8, 192.0.2.7:443, \"[2001:db8::/32]:443/tcp\" or *.example.com:443"

static void assert_errors_n(const char *text, size_t len, const char *expected)
{
	autofree char *printed = NULL;
	struct config_errors errs;
	struct config c;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	assert_int_equal(config_parse(text, len, &c, &errs), -EINVAL);
	config_errors_print(&errs, "f", f);
	fclose(f);
	config_errors_free(&errs);
	assert_int_equal(errs.n, 0);
	assert_string_equal(printed, expected);
}

static void assert_errors(const char *text, const char *expected)
{
	assert_errors_n(text, strlen(text), expected);
}

struct wrong {
	const char *text, *errors;
};

static void assert_all(const struct wrong *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_errors(cases[i].text, cases[i].errors);
}

static void what_is_no_yaml(void **state)
{
	static const struct wrong cases[] = {
		{"agent:\n\tsocket: /x\n",
		 "f:2:1: found while scanning for the next token: found character that cannot "
		 "start any token, expected spaces, since YAML allows no tabs here\n"},
		{"\303\244: 1\n\303\274:\n  \tx: y\n",
		 "f:3:3: found while scanning for the next token: found character that cannot "
		 "start any token, expected spaces, since YAML allows no tabs here\n"},
		{"apps: {a: [}\n",
		 "f:1:12: found while parsing a flow node: did not find expected node content, "
		 "expected valid YAML\n"},
		{"agent:\n  dns: a: b\n", "f:2:9: found mapping values are not allowed in this "
					  "context, expected valid YAML\n"},
		{"apps:\n  a: \"x\n",
		 "f:3:1: found while scanning a quoted scalar: found unexpected "
		 "end of stream, expected valid YAML\n"},
		{"%YAML 3.0\n---\n",
		 "f:1:1: found incompatible YAML document, expected valid YAML\n"},
		/* an error of the syntax hides the others */
		{"nonsense: 1\nagent: [\n", "f:3:1: found while parsing a flow node: did not find "
					    "expected node content, expected valid YAML\n"},
		{"--- {}\n--- {}\n",
		 "f:2:1: found a second document, expected one document in the file\n"},
		{"{}\n...\n---\n",
		 "f:3:1: found a second document, expected one document in the file\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void what_is_no_text(void **state)
{
	(void)state;
	assert_errors("agent:\n  \303\244\377: 1\n",
		      "f:2:4: found invalid leading UTF-8 octet (0xff), expected UTF-8 text "
		      "without control characters\n");
	assert_errors("agent: \"\303(\"\n",
		      "f:1:10: found invalid trailing UTF-8 octet (0x28), expected UTF-8 text "
		      "without control characters\n");
	assert_errors("a\n\033[31m",
		      "f:2:1: found control characters are not allowed (0x1b), expected UTF-8 "
		      "text without control characters\n");
	assert_errors_n("agent: {}\n\0bad: 1\n", 18,
			"f:2:1: found control characters are not allowed (0x00), expected UTF-8 "
			"text without control characters\n");
	assert_errors_n("\0", 1,
			"f:1:1: found control characters are not allowed (0x00), expected UTF-8 "
			"text without control characters\n");
	assert_errors_n("\377\376{\0}\0", 6, /* UTF-16 */
			"f:1:1: found invalid leading UTF-8 octet (0xff), expected UTF-8 text "
			"without control characters\n");
	assert_errors("apps: {a: {user: \"x\\0y\"}}",
		      "f:1:18: apps.a.user: found text with a NUL byte, expected a user's name or "
		      "number\n");
	assert_errors("apps: {\"a\\0\": {}}",
		      "f:1:8: apps: found text with a NUL byte, expected apps by name\n");
	/* nothing that the terminal would obey is printed */
	assert_errors("\"\\e[31m\\u009b\": 1\n",
		      "f:1:1: \"\\x1b[31m\\xc2\\x9b\": found unknown key \"\\x1b[31m\\xc2\\x9b\", "
		      "expected one of agent, cluster, apps, services, policy, xdp, probes\n");
}

static void aliases_are_bounded(void **state)
{
	char text[16384], *p = text;

	(void)state;
	assert_errors("agent: *x\n", "f:1:8: found \"x\", expected an alias of an anchor that is "
				     "complete before it\n");
	assert_errors("apps: &a {a: *a}\n", "f:1:14: found \"a\", expected an alias of an anchor "
					    "that is complete before it\n");
	p += sprintf(p, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
	for (int i = 1; i < 9; i++) {
		p += sprintf(p, "a%d: &a%d [", i, i);
		for (int j = 0; j < 10; j++)
			p += sprintf(p, "*a%d%s", i - 1, j < 9 ? "," : "]\n");
	}
	assert_errors(text, "f:6:22: found \"a4\", expected aliases that stand for less than 1 MiB "
			    "altogether\n");
	p = text;
	for (int i = 0; i < 257; i++)
		p += sprintf(p, "k%d: &a%d x\n", i, i);
	assert_errors(text, "f:257:7: found \"a256\", expected at most 256 different anchors\n");
}

static void nesting_is_bounded(void **state)
{
	char text[100001];

	(void)state;
	assert_errors("[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]\n",
		      "f:1:17: found deeper nesting, expected lists and mappings at most 16 levels "
		      "deep\n");
	memset(text, '[', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_errors(text, "f:1:17: found deeper nesting, expected lists and mappings at most 16 "
			    "levels deep\n");
}

#define ROOT_KEYS "agent, cluster, apps, services, policy, xdp, probes"
#define APP_KEYS                                                                        \
	"name, command, ip, labels, user, net, env, directory, wait, egress, restart, " \
	"splice, splice-emulation, memory, cpus, pids, volumes, read-only, expose, start, idle"

static void unknown_and_double_keys(void **state)
{
	static const struct wrong cases[] = {
		{"hello\n", "f:1:1: found \"hello\", expected a mapping of " ROOT_KEYS "\n"},
		{"- agent\n", "f:1:1: found a list, expected a mapping of " ROOT_KEYS "\n"},
		{"servcies: {}\n", "f:1:1: servcies: found unknown key \"servcies\", expected one "
				   "of " ROOT_KEYS "; did you mean \"services\"?\n"},
		{"zzz: {}\n",
		 "f:1:1: zzz: found unknown key \"zzz\", expected one of " ROOT_KEYS "\n"},
		{"? [a]\n: b\n",
		 "f:1:3: a list: found unknown key a list, expected one of " ROOT_KEYS "\n"},
		{"services:\n  api: {prots: [80]}\n",
		 "f:2:9: services.api.prots: found unknown key \"prots\", expected one of ip, "
		 "ports, backends, strategy, hash, affinity, affinity-timeout, udp, on-remove, "
		 "wait, "
		 "drain, slow-start, splice, check, expose; did you mean "
		 "\"ports\"?\n"},
		{"apps: {a: {comand: x}}\n",
		 "f:1:12: apps.a.comand: found unknown key \"comand\", expected one of " APP_KEYS
		 "; did you mean \"command\"?\n"},
		{"agent: {}\nagent: {}\n",
		 "f:2:1: agent: found \"agent\", which is there since line 1, expected each key "
		 "once\n"},
		{"apps:\n  a: {}\n  b: {}\n  \"a\": {user: /}\n",
		 "f:4:3: apps.a: found \"a\", which is there since line 2, expected each key "
		 "once\n"},
		{"apps:\n  a:\n    labels: {x: y, x: z}\n",
		 "f:3:20: apps.a.labels.x: found \"x\", which is there since line 3, expected each "
		 "key once\n"},
		{"apps:\n  a: {env: {A: b,\n  A: c}}\n",
		 "f:3:3: apps.a.env.A: found \"A\", which is there since line 2, expected each key "
		 "once\n"},
		{"apps: [a]\n", "f:1:7: apps: found a list, expected a mapping of apps by name\n"},
		{"services: x\n",
		 "f:1:11: services: found \"x\", expected a mapping of services by name\n"},
		{"apps: {a: x}\n",
		 "f:1:11: apps.a: found \"x\", expected a mapping of " APP_KEYS "\n"},
		{"apps: {[a]: {}}\n", "f:1:8: apps: found a list, expected apps by name\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void the_agent_section(void **state)
{
	static const struct wrong cases[] = {
		{"agent: {socket: run/x}", "f:1:17: agent.socket: found \"run/x\", expected an "
					   "absolute path\n"},
		{"agent: {socket: }",
		 "f:1:17: agent.socket: found nothing, expected an absolute path\n"},
		{"agent: {socket: null}",
		 "f:1:17: agent.socket: found \"null\", expected an "
		 "absolute path (in quotes if \"null\" is meant as text)\n"},
		{"agent: {socket: /2345678901234567890123456789012345678901234567890123456789012345"
		 "6789012345678901234567890123456789012345678}",
		 "f:1:17: agent.socket: found "
		 "\"/23456789012345678901234567890123456789012345678901234567890...\", expected a "
		 "path of at most 107 bytes, which is a Unix socket's limit\n"},
		{"agent: {pool: {ipv4: 10.217.3.0/16}}",
		 "f:1:22: agent.pool.ipv4: found \"10.217.3.0/16\", expected a prefix without host "
		 "bits: 10.217.0.0/16\n"},
		{"agent: {pool: {ipv6: 'fd00::1/64'}}",
		 "f:1:22: agent.pool.ipv6: found \"fd00::1/64\", expected a prefix without host "
		 "bits: fd00::/64\n"},
		{"agent: {pool: {ipv4: 10.0.0.0/7}}",
		 "f:1:22: agent.pool.ipv4: found \"10.0.0.0/7\", expected a length of 8 to 29\n"},
		{"agent: {pool: {ipv4: 10.0.0.0/30}}",
		 "f:1:22: agent.pool.ipv4: found \"10.0.0.0/30\", expected a length of 8 to 29\n"},
		{"agent: {pool: {ipv4: 10.0.0.0}}",
		 "f:1:22: agent.pool.ipv4: found \"10.0.0.0\", expected a length of 8 to 29\n"},
		{"agent: {pool: {ipv6: 'fd00::/47'}}",
		 "f:1:22: agent.pool.ipv6: found \"fd00::/47\", expected a length of 48 to 120\n"},
		{"agent: {pool: {ipv6: 'fd00::/121'}}",
		 "f:1:22: agent.pool.ipv6: found \"fd00::/121\", expected a length of 48 to 120\n"},
		{"agent: {pool: {ipv4: 'fd00::/64'}}",
		 "f:1:22: agent.pool.ipv4: found \"fd00::/64\", expected an IPv4 prefix such as "
		 "10.217.0.0/16\n"},
		{"agent: {pool: {ipv4: '::ffff:10.0.0.0/112'}}",
		 "f:1:22: agent.pool.ipv4: found \"::ffff:10.0.0.0/112\", expected an IPv4 prefix "
		 "such as 10.217.0.0/16\n"},
		{"agent: {pool: {ipv6: 10.0.0.0/8}}",
		 "f:1:22: agent.pool.ipv6: found \"10.0.0.0/8\", expected an IPv6 prefix such as "
		 "fd61:78::/64\n"},
		{"agent: {pool: {ipv4: 127.0.0.0/8}}",
		 "f:1:22: agent.pool.ipv4: found \"127.0.0.0/8\", expected a prefix of unicast "
		 "addresses\n"},
		{"agent: {pool: {ipv4: 224.0.0.0/8}}",
		 "f:1:22: agent.pool.ipv4: found \"224.0.0.0/8\", expected a prefix of unicast "
		 "addresses\n"},
		{"agent: {dns: {enabled: maybe}}",
		 "f:1:24: agent.dns.enabled: found \"maybe\", expected true or false\n"},
		{"agent: {dns: {domain: a..b}}", "f:1:23: agent.dns.domain: found \"a..b\", "
						 "expected a domain such as ax.internal\n"},
		{"agent: {dns: {domain: .}}", "f:1:23: agent.dns.domain: found \".\", expected a "
					      "domain such as ax.internal\n"},
		{"agent: {dns: {domain: -a.b}}", "f:1:23: agent.dns.domain: found \"-a.b\", "
						 "expected a domain such as ax.internal\n"},
		{"agent: {dns: {domain: a_b}}", "f:1:23: agent.dns.domain: found \"a_b\", expected "
						"a domain such as ax.internal\n"},
		{"agent: {dns: {upstreams: 8.8.8.8}}",
		 "f:1:26: agent.dns.upstreams: found \"8.8.8.8\", expected a list of addresses of "
		 "DNS servers\n"},
		{"agent: {dns: {upstreams: [1.1.1.1, dns, 'fd00::1:70000']}}",
		 "f:1:36: agent.dns.upstreams[1]: found \"dns\", expected an address or "
		 "address:port ([address]:port for IPv6)\n"
		 "f:1:41: agent.dns.upstreams[2]: found \"fd00::1:70000\", expected an address or "
		 "address:port ([address]:port for IPv6)\n"},
		{"agent: {dns: {upstreams: [224.0.0.251, 0.0.0.0]}}",
		 "f:1:27: agent.dns.upstreams[0]: found \"224.0.0.251\", expected a unicast "
		 "address, not a multicast one\n"
		 "f:1:40: agent.dns.upstreams[1]: found \"0.0.0.0\", expected a unicast address, "
		 "not the unspecified one\n"},
		{"agent: {dns: {forward: none}}", "f:1:24: agent.dns.forward: found \"none\", "
						  "expected egress or all\n"},
		{"agent: {host_access: 1}",
		 "f:1:22: agent.host_access: found \"1\", expected true or false\n"},
		{"agent: {logs: {size: 255K, to: syslog}}",
		 "f:1:22: agent.logs.size: found \"255K\", expected a size of 256K to 1024G, such "
		 "as 16M\n"
		 "f:1:32: agent.logs.to: found \"syslog\", expected file or journal\n"},
		{"agent: {logs: {size: 1025G}}",
		 "f:1:22: agent.logs.size: found \"1025G\", expected a size of 256K to 1024G, such "
		 "as 16M\n"},
		{"agent: {logs: {size: 16MB}}",
		 "f:1:22: agent.logs.size: found \"16MB\", expected a size of 256K to 1024G, such "
		 "as 16M\n"},
		{"agent: {host_access: [yes]}",
		 "f:1:22: agent.host_access: found a list, expected true or false\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

#define NAME "a name of 1 to 63 lower-case letters, digits and hyphens (none at its ends)"
#define VIP  "an IPv4 or IPv6 address, or one of each with a comma between"
#define WAIT "a duration such as 5s, 300ms or 2m, at most 24 hours (1440m)"

static void the_apps_section(void **state)
{
	static const struct wrong cases[] = {
		{"apps: {Web: {}}", "f:1:8: apps.Web: found \"Web\", expected " NAME "\n"},
		{"apps: {a.b: {}}", "f:1:8: apps.\"a.b\": found \"a.b\", expected " NAME "\n"},
		{"apps: {-a: {}, a-: {}, '': {}}",
		 "f:1:8: apps.-a: found \"-a\", expected " NAME "\n"
		 "f:1:16: apps.a-: found \"a-\", expected " NAME "\n"
		 "f:1:24: apps.\"\": found \"\", expected " NAME "\n"},
		{"apps: {a: {name: a_b}}",
		 "f:1:18: apps.a.name: found \"a_b\", expected " NAME "\n"},
		{"apps: {a: {command: \"x 'y\"}}",
		 "f:1:21: apps.a.command: found \"x 'y\", expected "
		 "a closing quote at the end\n"},
		{"apps: {a: {command: 'x \\'}}",
		 "f:1:21: apps.a.command: found \"x \\\", expected a character after the backslash "
		 "at the end\n"},
		{"apps: {a: {command: ' '}, b: {command: []}, c: {command: {x: y}}}",
		 "f:1:21: apps.a.command: found \" \", expected a program and its arguments, as a "
		 "list or as text\n"
		 "f:1:40: apps.b.command: found an empty list, expected a program and its "
		 "arguments, as a list or as text\n"
		 "f:1:58: apps.c.command: found a mapping, expected a program and its arguments, "
		 "as a list or as text\n"},
		{"apps: {a: {command: ['', x]}, b: {command: \"'' x\"}}",
		 "f:1:22: apps.a.command: found \"\", expected a program's name\n"
		 "f:1:44: apps.b.command: found \"'' x\", expected a program and its arguments, as "
		 "a list or as text\n"},
		{"apps:\n  a:\n    command:\n      - x\n      -\n      - [y]\n",
		 "f:5:8: apps.a.command[1]: found nothing, expected an argument (\"\" for an empty "
		 "one)\n"
		 "f:6:9: apps.a.command[2]: found a list, expected an argument (\"\" for an empty "
		 "one)\n"},
		{"apps: {a: {ip: web}}", "f:1:16: apps.a.ip: found \"web\", expected " VIP "\n"},
		{"apps: {a: {ip: '1.2.3.4,'}}",
		 "f:1:16: apps.a.ip: found \"1.2.3.4,\", expected " VIP "\n"},
		{"apps: {a: {ip: '1.2.3.4,fd00::1,fd00::2'}}",
		 "f:1:16: apps.a.ip: found \"1.2.3.4,fd00::1,fd00::2\", expected " VIP "\n"},
		{"apps: {a: {ip: '1.2.3.4,1.2.3.5'}}",
		 "f:1:16: apps.a.ip: found \"1.2.3.4,1.2.3.5\", expected at most one IPv4 and one "
		 "IPv6 address\n"},
		{"apps: {a: {ip: 'fd00::1,fd00::2'}}",
		 "f:1:16: apps.a.ip: found \"fd00::1,fd00::2\", expected at most one IPv4 and one "
		 "IPv6 address\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void what_apps_are_given(void **state)
{
	static const struct wrong cases[] = {
		{"apps: {a: {labels: [x]}}", "f:1:20: apps.a.labels: found a list, expected a "
					     "mapping of labels, or text such as k=v,k2=v2\n"},
		{"apps: {a: {labels: 'x=1,x=2'}}",
		 "f:1:20: apps.a.labels: found \"x=1,x=2\", expected k=v or k=v,k2=v2, each key "
		 "once, at most 63 letters, digits and . _ / - in a key and in a value\n"},
		{"apps: {a: {labels: {a b: c, d: e f}}}",
		 "f:1:21: apps.a.labels.\"a b\": found \"a b\": \"c\", expected at most 63 "
		 "letters, "
		 "digits and . _ / - in a key and in a value\n"
		 "f:1:29: apps.a.labels.d: found \"d\": \"e f\", expected at most 63 letters, "
		 "digits and . _ / - in a key and in a value\n"},
		{"apps: {a: {labels: {x: [y]}}}",
		 "f:1:24: apps.a.labels.x: found a list, expected the label's value\n"},
		{"apps: {a: {user: 'a b'}, b: {user: ''}, c: {user: 'a:b'}}",
		 "f:1:18: apps.a.user: found \"a b\", expected a user's name or number\n"
		 "f:1:36: apps.b.user: found \"\", expected a user's name or number\n"
		 "f:1:51: apps.c.user: found \"a:b\", expected a user's name or number\n"},
		{"apps: {a: {net: bridge}}",
		 "f:1:17: apps.a.net: found \"bridge\", expected private or host\n"},
		{"apps: {a: {env: A=b}}",
		 "f:1:17: apps.a.env: found \"A=b\", expected a mapping of "
		 "variables, or a list of KEY=VALUE\n"},
		{"apps: {a: {env: [A, '=b', A=1, A=2]}}",
		 "f:1:18: apps.a.env[0]: found \"A\", expected KEY=VALUE\n"
		 "f:1:21: apps.a.env[1]: found \"=b\", expected KEY=VALUE\n"
		 "f:1:32: apps.a.env[3]: found \"A=2\", expected each variable once (line 1 has it "
		 "already)\n"},
		{"apps: {a: {env: {'A=B': c, '': d}}}",
		 "f:1:18: apps.a.env.\"A=B\": found \"A=B\", expected a variable's name\n"
		 "f:1:28: apps.a.env.\"\": found \"\", expected a variable's name\n"},
		{"apps: {a: {directory: srv}}",
		 "f:1:23: apps.a.directory: found \"srv\", expected an absolute path\n"},
		{"apps: {a: {wait: soon}}",
		 "f:1:18: apps.a.wait: found \"soon\", expected " WAIT "\n"},
		{"apps: {a: {wait: 5 s}, b: {wait: -1}, c: {wait: 1.5h}, d: {wait: 5h}}",
		 "f:1:18: apps.a.wait: found \"5 s\", expected " WAIT
		 "\nf:1:34: apps.b.wait: found \"-1\", expected " WAIT
		 "\nf:1:49: apps.c.wait: found \"1.5h\", expected " WAIT
		 "\nf:1:66: apps.d.wait: found \"5h\", expected " WAIT "\n"},
		{"apps: {a: {wait: 1441m}, b: {wait: 99999999999999999999999ms}}",
		 "f:1:18: apps.a.wait: found \"1441m\", expected " WAIT
		 "\nf:1:36: apps.b.wait: found \"99999999999999999999999ms\", expected " WAIT "\n"},
		{"apps: {a: {command: x, start: later}, b: {start: on-connect}, c: {idle: 5s}}",
		 "f:1:31: apps.a.start: found \"later\", expected now or on-connect\n"
		 "f:1:39: apps.b: found start: on-connect without a command, expected command: "
		 "...\n"
		 "f:1:63: apps.c: found idle without start: on-connect, expected start: "
		 "on-connect, "
		 "or nobody would start it again\n"},
		{"apps: {a: {egress: some}}",
		 "f:1:20: apps.a.egress: found \"some\", expected " EGRESS "\n"},
		{"apps: {a: {splice: true}}",
		 "f:1:20: apps.a.splice: found \"true\", expected auto, on, off or forced\n"},
		{"apps: {a: {splice-emulation: forced}}",
		 "f:1:30: apps.a.splice-emulation: found \"forced\", expected true or false\n"},
		{"agent: {splice: yes}",
		 "f:1:17: agent.splice: found \"yes\", expected auto, on, off or forced\n"},
		{"services: {a: {splice: []}}", "f:1:24: services.a.splice: found an empty list, "
						"expected auto, on, off or forced\n"},
		{"apps: {a: {restart: never}}",
		 "f:1:21: apps.a.restart: found \"never\", expected no, on-failure or always\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void addresses_that_nobody_can_have(void **state)
{
	static const struct {
		const char *addr, *expected;
	} cases[] = {
		{"0.0.0.0", "not the unspecified one"},
		{"::", "not the unspecified one"},
		{"127.0.0.1", "not a loopback one"},
		{"127.9.9.9", "not a loopback one"},
		{"::1", "not a loopback one"},
		{"::ffff:127.0.0.1", "not a loopback one"},
		{"224.0.0.1", "not a multicast one"},
		{"239.1.1.1", "not a multicast one"},
		{"ff02::1", "not a multicast one"},
		{"255.255.255.255", "not the broadcast one"},
		{"fe80::1", "not a link-local one"},
	};
	static const char *const sections[] = {"apps", "services"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sections); j++) {
			char text[128], expected[256];

			snprintf(text, sizeof(text), "%s:\n  a: {ip: '%s'}\n", sections[j],
				 cases[i].addr);
			snprintf(expected, sizeof(expected),
				 "f:2:11: %s.a.ip: found \"%s\", expected a unicast address, %s\n",
				 sections[j], cases[i].addr, cases[i].expected);
			assert_errors(text, expected);
		}
	}
}

#define PORT	"a port: 80, \"80:8080\", \"80:8080/udp\" or a mapping"
#define ADDRESS "an address or address:port ([address]:port for IPv6)"

static void the_services_section(void **state)
{
	static const struct wrong cases[] = {
		{"services: {A: {}}", "f:1:12: services.A: found \"A\", expected " NAME "\n"},
		{"services: {a: {ip: x}}",
		 "f:1:20: services.a.ip: found \"x\", expected " VIP "\n"},
		{"services: {a: {ports: 80}}",
		 "f:1:23: services.a.ports: found \"80\", expected a list of ports\n"},
		{"services: {a: {ports: [0, 65536, '80:', ':80', 80/sctp, 80/, 1:2:3, x, '']}}",
		 "f:1:24: services.a.ports[0]: found \"0\", expected " PORT
		 "\nf:1:27: services.a.ports[1]: found \"65536\", expected " PORT
		 "\nf:1:34: services.a.ports[2]: found \"80:\", expected " PORT
		 "\nf:1:41: services.a.ports[3]: found \":80\", expected " PORT
		 "\nf:1:48: services.a.ports[4]: found \"80/sctp\", expected " PORT
		 "\nf:1:57: services.a.ports[5]: found \"80/\", expected " PORT
		 "\nf:1:62: services.a.ports[6]: found \"1:2:3\", expected " PORT
		 "\nf:1:69: services.a.ports[7]: found \"x\", expected " PORT
		 "\nf:1:72: services.a.ports[8]: found \"\", expected " PORT "\n"},
		{"services:\n  a:\n    ports:\n      - 80\n      - 80/udp\n      - 80:81\n"
		 "      - {port: 80, protocol: udp}\n",
		 "f:6:9: services.a.ports[2]: found \"80:81\", expected each port once for a "
		 "protocol (line 4 has it already)\n"
		 "f:7:9: services.a.ports[3]: found a mapping, expected each port once for a "
		 "protocol (line 5 has it already)\n"},
		{"services:\n  api:\n    ports:\n      - port: 99999\n        target: 0\n"
		 "        protocol: TCP\n",
		 "f:4:15: services.api.ports[0].port: found \"99999\", expected a port of 1 to "
		 "65535\n"
		 "f:5:17: services.api.ports[0].target: found \"0\", expected a port of 1 to "
		 "65535\n"
		 "f:6:19: services.api.ports[0].protocol: found \"TCP\", expected tcp or udp\n"},
		{"services: {a: {ports: [{target: 80}, {}]}}",
		 "f:1:24: services.a.ports[0]: found a mapping, expected a mapping with the key "
		 "port\n"
		 "f:1:38: services.a.ports[1]: found an empty mapping, expected a mapping with the "
		 "key port\n"},
		{"services: {a: {backends: web}}",
		 "f:1:26: services.a.backends: found \"web\", expected a list of backends\n"},
		{"services: {a: {backends: [Web, {app: -}, [x]]}}",
		 "f:1:27: services.a.backends[0]: found \"Web\", expected " NAME
		 "\nf:1:38: services.a.backends[1].app: found \"-\", expected " NAME
		 "\nf:1:42: services.a.backends[2]: found a list, expected a mapping of app, "
		 "label, "
		 "labels, address, weight, zone, quic-id\n"},
		{"services: {a: {backends: [{app: x, quic-id: 65536}, {app: y, quic-id: -1}, "
		 "{quic-id: 1}]}}",
		 "f:1:45: services.a.backends[0].quic-id: found \"65536\", expected a whole number "
		 "of 0 "
		 "to 65535\n"
		 "f:1:71: services.a.backends[1].quic-id: found \"-1\", expected a whole number of "
		 "0 to "
		 "65535\n"
		 "f:1:76: services.a.backends[2]: found a mapping, expected exactly one of app, "
		 "labels and "
		 "address\n"},
		{"services: {a: {backends: [{}, {weight: 2}, {app: x, address: 1.2.3.4}]}}",
		 "f:1:27: services.a.backends[0]: found an empty mapping, expected exactly one of "
		 "app, labels and address\n"
		 "f:1:31: services.a.backends[1]: found a mapping, expected exactly one of app, "
		 "labels and address\n"
		 "f:1:44: services.a.backends[2]: found a mapping, expected exactly one of app, "
		 "labels and address\n"},
		{"services: {a: {backends: [{label: a=b, labels: {c: d}}]}}",
		 "f:1:27: services.a.backends[0]: found a mapping, expected exactly one of app, "
		 "labels and address\n"},
		{"services: {a: {backends: [{label: ''}, {labels: {}}, {label: }]}}",
		 "f:1:35: services.a.backends[0].label: found \"\", expected at least one label\n"
		 "f:1:49: services.a.backends[1].labels: found an empty mapping, expected at least "
		 "one label\n"
		 "f:1:62: services.a.backends[2].label: found nothing, expected at least one "
		 "label\n"},
		{"services: {a: {backends: [{address: web}, {address: '1.2.3.4:0'}]}}",
		 "f:1:37: services.a.backends[0].address: found \"web\", expected " ADDRESS
		 "\nf:1:53: services.a.backends[1].address: found \"1.2.3.4:0\", expected " ADDRESS
		 "\n"},
		{"services: {a: {backends: [{address: 0.0.0.0}, {address: 'ff02::1'}]}}",
		 "f:1:37: services.a.backends[0].address: found \"0.0.0.0\", expected a unicast "
		 "address, not the unspecified one\n"
		 "f:1:57: services.a.backends[1].address: found \"ff02::1\", expected a unicast "
		 "address, not a multicast one\n"},
		{"services: {a: {backends: [{app: x, weight: 0}, {app: y, weight: 1001}]}}",
		 "f:1:44: services.a.backends[0].weight: found \"0\", expected a whole number of 1 "
		 "to 1000\n"
		 "f:1:65: services.a.backends[1].weight: found \"1001\", expected a whole number "
		 "of "
		 "1 to 1000\n"},
		{"services: {a: {strategy: roundrobin}}",
		 "f:1:26: services.a.strategy: found \"roundrobin\", expected random, "
		 "round-robin, least-connections or maglev\n"},
		{"services: {a: {strategy: least-connections, backends: [b]}}",
		 "f:1:12: services.a: found strategy least-connections without ports, expected "
		 "ports: [...], by which its connections are counted\n"},
		{"services: {a: {wait: x}}",
		 "f:1:22: services.a.wait: found \"x\", expected " WAIT "\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

static void names_and_addresses_that_two_have(void **state)
{
	static const struct wrong cases[] = {
		{"apps:\n  web: {}\nservices:\n  web: {}\n",
		 "f:4:3: services.web: found \"web\", which an app has since line 2, expected a "
		 "name that no app and no other service has\n"},
		{"services:\n  web: {}\napps:\n  a: {name: web}\n",
		 "f:4:13: apps.a.name: found \"web\", which a service has since line 2, expected a "
		 "name that no app and no other service has\n"},
		{"services:\n  web: {}\napps:\n  web: {}\n",
		 "f:4:3: apps.web: found \"web\", which a service has since line 2, expected a "
		 "name "
		 "that no app and no other service has\n"},
		{"services:\n  web: {}\n  web: {}\n",
		 "f:3:3: services.web: found \"web\", which is there since line 2, expected each "
		 "key once\n"},
		{"apps:\n  a: {ip: 10.0.0.1}\nservices:\n  b: {ip: '10.0.0.1,fd00::1'}\n",
		 "f:4:11: services.b.ip: found \"10.0.0.1,fd00::1\", which an app has since line "
		 "2, "
		 "expected an address that no app and no other service has\n"},
		{"services:\n  b: {ip: 'fd00::1'}\napps:\n  a: {ip: '10.0.0.1,fd00:0::1'}\n",
		 "f:4:11: apps.a.ip: found \"10.0.0.1,fd00:0::1\", which a service has since line "
		 "2, expected an address that no app and no other service has\n"},
		{"services:\n  b: {ip: 10.0.0.1}\n  c: {ip: '::ffff:10.0.0.1'}\n",
		 "f:3:11: services.c.ip: found \"::ffff:10.0.0.1\", which a service has since line "
		 "2, expected an address that no app and no other service has\n"},
	};

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
}

#define WHO                                                                                 \
	"labels such as k=v,k2=v2, the name of an app or service, or an address or prefix " \
	"outside ax"

static void the_policy_and_later_sections(void **state)
{
	static const struct wrong cases[] = {
		{"policy: {rules: {allow: {}}}",
		 "f:1:17: policy.rules: found a mapping, expected a list of rules, each with "
		 "allow, deny, log or audit\n"},
		{"policy: {rules: [{allow: {}, deny: {}}, {}, ~, x]}",
		 "f:1:18: policy.rules[0]: found a mapping, expected one of allow, deny, log and "
		 "audit in each rule, and all else behind it, as in deny: {name: NAME, from: "
		 "WHO}\n"
		 "f:1:41: policy.rules[1]: found an empty mapping, expected a mapping with allow, "
		 "deny, log or audit\n"
		 "f:1:45: policy.rules[2]: found \"~\", expected a mapping with allow, deny, log "
		 "or "
		 "audit\n"
		 "f:1:48: policy.rules[3]: found \"x\", expected a mapping of allow, deny, log, "
		 "audit\n"},
		{"policy: {rules: [{alow: {}}, {deny: {form: a=b}}, {deny: all}]}",
		 "f:1:19: policy.rules[0].alow: found unknown key \"alow\", expected one of allow, "
		 "deny, log, audit; did you mean \"allow\"?\n"
		 "f:1:38: policy.rules[1].deny.form: found unknown key \"form\", expected one of "
		 "from, to, port, ports, protocol, name, audit; did you mean \"from\"?\n"
		 "f:1:58: policy.rules[2].deny: found \"all\", expected a mapping of from, to, "
		 "port, "
		 "ports, protocol, name, audit\n"},
		{"policy: {rules: [{allow: {from: '*'}}, {deny: {to: []}}, {deny: {from: [[]]}}]}",
		 "f:1:33: policy.rules[0].allow.from: found \"*\", expected " WHO "\n"
		 "f:1:52: policy.rules[1].deny.to: found an empty list, expected at least one "
		 "of: " WHO "\n"
		 "f:1:73: policy.rules[2].deny.from[0]: found an empty list, expected " WHO "\n"},
		{"policy: {rules: [{deny: {to: 127.0.0.0/8}}, {deny: {to: '::1'}}]}",
		 "f:1:30: policy.rules[0].deny.to: found \"127.0.0.0/8\", expected an address "
		 "outside ax, and not a loopback address: those are never asked about\n"
		 "f:1:57: policy.rules[1].deny.to: found \"::1\", expected an address outside ax, "
		 "and not a loopback address: those are never asked about\n"},
		{"policy: {rules: [{deny: {from: 192.0.2.1/24}}, {deny: {port: 0}}, {deny: {port: "
		 "9-8}}, {deny: {protocol: sctp}}, {deny: {protocol: icmp, port: 1}}]}",
		 "f:1:32: policy.rules[0].deny.from: found \"192.0.2.1/24\", expected a prefix "
		 "without host bits: 192.0.2.0/24\n"
		 "f:1:62: policy.rules[1].deny.port: found \"0\", expected a port of 1 to 65535 or "
		 "a "
		 "range such as 8000-8099\n"
		 "f:1:81: policy.rules[2].deny.port: found \"9-8\", expected a port of 1 to 65535 "
		 "or "
		 "a range such as 8000-8099\n"
		 "f:1:106: policy.rules[3].deny.protocol: found \"sctp\", expected tcp, udp or "
		 "icmp\n"
		 "f:1:121: policy.rules[4].deny: found a mapping, expected no port in a rule of "
		 "icmp "
		 "alone\n"},
	};
	autofree char *text = malloc(64 * AX_RULES_MAX);
	char *p = stpcpy(text, "policy:\n  rules:\n");

	(void)state;
	assert_all(cases, ARRAY_SIZE(cases));
	for (int i = 0; i < AX_RULES_MAX + 2; i++)
		p = stpcpy(p, "  - allow: {from: a=b}\n");
	assert_errors(text, "f:1027:5: policy.rules[1024]: found a mapping, expected at most 1024 "
			    "items in this list\n");
	p = stpcpy(text, "policy:\n  rules:\n");
	for (int i = 0; i < AX_RULES_MAX / 2 + 1; i++)
		p = stpcpy(p, "  - deny: {ports: [1, 3]}\n");
	assert_errors(text, "f:1:1: found policy.rules, expected at most 1024 ports and ranges of "
			    "all rules together\n");
}

static void too_many_labels(void **state)
{
	char text[8192], *p = stpcpy(text, "policy: {labels: {");

	(void)state;
	for (int i = 0; i < 257; i++)
		p += sprintf(p, "k%d: v, ", i);
	strcpy(p, "}}");
	assert_errors(text,
		      "f:1:18: policy.labels: found a mapping, expected at most 256 labels\n");
}

static void assert_good(const char *text)
{
	struct config_errors errs;
	struct config c;

	if (config_parse(text, strlen(text), &c, &errs))
		fail_msg("%s: expected %s", text, errs.n ? errs.e[0].expected : "?");
	config_free(&c);
}

static void too_many_labels_of_all_apps(void **state)
{
	autofree char *text = malloc(300 * 64);
	char *p = stpcpy(text, "apps:\n"), error[256];

	(void)state;
	/* zone=default is one, too, and the same one twice is one */
	for (int i = 0; i < 300; i++)
		p += sprintf(p, "  a%d: {labels: 'all=same,k=v%d'}\n", i, i < 254 ? i : 0);
	assert_good(text);
	sprintf(p, "  last: {labels: k=one-more}\n");
	snprintf(error, sizeof(error),
		 "f:302:3: found \"last\", expected at most 256 different labels of all apps "
		 "together (this one has the 257th)\n");
	assert_errors(text, error);
}

static void more_apps_than_addresses(void **state)
{
	static const struct wrong cases[] = {
		/* what is given is given first, whoever stands first in the file */
		{"agent: {pool: {ipv4: 10.0.0.0/29}}\n"
		 "apps: {a: {}, b: {}, c: {}, d: {ip: 10.0.0.2}, e: {ip: 10.0.0.3}, f: {}}\n",
		 "f:2:67: found \"f\", expected no more apps and services than agent.pool.ipv4 has "
		 "addresses for: 5\n"},
		{"agent: {pool: {ipv4: 10.0.0.0/29}}\n"
		 "apps: {a: {}, b: {}, c: {}, d: {}}\n"
		 "services: {s: {backends: [{app: a}]}, t: {backends: [{app: a}]}}\n",
		 "f:3:39: found \"t\", expected no more apps and services than agent.pool.ipv4 has "
		 "addresses for: 5\n"},
	};

	(void)state;
	assert_good(
		"agent: {pool: {ipv4: 10.0.0.0/29}}\n"
		"apps: {a: {}, b: {}, c: {ip: 10.1.0.1}, d: {ip: 10.0.0.2}, e: {ip: 10.0.0.2}}\n"
		"services: {s: {backends: [{app: a}]}, t: {backends: [{app: a}]}}\n");
	assert_all(cases, ARRAY_SIZE(cases));
}

static void all_errors_come_at_once_and_in_order(void **state)
{
	(void)state;
	/* the name's error is found after the reader has been through the entry */
	assert_errors(
		"services:\n"
		"  web:\n"
		"    wait: x\n"
		"apps:\n"
		"  web:\n"
		"    egress: 7\n"
		"agent:\n"
		"  dns: 1\n",
		"f:3:11: services.web.wait: found \"x\", expected " WAIT
		"\nf:5:3: apps.web: found \"web\", which a service has since line 2, expected "
		"a name that no app and no other service has\n"
		"f:6:13: apps.web.egress: found \"7\", expected " EGRESS "\n"
		"f:8:8: agent.dns: found \"1\", expected a mapping of enabled, domain, "
		"upstreams, forward, keep\n");
}

static void a_flood_of_errors_is_cut_off(void **state)
{
	autofree char *text = malloc(20 * 5000);
	struct config_errors errs;
	struct config c;
	char *p = text;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < 5000; i++)
		p += sprintf(p, "key%d: 1\n", i);
	assert_int_equal(config_parse(text, strlen(text), &c, &errs), -EINVAL);
	assert_int_equal(errs.n, 1000);
	assert_int_equal(errs.e[999].line, 1000);
	config_errors_free(&errs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_yaml),
		cmocka_unit_test(what_is_no_text),
		cmocka_unit_test(aliases_are_bounded),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(unknown_and_double_keys),
		cmocka_unit_test(the_agent_section),
		cmocka_unit_test(the_apps_section),
		cmocka_unit_test(what_apps_are_given),
		cmocka_unit_test(addresses_that_nobody_can_have),
		cmocka_unit_test(the_services_section),
		cmocka_unit_test(names_and_addresses_that_two_have),
		cmocka_unit_test(the_policy_and_later_sections),
		cmocka_unit_test(too_many_labels),
		cmocka_unit_test(too_many_labels_of_all_apps),
		cmocka_unit_test(more_apps_than_addresses),
		cmocka_unit_test(all_errors_come_at_once_and_in_order),
		cmocka_unit_test(a_flood_of_errors_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
