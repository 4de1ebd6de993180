// SPDX-License-Identifier: GPL-2.0-or-later
/* Records of the registry: what is written is read again, newer members are left alone, a newer
 * schema is refused with a sentence, and so is what is no record. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "allot/pool.h"
#include "cluster/record.h"

#define ID "0123456789abcdef0123456789abcdef"

static void nodes_and_blocks(void **state)
{
	struct record_node n = {.name = "n1", .id = ID, .since = 1700000000, .version = "1.2"}, n2;
	struct record_block b = {.node = "n1", .id = ID}, b2;
	autofree char *node = NULL, *block = NULL, *pool = NULL;
	struct prefix p;
	struct error e;

	(void)state;
	assert_int_equal(addr_parse("10.0.0.11", &n.address), 0);
	node = record_node_text(&n);
	assert_int_equal(record_node_read(node, strlen(node), &n2, &e), 0);
	assert_memory_equal(&n, &n2, sizeof(n));
	assert_false(n2.clock_known);
	assert_int_equal(prefix_parse("10.217.3.0/24", &b.prefix), 0);
	block = record_block_text(&b);
	assert_int_equal(record_block_read(block, strlen(block), &b2, &e), 0);
	assert_memory_equal(&b, &b2, sizeof(b));
	pool = record_pool_text(&b.prefix);
	assert_int_equal(record_pool_read(pool, strlen(pool), &p, &e), 0);
	assert_memory_equal(&b.prefix, &p, sizeof(p));
}

/* What an older node says has none of IPv6, and what is said of that an older one does not look at:
 * it stands at keys and members of their own. */
static void ipv6(void **state)
{
	static const char bad[] = "{\"v\":1,\"name\":\"n1\",\"id\":\"" ID "\",\"since\":1,"
				  "\"version\":\"1\",\"address6\":\"10.0.0.1\"}";
	struct record_node n = {.name = "n1", .id = ID, .version = "1"}, n2;
	struct record_block b = {.node = "n1", .id = ID}, b2;
	autofree char *node = NULL, *block = NULL;
	char key[RECORD_KEY_MAX];
	struct error e;

	(void)state;
	assert_int_equal(addr_parse("10.0.0.11", &n.address), 0);
	node = record_node_text(&n);
	assert_null(strstr(node, "address6"));
	free(node);
	assert_int_equal(addr_parse("fd99::11", &n.address6), 0);
	node = record_node_text(&n);
	assert_int_equal(record_node_read(node, strlen(node), &n2, &e), 0);
	assert_memory_equal(&n, &n2, sizeof(n));
	assert_int_equal(record_node_read(bad, strlen(bad), &n2, &e), -EINVAL);
	assert_string_equal(e.text, "its member \"address6\" is not an IPv6 address");

	assert_int_equal(prefix_parse("fd61:80::300/120", &b.prefix), 0);
	block = record_block_text(&b);
	assert_int_equal(record_block_read(block, strlen(block), &b2, &e), 0);
	assert_memory_equal(&b, &b2, sizeof(b));
	assert_string_equal(record_block_key("east", &b.prefix, key),
			    "/ax/east/blocks6/fd61:80::300-120");
	assert_int_equal(record_kind("east", key, strlen(key)), RECORD_BLOCK);
	assert_string_equal(record_pool_key("east", false, key), "/ax/east/pool6");
	assert_int_equal(record_kind("east", key, strlen(key)), RECORD_POOL6);
	assert_string_equal(record_pool_key("east", true, key), "/ax/east/pool");
}

#define NODE "{\"v\":1,\"name\":\"n1\",\"id\":\"" ID "\",\"since\":1,\"version\":\"1\""
#define KEY  "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="

/* An older node has no key for WireGuard; one that is none is refused, and not taken for that. */
static void wireguard(void **state)
{
	static const char *const bad[] = {
		NODE ",\"wireguard\":{}}",
		NODE ",\"wireguard\":1}",
		NODE ",\"wireguard\":{\"key\":\"" KEY "\"}}",
		NODE ",\"wireguard\":{\"key\":\"" KEY "\",\"port\":0}}",
		NODE ",\"wireguard\":{\"key\":\"" KEY "\",\"port\":65536}}",
		NODE ",\"wireguard\":{\"key\":\"" KEY "=\",\"port\":51820}}",
		NODE ",\"wireguard\":{\"key\":\"AQID\",\"port\":51820}}",
		/* 31 bytes in as many characters */
		NODE ",\"wireguard\":{\"key\":\"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==\","
		     "\"port\":51820}}",
		NODE ",\"wireguard\":{\"key\":\"*QIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=\","
		     "\"port\":51820}}",
	};
	static const char newer[] =
		NODE ",\"wireguard\":{\"key\":\"" KEY "\",\"port\":51820,\"psk\":1}}";
	static const char older[] = NODE "}";
	autofree char *text = NULL;
	char key[RECORD_WG_KEY_MAX];
	struct record_node n, n2;
	struct error e;

	(void)state;
	assert_int_equal(record_node_read(newer, strlen(newer), &n, &e), 0);
	assert_true(n.has_wireguard);
	assert_int_equal(n.wireguard_port, 51820);
	for (unsigned i = 0; i < WG_KEY_SIZE; i++)
		assert_int_equal(n.wireguard_key[i], i + 1);
	assert_string_equal(record_wg_key_text(n.wireguard_key, key), KEY);
	text = record_node_text(&n);
	assert_int_equal(record_node_read(text, strlen(text), &n2, &e), 0);
	assert_memory_equal(&n, &n2, sizeof(n));
	assert_int_equal(record_node_read(older, strlen(older), &n, &e), 0);
	assert_false(n.has_wireguard);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(record_node_read(bad[i], strlen(bad[i]), &n, &e), -EINVAL);
		assert_string_equal(e.text,
				    "its member \"wireguard\" is not a public key and a port");
		assert_false(n.has_wireguard);
	}
}

static void apps(void **state)
{
	struct other_port ports[] = {
		{.port = 80, .proto = IPPROTO_TCP, .via = 61001, .only = 4},
		{.port = 81, .proto = IPPROTO_TCP, .via = 61002, .via6 = 61001},
		{.port = 53, .proto = IPPROTO_UDP}};
	struct record_app a = {.node = "n1",
			       .name = "web",
			       .id = 7,
			       .host = true,
			       .since = 5,
			       .labels = (char *)(uintptr_t) "tier=db,zone=eu",
			       .ports = ports,
			       .n_ports = 3};
	CLEANUP(record_app_free) struct record_app b = {0};
	autofree char *text = NULL, *again = NULL;
	struct error e;

	(void)state;
	assert_int_equal(addr_parse("10.217.3.5", &a.ip4), 0);
	text = record_app_text(&a);
	assert_int_equal(record_app_read(text, strlen(text), &b, &e), 0);
	assert_string_equal(b.name, "web");
	assert_int_equal(b.id, 7);
	assert_true(b.host);
	assert_true(addr_eq(&a.ip4, &b.ip4) && addr_is_zero(&b.ip6));
	assert_int_equal(b.n_ports, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(b.ports[i].port, ports[i].port);
		assert_int_equal(b.ports[i].proto, ports[i].proto);
		assert_int_equal(b.ports[i].via, ports[i].via);
		assert_int_equal(b.ports[i].via6, ports[i].via6);
		assert_int_equal(b.ports[i].only, ports[i].only);
	}
	again = record_app_text(&b);
	assert_string_equal(text, again);
}

/* What its node says of it as a backend; an older record says nothing. */
static void backends(void **state)
{
	struct other_state states[] = {{.service = "front", .v4 = true, .checked = true},
				       {.service = "back", .checked = true, .down = true},
				       {.service = "back", .v4 = true, .drained = true}};
	struct record_app a = {.node = "n1",
			       .name = "web",
			       .id = 7,
			       .labels = (char *)(uintptr_t) "",
			       .states = states,
			       .n_states = ARRAY_SIZE(states),
			       .stopping = true,
			       .exported = true};
	CLEANUP(record_app_free) struct record_app b = {0};
	struct other_app other = {0};
	autofree char *text = NULL;
	struct error e;

	(void)state;
	other_state_why(&states[1], "status 503\x1b[2J\xff");
	assert_string_equal(states[1].why, "status 503?[2J?");
	text = record_app_text(&a);
	assert_int_equal(record_app_read(text, strlen(text), &b, &e), 0);
	assert_true(b.stopping);
	assert_true(b.exported);
	assert_int_equal(b.n_states, ARRAY_SIZE(states));
	assert_memory_equal(b.states, states, sizeof(states));
	other.states = b.states;
	other.n_states = b.n_states;
	assert_true(other_state_of(&other, "back", false)->down);
	assert_true(other_state_of(&other, "back", true)->drained);
	assert_null(other_state_of(&other, "front", false));
}

/* What is shown to people is text, whoever wrote it; families that are not known are left out. */
static void backends_of_others(void **state)
{
	static const char strange[] = "{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,"
				      "\"labels\":\"\",\"ports\":[],"
				      "\"services\":[{\"service\":\"s\",\"family\":9},"
				      "{\"service\":\"s\",\"family\":4,\"why\":\"\\u001b[2J\"}]}";
	static const char *const bad[] = {
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[],"
		"\"services\":{}}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[],"
		"\"services\":[1]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[],"
		"\"services\":[{\"family\":4}]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[],"
		"\"services\":[{\"service\":\"../s\",\"family\":4}]}",
	};
	CLEANUP(record_app_free) struct record_app a = {0};
	struct error e;

	(void)state;
	assert_int_equal(record_app_read(strange, strlen(strange), &a, &e), 0);
	assert_int_equal(a.n_states, 1);
	assert_false(a.stopping || a.exported || a.states[0].down);
	assert_string_equal(a.states[0].why, "?[2J");
	record_app_free(&a);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(record_app_read(bad[i], strlen(bad[i]), &a, &e), -EINVAL);
		assert_true(!a.states && !a.labels);
	}
}

static void configs(void **state)
{
	struct record_config a = {.revision = 12,
				  .at = 1700000000,
				  .of = 3,
				  .node = "n2",
				  .id = ID,
				  .text = (char *)(uintptr_t) "services:\n  a: {}\n"};
	static const char none[] = "{\"v\":1,\"revision\":0}",
			  textless[] =
				  "{\"v\":1,\"revision\":1,\"at\":0,\"node\":\"n\",\"id\":\"" ID
				  "\"}";
	CLEANUP(record_config_free) struct record_config b;
	autofree char *text = record_config_text(&a), *now = record_config_now_text(12);
	char key[RECORD_KEY_MAX];
	int64_t revision;
	struct error e;

	(void)state;
	assert_int_equal(record_config_read(text, strlen(text), &b, &e), 0);
	assert_string_equal(b.text, a.text);
	assert_string_equal(b.id, ID);
	assert_int_equal(b.revision, 12);
	assert_int_equal(b.of, 3);
	record_config_free(&b);
	assert_int_equal(record_config_read(textless, strlen(textless), &b, &e), -EINVAL);
	assert_string_equal(e.text, "its member \"text\" is not a text");
	assert_int_equal(record_config_now_read(now, strlen(now), &revision, &e), 0);
	assert_int_equal(revision, 12);
	assert_int_equal(record_config_now_read(none, strlen(none), &revision, &e), -EINVAL);
	record_config_key("east", 12, key);
	assert_string_equal(key, "/ax/east/configs/12");
	assert_int_equal(record_kind("east", key, strlen(key)), RECORD_CONFIG);
	record_config_now_key("east", key);
	assert_int_equal(record_kind("east", key, strlen(key)), RECORD_CONFIG_NOW);
	assert_int_equal(record_kind("east", "/ax/east/configs", 16), RECORD_OTHER);
}

/* What a node says of the cluster's config there; it is shown to people. */
static void what_holds_where(void **state)
{
	struct record_node n = {.name = "n1", .id = ID, .config = 3, .config_why = "no \x1b[2J"},
			   n2;
	autofree char *text = record_node_text(&n);
	struct error e;

	(void)state;
	assert_int_equal(record_node_read(text, strlen(text), &n2, &e), 0);
	assert_int_equal(n2.config, 3);
	assert_string_equal(n2.config_why, "no ?[2J");
}

/* What its clock is beside etcd's; older nodes do not say so. */
static void clocks(void **state)
{
	struct record_node n = {.name = "n1", .id = ID, .clock_known = true, .clock_s = -90}, n2;
	autofree char *text = record_node_text(&n);
	static const char bad[] = "{\"v\":1,\"name\":\"n1\",\"id\":\"" ID "\",\"since\":1,"
				  "\"version\":\"1\",\"clock\":\"late\"}";
	struct error e;

	(void)state;
	assert_int_equal(record_node_read(text, strlen(text), &n2, &e), 0);
	assert_true(n2.clock_known);
	assert_int_equal(n2.clock_s, -90);
	assert_int_equal(record_node_read(bad, strlen(bad), &n2, &e), -EINVAL);
}

static void addresses(void **state)
{
	static const char none[] = "{\"v\":1,\"node\":\"n1\",\"app\":\"web\",\"id\":\"" ID "\"}";
	struct record_address a = {.node = "n1", .app = "web", .id = ID}, b;
	char key[RECORD_KEY_MAX];
	autofree char *text = NULL, *of_service = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(addr_parse("192.0.2.7", &a.addr), 0);
	text = record_address_text(&a);
	assert_int_equal(record_address_read(text, strlen(text), &b, &e), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	a.service = true;
	of_service = record_address_text(&a);
	assert_int_equal(record_address_read(of_service, strlen(of_service), &b, &e), 0);
	assert_true(b.service);
	assert_string_equal(record_address_key("east", &a.addr, key),
			    "/ax/east/addresses/192.0.2.7");
	assert_int_equal(record_kind("east", key, strlen(key)), RECORD_ADDRESS);
	assert_int_equal(record_address_read(none, strlen(none), &b, &e), -EINVAL);
	assert_string_equal(e.text, "its member \"address\" is not an address");
}

/* The key's bytes are those of the text, in their order. */
static void secrets(void **state)
{
	static const char text[] =
		"{\"v\":1,\"id\":255,\"key\":\"000102030405060708090a0b0c0d0e0f\"}";
	static const char *const bad[] = {
		"{\"v\":1,\"id\":0,\"key\":\"000102030405060708090a0b0c0d0e0f\"}",
		"{\"v\":1,\"id\":256,\"key\":\"000102030405060708090a0b0c0d0e0f\"}",
		"{\"v\":1,\"id\":1,\"key\":\"000102030405060708090a0b0c0d0e0\"}",
		"{\"v\":1,\"id\":1,\"key\":\"000102030405060708090a0b0c0d0e0f0\"}",
		"{\"v\":1,\"id\":1,\"key\":\"000102030405060708090a0b0c0d0e0F\"}",
		"{\"v\":1,\"id\":1}",
	};
	struct ax_across_key k;
	char key[RECORD_KEY_MAX];
	autofree char *again = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(record_secret_read(text, strlen(text), &k, &e), 0);
	assert_int_equal(k.id, 255);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(k.k[i / 8] >> i % 8 * 8 & 0xff, i);
	again = record_secret_text(&k);
	assert_string_equal(again, text);
	assert_string_equal(record_secret_key("east", key), "/ax/east/key");
	assert_int_equal(record_kind("east", key, strlen(key)), RECORD_SECRET);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(record_secret_read(bad[i], strlen(bad[i]), &k, &e), -EINVAL);
}

static void versions(void **state)
{
	static const char more[] =
		"{\"v\":1,\"prefix\":\"10.1.0.0/16\",\"colour\":[1,{\"x\":null}]}",
			  newer[] = "{\"v\":2,\"prefix\":\"10.1.0.0/16\"}";
	struct error e = {0};
	struct prefix p;

	(void)state;
	assert_int_equal(record_pool_read(more, strlen(more), &p, &e), 0);
	assert_int_equal(record_pool_read(newer, strlen(newer), &p, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "it is of schema version 2, and this ax knows those up to 1: "
				    "update ax on this node");
}

static void what_is_none(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		"{\"v\":\"1\"}",
		"{\"v\":0}",
		"{\"v\":1}",
		"{\"v\":1,\"v\":1,\"prefix\":\"10.1.0.0/16\"}",
		"{\"v\":1,\"node\":\"N1\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"../"
		"a\",\"id\":1,\"since\":1,\"labels\":\"\",\"ports\":[]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":0,\"since\":1,\"labels\":\"\","
		"\"ports\":[]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":4294967296,\"since\":1,\"labels\":"
		"\"\",\"ports\":[]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":-1,\"labels\":\"\","
		"\"ports\":[]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"x\","
		"\"ports\":[]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[1]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[{\"proto\":\"tcp\",\"port\":65536}]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[{\"proto\":\"tcp\",\"port\":80,\"via\":65536}]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[{\"proto\":\"tcp\",\"port\":80,\"via6\":-1}]}",
		"{\"v\":1,\"node\":\"n\",\"name\":\"a\",\"id\":1,\"since\":1,\"labels\":\"\","
		"\"ports\":[],"
		"\"ip4\":\"127.0.0.1\"}",
	};
	autofree char *large = malloc(RECORD_VALUE_MAX + 1);
	struct record_app a;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e.text[0] = 0;
		assert_int_equal(record_app_read(bad[i], strlen(bad[i]), &a, &e), -EINVAL);
		assert_true(e.text[0] && !a.labels && !a.ports);
	}
	memset(large, ' ', RECORD_VALUE_MAX + 1);
	assert_int_equal(record_app_read(large, RECORD_VALUE_MAX + 1, &a, &e), -EMSGSIZE);
}

static void keys(void **state)
{
	static const struct {
		const char *key;
		enum record_kind kind;
	} cases[] = {
		{"/ax/east/pool", RECORD_POOL},	     {"/ax/east/nodes/n1", RECORD_NODE},
		{"/ax/east/blocks/x", RECORD_BLOCK}, {"/ax/east/apps/n1/7", RECORD_APP},
		{"/ax/east/nodes/", RECORD_OTHER},   {"/ax/west/nodes/n1", RECORD_OTHER},
		{"/ax/east/policy/1", RECORD_OTHER}, {"/ax/east", RECORD_OTHER},
		{"/ax/east/poolx", RECORD_OTHER},    {"", RECORD_OTHER},
	};
	char key[RECORD_KEY_MAX];
	struct prefix p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(record_kind("east", cases[i].key, strlen(cases[i].key)),
				 cases[i].kind);
	assert_int_equal(record_kind("east", "/ax/east/nodes/a\0b", 18), RECORD_OTHER);
	assert_int_equal(prefix_parse("10.217.3.0/24", &p), 0);
	assert_string_equal(record_block_key("east", &p, key), "/ax/east/blocks/10.217.3.0-24");
	assert_string_equal(record_app_key("east", "n1", 7, key), "/ax/east/apps/n1/7");
}

/* A pool of which only blocks may be given out. */
static void shut_pools(void **state)
{
	struct prefix all, block, other;
	struct ax_addr a, given;
	struct pool p;

	(void)state;
	assert_int_equal(prefix_parse("10.217.0.0/16", &all), 0);
	assert_int_equal(prefix_parse("10.217.3.0/24", &block), 0);
	assert_int_equal(prefix_parse("10.217.9.0/24", &other), 0);
	assert_int_equal(addr_parse("10.217.9.9", &given), 0);
	assert_int_equal(pool_init(&p, &all), 0);
	assert_int_equal(pool_shut(&p), 0);
	assert_int_equal(pool_left(&p), 0);
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	/* an address that was given by hand opens nothing when it is given back */
	pool_mark(&p, &given, true);
	pool_mark(&p, &given, false);
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	pool_open(&p, &block, true);
	pool_open(&p, &block, true);
	assert_int_equal(pool_left(&p), 256);
	for (unsigned i = 0; i < 256; i++) {
		assert_int_equal(pool_take(&p, &a), 0);
		assert_true(prefix_contains(&block, &a));
	}
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	pool_open(&p, &other, true);
	pool_mark(&p, &given, true);
	assert_int_equal(pool_left(&p), 255);
	pool_open(&p, &other, false);
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	assert_int_equal(p.size - p.n_shut, 256);
	/* the first block has the pool's own address and the host's */
	assert_int_equal(prefix_parse("10.217.0.0/24", &block), 0);
	pool_open(&p, &block, true);
	assert_int_equal(pool_left(&p), 254);
	pool_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_and_blocks),
		cmocka_unit_test(wireguard),
		cmocka_unit_test(apps),
		cmocka_unit_test(configs),
		cmocka_unit_test(what_holds_where),
		cmocka_unit_test(backends),
		cmocka_unit_test(backends_of_others),
		cmocka_unit_test(clocks),
		cmocka_unit_test(addresses),
		cmocka_unit_test(versions),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(keys),
		cmocka_unit_test(secrets),
		cmocka_unit_test(shut_pools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
