// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The packet parser in user space: it reads nothing outside of the packet (that is the address
 * sanitizer's part), and whatever it says of a packet can be found there.
 */
#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../xdp/parse.bpf.h"

#define ETH 14

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Ports and flags are those at l4, and all of the header is in the packet and in the datagram,
 * whose end (0: not known) is what the IP header says. */
static void check_l4(const struct packet *p, const uint8_t *d, size_t size, size_t l4, size_t end)
{
	size_t header = p->proto == IPPROTO_TCP ? 20 : 8;

	if (!p->has_l4)
		return;
	check(p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP);
	check(!p->later);
	check(p->l4_off == l4);
	check(l4 + header <= size && (!end || l4 + header <= end));
	check(memcmp(d + l4, &p->sport_be, 2) == 0 && memcmp(d + l4 + 2, &p->dport_be, 2) == 0);
	check(p->proto != IPPROTO_TCP || p->tcp_flags == d[l4 + 13]);
}

static void check_v4(const struct packet *p, const uint8_t *d, size_t size)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	size_t header = (d[ETH] & 15) * 4u, total = be16(d + ETH + 2);

	check(p->v4 && d[ETH] >> 4 == 4);
	check(header >= 20 && ETH + header <= size && (!total || header <= total));
	check(memcmp(&p->src, mapped, 12) == 0 && memcmp(p->src.b + 12, d + ETH + 12, 4) == 0);
	check(memcmp(&p->dst, mapped, 12) == 0 && memcmp(p->dst.b + 12, d + ETH + 16, 4) == 0);
	check(p->proto == d[ETH + 9] && p->ttl == d[ETH + 8] && p->tos == d[ETH + 1]);
	check(p->later == ((be16(d + ETH + 6) & 0x1fff) != 0));
	check_l4(p, d, size, ETH + header, total ? ETH + total : 0);
}

/* Another walk through the extension headers, in a plain way. Returns where it ends. */
static size_t walk_v6(const uint8_t *d, size_t size, uint8_t *proto, bool *later)
{
	size_t at = ETH + 40;

	*proto = d[ETH + 6];
	*later = false;
	while (at + 8 <= size) {
		size_t length = (d[at + 1] + 1u) * 8;

		if (*proto == IPPROTO_FRAGMENT) {
			*later = be16(d + at + 2) >> 3;
			length = 8;
		} else if (*proto == IPPROTO_AH) {
			length = (d[at + 1] + 2u) * 4;
		} else if (*proto != IPPROTO_HOPOPTS && *proto != IPPROTO_ROUTING &&
			   *proto != IPPROTO_DSTOPTS) {
			break;
		}
		*proto = d[at];
		at += length;
		if (*later)
			break;
	}
	return at;
}

static void check_v6(const struct packet *p, const uint8_t *d, size_t size)
{
	size_t payload = be16(d + ETH + 4), at;
	uint8_t proto;
	bool later;

	check(!p->v4 && d[ETH] >> 4 == 6 && size >= ETH + 40);
	check(memcmp(&p->src, d + ETH + 8, 16) == 0 && memcmp(&p->dst, d + ETH + 24, 16) == 0);
	check(p->ttl == d[ETH + 7] && p->tos == (uint8_t)(be16(d + ETH) >> 4));
	at = walk_v6(d, size, &proto, &later);
	if (p->has_l4 || p->later)
		check(proto == p->proto && later == p->later);
	check_l4(p, d, size, at, payload ? ETH + 40 + payload : 0);
}

/* The same for a whole frame, tags and all, as XDP reads it. */
static void check_frame(const uint8_t *d, size_t size)
{
	struct packet p, again;

	memset(&p, 0xff, sizeof(p));
	parse_frame((void *)(uintptr_t)d, (void *)(uintptr_t)(d + size), (__u32)size, &p);
	parse_frame((void *)(uintptr_t)d, (void *)(uintptr_t)(d + size), (__u32)size, &again);
	check(memcmp(&p, &again, sizeof(p)) == 0);
	check(p.odd < AX_REASON_POLICIES && p.fragment < AX_FRAGMENTS && p.vlan <= AX_VLAN_NONE);
	check(p.l3_off >= ETH && p.l3_off <= ETH + 4 * AX_TAGS_MAX && !(p.l3_off - ETH & 3));
	check((p.l3_off > ETH) == (p.vlan != AX_VLAN_NONE));
	check(p.later == (p.fragment == AX_FRAGMENT_LATER) || p.fragment == AX_FRAGMENT_NOT_IP);
	if (p.has_l4) {
		check(!p.later && (p.proto == IPPROTO_TCP || p.proto == IPPROTO_UDP));
		check(p.l4_off + l4_size(p.proto) <= size && l4_size(p.proto) <= p.l4_len);
		check(memcmp(d + p.l4_off, &p.sport_be, 2) == 0);
		check(memcmp(d + p.l4_off + 2, &p.dport_be, 2) == 0);
	}
	if (p.has_icmp)
		check(!p.later && p.l4_off + 8u <= size && p.icmp == be16(d + p.l4_off));
	if (!p.odd && p.fragment != AX_FRAGMENT_NOT_IP)
		check(p.l4_off + p.l4_len <= size && p.payload_off <= p.l4_off + p.l4_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* IP headers lie on a multiple of 4, as in a packet buffer; the end is the allocation's */
	uint8_t *buf = malloc(size + 2), *d = buf + 2;
	struct packet p, again;
	int r;

	check(buf != NULL);
	if (size)
		memcpy(d, data, size);
	memset(&p, 0xff, sizeof(p));
	r = parse_packet(d, d + size, &p);
	check(r == PARSE_OK || r == PARSE_NOT_IP || r == PARSE_MALFORMED);
	check(parse_packet(d, d + size, &again) == r && memcmp(&p, &again, sizeof(p)) == 0);
	if (size < ETH)
		check(r == PARSE_MALFORMED);
	else if (be16(d + 12) != ETH_P_IP && be16(d + 12) != ETH_P_IPV6)
		check(r == PARSE_NOT_IP && !p.has_l4);
	else if (r == PARSE_OK)
		(be16(d + 12) == ETH_P_IP ? check_v4 : check_v6)(&p, d, size);
	check_frame(d, size);
	free(buf);
	return 0;
}
