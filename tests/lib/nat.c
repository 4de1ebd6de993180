// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/in.h>

#include "tests/lib/nat.h"

struct result runf(const char *format, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return balance_run(text);
}

void assert_line(const struct result *r, const char *format, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	assert_packet(r, text);
}

struct ax_nat_key key_of(const char *real, const char *source, uint8_t proto, unsigned port)
{
	struct ax_nat_key k = {
		.real_port_be = htons(8080),
		.source_port_be = htons((uint16_t)port),
		.proto = proto,
	};

	assert_int_equal(addr_parse(real, &k.real), 0);
	assert_int_equal(addr_parse(source, &k.source), 0);
	return k;
}

/* The map that has it: that of open connections, or that of all else. */
static int nat_map(const struct ax_nat_key *k)
{
	struct ax_nat n;
	int map = balance.maps.map[XDP_MAP_NAT];

	return bpf_map_lookup_elem(map, k, &n) ? balance.maps.map[XDP_MAP_NAT_OPENING] : map;
}

struct ax_nat nat_get(const struct ax_nat_key *k)
{
	struct ax_nat n;

	assert_int_equal(bpf_map_lookup_elem(nat_map(k), k, &n), 0);
	return n;
}

void nat_put(const struct ax_nat_key *k, const struct ax_nat *n)
{
	bool open = k->proto == IPPROTO_TCP && n->state & AX_NAT_OPEN;

	bpf_map_delete_elem(nat_map(k), k);
	assert_int_equal(
		bpf_map_update_elem(balance.maps.map[open ? XDP_MAP_NAT : XDP_MAP_NAT_OPENING], k,
				    n, 0),
		0);
}

void nat_delete(const struct ax_nat_key *k)
{
	assert_int_equal(bpf_map_delete_elem(nat_map(k), k), 0);
}

uint32_t stamp(void)
{
	static unsigned sport; /* a flow that is known already leaves no trace for some time */
	struct result r = runf("udp 10.1.0.77:%u > 10.0.0.100:80", ++sport);
	struct ax_nat_key k = key_of("10.9.0.11", "10.9.0.1", 17, source_port(&r));
	uint32_t seen = nat_get(&k).seen;
	struct ax_flow4 f;

	nat_delete(&k);
	assert_int_equal(bpf_map_get_next_key(balance.maps.map[XDP_MAP_FLOWS4], NULL, &f), 0);
	assert_int_equal(bpf_map_delete_elem(balance.maps.map[XDP_MAP_FLOWS4], &f), 0);
	return seen;
}

void forget_all(void)
{
	balance_forget(XDP_MAP_NAT, sizeof(struct ax_nat_key));
	balance_forget(XDP_MAP_NAT_OPENING, sizeof(struct ax_nat_key));
	balance_forget(XDP_MAP_FLOWS4, sizeof(struct ax_flow4));
}

size_t nat_entries(void)
{
	return balance_entries(XDP_MAP_NAT, sizeof(struct ax_nat_key)) +
	       balance_entries(XDP_MAP_NAT_OPENING, sizeof(struct ax_nat_key));
}

void start(const char *list)
{
	balance_load_afresh(list);
	forget_all();
}

/* --- there and back --- */
