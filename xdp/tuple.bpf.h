/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet's flow, as the kernel's sockets are asked for by it. */
#ifndef AX_TUPLE_BPF_H
#define AX_TUPLE_BPF_H

#include "rules.bpf.h"

/* Says it where a packet comes from: as sockets and flows are looked for by it. */
static __always_inline __u32 tuple_of(const struct packet *p, struct bpf_sock_tuple *t)
{
	if (p->v4) {
		t->ipv4.saddr = p->src.w[3];
		t->ipv4.daddr = p->dst.w[3];
		t->ipv4.sport = p->sport_be;
		t->ipv4.dport = p->dport_be;
		return sizeof(t->ipv4);
	}
	__builtin_memcpy(t->ipv6.saddr, &p->src, sizeof(t->ipv6.saddr));
	__builtin_memcpy(t->ipv6.daddr, &p->dst, sizeof(t->ipv6.daddr));
	t->ipv6.sport = p->sport_be;
	t->ipv6.dport = p->dport_be;
	return sizeof(t->ipv6);
}

static __always_inline bool is_syn(const struct packet *p)
{
	return (p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_ACK_BIT | TCP_FLAG_RST_BIT |
				TCP_FLAG_FIN_BIT)) == TCP_FLAG_SYN_BIT;
}

#endif
