// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a record of the registry, and as its key: refused with a sentence, or what is
 * written of it is read again as the same. */
#include "cluster/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_app(const uint8_t *data, size_t size)
{
	struct record_app a, b;
	struct error e = {0};

	if (record_app_read(data, size, &a, &e)) {
		check(e.text[0] && !a.labels && !a.ports);
		return;
	}
	autofree char *text = record_app_text(&a);

	check(text && record_app_read(text, strlen(text), &b, &e) == 0);
	autofree char *again = record_app_text(&b);

	check(again && streq(text, again));
	record_app_free(&a);
	record_app_free(&b);
}

static void check_config(const uint8_t *data, size_t size)
{
	struct record_config a, b;
	struct error e = {0};
	int64_t revision;

	if (record_config_now_read(data, size, &revision, &e))
		check(e.text[0]);
	if (record_config_read(data, size, &a, &e)) {
		check(e.text[0] && !a.text);
		return;
	}
	autofree char *text = record_config_text(&a);

	check(text && record_config_read(text, strlen(text), &b, &e) == 0);
	check(a.revision == b.revision && a.of == b.of && streq(a.text, b.text));
	record_config_free(&a);
	record_config_free(&b);
}

static void check_others(const uint8_t *data, size_t size)
{
	struct record_node n, n2;
	struct record_block b, b2;
	struct record_address a, a2;
	struct ax_across_key k, k2;
	struct error e = {0};
	struct prefix p;

	if (record_secret_read(data, size, &k, &e) == 0) {
		autofree char *text = record_secret_text(&k);

		check(text && record_secret_read(text, strlen(text), &k2, &e) == 0);
		check(memcmp(&k, &k2, sizeof(k)) == 0);
	}
	if (record_node_read(data, size, &n, &e) == 0) {
		autofree char *text = record_node_text(&n);

		check(text && record_node_read(text, strlen(text), &n2, &e) == 0);
		check(streq(n.name, n2.name) && addr_eq(&n.address, &n2.address));
		check(n.has_wireguard == n2.has_wireguard &&
		      n.wireguard_port == n2.wireguard_port &&
		      memcmp(n.wireguard_key, n2.wireguard_key, WG_KEY_SIZE) == 0);
	}
	if (record_block_read(data, size, &b, &e) == 0) {
		autofree char *text = record_block_text(&b);

		check(text && record_block_read(text, strlen(text), &b2, &e) == 0);
		check(addr_eq(&b.prefix.addr, &b2.prefix.addr) && b.prefix.len == b2.prefix.len);
	}
	if (record_address_read(data, size, &a, &e) == 0) {
		autofree char *text = record_address_text(&a);

		check(text && record_address_read(text, strlen(text), &a2, &e) == 0);
		check(addr_eq(&a.addr, &a2.addr) && streq(a.node, a2.node) && streq(a.app, a2.app));
	}
	if (record_pool_read(data, size, &p, &e))
		check(e.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	record_kind("east", data, size);
	check_app(data, size);
	check_others(data, size);
	check_config(data, size);
	return 0;
}
