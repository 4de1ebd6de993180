/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet's flow, as the kernel's sockets are asked for by it: where packets leave, by what would
 * answer it. */
#ifndef AX_TUPLE_BPF_H
#define AX_TUPLE_BPF_H

#include "rules.bpf.h"

/* Says it where a packet comes from: as sockets and flows are looked for by it. */
static __always_inline __u32 tuple_of(const struct packet *p, struct bpf_sock_tuple *t)
{
#ifdef AX_ON_TC
	const struct ax_addr *src = &p->dst, *dst = &p->src;
	__be16 sport = p->dport_be, dport = p->sport_be;
#else
	const struct ax_addr *src = &p->src, *dst = &p->dst;
	__be16 sport = p->sport_be, dport = p->dport_be;
#endif

	if (p->v4) {
		t->ipv4.saddr = src->w[3];
		t->ipv4.daddr = dst->w[3];
		t->ipv4.sport = sport;
		t->ipv4.dport = dport;
		return sizeof(t->ipv4);
	}
	__builtin_memcpy(t->ipv6.saddr, src, sizeof(t->ipv6.saddr));
	__builtin_memcpy(t->ipv6.daddr, dst, sizeof(t->ipv6.daddr));
	t->ipv6.sport = sport;
	t->ipv6.dport = dport;
	return sizeof(t->ipv6);
}

static __always_inline bool is_syn(const struct packet *p)
{
	return (p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_ACK_BIT | TCP_FLAG_RST_BIT |
				TCP_FLAG_FIN_BIT)) == TCP_FLAG_SYN_BIT;
}

#endif
