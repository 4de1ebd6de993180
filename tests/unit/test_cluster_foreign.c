// SPDX-License-Identifier: GPL-2.0-or-later
/* What is believed of another cluster: names with its own behind them, blocks of its own pool, as
 * many apps as there is room for, and no store but its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/priv.h"
#include "registry/state.h"

#define ID "11111111111111111111111111111111"

struct node {
	struct agent a;
	struct cluster home, west;
};

static void node_init(struct node *n)
{
	*n = (struct node){0};
	n->a.cluster = &n->home;
	n->home.a = n->west.a = &n->a;
	n->home.next = &n->west;
	n->home.conf.name = (char *)(uintptr_t) "east";
	n->west.home = &n->home;
	n->west.conf.name = (char *)(uintptr_t) "west";
	n->west.conf.routes = n->home.conf.routes = CLUSTER_ROUTES_NONE;
	n->west.apps_max = 3;
	n->west.bytes_max = 1u << 20;
	assert_int_equal(prefix_parse("10.80.0.0/16", &n->home.conf.pool), 0);
	assert_int_equal(prefix_parse("10.90.0.0/16", &n->west.conf.pool), 0);
	snprintf(n->home.node, sizeof(n->home.node), "n1");
}

static void node_free(struct node *n)
{
	peers_drop_all(&n->west);
	peers_free(&n->west.peers);
}

static void put(struct node *n, const char *key, const char *value)
{
	peers_put(&n->west, &(struct etcd_kv){.key = bytes_of(key),
					      .value = bytes_of(value),
					      .mod_revision = 1});
}

static void put_app(struct node *n, const char *name, uint32_t id, const char *labels)
{
	struct record_app rec = {.id = id, .labels = (char *)(uintptr_t)labels, .exported = true};
	char key[RECORD_KEY_MAX];
	autofree char *value = NULL;

	snprintf(rec.node, sizeof(rec.node), "n1");
	snprintf(rec.name, sizeof(rec.name), "%s", name);
	value = record_app_text(&rec);
	put(n, record_app_key("west", "n1", id, key), value);
}

static struct peer_app *first(struct node *n)
{
	return *(struct peer_app **)n->west.peers.apps;
}

static void names(void **state)
{
	char name[RECORD_NAME_MAX + 1];
	struct node n;

	(void)state;
	node_init(&n);
	put_app(&n, "web", 1, "");
	assert_string_equal(first(&n)->name, "web.west");
	assert_string_equal(first(&n)->node_name, "n1.west");
	peers_drop_all(&n.west);
	assert_int_equal(n.west.peers.n_apps, 0);
	/* one that is too long with the cluster's is known, and has none */
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	put_app(&n, name, 2, "");
	assert_int_equal(n.west.peers.n_apps, 1);
	assert_null(first(&n)->name);
	node_free(&n);
}

static void addresses(void **state)
{
	char text[ADDR_STRLEN];
	struct prefix p;
	struct node n;

	(void)state;
	node_init(&n);
	put(&n, "/ax/west/blocks/10.80.1.0-24",
	    "{\"v\":1,\"prefix\":\"10.80.1.0/24\",\"node\":\"n1\",\"id\":\"" ID "\"}");
	assert_int_equal(n.west.peers.n_blocks, 0);
	assert_string_equal(n.west.peers.why,
			    "/ax/west/blocks/10.80.1.0-24: it is no block of the pool");
	put(&n, "/ax/west/blocks/10.90.1.0-24",
	    "{\"v\":1,\"prefix\":\"10.90.1.0/24\",\"node\":\"n1\",\"id\":\"" ID "\"}");
	assert_int_equal(n.west.peers.n_blocks, 1);
	/* (and nothing of it is of the own cluster, though the node is called as this one) */
	assert_int_equal(prefix_parse("10.90.1.0/24", &p), 0);
	assert_non_null(peers_block(&n.west, &p));
	assert_null(peers_block(&n.home, &p));
	assert_true(is_others(&n.west, peers_block(&n.west, &p)));
	assert_string_equal(prefix_format(&p, text), "10.90.1.0/24");
	/* what is for its own nodes is not looked at */
	put(&n, "/ax/west/key", "{\"v\":1,\"id\":1,\"key\":\"00112233445566778899aabbccddeeff\"}");
	assert_int_equal(n.west.across_now.id, 0);
	put(&n, "/ax/west/addresses/10.9.9.9",
	    "{\"v\":1,\"address\":\"10.9.9.9\",\"node\":\"n1\",\"app\":\"x\",\"id\":\"" ID "\"}");
	assert_null(n.west.holders);
	assert_int_equal(n.west.peers.refused, 1);
	node_free(&n);
}

static void room(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	for (uint32_t i = 1; i <= 5; i++)
		put_app(&n, "web", i, "zone=a");
	assert_int_equal(n.west.peers.n_apps, 3);
	assert_int_equal(n.west.peers.refused, 2);
	assert_string_equal(n.west.peers.why,
			    "apps: there are more than 3, the rest is not known here");
	peers_drop_all(&n.west);
	assert_int_equal(n.west.peers.bytes, 0);
	/* large ones are fewer */
	n.west.bytes_max = 5 * sizeof(struct peer_app);
	for (uint32_t i = 1; i <= 3; i++)
		put_app(&n, "web", i, "zone=a");
	assert_in_range(n.west.peers.n_apps, 1, 2);
	node_free(&n);
}

static void stores(void **state)
{
	const struct etcd_kv own = {.value = bytes_of("{\"v\":1,\"prefix\":\"10.90.0.0/16\"}")};
	const struct etcd_kv other = {.value = bytes_of("{\"v\":1,\"prefix\":\"10.80.0.0/16\"}")};
	struct node n;

	(void)state;
	node_init(&n);
	foreign_pool_read(&n.west, &own);
	assert_false(n.west.pool_wrong);
	foreign_pool_read(&n.west, NULL);
	assert_true(n.west.pool_wrong);
	assert_string_equal(n.west.not_read, "its etcd has no cluster west: look at the peer's "
					     "etcd, or wait for the cluster's first node");
	foreign_pool_read(&n.west, &other);
	assert_true(n.west.pool_wrong);
	assert_string_equal(n.west.not_read,
			    "its pool is 10.80.0.0/16, and this node's config has 10.90.0.0/16: "
			    "give the peer its own cluster's pool");
	foreign_pool_read(&n.west, &own);
	assert_false(n.west.pool_wrong || n.west.not_read[0]);
	node_free(&n);
}

/* Two seconds of ten. */
static void time_of_this_node(void **state)
{
	struct node n;
	uint64_t now;

	(void)state;
	node_init(&n);
	now = time_mono_ns();
	assert_false(foreign_spent(&n.west, now));
	assert_false(foreign_spent(&n.west, time_mono_ns()));
	assert_true(foreign_spent(&n.west, now - 3 * NS_PER_S));
	assert_string_equal(n.west.not_read, "what it tells takes too much of this node's time: it "
					     "is read again later");
	assert_false(foreign_spent(&n.west, time_mono_ns())); /* begins anew */
	node_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(addresses),
		cmocka_unit_test(room),
		cmocka_unit_test(stores),
		cmocka_unit_test(time_of_this_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
