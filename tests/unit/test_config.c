// SPDX-License-Identifier: GPL-2.0-or-later
/* What the config file says arrives in the struct; what is wrong is in test_config_errors.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include "config/strategy.h"
#include "config/config.h"
#include "config/parse.h"
#include "service.h"

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

static void assert_addr(const struct ax_addr *a, const char *expected)
{
	char buf[ADDR_STRLEN];

	assert_string_equal(addr_format(a, buf), expected);
}

static void assert_labels(const struct labels *l, const char *expected)
{
	autofree char *s = labels_format(l);

	assert_string_equal(s, expected);
}

/* The words with a | after each, so that empty ones show. */
static void assert_words(const struct strv *s, const char *expected)
{
	char buf[512] = "";

	for (size_t i = 0; i < s->n; i++) {
		strcat(buf, s->v[i]);
		strcat(buf, "|");
	}
	assert_string_equal(buf, expected);
	if (s->n)
		assert_null(s->v[s->n]);
}

static void assert_is_default(const struct config *c)
{
	char buf[ADDR_STRLEN];

	assert_null(c->socket);
	assert_string_equal(prefix_format(&c->pool4, buf), "10.217.0.0/16");
	assert_int_equal(c->pool6.len, 0);
	assert_true(c->dns);
	assert_string_equal(c->dns_domain, "ax.internal");
	assert_int_equal(c->n_dns_upstreams, 0);
	assert_int_equal(c->dns_forward, DNS_FORWARD_EGRESS);
	assert_true(c->host_access);
	assert_int_equal(c->logs_size, 16 << 20);
	assert_false(c->logs_to_journal);
	assert_int_equal(c->n_apps, 0);
	assert_int_equal(c->n_services, 0);
	assert_labels(&c->default_labels, "zone=default");
	assert_int_equal(c->n_rules, 0);
}

static void an_empty_file_has_all_defaults(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"# nothing\n",
		"---\n",
		"--- # nothing\n...\n",
		"~",
		"null",
		"{}",
		"\xef\xbb\xbf# with a byte order mark\n",
		"%YAML 1.1\n---\n",
		"agent:\napps:\nservices:\npolicy:\nxdp:\nprobes:\n",
		"agent: {}\napps: {}\nservices: {}\npolicy: {}\nxdp: {}\nprobes: []\n",
		"agent: {pool: , dns: }\npolicy: {labels: , rules: }\nprobes: ~\n",
		"xdp: {interfaces: , triggers: {}, sets: , balancers: {}}\n",
		"agent:\r\n  dns:\r\n    upstreams: []\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct config c = parse(texts[i]);

		assert_is_default(&c);
		config_free(&c);
	}
}

static void the_agent_section_is_read(void **state)
{
	struct config c =
		parse("agent:\n"
		      "  socket: /run/x.sock\n"
		      "  pool:\n"
		      "    ipv4: 10.0.0.0/8\n"
		      "    ipv6: fd61:78::/64\n"
		      "  dns:\n"
		      "    enabled: off\n"
		      "    domain: Example.COM.\n"
		      "    upstreams: [127.0.0.53, '1.1.1.1:5353', fd00::1, '[fd00::2]:54']\n"
		      "    forward: all\n"
		      "  host_access: No\n"
		      "  logs: {size: 3M, to: journal}\n");
	static const struct {
		const char *addr;
		unsigned port;
	} upstreams[] = {{"127.0.0.53", 53}, {"1.1.1.1", 5353}, {"fd00::1", 53}, {"fd00::2", 54}};
	char buf[ADDR_STRLEN];

	(void)state;
	assert_string_equal(c.socket, "/run/x.sock");
	assert_string_equal(prefix_format(&c.pool4, buf), "10.0.0.0/8");
	assert_string_equal(prefix_format(&c.pool6, buf), "fd61:78::/64");
	assert_false(c.dns);
	assert_string_equal(c.dns_domain, "example.com");
	assert_int_equal(c.n_dns_upstreams, ARRAY_SIZE(upstreams));
	for (size_t i = 0; i < ARRAY_SIZE(upstreams); i++) {
		assert_addr(&c.dns_upstreams[i], upstreams[i].addr);
		assert_int_equal(ntohs(c.dns_upstream_ports_be[i]), upstreams[i].port);
	}
	assert_int_equal(c.dns_forward, DNS_FORWARD_ALL);
	assert_false(c.host_access);
	assert_int_equal(c.logs_size, 3 << 20);
	assert_true(c.logs_to_journal);
	config_free(&c);
}

static void sizes_of_logs(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} cases[] = {
		{"262144", 256 << 10}, {"256K", 256 << 10},	 {"16M", 16 << 20},
		{"3G", 3ull << 30},    {"1024G", 1024ull << 30}, {"1099511627776", 1024ull << 30},
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config c;

		snprintf(text, sizeof(text), "agent: {logs: {size: %s}}", cases[i].text);
		c = parse(text);
		assert_int_equal(c.logs_size, cases[i].size);
		config_free(&c);
	}
}

static void every_word_for_true_and_false_is_known(void **state)
{
	static const char *const words[][2] = {{"false", "true"},
					       {"no", "yes"},
					       {"off", "on"},
					       {"FALSE", "True"},
					       {"\"no\"", "'yes'"}};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (int value = 0; value < 2; value++) {
			struct config c;

			snprintf(text, sizeof(text), "agent: {host_access: %s}", words[i][value]);
			c = parse(text);
			assert_int_equal(c.host_access, value);
			config_free(&c);
		}
	}
}

static const char whole_app[] = "apps:\n"
				"  front:\n"
				"    name: web\n"
				"    command: [nginx, -g, daemon off;, '', 10]\n"
				"    ip: fd00::5,1.2.3.4\n"
				"    labels: {zone: eu, tier: }\n"
				"    user: www-data\n"
				"    net: host\n"
				"    env: {A: b=c, EMPTY: , N: 1}\n"
				"    directory: /srv/my www\n"
				"    wait: 300ms\n"
				"    egress: true\n"
				"    restart: on-failure\n"
				"    splice: forced\n"
				"    expose: [\"8080:80\", \"[::1]:53:53/udp\"]\n"
				"  db:\n";

static void an_app_is_read(void **state)
{
	struct config c = parse(whole_app);
	const struct app_spec *s = &c.apps[0].spec;

	(void)state;
	assert_int_equal(c.n_apps, 2);
	assert_string_equal(c.apps[0].key, "front");
	assert_string_equal(s->name, "web");
	assert_words(&s->command, "nginx|-g|daemon off;||10|");
	assert_addr(&s->ip4, "1.2.3.4");
	assert_addr(&s->ip6, "fd00::5");
	assert_labels(&s->labels, "tier=,zone=eu");
	assert_string_equal(s->user, "www-data");
	assert_int_equal(s->net, NET_HOST);
	assert_words(&s->env, "A=b=c|EMPTY=|N=1|");
	assert_string_equal(s->directory, "/srv/my www");
	assert_int_equal(s->wait_ms, 300);
	assert_int_equal(s->egress.mode, EGRESS_ALL);
	assert_false(s->detach);
	assert_int_equal(s->restart, RESTART_ON_FAILURE);
	assert_int_equal(s->splice, SPLICE_FORCED);
	assert_int_equal(s->expose.n, 2);
	assert_int_equal(s->expose.v[0].host_port, 8080);
	assert_int_equal(s->expose.v[1].proto, IPPROTO_UDP);

	s = &c.apps[1].spec; /* only declared: defaults */
	assert_string_equal(c.apps[1].key, "db");
	assert_string_equal(s->name, "db");
	assert_int_equal(s->command.n, 0);
	assert_true(addr_is_zero(&s->ip4));
	assert_true(addr_is_zero(&s->ip6));
	assert_int_equal(s->labels.n, 0);
	assert_null(s->user);
	assert_int_equal(s->net, NET_PRIVATE);
	assert_int_equal(s->env.n, 0);
	assert_null(s->directory);
	assert_int_equal(s->wait_ms, 0);
	assert_int_equal(s->egress.mode, EGRESS_DEFAULT);
	assert_int_equal(s->restart, RESTART_NO);
	assert_int_equal(s->splice, SPLICE_AUTO);
	config_free(&c);
}

static void other_ways_to_write_an_app(void **state)
{
	struct config c =
		parse("apps:\n"
		      "  a: {env: [A=1, 'B=', 'C=x y=z'], labels: 'b=2,a=1', restart: no}\n"
		      "  b: {wait: 5, restart: always, net: private, user: 1000}\n"
		      "  c: {wait: 2m, ip: 10.0.0.1, restart: 'no'}\n"
		      "  d: {wait: 24m, ip: '[fd00::1]'}\n"
		      "  e: {wait: 0, name: a, ip: 10.0.0.1}\n"
		      "  f: {command: x, start: on-connect, idle: 5m, name: f}\n"
		      "  g: {command: x, start: now}\n");

	(void)state;
	assert_false(c.apps[0].on_connect);
	assert_true(c.apps[5].on_connect);
	assert_int_equal(c.apps[5].idle_ms, 300000);
	assert_false(c.apps[6].on_connect);
	assert_int_equal(c.apps[6].idle_ms, 0);
	assert_words(&c.apps[0].spec.env, "A=1|B=|C=x y=z|");
	assert_labels(&c.apps[0].spec.labels, "a=1,b=2");
	assert_int_equal(c.apps[0].spec.restart, RESTART_NO);
	assert_int_equal(c.apps[1].spec.wait_ms, 5000);
	assert_int_equal(c.apps[1].spec.restart, RESTART_ALWAYS);
	assert_string_equal(c.apps[1].spec.user, "1000");
	assert_int_equal(c.apps[2].spec.wait_ms, 120000);
	assert_addr(&c.apps[2].spec.ip4, "10.0.0.1");
	assert_int_equal(c.apps[2].spec.restart, RESTART_NO);
	assert_addr(&c.apps[3].spec.ip6, "fd00::1");
	assert_true(addr_is_zero(&c.apps[3].spec.ip4));
	/* apps that share a name or an address form a service */
	assert_string_equal(c.apps[4].spec.name, "a");
	assert_addr(&c.apps[4].spec.ip4, "10.0.0.1");
	config_free(&c);
}

static void a_command_is_split_as_by_a_shell(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"nginx", "nginx|"},
		{"  nginx   -g  'daemon off;'  ", "nginx|-g|daemon off;|"},
		{"a \"b c\"d'e f' ''", "a|b cde f||"},
		{"a \\\"b\\ c\\'", "a|\"b c'|"},
		{"a 'x\\y' \"x\\y\" \"x\\\"y\" \"\\$\\`\\\\\" x\\y", "a|x\\y|x\\y|x\"y|$`\\|xy|"},
		{"echo $HOME ~ * | cat > x # y", "echo|$HOME|~|*|||cat|>|x|#|y|"},
		{"a\tb\nc", "a|b|c|"},
		{"a \"it's\" 'say \"x\"'", "a|it's|say \"x\"|"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256], *p = text;
		struct config c;

		p = stpcpy(p, "apps: {a: {command: \"");
		for (const char *s = cases[i].text; *s; s++) {
			if (*s == '"' || *s == '\\')
				*p++ = '\\';
			if (*s == '\n' || *s == '\t') {
				*p++ = '\\';
				*p++ = *s == '\n' ? 'n' : 't';
			} else {
				*p++ = *s;
			}
		}
		strcpy(p, "\"}}");
		c = parse(text);
		assert_words(&c.apps[0].spec.command, cases[i].words);
		config_free(&c);
	}
}

static const char whole_service[] = "services:\n"
				    "  api:\n"
				    "    ip: 10.0.0.9,fd00::9\n"
				    "    ports:\n"
				    "      - 80\n"
				    "      - 443:8443\n"
				    "      - \"53:5353/udp\"\n"
				    "      - 53/tcp\n"
				    "      - {port: 9000}\n"
				    "      - {port: 9000, target: 9001, protocol: udp}\n"
				    "    backends:\n"
				    "      - web\n"
				    "      - {app: db, weight: 1000}\n"
				    "      - {label: zone=eu}\n"
				    "      - {labels: {tier: front, zone: us}, weight: 2}\n"
				    "      - {address: 127.0.0.1}\n"
				    "      - {address: 'fd00::7'}\n"
				    "      - {address: '[fd00::7]:81'}\n"
				    "      - {address: 192.0.2.1:82}\n"
				    "    strategy: round-robin\n"
				    "    wait: 5s\n"
				    "    drain: 30s\n"
				    "  empty:\n";

static void a_service_is_read(void **state)
{
	static const struct service_port ports[] = {
		{80, 80, IPPROTO_TCP}, {443, 8443, IPPROTO_TCP},  {53, 5353, IPPROTO_UDP},
		{53, 53, IPPROTO_TCP}, {9000, 9000, IPPROTO_TCP}, {9000, 9001, IPPROTO_UDP}};
	static const struct {
		const char *app, *labels, *address;
		unsigned port, weight;
	} backends[] = {{"web", "", "::", 0, 1},       {"db", "", "::", 0, 1000},
			{NULL, "zone=eu", "::", 0, 1}, {NULL, "tier=front,zone=us", "::", 0, 2},
			{NULL, "", "127.0.0.1", 0, 1}, {NULL, "", "fd00::7", 0, 1},
			{NULL, "", "fd00::7", 81, 1},  {NULL, "", "192.0.2.1", 82, 1}};
	struct config c = parse(whole_service);
	const struct config_service *s = &c.services[0];

	(void)state;
	assert_int_equal(c.n_services, 2);
	assert_string_equal(s->name, "api");
	assert_addr(&s->ip4, "10.0.0.9");
	assert_addr(&s->ip6, "fd00::9");
	assert_int_equal(s->n_ports, ARRAY_SIZE(ports));
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		assert_int_equal(s->ports[i].port, ports[i].port);
		assert_int_equal(s->ports[i].target, ports[i].target);
		assert_int_equal(s->ports[i].proto, ports[i].proto);
	}
	assert_int_equal(s->n_backends, ARRAY_SIZE(backends));
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
		if (backends[i].app)
			assert_string_equal(s->backends[i].app, backends[i].app);
		else
			assert_null(s->backends[i].app);
		assert_labels(&s->backends[i].labels, backends[i].labels);
		assert_addr(&s->backends[i].address, backends[i].address);
		assert_int_equal(s->backends[i].port, backends[i].port);
		assert_int_equal(s->backends[i].weight, backends[i].weight);
	}
	assert_int_equal(s->strategy, AX_STRATEGY_ROUND_ROBIN);
	assert_int_equal(s->wait_ms, 5000);
	assert_int_equal(s->drain_ms, 30000);

	s = &c.services[1];
	assert_string_equal(s->name, "empty");
	assert_true(addr_is_zero(&s->ip4));
	assert_int_equal(s->n_ports, 0);
	assert_int_equal(s->n_backends, 0);
	assert_int_equal(s->strategy, AX_STRATEGY_RANDOM);
	assert_int_equal(s->wait_ms, 0);
	config_free(&c);
}

static void every_strategy_is_read(void **state)
{
	char text[128], list[128];

	(void)state;
	strategy_list(list, sizeof(list));
	for (uint32_t i = 0; i < AX_STRATEGIES; i++) {
		struct config c;

		snprintf(text, sizeof(text), "services: {a: {ports: [80], strategy: %s}}\n",
			 strategy_name(i));
		c = parse(text);
		assert_int_equal(c.services[0].strategy, i);
		assert_non_null(strstr(list, strategy_name(i)));
		config_free(&c);
	}
	assert_string_equal(strategy_name(AX_STRATEGIES), "?");
}

static void the_policy_is_read(void **state)
{
	struct config c = parse("policy:\n"
				"  labels: {zone: eu, tier: x}\n"
				"  rules:\n"
				"    - allow: {from: {role: admin}, to: 'zone=eu,tier=db'}\n"
				"    - deny:\n"
				"        to: tier=db\n"
				"    - deny: {from: {}}\n"
				"    - allow:\n");

	(void)state;
	assert_labels(&c.default_labels, "tier=x,zone=eu");
	assert_int_equal(c.n_rules, 4);
	assert_int_equal(c.rules[0].action, RULE_ALLOW);
	assert_int_equal(c.rules[0].from.n, 1);
	assert_labels(&c.rules[0].from.v[0].labels, "role=admin");
	assert_labels(&c.rules[0].to.v[0].labels, "tier=db,zone=eu");
	assert_int_equal(c.rules[1].action, RULE_DENY);
	assert_int_equal(c.rules[1].from.n, 0);
	assert_labels(&c.rules[1].to.v[0].labels, "tier=db");
	assert_int_equal(c.rules[2].action, RULE_DENY);
	assert_int_equal(c.rules[2].from.n, 0);
	assert_int_equal(c.rules[3].action, RULE_ALLOW);
	config_free(&c);
	c = parse("policy: {labels: {}}"); /* said, and empty */
	assert_labels(&c.default_labels, "");
	config_free(&c);
}

static void rules_name_more_than_labels(void **state)
{
	static const struct {
		const char *rule, *text;
	} cases[] = {
		{"deny: {from: web, to: [db, tier=back, {k: v, l: w}], port: 80}",
		 "deny web -> db or tier=back or k=v,l=w port 80"},
		{"allow: {to: [192.0.2.0/24, '2001:db8::1'], ports: [443, 8000-8099], protocol: "
		 "tcp}",
		 "allow any app -> 192.0.2.0/24 or 2001:db8::1/128 port 443,8000-8099 tcp"},
		{"log: {from: 10.0.0.1, protocol: [udp, icmp]}",
		 "log 10.0.0.1/32 -> any app udp,icmp"},
		{"audit: {from: shop, name: trial}", "deny shop -> any app"},
		{"deny: {audit: true}", "deny any app -> any app"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config c, same;
		autofree char *got = NULL;

		snprintf(text, sizeof(text),
			 "services: {shop: {ports: [80], backends: [front, {address: "
			 "192.0.2.7}]}}\npolicy: {rules: [{%s}]}\n",
			 cases[i].rule);
		c = parse(text);
		same = parse(text);
		got = config_rule_text(&c.rules[0]);
		assert_string_equal(got, cases[i].text);
		assert_true(config_rule_eq(&c.rules[0], &same.rules[0]));
		assert_int_equal(c.rules[0].audit, i >= 3);
		if (i == 3) { /* those who serve it */
			assert_int_equal(c.rules[0].from.n, 3);
			assert_string_equal(c.rules[0].from.v[1].name, "front");
			assert_string_equal(c.rules[0].name, "trial");
			same.rules[0].from.v[1].name[0] = 'F';
			assert_false(config_rule_eq(&c.rules[0], &same.rules[0]));
		}
		config_free(&c);
		config_free(&same);
	}
}

static void aliases_stand_for_their_anchors(void **state)
{
	struct config c =
		parse("apps:\n"
		      "  a: &a {labels: &l {zone: eu}, command: &c [x, &arg y], env: [A=1]}\n"
		      "  b: {labels: *l, command: *c}\n"
		      "  c: {command: [z, *arg], user: &arg root}\n"
		      "  d: {user: *arg}\n"
		      "  e: *a\n");

	(void)state;
	assert_labels(&c.apps[1].spec.labels, "zone=eu");
	assert_words(&c.apps[1].spec.command, "x|y|");
	assert_words(&c.apps[2].spec.command, "z|y|");
	assert_string_equal(c.apps[3].spec.user, "root"); /* the later anchor of that name */
	assert_words(&c.apps[4].spec.env, "A=1|");
	assert_string_equal(c.apps[4].spec.name, "e");
	config_free(&c);
}

static void copies_are_equal_until_changed(void **state)
{
	struct config c = parse(whole_app), d = parse(whole_service);
	struct config_service service;
	struct app_spec app;

	(void)state;
	assert_int_equal(app_spec_copy(&c.apps[0].spec, &app), 0);
	assert_true(app_spec_eq(&c.apps[0].spec, &app));
	assert_false(app_spec_eq(&c.apps[1].spec, &app));
	config_free(&c); /* the copy shares nothing */
	assert_string_equal(app.name, "web");

	assert_int_equal(config_service_copy(&d.services[0], &service), 0);
	assert_true(config_service_eq(&d.services[0], &service));
	assert_false(config_service_eq(&d.services[1], &service));
	service.ports[5].target++;
	assert_false(config_service_eq(&d.services[0], &service));
	service.ports[5].target--;
	service.backends[7].weight++;
	assert_false(config_service_eq(&d.services[0], &service));
	service.backends[7].weight--;
	assert_true(config_service_eq(&d.services[0], &service));
	config_free(&d);
	assert_string_equal(service.backends[1].app, "db");
	app_spec_free(&app);
	config_service_free(&service);
}

/* Every field counts in a comparison: a forgotten one would be a change that is not applied. */
static void a_change_of_any_field_is_seen(void **state)
{
	static const char *const apps[] = {"{name: x}",	      "{ip: 1.2.3.4}",
					   "{ip: fd00::1}",   "{labels: a=b}",
					   "{user: x}",	      "{net: host}",
					   "{env: [A=b]}",    "{command: x}",
					   "{directory: /}",  "{wait: 1}",
					   "{egress: on}",    "{restart: always}",
					   "{splice: on}",    "{splice-emulation: yes}",
					   "{memory: 1M}",    "{cpus: 1}",
					   "{pids: 1}",	      "{volumes: [/a:/b]}",
					   "{read-only: on}", "{expose: [\"1:1\"]}"};
	static const char *const services[] = {"{ip: 1.2.3.4}",
					       "{ip: fd00::1}",
					       "{ports: [1]}",
					       "{ports: [2]}",
					       "{ports: ['1:2']}",
					       "{ports: [1/udp]}",
					       "{ports: [1, 2]}",
					       "{backends: [x]}",
					       "{backends: [y]}",
					       "{backends: [{label: a=b}]}",
					       "{wait: 1}",
					       "{backends: [{address: 1.2.3.4}]}",
					       "{backends: [x, y]}",
					       "{backends: [{address: '1.2.3.4:5'}]}",
					       "{strategy: round-robin}",
					       "{backends: [{app: x, weight: 2}]}"};
	char text[2048], *p = stpcpy(text, "apps:\n  same: {}\n  same2: {name: same}\n");
	struct config c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(apps); i++)
		p += sprintf(p, "  same-%zu: %s\n", i, apps[i]);
	strcpy(p, "services:\n");
	c = parse(text);
	assert_true(app_spec_eq(&c.apps[0].spec, &c.apps[1].spec));
	for (size_t i = 2; i < c.n_apps; i++) {
		if (i > 2) { /* the first of them differs by its name alone */
			free(c.apps[i].spec.name);
			c.apps[i].spec.name = strdup("same");
		}
		assert_false(app_spec_eq(&c.apps[0].spec, &c.apps[i].spec));
		assert_true(app_spec_eq(&c.apps[i].spec, &c.apps[i].spec));
	}
	config_free(&c);

	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(services); j++) {
			struct config a, b;

			snprintf(text, sizeof(text), "services: {s: %s}", services[i]);
			a = parse(text);
			snprintf(text, sizeof(text), "services: {s: %s}", services[j]);
			b = parse(text);
			assert_int_equal(config_service_eq(&a.services[0], &b.services[0]), i == j);
			config_free(&a);
			config_free(&b);
		}
	}
}

static void strings_are_collected(void **state)
{
	struct strv a = {0}, b;

	(void)state;
	assert_int_equal(strv_copy(&a, &b), 0);
	assert_true(strv_eq(&a, &b));
	for (int i = 0; i < 100; i++)
		assert_int_equal(strv_add(&a, i % 2 ? "x" : ""), 0);
	assert_int_equal(a.n, 100);
	assert_null(a.v[100]);
	assert_false(strv_eq(&a, &b));
	assert_int_equal(strv_copy(&a, &b), 0);
	assert_true(strv_eq(&a, &b));
	strcpy(a.v[99], "y");
	assert_false(strv_eq(&a, &b));
	strv_free(&a);
	strv_free(&b);
	assert_null(a.v);
}

/* Whether what follows a comment's sign is a key or an item of a list. */
static bool is_yaml(const char *s)
{
	size_t key;

	s += strspn(s, " ");
	key = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return starts_with(s, "- ") || (key && s[key] == ':' && strchr(" \n", s[key + 1]));
}

/* Takes the sign away from the examples that are commented out. */
static void uncomment(char *text)
{
	char *to = text, *line = text;

	while (*line) {
		char *next = strchrnul(line, '\n'), *sign = line + strspn(line, " ");

		if (*next)
			next++;
		if (starts_with(sign, "# ") && is_yaml(sign + 2)) {
			memmove(to, line, (size_t)(sign - line));
			to += sign - line;
			line = sign + 2;
		}
		memmove(to, line, (size_t)(next - line));
		to += next - line;
		line = next;
	}
	*to = '\0';
}

/* The tests run at the top of the source tree. */
static void the_shipped_config_is_valid(void **state)
{
	autofree char *text = NULL;
	struct config c;

	(void)state;
	assert_int_equal(file_read("tools/share/ax.yaml", 1 << 20, &text), 0);
	c = parse(text);
	assert_is_default(&c);
	config_free(&c);

	uncomment(text);
	c = parse(text);
	assert_string_equal(c.socket, "/run/ax/ax.sock");
	assert_int_equal(c.pool6.len, 64);
	assert_int_equal(c.n_dns_upstreams, 2);
	assert_int_equal(c.n_rules, 2);
	assert_int_equal(c.n_apps, 2);
	assert_words(&c.apps[0].spec.command, "nginx|-g|daemon off;|");
	assert_int_equal(c.n_services, 1);
	assert_int_equal(c.services[0].n_ports, 3);
	assert_int_equal(c.services[0].n_backends, 3);
	config_free(&c);
}

static void ten_thousand_apps_and_services(void **state)
{
	enum { N = 10000 };
	autofree char *text = malloc(300 * N);
	char *p = text;
	struct config c;

	(void)state;
	assert_non_null(text);
	p = stpcpy(p, "apps:\n");
	for (int i = 0; i < N; i++)
		p += sprintf(p, "  app%d: {ip: 10.1.%d.%d, command: [sleep, %d], wait: 5s}\n", i,
			     i / 100, i % 100, i);
	p = stpcpy(p, "services:\n");
	for (int i = 0; i < N; i++)
		p += sprintf(
			p, "  svc%d: {ip: 10.2.%d.%d, ports: [80, '443:%d'], backends: [app%d]}\n",
			i, i / 100, i % 100, i + 1, i);
	c = parse(text);
	assert_int_equal(c.n_apps, N);
	assert_int_equal(c.n_services, N);
	assert_string_equal(c.apps[N - 1].spec.command.v[1], "9999");
	assert_addr(&c.apps[N - 1].spec.ip4, "10.1.99.99");
	assert_int_equal(c.services[N - 1].ports[1].target, N);
	assert_string_equal(c.services[N - 1].backends[0].app, "app9999");
	config_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_has_all_defaults),
		cmocka_unit_test(the_agent_section_is_read),
		cmocka_unit_test(sizes_of_logs),
		cmocka_unit_test(every_word_for_true_and_false_is_known),
		cmocka_unit_test(an_app_is_read),
		cmocka_unit_test(other_ways_to_write_an_app),
		cmocka_unit_test(a_command_is_split_as_by_a_shell),
		cmocka_unit_test(a_service_is_read),
		cmocka_unit_test(every_strategy_is_read),
		cmocka_unit_test(the_policy_is_read),
		cmocka_unit_test(rules_name_more_than_labels),
		cmocka_unit_test(aliases_stand_for_their_anchors),
		cmocka_unit_test(copies_are_equal_until_changed),
		cmocka_unit_test(a_change_of_any_field_is_seen),
		cmocka_unit_test(strings_are_collected),
		cmocka_unit_test(the_shipped_config_is_valid),
		cmocka_unit_test(ten_thousand_apps_and_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
