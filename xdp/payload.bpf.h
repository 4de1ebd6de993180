/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of the payloads that a list's rules ask for (struct ax_payload) a packet has.
 *
 * A payload is what is behind the header of TCP, UDP or ICMP, or behind the IP headers for any
 * other protocol. It ends where the headers say, not where the frame does: short frames are padded
 * with bytes that no receiver sees. Later fragments have none: where theirs lies in the datagram's
 * they do not say of themselves.
 *
 * The usual packet is looked at in place, without a branch on what is compared, of which each would
 * double the paths that the verifier follows. What is at the end of a packet, or in another buffer
 * of it, is copied first, in a function of its own.
 */
#ifndef AX_PAYLOAD_BPF_H
#define AX_PAYLOAD_BPF_H

#include "context.bpf.h"
#include "rules.bpf.h"

static __always_inline bool has_payload(const struct packet *p)
{
	if (!p->payload_off || p->later)
		return false;
	if (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP)
		return p->has_l4;
	return p->has_icmp || !is_icmp(p);
}

/* How long the datagram is that UDP's header speaks of, header included; it may be less than what
 * IP has carried, and more than there is in a first fragment. */
static __always_inline __u32 udp_len(packet_ctx *ctx, const struct packet *p)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp = packet_at(data, p->l4_off);

	return (void *)(udp + 1) > end ? 0 : bpf_ntohs(udp->len);
}

/* In bytes. */
static __always_inline __u32 payload_len(packet_ctx *ctx, const struct packet *p)
{
	__u32 header = p->payload_off - p->l4_off, len = p->l4_len;

	if (!has_payload(p))
		return 0;
	if (p->proto == IPPROTO_UDP) {
		__u32 said = udp_len(ctx, p);

		len = said < len ? said : len;
	}
	return header < len ? len - header : 0;
}

/* The piece of `n` bytes (1 to 8) at `at` of the payload, 0 behind it; false: it is not there. */
static __always_inline bool copy_piece(packet_ctx *ctx, const struct packet *p, __u32 at, __u32 n,
				       __u64 *ret)
{
	*ret = 0;
	n = size_within(n, sizeof(*ret));
	return n && !packet_load(ctx, p->payload_off + at, ret, n);
}

/* Whether the packet, with `len` bytes of payload, has the one of that number. What it returns is
 * unknown to the verifier, as of any global function. */
__weak __noinline int payload_fits(packet_ctx *ctx, const struct packet *p, __u32 number, __u32 len)
{
	const volatile struct ax_payload *want;
	__u64 word;

	if (!p || number >= AX_PAYLOADS_MAX)
		return 0;
	want = &layout.payload[number];
	for (int i = 0; i < AX_PAYLOAD_PIECES; i++) {
		__u32 n = want->len[i], at = want->at[i];

		if (!n)
			break;
		if (at + n > len || !copy_piece(ctx, p, at, n, &word) ||
		    (word ^ want->piece[i].bits) & want->piece[i].mask)
			return 0;
	}
	return 1;
}

/* AX_PAYLOAD_NONE and bits. */
__weak __noinline int payload_of(packet_ctx *ctx, const struct packet *p)
{
	__u32 has = 0, len = p ? payload_len(ctx, p) : 0;

	if (!len)
		return AX_PAYLOAD_NONE;
	for (__u32 i = 0; i < AX_PAYLOADS_MAX && i < layout.payloads_n; i++)
		has |= (__u32)(payload_fits(ctx, p, i, len) & 1) << i;
	return (int)(AX_PAYLOAD_NONE + has);
}

/* All ones where something of the piece differs or lies behind the payload's end, else 0. */
static __always_inline __u64 differs(__u64 word, const volatile struct ax_payload *want, int i,
				     __u32 len)
{
	__u64 other = (word ^ want->piece[i].bits) & want->piece[i].mask;
	__u64 room = (__u64)len - want->at[i] - want->len[i];

	other = (other | -other | room) >> 63;
	opaque(other);
	return other;
}

/* The same as payload_of(). */
static __always_inline __u16 look_at_payload(packet_ctx *ctx, const struct packet *p)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 len = payload_len(ctx, p);
	__u64 has = 0;

	if (!len)
		return AX_PAYLOAD_NONE;
	for (__u32 n = 0; n < AX_PAYLOADS_MAX && n < layout.payloads_n; n++) {
		const volatile struct ax_payload *want = &layout.payload[n];
		__u64 other = 0;

		for (int i = 0; i < AX_PAYLOAD_PIECES && want->len[i]; i++) {
			__u32 off = p->payload_off + want->at[i];
			__u64 *word = packet_at(data, off);

			if (off > PACKET_AT_MAX || (void *)(word + 1) > end)
				return (__u16)payload_of(ctx, p);
			other |= differs(*word, want, i, len);
		}
		has |= (other ^ 1) << n;
	}
	return (__u16)(AX_PAYLOAD_NONE + has);
}

#endif
