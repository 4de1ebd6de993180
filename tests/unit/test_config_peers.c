// SPDX-License-Identifier: GPL-2.0-or-later
/* Other clusters in the config: cluster.peers and cluster.export, and who of theirs rules and
 * services name. */
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

#define EAST "cluster: {name: east, etcd: [http://a], pool: 10.1.0.0/16, routes: direct, "
#define WEST "{name: west, etcd: [http://b], pool: 10.2.0.0/16}"

static void all_of_it(void **state)
{
	struct config_cluster copy;
	char text[ADDR_STRLEN];
	struct config c;

	(void)state;
	parse(EAST "export: [web, db], peers: [" WEST ", {name: north, etcd: [https://c, "
		   "https://d], "
		   "pool: 10.3.0.0/20, ca: /ca, cert: /cert, key: /key}]}",
	      &c);
	assert_int_equal(c.cluster.n_peers, 2);
	assert_string_equal(c.cluster.peers[0].name, "west");
	assert_string_equal(prefix_format(&c.cluster.peers[0].pool, text), "10.2.0.0/16");
	assert_int_equal(c.cluster.peers[1].etcd.n, 2);
	assert_string_equal(c.cluster.peers[1].key, "/key");
	assert_true(config_cluster_exports(&c.cluster, "db"));
	assert_false(config_cluster_exports(&c.cluster, "dbx"));
	assert_true(config_cluster_has_peer_of(&c.cluster, "web.north"));
	assert_false(config_cluster_has_peer_of(&c.cluster, "web.east"));
	assert_false(config_cluster_has_peer_of(&c.cluster, "north"));
	assert_int_equal(config_cluster_copy(&c.cluster, &copy), 0);
	assert_true(config_cluster_eq(&c.cluster, &copy));
	/* another peer needs no new agent */
	copy.peers[1].pool.len++;
	assert_false(config_cluster_eq(&c.cluster, &copy));
	assert_true(config_cluster_same_node(&c.cluster, &copy));
	config_cluster_free(&copy);
	config_free(&c);

	parse(EAST "export: all}", &c);
	assert_true(config_cluster_exports(&c.cluster, "anything"));
	config_free(&c);
	parse(EAST "}", &c);
	assert_false(config_cluster_exports(&c.cluster, "anything"));
	assert_int_equal(c.cluster.n_peers, 0);
	config_free(&c);
}

static void who_of_a_peer(void **state)
{
	struct config c;

	(void)state;
	parse(EAST
	      "peers: [" WEST "]}\n"
	      "services: {shop: {ports: [80], backends: [{app: web}, {app: web.west}]}}\n"
	      "policy: {rules: [{allow: {from: db.west, to: [web.west, web.example, shop]}}]}\n",
	      &c);
	assert_string_equal(c.services[0].backends[1].app, "web.west");
	assert_int_equal(c.rules[0].from.v[0].kind, WHO_NAME);
	assert_string_equal(c.rules[0].from.v[0].name, "db.west");
	assert_int_equal(c.rules[0].to.v[0].kind, WHO_NAME);
	assert_int_equal(c.rules[0].to.v[1].kind, WHO_DOMAIN); /* no peer's */
	assert_int_equal(c.rules[0].to.v[2].kind, WHO_NAME);
	assert_string_equal(c.rules[0].to.v[4].name, "web.west"); /* a backend of shop's */
	config_free(&c);
}

#define NAMES                                                                               \
	"expected a name, or NAME.CLUSTER of another cluster's app, of 1 to 63 lower-case " \
	"letters, digits and hyphens\n"

static void what_is_wrong(void **state)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{EAST "peers: [{name: west, etcd: [http://b]}]}",
		 "f:1:84: cluster.peers[0]: found a mapping, expected name, etcd and pool: those "
		 "that the other cluster has in its own config\n"},
		{EAST "peers: [{name: We.st, etcd: [http://b], pool: 10.2.0.0/16}]}",
		 "f:1:91: cluster.peers[0].name: found \"We.st\", expected a name of 1 to 63 "
		 "lower-case letters, digits and hyphens (none at its ends)\n"},
		{EAST "peers: [{name: dns, etcd: [http://b], pool: 10.2.0.0/16}]}",
		 "f:1:91: cluster.peers[0]: found \"dns\", expected another name: dns is what ax's "
		 "own name server is in\n"},
		{EAST "peers: [" WEST ", {name: west, etcd: [http://c], pool: 10.3.0.0/16}]}",
		 "f:1:142: cluster.peers[1]: found \"west\", expected each peer once\n"},
		{EAST "peers: [{name: east, etcd: [http://b], pool: 10.2.0.0/16}]}",
		 "f:1:83: cluster: found a list, expected clusters of other names than this one, "
		 "east\n"},
		{EAST "peers: [{name: west, etcd: [http://b], pool: 10.1.128.0/17}]}",
		 "f:1:83: found a list, expected pools that do not overlap: 10.1.128.0/17 of the "
		 "peer west and this cluster's 10.1.0.0/16\n"},
		{EAST "peers: [" WEST ", {name: north, etcd: [http://c], pool: 10.0.0.0/12}]}",
		 "f:1:83: found a list, expected pools that do not overlap: 10.0.0.0/12 of the "
		 "peer north and this cluster's 10.1.0.0/16\n"
		 "f:1:83: found a list, expected pools that do not overlap: 10.0.0.0/12 of the "
		 "peer north and 10.2.0.0/16 of west\n"},
		{EAST "peers: [{name: west, etcd: [http://b], pool: 10.2.0.0/16, ca: /ca}]}",
		 "f:1:84: cluster.peers[0]: found a mapping, expected only https URLs where there "
		 "is a ca or a cert\n"},
		{"cluster: {name: east, etcd: [http://a], pool: 10.1.0.0/16, routes: translate, "
		 "peers: [" WEST "]}",
		 "f:1:86: cluster: found a list, expected routes: direct or wireguard beside "
		 "peers, as they have it: apps of other clusters are reached by routes alone\n"},
		{EAST "export: some}",
		 "f:1:84: cluster.export: found \"some\", expected all, or a list of names of "
		 "apps\n"},
		{EAST "export: [web.west]}",
		 "f:1:85: cluster.export[0]: found \"web.west\", expected a name of 1 to 63 "
		 "lower-case letters, digits and hyphens (none at its ends)\n"},
		{"services: {shop: {ports: [80], backends: [{app: web.we_st}]}}",
		 "f:1:49: services.shop.backends[0].app: found \"web.we_st\", " NAMES},
		{"policy: {rules: [{deny: {from: web.west.x}}]}",
		 "f:1:32: policy.rules[0].deny.from: found \"web.west.x\", expected labels "
		 "such as k=v,k2=v2, the name of an app or service, or an address or prefix "
		 "outside ax\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_errors(cases[i].text, cases[i].errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it),
		cmocka_unit_test(who_of_a_peer),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
