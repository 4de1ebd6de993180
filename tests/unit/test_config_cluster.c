// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section cluster:, what is wrong in it, and the one pool of apps and cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/config.h"
#include "config/parse.h"

static void parse(const char *text, struct config *c)
{
	struct config_errors errs;

	if (config_parse(text, strlen(text), c, &errs) == 0)
		return;
	config_errors_print(&errs, "f", stderr);
	fail();
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

#define WHOLE                                                                                 \
	"cluster:\n"                                                                          \
	"  name: east\n"                                                                      \
	"  etcd: [https://10.0.0.5:2379, \"https://[fd00::5]:2379\", https://etcd.example]\n" \
	"  ca: /etc/ca.pem\n  cert: /etc/cert.pem\n  key: /etc/key.pem\n"                     \
	"  node: {name: n1, address: 10.0.0.11}\n"                                            \
	"  pool: 10.50.0.0/16\n"                                                              \
	"  routes: direct\n"

static void all_of_it(void **state)
{
	char text[ADDR_STRLEN];
	struct config c;

	(void)state;
	parse(WHOLE, &c);
	assert_string_equal(c.cluster.name, "east");
	assert_int_equal(c.cluster.etcd.n, 3);
	assert_string_equal(c.cluster.etcd.v[1], "https://[fd00::5]:2379");
	assert_string_equal(c.cluster.ca, "/etc/ca.pem");
	assert_string_equal(c.cluster.cert, "/etc/cert.pem");
	assert_string_equal(c.cluster.key, "/etc/key.pem");
	assert_string_equal(c.cluster.node, "n1");
	assert_string_equal(addr_format(&c.cluster.address, text), "10.0.0.11");
	assert_string_equal(prefix_format(&c.cluster.pool, text), "10.50.0.0/16");
	assert_string_equal(prefix_format(&c.pool4, text), "10.50.0.0/16");
	assert_int_equal(c.cluster.routes, CLUSTER_ROUTES_DIRECT);
	config_free(&c);
}

static void none_and_little(void **state)
{
	char text[ADDR_STRLEN];
	struct config c;

	(void)state;
	parse("agent: {}\n", &c);
	assert_null(c.cluster.name);
	config_free(&c);
	parse("cluster:\n", &c);
	assert_null(c.cluster.name);
	config_free(&c);
	parse("cluster: {name: east, etcd: [http://127.0.0.1:2379]}\n"
	      "agent: {pool: {ipv4: 10.60.0.0/20}}\n",
	      &c);
	assert_string_equal(prefix_format(&c.cluster.pool, text), "10.60.0.0/20");
	assert_null(c.cluster.node);
	assert_true(addr_is_zero(&c.cluster.address));
	assert_int_equal(c.cluster.routes, CLUSTER_ROUTES_NONE);
	config_free(&c);
}

/* A port of its own, or the usual one; nodes that reach each other by IPv6 may have it. */
static void wireguard(void **state)
{
	struct config_cluster copy;
	char text[ADDR_STRLEN];
	struct config c;

	(void)state;
	parse("cluster: {name: e, etcd: [http://a], routes: wireguard, node: {address: "
	      "\"fd00::1\"}}\n",
	      &c);
	assert_int_equal(c.cluster.routes, CLUSTER_ROUTES_WIREGUARD);
	assert_int_equal(c.cluster.wireguard_port, 51820);
	assert_string_equal(addr_format(&c.cluster.address, text), "fd00::1");
	config_free(&c);
	parse("cluster: {name: e, etcd: [http://a], routes: wireguard, wireguard: {port: 4500}}\n",
	      &c);
	assert_int_equal(c.cluster.wireguard_port, 4500);
	assert_int_equal(config_cluster_copy(&c.cluster, &copy), 0);
	assert_true(config_cluster_eq(&c.cluster, &copy));
	copy.wireguard_port = 4501;
	assert_false(config_cluster_same_node(&c.cluster, &copy));
	config_cluster_free(&copy);
	config_free(&c);
}

/* A pool of each family, and the node's address for each. */
static void ipv6(void **state)
{
	char text[ADDR_STRLEN];
	struct config_cluster copy;
	struct config c;

	(void)state;
	parse("cluster: {name: e, etcd: [http://a], routes: direct, "
	      "pool: {ipv4: 10.50.0.0/16, ipv6: \"fd61:50::/48\"}, "
	      "node: {address: 10.0.0.11, address6: \"fd99::11\"}}\n",
	      &c);
	assert_string_equal(prefix_format(&c.pool4, text), "10.50.0.0/16");
	assert_string_equal(prefix_format(&c.pool6, text), "fd61:50::/48");
	assert_string_equal(addr_format(&c.cluster.address6, text), "fd99::11");
	assert_int_equal(config_cluster_copy(&c.cluster, &copy), 0);
	assert_true(config_cluster_eq(&c.cluster, &copy));
	copy.pool6.len++;
	assert_false(config_cluster_same_node(&c.cluster, &copy));
	copy.pool6.len--;
	copy.address6 = (struct ax_addr){0};
	assert_false(config_cluster_same_node(&c.cluster, &copy));
	config_cluster_free(&copy);
	config_free(&c);
	/* the node's own one is no cluster's */
	parse("cluster: {name: e, etcd: [http://a]}\nagent: {pool: {ipv6: \"fd61:78::/64\"}}\n",
	      &c);
	assert_int_equal(c.cluster.pool6.len, 0);
	assert_string_equal(prefix_format(&c.pool6, text), "fd61:78::/64");
	config_free(&c);
	/* and IPv4's is as without it */
	parse("cluster: {name: e, etcd: [http://a], routes: translate, "
	      "pool: {ipv6: \"fd61:50::/120\"}}\n",
	      &c);
	assert_string_equal(prefix_format(&c.cluster.pool, text), "10.217.0.0/16");
	assert_string_equal(prefix_format(&c.pool6, text), "fd61:50::/120");
	config_free(&c);
}

static void copies_and_differences(void **state)
{
	struct config_cluster copy;
	struct config c;

	(void)state;
	parse(WHOLE, &c);
	assert_int_equal(config_cluster_copy(&c.cluster, &copy), 0);
	assert_true(config_cluster_eq(&c.cluster, &copy));
	/* another way to etcd is no other node */
	free(copy.key);
	copy.key = strdup("/etc/other.pem");
	assert_false(config_cluster_eq(&c.cluster, &copy));
	assert_true(config_cluster_same_node(&c.cluster, &copy));
	/* another way between nodes is another one */
	copy.routes = CLUSTER_ROUTES_NONE;
	assert_false(config_cluster_same_node(&c.cluster, &copy));
	copy.routes = c.cluster.routes;
	free(copy.node);
	copy.node = NULL;
	assert_false(config_cluster_same_node(&c.cluster, &copy));
	config_cluster_free(&copy);
	config_free(&c);
}

#define URL  "expected a URL such as https://10.0.0.5:2379, without a path\n"
#define POOL "expected an IPv4 prefix of a length of 12 to 24, such as 10.217.0.0/16\n"

static void what_is_wrong(void **state)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{"cluster: {etcd: [http://a:1]}", "f:1:10: cluster: found a mapping, expected the "
						  "cluster's name, the same on all of "
						  "its nodes\n"},
		{"cluster: {name: east}",
		 "f:1:10: cluster: found a mapping, expected etcd: the URLs of etcd's members\n"},
		{"cluster: {name: East, etcd: [http://a:1]}",
		 "f:1:17: cluster.name: found \"East\", expected a name of 1 to 63 lower-case "
		 "letters, digits and hyphens (none at its ends)\n"},
		{"cluster: {name: e, etcd: [a:1]}", "f:1:27: cluster.etcd[0]: found \"a:1\", " URL},
		{"cluster: {name: e, etcd: [ftp://a]}",
		 "f:1:27: cluster.etcd[0]: found \"ftp://a\", " URL},
		{"cluster: {name: e, etcd: [http://]}",
		 "f:1:27: cluster.etcd[0]: found \"http://\", " URL},
		{"cluster: {name: e, etcd: [http://a/v3]}",
		 "f:1:27: cluster.etcd[0]: found \"http://a/v3\", " URL},
		{"cluster: {name: e, etcd: [\"http://a:0\"]}",
		 "f:1:27: cluster.etcd[0]: found \"http://a:0\", " URL},
		{"cluster: {name: e, etcd: [\"http://u:p@a:1\"]}",
		 "f:1:27: cluster.etcd[0]: found \"http://u:p@a:1\", " URL},
		{"cluster: {name: e, etcd: [\"http://[fd00::1\"]}",
		 "f:1:27: cluster.etcd[0]: found \"http://[fd00::1\", " URL},
		{"cluster: {name: e, etcd: [\"http://[x]:1\"]}",
		 "f:1:27: cluster.etcd[0]: found \"http://[x]:1\", " URL},
		{"cluster: {name: e, etcd: [http://a, http://a]}",
		 "f:1:37: cluster.etcd[1]: found \"http://a\", expected each member of etcd "
		 "once\n"},
		{"cluster: {name: e, etcd: [https://a], cert: /c}",
		 "f:1:10: cluster: found a mapping, expected cert and key together, or none of the "
		 "two\n"},
		{"cluster: {name: e, etcd: [https://a, http://b], ca: /c}",
		 "f:1:10: cluster: found a mapping, expected only https URLs where there is a ca "
		 "or "
		 "a cert\n"},
		{"cluster: {name: e, etcd: [https://a], ca: c}",
		 "f:1:43: cluster.ca: found \"c\", expected an absolute path\n"},
		{"cluster: {name: e, etcd: [http://a], node: {address: 127.0.0.1}}",
		 "f:1:54: cluster.node.address: found \"127.0.0.1\", expected a unicast address, "
		 "not a loopback one\n"},
		{"cluster: {name: e, etcd: [http://a], node: {address: n1}}",
		 "f:1:54: cluster.node.address: found \"n1\", expected this node's address, by "
		 "which "
		 "the others reach it\n"},
		{"cluster: {name: e, etcd: [http://a], pool: 10.0.0.0/8}",
		 "f:1:44: cluster.pool: found \"10.0.0.0/8\", " POOL},
		{"cluster: {name: e, etcd: [http://a], pool: 10.1.2.0/16}",
		 "f:1:44: cluster.pool: found \"10.1.2.0/16\", expected a prefix without host "
		 "bits: "
		 "10.1.0.0/16\n"},
		{"cluster: {name: e, etcd: [http://a], pool: \"fd00::/112\"}",
		 "f:1:44: cluster.pool: found \"fd00::/112\", " POOL},
		{"cluster: {name: e, etcd: [http://a], pool: {ipv6: \"fd00::/32\"}}",
		 "f:1:51: cluster.pool.ipv6: found \"fd00::/32\", expected a length of 48 to "
		 "120\n"},
		{"cluster: {name: e, etcd: [http://a], pool: {ipv6: \"fd00::/48\"}}\n"
		 "agent: {pool: {ipv6: \"fd01::/48\"}}\n",
		 "f:1:1: found a mapping, expected cluster.pool or agent.pool.ipv6, and not two "
		 "pools\n"},
		{"cluster: {name: e, etcd: [http://a], node: {address6: 10.0.0.1}}",
		 "f:1:55: cluster.node.address6: found \"10.0.0.1\", expected this node's IPv6 "
		 "address: IPv4's is cluster.node.address\n"},
		{"cluster: {name: e, etcd: [http://a], routes: bgp}",
		 "f:1:46: cluster.routes: found \"bgp\", expected none, direct, translate or "
		 "wireguard\n"},
		{"cluster: {name: e, etcd: [http://a], wireguard: {port: 0}}",
		 "f:1:56: cluster.wireguard.port: found \"0\", expected a UDP port of this node, 1 "
		 "to 65535\n"},
		{"cluster: {name: e, etcd: [http://a], wireguard: {key: x}}",
		 "f:1:50: cluster.wireguard.key: found unknown key \"key\", expected one of "
		 "port\n"},
		{"cluster: {name: e, etcd: [http://a], routes: direct, node: {address: "
		 "\"fd00::1\"}}",
		 "f:1:10: cluster: found a mapping, expected an IPv4 address of the node where "
		 "routes "
		 "are direct or translate\n"},
		{"cluster: {name: e, etcd: [http://a], pool: 10.1.0.0/16}\n"
		 "agent: {pool: {ipv4: 10.2.0.0/16}}\n",
		 "f:1:1: found a mapping, expected cluster.pool or agent.pool.ipv4, and not two "
		 "pools\n"},
		{"cluster: {name: e, etcd: [http://a]}\nagent: {pool: {ipv4: 10.2.0.0/28}}\n",
		 "f:1:1: found a mapping, expected agent.pool.ipv4 of a length of 12 to 24, or "
		 "cluster.pool: the nodes share it\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_errors(cases[i].text, cases[i].errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it),
		cmocka_unit_test(none_and_little),
		cmocka_unit_test(wireguard),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(copies_and_differences),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
