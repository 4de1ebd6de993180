// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <netinet/in.h>

#include "packet/text.h"

#define ETH_LEN	     14
#define IPV4_LEN     20
#define IPV6_LEN     40
#define FRAGMENT_LEN 8
#define TCP_LEN	     20
#define UDP_LEN	     8
#define ICMP_LEN     8
#define ARP_LEN	     28
/* RFC 792: an error quotes the IP header and this much of what follows. RFC 4443: as much as fits
 * into 1280 bytes. */
#define QUOTE4 8
#define QUOTE6 (1280 - IPV6_LEN - ICMP_LEN)

/* Writes at the end of a buffer that is known to be long enough. */
struct writer {
	uint8_t *at;
};

static void put8(struct writer *w, unsigned v)
{
	*w->at++ = (uint8_t)v;
}

static void put16(struct writer *w, unsigned v)
{
	put8(w, v >> 8);
	put8(w, v);
}

static void put_bytes(struct writer *w, const void *p, size_t n)
{
	if (n)
		memcpy(w->at, p, n);
	w->at += n;
}

static void put_zeros(struct writer *w, size_t n)
{
	memset(w->at, 0, n);
	w->at += n;
}

/* RFC 1071, not yet folded. */
static uint32_t sum(const uint8_t *p, size_t n)
{
	uint32_t s = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	return n % 2 ? s + ((uint32_t)p[n - 1] << 8) : s;
}

static uint16_t fold(uint32_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static void set16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* --- above IP --- */

static bool is_icmp(const struct packet *p)
{
	return p->proto == (addr_is_v4(&p->src) ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static size_t l4_header_len(const struct packet *p)
{
	if (p->fragment == AX_FRAGMENT_LATER)
		return 0;
	if (p->proto == IPPROTO_TCP)
		return TCP_LEN;
	if (p->proto == IPPROTO_UDP)
		return UDP_LEN;
	return is_icmp(p) ? ICMP_LEN : 0;
}

static uint32_t pseudo_sum(const struct packet *p, size_t len)
{
	size_t from = addr_is_v4(&p->src) ? 12 : 0;

	return sum(p->src.b + from, 16 - from) + sum(p->dst.b + from, 16 - from) + (uint32_t)len +
	       p->proto;
}

static void set_l4_checksum(const struct packet *p, uint8_t *l4, size_t len)
{
	uint16_t check;

	if (p->proto == IPPROTO_TCP) {
		set16(l4 + 16, fold(sum(l4, len) + pseudo_sum(p, len)));
	} else if (p->proto == IPPROTO_UDP) {
		check = fold(sum(l4, len) + pseudo_sum(p, len));
		set16(l4 + 6, check ? check : 0xffff); /* 0 would mean that there is none */
	} else if (p->proto == IPPROTO_ICMPV6) {
		set16(l4 + 2, fold(sum(l4, len) + pseudo_sum(p, len)));
	} else {
		set16(l4 + 2, fold(sum(l4, len)));
	}
}

static void put_l4_header(struct writer *w, const struct packet *p, size_t payload)
{
	if (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP) {
		put16(w, p->sport);
		put16(w, p->dport);
	}
	if (p->proto == IPPROTO_TCP) {
		put_zeros(w, 8); /* the sequence numbers */
		put8(w, TCP_LEN / 4 << 4);
		put8(w, p->tcp_flags);
		put16(w, 65535); /* window */
		put_zeros(w, 4); /* checksum, urgent pointer */
	} else if (p->proto == IPPROTO_UDP) {
		put16(w, (unsigned)(UDP_LEN + payload));
		put_zeros(w, 2);
	} else {
		put8(w, p->icmp_type);
		put8(w, p->icmp_code);
		put_zeros(w, 6); /* checksum, and what depends on the type */
	}
}

/* --- IP --- */

static void put_ip_header(struct writer *w, const struct packet *p, size_t l4_len)
{
	uint8_t *start = w->at;
	bool first = p->fragment == AX_FRAGMENT_FIRST, later = p->fragment == AX_FRAGMENT_LATER;

	if (addr_is_v4(&p->src)) {
		put16(w, 0x4500u | p->tos);
		put16(w, (unsigned)(IPV4_LEN + l4_len));
		put16(w, first || later ? 1 : 0); /* identification */
		put16(w, first ? 0x2000 : later ? p->offset / 8 : 0);
		put8(w, p->ttl);
		put8(w, p->proto);
		put16(w, 0);
		put_bytes(w, &p->src.w[3], 4);
		put_bytes(w, &p->dst.w[3], 4);
		set16(start + 10, fold(sum(start, IPV4_LEN)));
		return;
	}
	put16(w, 0x6000u | (unsigned)p->tos << 4);
	put16(w, 0);
	put16(w, (unsigned)(l4_len + (first || later ? FRAGMENT_LEN : 0)));
	put8(w, first || later ? IPPROTO_FRAGMENT : p->proto);
	put8(w, p->ttl);
	put_bytes(w, p->src.b, 16);
	put_bytes(w, p->dst.b, 16);
	if (first || later) {
		put8(w, p->proto);
		put8(w, 0);
		put16(w, first ? 1 : p->offset); /* in bytes, for the low bits are flags */
		put_zeros(w, 3);
		put8(w, 1); /* identification */
	}
}

static size_t ip_header_len(const struct packet *p)
{
	bool fragment = p->fragment == AX_FRAGMENT_FIRST || p->fragment == AX_FRAGMENT_LATER;

	return addr_is_v4(&p->src) ? IPV4_LEN : (size_t)IPV6_LEN + (fragment ? FRAGMENT_LEN : 0);
}

static int build_ip(const struct packet *p, uint8_t **ret, size_t *len);

/* The part of the quoted packet that an error holds. */
static int build_quote(const struct packet *p, uint8_t **ret, size_t *len)
{
	size_t most = addr_is_v4(&p->src) ? IPV4_LEN + QUOTE4 : QUOTE6;
	int r = build_ip(p, ret, len);

	if (!r && *len > most)
		*len = most;
	return r;
}

static int build_ip(const struct packet *p, uint8_t **ret, size_t *len)
{
	size_t ip = ip_header_len(p), l4 = l4_header_len(p), payload = p->len;
	autofree uint8_t *quote = NULL, *buf = NULL;
	const uint8_t *data = p->data;
	struct writer w;
	int r;

	if (p->quoted) {
		r = build_quote(p->quoted, &quote, &payload);
		if (r)
			return r;
		data = quote;
	}
	if (ip + l4 + payload > UINT16_MAX)
		return -EMSGSIZE;
	buf = malloc(ip + l4 + payload);
	if (!buf)
		return -ENOMEM;
	w.at = buf;
	put_ip_header(&w, p, l4 + payload);
	if (l4)
		put_l4_header(&w, p, payload);
	put_bytes(&w, data, payload);
	if (l4)
		set_l4_checksum(p, buf + ip, l4 + payload);
	*ret = take_ptr(&buf);
	*len = ip + l4 + payload;
	return 0;
}

/* --- the frame --- */

static int build_arp(const struct packet *p, uint8_t **ret, size_t *len)
{
	uint8_t *buf = malloc(ARP_LEN);
	struct writer w = {buf};

	if (!buf)
		return -ENOMEM;
	put16(&w, 1); /* Ethernet */
	put16(&w, 0x0800);
	put16(&w, 0x0604); /* lengths of addresses */
	put16(&w, p->reply ? 2 : 1);
	put_bytes(&w, p->smac, 6);
	put_bytes(&w, &p->src.w[3], 4);
	if (p->reply)
		put_bytes(&w, p->dmac, 6);
	else
		put_zeros(&w, 6);
	put_bytes(&w, &p->dst.w[3], 4);
	*ret = buf;
	*len = ARP_LEN;
	return 0;
}

int packet_build(const struct packet *p, uint8_t **frame, size_t *len)
{
	unsigned ethertype = p->kind == PACKET_ARP ? 0x0806 : addr_is_v4(&p->src) ? 0x0800 : 0x86dd;
	autofree uint8_t *rest = NULL;
	size_t rest_len;
	struct writer w;
	int r;

	r = p->kind == PACKET_ARP ? build_arp(p, &rest, &rest_len) : build_ip(p, &rest, &rest_len);
	if (r)
		return r;
	*len = ETH_LEN + 4 * p->n_tags + rest_len;
	*frame = malloc(*len);
	if (!*frame)
		return -ENOMEM;
	w.at = *frame;
	put_bytes(&w, p->dmac, 6);
	put_bytes(&w, p->smac, 6);
	for (size_t i = 0; i < p->n_tags; i++) {
		put16(&w, p->tags[i].tpid);
		put16(&w, p->tags[i].id);
	}
	put16(&w, ethertype);
	put_bytes(&w, rest, rest_len);
	return 0;
}
