// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/frame_build.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <string.h>

#include "base/util.h"

static size_t put_l4(uint8_t *p, const struct frame *f)
{
	size_t header = f->proto == IPPROTO_TCP ? TCP_HEADER : UDP_HEADER;
	uint16_t sport = htons(f->sport ? f->sport : 40000),
		 dport = htons(f->dport ? f->dport : 80);
	uint16_t length = htons((uint16_t)(header + f->payload));

	memset(p, 0, header + f->payload);
	memcpy(p, &sport, 2);
	memcpy(p + 2, &dport, 2);
	if (f->proto == IPPROTO_TCP) {
		p[12] = 5 << 4;
		p[13] = f->flags;
	} else if (f->proto == IPPROTO_UDP) {
		memcpy(p + 4, &length, 2);
	}
	return header + f->payload;
}

static uint16_t length_field(const struct frame *f, size_t headers, size_t l4)
{
	if (f->total == TOTAL_ZERO)
		return 0;
	return htons((uint16_t)((int)headers + (f->total ? f->total : (int)l4)));
}

static size_t put_ipv4(uint8_t *p, const struct frame *f, const struct ax_addr *src,
		       const struct ax_addr *dst)
{
	size_t header = 20 + f->options * 4, l4;
	uint16_t frag = htons((uint16_t)((f->frag & MORE ? 0x2000 : 0) | f->offset)), total;

	memset(p, 0, 20);
	memset(p + 20, 1, f->options * 4); /* no operation */
	l4 = put_l4(p + header, f);
	total = length_field(f, header, l4);
	p[0] = (uint8_t)((f->version ? f->version : 4) << 4 |
			 (f->ihl ? f->ihl : (int)(header / 4)));
	memcpy(p + 2, &total, 2);
	memcpy(p + 6, &frag, 2);
	p[8] = 64;
	p[9] = f->proto;
	memcpy(p + 12, &src->w[3], 4);
	memcpy(p + 16, &dst->w[3], 4);
	return header + l4;
}

static size_t put_ipv6(uint8_t *p, const struct frame *f, const struct ax_addr *src,
		       const struct ax_addr *dst)
{
	uint8_t ext = f->ext ? f->ext : IPPROTO_DSTOPTS, *next = p + 6, *at = p + 40;
	uint16_t frag = htons((uint16_t)(f->offset << 3 | (f->frag & MORE))), length;
	bool fragment = f->frag_header || f->frag || f->offset;
	size_t l4;

	memset(p, 0, 40);
	p[0] = (uint8_t)((f->version ? f->version : 6) << 4);
	p[7] = 64;
	memcpy(p + 8, src, 16);
	memcpy(p + 24, dst, 16);
	for (unsigned i = 0; i < f->options + fragment; i++, at += 8) {
		memset(at, 0, 8);
		*next = i == f->options ? IPPROTO_FRAGMENT : ext;
		next = at;
		if (i == f->options)
			memcpy(at + 2, &frag, 2);
	}
	*next = f->proto;
	l4 = put_l4(at, f);
	length = length_field(f, (size_t)(at - p - 40), l4);
	memcpy(p + 4, &length, 2);
	return (size_t)(at - p) + l4;
}

size_t put_frame(uint8_t p[FRAME_BUILT_MAX], const struct frame *f, int v6,
		 const struct ax_addr *src, const struct ax_addr *dst)
{
	uint16_t type = htons(f->ethertype ? f->ethertype : v6 ? ETH_P_IPV6 : ETH_P_IP);
	size_t n;

	memset(p, 2, 12);
	memcpy(p + 12, &type, 2);
	n = 14 + (v6 ? put_ipv6 : put_ipv4)(p + 14, f, src, dst);
	return f->cut && f->cut < n ? f->cut : n;
}

size_t put_extension(uint8_t p[FRAME_BUILT_MAX], size_t n, uint8_t kind, unsigned field)
{
	uint8_t *at = p + 14 + 40;
	uint16_t length = htons((uint16_t)(n + 8 - 14 - 40)), offset = htons((uint16_t)field);

	memmove(at + 8, at, n - 14 - 40);
	memset(at, 0, 8);
	at[0] = p[14 + 6];
	if (kind == IPPROTO_FRAGMENT)
		memcpy(at + 2, &offset, sizeof(offset));
	p[14 + 6] = kind;
	memcpy(p + 14 + 4, &length, sizeof(length));
	return n + 8;
}
