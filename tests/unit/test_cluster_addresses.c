// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses that are asked for: what another node has is nobody's here, and what an agent before
 * this one has claimed is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/priv.h"
#include "registry/state.h"
#include "registry/vips.h"

#define ME   "11111111111111111111111111111111"
#define THEM "22222222222222222222222222222222"

struct node {
	struct agent a;
	struct cluster c;
};

static void node_init(struct node *n)
{
	*n = (struct node){0};
	n->a.cluster = &n->c;
	n->c.a = &n->a;
	n->c.conf.name = (char *)(uintptr_t) "east";
	assert_int_equal(prefix_parse("10.80.0.0/16", &n->c.conf.pool), 0);
	snprintf(n->c.node, sizeof(n->c.node), "n1");
	snprintf(n->c.id, sizeof(n->c.id), ME);
	n->c.lease_id = 7;
	n->c.was_read = true;
}

static void node_free(struct node *n)
{
	peers_free(&n->c.peers);
	holders_free(&n->c);
	vip_free_all(&n->a);
	free(n->c.addresses);
}

static struct ax_addr addr_of(const char *text)
{
	struct ax_addr addr;

	assert_int_equal(addr_parse(text, &addr), 0);
	return addr;
}

static void put_block(struct node *n, const char *text, const char *node, const char *id)
{
	struct record_block b = {0};
	char key[RECORD_KEY_MAX];
	autofree char *value = NULL;

	assert_int_equal(prefix_parse(text, &b.prefix), 0);
	snprintf(b.node, sizeof(b.node), "%s", node);
	snprintf(b.id, sizeof(b.id), "%s", id);
	value = record_block_text(&b);
	peers_put(&n->c,
		  &(struct etcd_kv){.key = bytes_of(record_block_key("east", &b.prefix, key)),
				    .value = bytes_of(value)});
}

static void put_address(struct node *n, const char *text, const char *id, int64_t lease)
{
	struct record_address rec = {.addr = addr_of(text), .node = "n1", .app = "fixed"};
	char key[RECORD_KEY_MAX];
	autofree char *value = NULL;

	snprintf(rec.id, sizeof(rec.id), "%s", id);
	value = record_address_text(&rec);
	peers_put(&n->c,
		  &(struct etcd_kv){.key = bytes_of(record_address_key("east", &rec.addr, key)),
				    .value = bytes_of(value),
				    .lease = lease});
}

static int claim(struct node *n, const char *text, struct error *e)
{
	const struct ax_addr addr = addr_of(text), none = {0};
	const struct ax_addr *const asked[2] = {&addr, &none};

	return cluster_claim(&n->a, asked, "web", NULL, NULL, e);
}

static void a_config_app_has_no_address_of_another_nodes_block(void **state)
{
	CLEANUP(node_free) struct node n;
	const struct ax_addr addr = addr_of("10.80.2.9");
	struct error e = {0};
	struct vip *v;

	(void)state;
	node_init(&n);
	put_block(&n, "10.80.1.0/24", "n1", ME);
	put_block(&n, "10.80.2.0/24", "n2", THEM);
	v = vip_get(&n.a, &addr);
	assert_non_null(v);
	v->declared = (struct declared *)&n; /* as the config's apps have theirs before they run */
	assert_int_equal(claim(&n, "10.80.2.9", &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "in a block of the node n2"));
	assert_int_equal(claim(&n, "10.80.1.9", &e), 0);
	assert_int_equal(claim(&n, "192.0.2.1", &e), 0);
	n.c.was_read = false; /* nobody knows whose that block is */
	assert_int_equal(claim(&n, "10.80.2.9", &e), 0);
	n.c.was_read = true;
	v->declared = NULL;
	v->host = true;
	assert_int_equal(claim(&n, "10.80.2.9", &e), 0);
}

static void a_copied_machine_has_nothing_of_the_other_ones(void **state)
{
	CLEANUP(node_free) struct node n;
	struct error e = {0};

	(void)state;
	node_init(&n);
	put_block(&n, "10.80.1.0/24", "n2", ME);
	assert_int_equal(claim(&n, "10.80.1.9", &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "in a block of the node n2"));
}

static void put_service(struct node *n, const char *text, const char *node, const char *service)
{
	struct record_address rec = {.addr = addr_of(text), .id = THEM, .service = true};
	char key[RECORD_KEY_MAX];
	autofree char *value = NULL;

	snprintf(rec.node, sizeof(rec.node), "%s", node);
	snprintf(rec.app, sizeof(rec.app), "%s", service);
	value = record_address_text(&rec);
	peers_put(&n->c,
		  &(struct etcd_kv){.key = bytes_of(record_address_key("east", &rec.addr, key)),
				    .value = bytes_of(value),
				    .lease = 9});
}

static int service(struct node *n, const char *text, const char *name, struct error *e)
{
	const struct ax_addr addr = addr_of(text);

	return cluster_service_address(&n->a, &addr, name, e);
}

static void another_nodes_service_shares_its_address_with_those_of_its_name(void **state)
{
	CLEANUP(node_free) struct node n;
	const struct ax_addr addr = addr_of("192.0.2.50");
	struct error e = {0};
	char key[RECORD_KEY_MAX];

	(void)state;
	node_init(&n);
	assert_int_equal(service(&n, "192.0.2.50", "shop", &e), 0);
	put_service(&n, "192.0.2.50", "n2", "shop");
	put_service(&n, "2001:db8::50", "n3", "shop");
	assert_int_equal(service(&n, "192.0.2.50", "shop", &e), 0);
	assert_int_equal(service(&n, "2001:db8::50", "other", &e), -EADDRINUSE);
	assert_int_equal(service(&n, "192.0.2.50", "other", &e), -EADDRINUSE);
	assert_string_equal(e.text,
			    "the service other cannot be had: the address 192.0.2.50 is the "
			    "service shop's on the node n2: give another one, or none");
	assert_int_equal(claim(&n, "192.0.2.50", &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "is the service shop's on the node n2"));
	put_address(&n, "192.0.2.5", THEM, 9);
	assert_int_equal(service(&n, "192.0.2.5", "fixed", &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "is the app fixed's on the node n1"));
	assert_false(n.a.address_freed);
	record_address_key("east", &addr, key);
	peers_delete(&n.c, &(struct etcd_kv){.key = bytes_of(key)});
	assert_true(n.a.address_freed); /* who could not have it tries again */
	assert_int_equal(service(&n, "192.0.2.50", "other", &e), 0);
	n.c.read_anew++; /* a full read that does not have the other one */
	addresses_read(&n.c);
	assert_int_equal(service(&n, "2001:db8::50", "other", &e), 0);
}

static void a_service_has_no_address_of_another_nodes_block(void **state)
{
	CLEANUP(node_free) struct node n;
	struct error e = {0};

	(void)state;
	node_init(&n);
	put_block(&n, "10.80.2.0/24", "n2", THEM);
	assert_int_equal(service(&n, "10.80.2.9", "shop", &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "in a block of the node n2"));
	n.c.was_read = false; /* this node's own are not known either */
	assert_int_equal(service(&n, "10.80.2.9", "shop", &e), 0);
}

static void what_an_agent_before_has_claimed_is_known(void **state)
{
	CLEANUP(node_free) struct node n;
	struct ax_addr addr = addr_of("192.0.2.7");

	(void)state;
	node_init(&n);
	put_address(&n, "192.0.2.5", THEM, 9);
	put_address(&n, "192.0.2.6", ME, 6); /* it goes with its lease */
	assert_int_equal(n.c.n_addresses, 0);
	put_address(&n, "192.0.2.7", ME, 7);
	put_address(&n, "192.0.2.7", ME, 7);
	assert_int_equal(n.c.n_addresses, 1);
	assert_true(addr_eq(&n.c.addresses[0].addr, &addr));
	assert_true(n.c.addresses[0].lease == 7);
	assert_string_equal(n.c.addresses[0].app, "fixed");
	assert_true(n.c.addresses_at_ns); /* somebody looks whether it is used */
	n.c.addresses[0].lease = 0;
	n.c.addresses[0].asking = true; /* the answer decides */
	put_address(&n, "192.0.2.7", ME, 7);
	assert_true(n.c.addresses[0].lease == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_config_app_has_no_address_of_another_nodes_block),
		cmocka_unit_test(a_copied_machine_has_nothing_of_the_other_ones),
		cmocka_unit_test(another_nodes_service_shares_its_address_with_those_of_its_name),
		cmocka_unit_test(a_service_has_no_address_of_another_nodes_block),
		cmocka_unit_test(what_an_agent_before_has_claimed_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
