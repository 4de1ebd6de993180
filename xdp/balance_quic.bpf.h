/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which backend a QUIC packet's connection id names (balance.h says where in it), so that a
 * connection keeps its backend while its client's address or port changes.
 *
 * For the filter, which asks before it looks for the flow. Whoever forges an id gets to a backend
 * of the same balancer, which he could ask anyway.
 */
#ifndef AX_BALANCE_QUIC_BPF_H
#define AX_BALANCE_QUIC_BPF_H

#include "balance_fast.bpf.h"

/* RFC 8999: what is the same in all versions. */
#define QUIC_IS_LONG  0x80
#define QUIC_SHORT_ID 1 /* offset of the receiver's connection id */
#define QUIC_LONG_ID  6
#define QUIC_ID_LEN   5 /* and of its length, in a long header */
/* RFC 9000 and RFC 9369: the type of a long header, and which is that of the handshake's packets */
#define QUIC_TYPE	  0x30
#define QUIC_V1		  1
#define QUIC_V2		  0x6b3343cf
#define QUIC_HANDSHAKE	  0x20
#define QUIC_HANDSHAKE_V2 0x30
/* what of an id has to be there: a byte in front, and the number's two */
#define QUIC_NUMBER_END 3

static __always_inline __u32 quic_version(const __u8 *q)
{
	return (__u32)q[1] << 24 | q[2] << 16 | q[3] << 8 | q[4];
}

/* Of other long headers the client may have made the id up itself. */
static __always_inline bool is_handshake(const __u8 *q)
{
	__u32 version = quic_version(q), type = q[0] & QUIC_TYPE;

	if (q[QUIC_ID_LEN] < QUIC_NUMBER_END)
		return false;
	return (version == QUIC_V1 && type == QUIC_HANDSHAKE) ||
	       (version == QUIC_V2 && type == QUIC_HANDSHAKE_V2);
}

/* The number in the connection id, or -1. */
static __always_inline int quic_number(struct xdp_md *ctx, const struct packet *p)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp = packet_at(data, p->l4_off);
	__u8 *q = (void *)(udp + 1), *id = q + QUIC_SHORT_ID;
	__u32 len = sizeof(*udp) + QUIC_SHORT_ID + QUIC_NUMBER_END;

	if ((void *)(id + QUIC_NUMBER_END) > end)
		return -1;
	if (*q & QUIC_IS_LONG) {
		id = q + QUIC_LONG_ID;
		len = sizeof(*udp) + QUIC_LONG_ID + QUIC_NUMBER_END;
		if ((void *)(id + QUIC_NUMBER_END) > end || !is_handshake(q))
			return -1;
	}
	if (bpf_ntohs(udp->len) < len)
		return -1;
	if (id[0] >= AX_QUIC_UNROUTABLE)
		return AX_QUIC_NUMBERS;
	return id[1] << 8 | id[2];
}

/* The number of the backend, QUIC_NOTHING or QUIC_UNKNOWN. A global function: the verifier looks at
 * it once. */
__noinline int quic_real(struct xdp_md *ctx, const struct packet *p, __u32 balancer)
{
	const __u8 *a = arena_get();
	const struct ax_balancer *b;
	__u32 at, n;
	int number;

	if (!a || !p)
		return QUIC_NOTHING;
	b = balancer_of(a, balancer);
	if (!b || !b->quic_n || p->proto != IPPROTO_UDP || !is_tracked(p))
		return QUIC_NOTHING;
	number = quic_number(ctx, p);
	if (number < 0)
		return QUIC_NOTHING;
	if ((__u32)number >= b->quic_n)
		return QUIC_UNKNOWN;
	at = b->quic + (__u32)number * sizeof(struct ax_quic) + (p->v4 ? 0 : sizeof(__u16));
	opaque(at);
	if (layout.size < sizeof(__u16) || at > layout.size - sizeof(__u16))
		return QUIC_UNKNOWN;
	n = *(const __u16 *)(a + at);
	return real_in_use(a, n, balancer) ? (int)n : QUIC_UNKNOWN;
}

#endif
