/* SPDX-License-Identifier: GPL-2.0-or-later */
/* That a client of NAT has got the backend's answer, see struct ax_nat. */
#ifndef AX_NAT_PROOF_BPF_H
#define AX_NAT_PROOF_BPF_H

#include "parse.bpf.h"

/* ack: what a segment acknowledges, or what acknowledges it. */
static __always_inline void put_proof(__u8 proof[3], __u32 ack)
{
	proof[0] = (__u8)(ack >> 16);
	proof[1] = (__u8)(ack >> 8);
	proof[2] = (__u8)ack;
}

static __always_inline bool same_proof(const __u8 a[3], const __u8 b[3])
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* A number of TCP's header, at an offset in it; 0: there is none. */
static __always_inline __u32 tcp_number(struct xdp_md *ctx, const struct packet *p, __u32 off)
{
	__be32 n;

	if (p->proto != IPPROTO_TCP || bpf_xdp_load_bytes(ctx, p->l4_off + off, &n, sizeof(n)))
		return 0;
	return bpf_ntohl(n);
}

#endif
