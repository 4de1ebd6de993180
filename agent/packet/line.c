// SPDX-License-Identifier: GPL-2.0-or-later
#include <netinet/in.h>

#include "packet/text.h"
#include "rules/rule.h"

#define ETH_LEN	    14
#define ARP_LEN	    28
#define HEADERS_MAX 64 /* IPv6 extension headers that are followed */

/* A part of a frame, read from its front. */
struct view {
	const uint8_t *at;
	size_t len;
};

/* What was found out about an IP packet. */
struct ip {
	struct ax_addr src, dst;
	uint8_t proto, ttl, tos;
	enum ax_fragment fragment;
	uint32_t offset;
	unsigned options;  /* bytes of IPv4 options */
	unsigned headers;  /* IPv6 extension headers, but for a fragment's */
	const char *wrong; /* what cannot be read on for, NULL: nothing */
	struct view l4;
	size_t padding; /* bytes behind the IP packet */
};

static unsigned get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void skip(struct view *v, size_t n)
{
	v->at += n;
	v->len -= n;
}

static struct ax_addr get_addr4(const uint8_t *p)
{
	__be32 v4;

	memcpy(&v4, p, 4);
	return addr_from_v4(v4);
}

static struct ax_addr get_addr6(const uint8_t *p)
{
	struct in6_addr v6;

	memcpy(&v6, p, 16);
	return addr_from_v6(&v6);
}

static enum ax_fragment fragment_kind(unsigned offset, bool more)
{
	return offset ? AX_FRAGMENT_LATER : more ? AX_FRAGMENT_FIRST : AX_FRAGMENT_NONE;
}

/* --- IP headers --- */

static void read_ip4(struct view v, bool quoted, struct ip *ip)
{
	const uint8_t *h = v.at;
	unsigned header, total;

	if (v.len < 20 || h[0] >> 4 != 4) {
		ip->wrong = v.len < 20 ? "its IPv4 header is cut short" : "its version is not 4";
		return;
	}
	header = (h[0] & 15u) * 4;
	total = get16(h + 2);
	ip->src = get_addr4(h + 12);
	ip->dst = get_addr4(h + 16);
	ip->ttl = h[8];
	ip->tos = h[1];
	ip->proto = h[9];
	ip->offset = (get16(h + 6) & 0x1fff) * 8;
	ip->fragment = fragment_kind(ip->offset, get16(h + 6) & 0x2000);
	if (header < 20 || header > v.len || total < header || (total > v.len && !quoted)) {
		ip->wrong = header < 20 || header > v.len ? "its IPv4 header length is wrong"
							  : "its IPv4 length is wrong";
		return;
	}
	ip->options = header - 20;
	if (v.len > total) {
		ip->padding = v.len - total;
		v.len = total;
	}
	skip(&v, header);
	ip->l4 = v;
}

static void read_ip6_headers(struct view v, struct ip *ip)
{
	for (unsigned n = 0; ip->fragment != AX_FRAGMENT_LATER; n++) {
		size_t len = 8;

		switch (ip->proto) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			if (v.len >= 2)
				len = ((size_t)v.at[1] + 1) * 8;
			ip->headers++;
			break;
		case IPPROTO_AH:
			if (v.len >= 2)
				len = ((size_t)v.at[1] + 2) * 4;
			ip->headers++;
			break;
		case IPPROTO_FRAGMENT:
			if (v.len >= 8) {
				ip->offset = get16(v.at + 2) & 0xfff8;
				ip->fragment = fragment_kind(ip->offset, v.at[3] & 1);
			}
			break;
		default:
			ip->l4 = v;
			return;
		}
		if (v.len < len || n == HEADERS_MAX) {
			ip->wrong = "its IPv6 extension headers have no end";
			return;
		}
		ip->proto = v.at[0];
		skip(&v, len);
	}
	ip->l4 = v;
}

static void read_ip6(struct view v, bool quoted, struct ip *ip)
{
	const uint8_t *h = v.at;
	size_t payload;

	if (v.len < 40 || h[0] >> 4 != 6) {
		ip->wrong = v.len < 40 ? "its IPv6 header is cut short" : "its version is not 6";
		return;
	}
	payload = get16(h + 4);
	ip->proto = h[6];
	ip->ttl = h[7];
	ip->tos = (uint8_t)(h[0] << 4 | h[1] >> 4);
	ip->src = get_addr6(h + 8);
	ip->dst = get_addr6(h + 24);
	skip(&v, 40);
	if (payload > v.len && !quoted) {
		ip->wrong = "its IPv6 length is wrong";
		return;
	}
	if (v.len > payload) {
		ip->padding = v.len - payload;
		v.len = payload;
	}
	read_ip6_headers(v, ip);
}

/* --- printing --- */

static void put_end(FILE *f, const struct ax_addr *a, bool ports, unsigned port)
{
	char buf[ADDR_STRLEN];

	if (!ports) {
		fputs(addr_format(a, buf), f);
		return;
	}
	fprintf(f, addr_is_v4(a) ? "%s:%u" : "[%s]:%u", addr_format(a, buf), port);
}

static void put_ends(FILE *f, const struct ip *ip, bool ports)
{
	const uint8_t *l4 = ip->l4.at;

	put_end(f, &ip->src, ports, ports ? get16(l4) : 0);
	fputs(" > ", f);
	put_end(f, &ip->dst, ports, ports ? get16(l4 + 2) : 0);
}

static void put_flags(FILE *f, unsigned flags)
{
	const char *between = " flags ";

	if (!flags)
		fputs(" flags none", f);
	for (unsigned i = 0; i < 8; i++) {
		if (!(flags & (1u << i)))
			continue;
		fprintf(f, "%s%s", between, packet_flag_names[i]);
		between = ",";
	}
}

static void put_fragment(FILE *f, const struct ip *ip)
{
	if (ip->fragment == AX_FRAGMENT_FIRST)
		fputs(" frag first", f);
	else if (ip->fragment == AX_FRAGMENT_LATER && ip->offset == PACKET_LATER_OFFSET)
		fputs(" frag later", f);
	else if (ip->fragment == AX_FRAGMENT_LATER)
		fprintf(f, " frag later=%u", ip->offset);
}

static bool is_icmp(const struct ip *ip)
{
	return ip->proto == (addr_is_v4(&ip->src) ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static bool is_icmp_error(const struct ip *ip)
{
	static const uint8_t types4[] = {3, 4, 5, 11, 12};
	uint8_t type = ip->l4.at[0];

	if (addr_is_v4(&ip->src))
		return memchr(types4, type, sizeof(types4)) != NULL;
	return type >= 1 && type < 128;
}

static bool is_solicit(const struct ip *ip)
{
	return ip->proto == IPPROTO_ICMPV6 && !addr_is_v4(&ip->src) && ip->ttl == 255 && !ip->tos &&
	       ip->fragment == AX_FRAGMENT_NONE && ip->l4.len >= 24 && ip->l4.at[0] == 135 &&
	       ip->l4.at[1] == 0;
}

static void put_proto(FILE *f, const struct ip *ip)
{
	const char *name = rule_proto_name(ip->proto);

	if (name)
		fprintf(f, "%s ", name);
	else
		fprintf(f, "%u ", ip->proto);
}

/* The length of the header above IP as it says itself, 0 when that is nonsense. */
static size_t l4_header_len(const struct ip *ip)
{
	const struct view *v = &ip->l4;
	size_t len = 8;

	if (ip->proto == IPPROTO_TCP)
		len = v->len >= 20 ? (size_t)(v->at[12] >> 4) * 4 : SIZE_MAX;
	else if (ip->proto != IPPROTO_UDP && !is_icmp(ip))
		return SIZE_MAX;
	if (ip->proto == IPPROTO_TCP && len < 20)
		return 0;
	return len <= v->len ? len : 0;
}

/* What an error quotes holds at least 8 bytes above IP; more is not looked at. */
static bool put_quote(FILE *f, const struct ip *about)
{
	struct view v = about->l4;
	struct ip ip = {0};
	bool ports;

	skip(&v, 8);
	if (addr_is_v4(&about->src))
		read_ip4(v, true, &ip);
	else
		read_ip6(v, true, &ip);
	if (ip.wrong || ip.options || ip.headers || ip.proto == IPPROTO_ICMP ||
	    ip.proto == IPPROTO_ICMPV6)
		return false;
	ports = (ip.proto == IPPROTO_TCP || ip.proto == IPPROTO_UDP) &&
		ip.fragment != AX_FRAGMENT_LATER;
	if (ports && ip.l4.len < 8)
		return false;
	fputs(" quoting (", f);
	put_proto(f, &ip);
	put_ends(f, &ip, ports);
	put_fragment(f, &ip);
	putc(')', f);
	return true;
}

static void put_notes(FILE *f, const struct ip *ip)
{
	if (ip->options)
		fprintf(f, " (with %u bytes of IP options)", ip->options);
	if (ip->headers)
		fprintf(f, " (behind %u extension header%s)", ip->headers,
			ip->headers == 1 ? "" : "s");
	if (ip->padding)
		fprintf(f, " (%zu bytes behind it)", ip->padding);
}

static void put_tos(FILE *f, const struct ip *ip)
{
	const char *name = dscp_name(ip->tos >> 2);

	if (ip->tos >> 2 && name)
		fprintf(f, " dscp %s", name);
	else if (ip->tos >> 2)
		fprintf(f, " dscp %u", ip->tos >> 2);
	if (ip->tos & 3)
		fprintf(f, " ecn %s", ecn_name(ip->tos & 3));
}

/* What its header has besides. */
static void put_header(FILE *f, const struct ip *ip)
{
	if (ip->ttl != PACKET_TTL)
		fprintf(f, " ttl %u", ip->ttl);
	put_tos(f, ip);
}

/* A packet whose header above IP is not there, or not looked at. */
static void put_plain(FILE *f, const struct ip *ip)
{
	put_proto(f, ip);
	put_ends(f, ip, false);
	put_fragment(f, ip);
	put_header(f, ip);
	if (ip->l4.len)
		fprintf(f, " len %zu", ip->l4.len);
}

static void put_ip(FILE *f, const struct ip *ip)
{
	bool ports = ip->proto == IPPROTO_TCP || ip->proto == IPPROTO_UDP;
	size_t header = ip->fragment == AX_FRAGMENT_LATER ? SIZE_MAX : l4_header_len(ip);
	bool quoted = false;

	if (is_solicit(ip)) {
		fputs("nd ", f);
		put_ends(f, ip, false);
		put_notes(f, ip);
		return;
	}
	if (header == SIZE_MAX && ip->proto == IPPROTO_TCP && ip->fragment != AX_FRAGMENT_LATER)
		header = 0; /* too short for a TCP header */
	if (header == SIZE_MAX || !header) {
		put_plain(f, ip);
		if (!header)
			fputs(" (its header is cut short or wrong)", f);
		put_notes(f, ip);
		return;
	}
	put_proto(f, ip);
	put_ends(f, ip, ports);
	if (ip->proto == IPPROTO_TCP)
		put_flags(f, ip->l4.at[13]);
	if (is_icmp(ip))
		fprintf(f, " type %u/%u", ip->l4.at[0], ip->l4.at[1]);
	put_fragment(f, ip);
	put_header(f, ip);
	if (is_icmp(ip) && is_icmp_error(ip))
		quoted = put_quote(f, ip);
	if (!quoted && ip->l4.len > header)
		fprintf(f, " len %zu", ip->l4.len - header);
	put_notes(f, ip);
}

static void put_arp(FILE *f, struct view v)
{
	struct ip ip = {0};
	unsigned op;

	if (v.len < ARP_LEN || get16(v.at) != 1 || get16(v.at + 2) != 0x0800 ||
	    get16(v.at + 4) != 0x0604) {
		fprintf(f, "(ARP, not of Ethernet and IPv4, %zu bytes)", v.len);
		return;
	}
	op = get16(v.at + 6);
	ip.src = get_addr4(v.at + 14);
	ip.dst = get_addr4(v.at + 24);
	fputs("arp ", f);
	put_ends(f, &ip, false);
	if (op == 2)
		fputs(" reply", f);
	else if (op != 1)
		fprintf(f, " (operation %u)", op);
}

static void put_body(FILE *f, unsigned ethertype, struct view v)
{
	struct ip ip = {0};

	if (ethertype == 0x0806) {
		put_arp(f, v);
		return;
	}
	if (ethertype != 0x0800 && ethertype != 0x86dd) {
		fprintf(f, "(ethertype 0x%04x, %zu bytes)", ethertype, v.len);
		return;
	}
	if (ethertype == 0x0800)
		read_ip4(v, false, &ip);
	else
		read_ip6(v, false, &ip);
	if (!ip.wrong) {
		put_ip(f, &ip);
		return;
	}
	if (!addr_is_zero(&ip.src) || !addr_is_zero(&ip.dst)) {
		put_proto(f, &ip);
		put_ends(f, &ip, false);
		putc(' ', f);
	}
	fprintf(f, "(%s, %zu bytes)", ip.wrong, v.len);
}

static void put_mac(FILE *f, const uint8_t *m)
{
	fprintf(f, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

static bool is_tag(unsigned ethertype)
{
	return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100;
}

bool packet_ends(const void *frame, size_t len, struct packet_ends *ret)
{
	struct view v = {frame, len};
	struct ip ip = {0};
	unsigned type;

	*ret = (struct packet_ends){0};
	if (len < ETH_LEN)
		return false;
	type = get16(v.at + 12);
	skip(&v, ETH_LEN);
	for (; is_tag(type) && v.len >= 4; skip(&v, 4))
		type = get16(v.at + 2);
	if (type != 0x0800 && type != 0x86dd)
		return false;
	/* as what an ICMP error quotes: it may have been cut off */
	if (type == 0x0800)
		read_ip4(v, true, &ip);
	else
		read_ip6(v, true, &ip);
	ret->src = ip.src;
	ret->dst = ip.dst;
	ret->proto = ip.proto;
	ret->has_ports = !ip.wrong && ip.fragment != AX_FRAGMENT_LATER && ip.l4.len >= 4 &&
			 (ip.proto == IPPROTO_TCP || ip.proto == IPPROTO_UDP);
	if (ret->has_ports) {
		ret->sport = (uint16_t)get16(ip.l4.at);
		ret->dport = (uint16_t)get16(ip.l4.at + 2);
	}
	return !addr_is_zero(&ip.src) || !addr_is_zero(&ip.dst);
}

static void put_frame(FILE *f, struct view v, bool with_mac)
{
	const uint8_t *eth = v.at;
	unsigned type;

	if (v.len < ETH_LEN) {
		fprintf(f, "(%zu bytes: too short for Ethernet)", v.len);
		return;
	}
	type = get16(eth + 12);
	skip(&v, ETH_LEN);
	while (is_tag(type) && v.len >= 4) {
		fprintf(f, "vlan %u", get16(v.at) & 0xfff);
		if (type != 0x8100)
			fprintf(f, ":%04x", type);
		putc(' ', f);
		type = get16(v.at + 2);
		skip(&v, 4);
	}
	put_body(f, type, v);
	if (with_mac) {
		fputs(" mac ", f);
		put_mac(f, eth + 6);
		fputs(" > ", f);
		put_mac(f, eth);
	}
}

char *packet_line(const void *frame, size_t len, bool with_mac)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	bool failed;

	if (!f)
		return NULL;
	put_frame(f, (struct view){frame, len}, with_mac);
	failed = ferror(f);
	failed |= fclose(f) != 0;
	return failed ? NULL : take_ptr(&text);
}
