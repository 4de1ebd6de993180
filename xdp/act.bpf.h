/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What rules do to a packet besides passing and dropping it: rate limits, captures, turning it
 * around, rewriting it. */
#ifndef AX_ACT_BPF_H
#define AX_ACT_BPF_H

#include "checksum.bpf.h"
#include "context.bpf.h"

/* --- rate limits --- */

static __always_inline struct ax_addr prefix_of(const struct ax_addr *a, __u32 len)
{
	struct ax_addr r = *a;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		__u32 bits = len > 32u * i ? len - 32u * i : 0;

		if (bits < 32)
			r.w[i] &= bits ? bpf_htonl(~0u << (32 - bits)) : 0;
	}
	return r;
}

/* The time stamp of the bucket that a packet draws from, or NULL. */
static __always_inline __u64 *bucket_of(const struct ax_limit *lim, const struct packet *p,
					__u32 counter, bool create)
{
	struct ax_source_limit_key key = {.counter = counter};
	__u64 full = 0, *stamp;

	if (!lim->per_source)
		return bpf_map_lookup_elem(&limits, &counter);
	key.prefix = prefix_of(&p->src, p->v4 ? lim->len4 + 96u : lim->len6);
	stamp = bpf_map_lookup_elem(&source_limits, &key);
	if (stamp || !create)
		return stamp;
	bpf_map_update_elem(&source_limits, &key, &full, BPF_NOEXIST);
	return bpf_map_lookup_elem(&source_limits, &key);
}

#define LIMIT_TRIES 8 /* other CPUs may draw from the bucket at the same time */

static __always_inline __u64 cost_of(const struct ax_limit *lim, __u32 len)
{
	return lim->bytes ? (lim->cost * len) >> AX_LIMIT_BYTE_SHIFT : lim->cost;
}

/* Whether a packet of that cost is above the rate, of which none costs more than `most`. With
 * `keep` nothing is drawn from the bucket. */
static __always_inline bool limited_by(const struct ax_limit *lim, const struct packet *p,
				       __u64 cost, __u64 most, __u32 counter, bool keep)
{
	__u64 now = bpf_ktime_get_ns() << AX_LIMIT_NS_SHIFT;
	__u64 *stamp = bucket_of(lim, p, counter, !keep);

	if (!stamp)
		return false;
	for (int i = 0; i < LIMIT_TRIES; i++) {
		__u64 old = *(volatile __u64 *)stamp, from = old;

		if ((__s64)(old - now) < 0)
			from = now;
		if (from - now > lim->tolerance) {
			if (from - now - lim->tolerance <= most)
				return true;
			/* so far ahead is only what another limit of that name left: now the
			 * bucket is empty, and no more than that */
			from = now + lim->tolerance;
		}
		if (keep || __sync_val_compare_and_swap(stamp, old, from + cost) == old)
			return false;
	}
	return false;
}

/* The same of a frame that is `len` bytes long. */
static __always_inline bool limited(const struct ax_limit *lim, const struct packet *p, __u32 len,
				    __u32 counter, bool keep)
{
	return limited_by(lim, p, cost_of(lim, len), cost_of(lim, 0xffff), counter, keep);
}

/* --- captures --- */

struct capture_range {
	__u32 off, len;
};

static __always_inline struct capture_range capture_range(const struct packet *p,
							  const struct ax_action *act, __u32 frame)
{
	struct capture_range r = {0, frame};
	__u32 end = frame;

	if (!(act->flags & AX_ACTION_FRAME)) {
		r.off = p->l3_off;
		if (p->payload_off) {
			r.off = p->payload_off;
			end = p->l4_off + p->l4_len; /* padding is no payload */
		}
		if (end > frame)
			end = frame;
		r.len = end > r.off ? end - r.off : 0;
	}
	if (r.len > act->capture)
		r.len = act->capture;
	return r;
}

static __always_inline void describe(packet_ctx *ctx, struct ax_capture *c, const struct packet *p,
				     const struct ax_action *act, __u32 frame, __u32 off,
				     __u32 captured, __u8 kind)
{
	c->time_ns = bpf_ktime_get_boot_ns();
	c->generation = layout.generation;
	c->ifindex = packet_ifindex(ctx);
	c->queue = packet_queue(ctx);
	c->frame_len = frame;
	c->captured = (__u16)captured;
	c->data_off = (__u16)off;
	c->counter = act->counter;
	c->vlan = p->vlan;
	c->src = p->src;
	c->dst = p->dst;
	c->sport_be = p->sport_be;
	c->dport_be = p->dport_be;
	c->ethertype_be = p->ethertype_be;
	c->proto = p->proto;
	c->kind = kind;
	c->verdict = act->verdict;
	c->tcp_flags = p->tcp_flags;
	c->has_ports = p->has_l4;
	c->fragment = p->fragment;
	c->pad = p->has_icmp ? p->icmp : 0;
}

/* A record with room for `room` bytes (a constant, as the verifier wants it). No reader is woken:
 * that would take a hundred times as long as the record. */
static __always_inline bool put_record(packet_ctx *ctx, void *ring, const struct packet *p,
				       const struct ax_action *act, __u32 frame,
				       struct capture_range r, __u8 kind, __u32 room, __u64 wake)
{
	struct ax_capture *c = bpf_ringbuf_reserve(ring, sizeof(*c) + room, 0);

	if (!c)
		return false;
	r.len = size_within(r.len, room);
	if (r.len && packet_load(ctx, r.off, c + 1, r.len))
		r.len = 0;
	describe(ctx, c, p, act, frame, r.off, r.len, kind);
	bpf_ringbuf_submit(c, wake);
	return true;
}

static __noinline __attribute__((unused)) bool put_capture(packet_ctx *ctx, const struct packet *p,
							   const struct ax_action *act, __u32 frame)
{
	struct capture_range r = capture_range(p, act, frame);
	const __u64 quiet = BPF_RB_NO_WAKEUP;

	if (r.len <= 64)
		return put_record(ctx, &captures, p, act, frame, r, AX_CAPTURE_DATA, 64, quiet);
	if (r.len <= 512)
		return put_record(ctx, &captures, p, act, frame, r, AX_CAPTURE_DATA, 512, quiet);
	if (r.len <= 2048)
		return put_record(ctx, &captures, p, act, frame, r, AX_CAPTURE_DATA, 2048, quiet);
	return put_record(ctx, &captures, p, act, frame, r, AX_CAPTURE_DATA, AX_CAPTURE_MAX, quiet);
}

static __noinline __attribute__((unused)) void put_slot(packet_ctx *ctx, const struct packet *p,
							const struct ax_action *act, __u32 frame)
{
	struct capture_range r = capture_range(p, act, frame);
	struct slot *slot = bpf_map_lookup_elem(&slots, &(__u32){act->slot});
	struct scratch *s = scratch_get();
	__u64 now = bpf_ktime_get_boot_ns();
	__u32 n = r.len > AX_SLOT_BYTES ? AX_SLOT_BYTES : r.len;

	if (!slot || !s)
		return;
	__builtin_memset(s->w, 0, AX_SLOT_BYTES);
	n = size_within(n, AX_SLOT_BYTES);
	if (n && packet_load(ctx, r.off, s, n))
		n = 0;
	bpf_spin_lock(&slot->lock);
	slot->len = n;
	slot->time_ns = now;
	slot->count++;
	__builtin_memcpy(slot->data, s->w, AX_SLOT_BYTES);
	bpf_spin_unlock(&slot->lock);
}

#define TRIGGER_BYTES 512 /* a datagram of a trigger is shorter */

static __noinline __attribute__((unused)) void put_trigger(packet_ctx *ctx, const struct packet *p,
							   const struct ax_action *act, __u32 frame)
{
	struct capture_range r = {p->payload_off, 0};

	if (p->l4_len > 8)
		r.len = p->l4_len - 8;
	if (r.len > TRIGGER_BYTES)
		r.len = TRIGGER_BYTES;
	if (!put_record(ctx, &triggers, p, act, frame, r, AX_CAPTURE_TRIGGER, TRIGGER_BYTES,
			BPF_RB_FORCE_WAKEUP))
		count_reason(AX_REASON_TRIGGER_LOST);
}

static __always_inline void capture(packet_ctx *ctx, const struct packet *p,
				    const struct ax_action *act, __u32 frame)
{
	struct capture_range none = {0, 0};

	if (act->flags & AX_ACTION_TRIGGER)
		put_trigger(ctx, p, act, frame);
	if (act->sample > 1 && bpf_get_prandom_u32() % act->sample)
		return;
	if (act->flags & AX_ACTION_SLOT)
		put_slot(ctx, p, act, frame);
	if (act->flags & AX_ACTION_RING && !put_capture(ctx, p, act, frame))
		count_reason(AX_REASON_CAPTURE_LOST);
	if (act->flags & AX_ACTION_LOG &&
	    !put_record(ctx, &captures, p, act, frame, none, AX_CAPTURE_LOG, 0, BPF_RB_NO_WAKEUP))
		count_reason(AX_REASON_CAPTURE_LOST);
}

/* --- turning around --- */

static __always_inline void swap_macs(struct ethhdr *eth)
{
	__u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, mac, ETH_ALEN);
}

static __always_inline bool swap_addresses(void *l3, void *end, bool v4)
{
	if (v4) {
		struct iphdr *ip = l3;
		__be32 src;

		if ((void *)(ip + 1) > end)
			return false;
		src = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = src;
	} else {
		struct ipv6hdr *ip = l3;
		struct in6_addr src;

		if ((void *)(ip + 1) > end)
			return false;
		src = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = src;
	}
	return true;
}

/* An echo request becomes its reply. */
static __always_inline void answer_echo(const struct packet *p, __u8 *type)
{
	if (p->v4 && *type == 8)
		*type = 0;
	else if (!p->v4 && *type == 128)
		*type = 129;
}

static __always_inline bool swap_ends(struct xdp_md *ctx, const struct packet *p)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *l3 = packet_at(data, p->l3_off), *l4 = packet_at(data, p->l4_off);
	__be16 *port = l4;
	__be16 sport;

	if ((void *)(eth + 1) > end)
		return false;
	swap_macs(eth);
	if (p->fragment == AX_FRAGMENT_NOT_IP)
		return true;
	if (!swap_addresses(l3, end, p->v4))
		return false;
	if (l4 + 4 > end || !p->l4_off)
		return true;
	if (p->has_l4) {
		sport = port[0];
		port[0] = port[1];
		port[1] = sport;
	} else if (p->has_icmp) {
		answer_echo(p, l4);
	}
	return true;
}

/*
 * Sends the packet back to where it came from. Swapped ends have the same checksum, but the one in
 * the packet may be none yet: a local sender leaves it to its device (CHECKSUM_PARTIAL), which on
 * this way is never asked. So it is computed anew. Fragments keep theirs: nobody leaves those to a
 * device.
 */
static __noinline __attribute__((unused)) int reflect(struct xdp_md *ctx, const struct packet *p)
{
	bool none; /* a UDP checksum that was not wanted */
	__u16 check = 1;

	if (!swap_ends(ctx, p))
		return -1;
	if (p->fragment != AX_FRAGMENT_NONE || !(p->has_l4 || p->has_icmp))
		return 0;
	if (p->proto == IPPROTO_UDP && bpf_xdp_load_bytes(ctx, p->l4_off + 6, &check, 2))
		return -1;
	none = p->v4 && p->proto == IPPROTO_UDP && !check;
	return none ? 0 : checksum_anew(ctx, p, &p->dst, &p->src);
}

/* --- rewriting --- */

static __always_inline bool rewrite_macs(const struct ax_rewrite *rw, void *data, void *end)
{
	struct ethhdr *eth = data;

	if ((void *)(eth + 1) > end)
		return false;
	if (rw->flags & AX_REWRITE_SMAC)
		__builtin_memcpy(eth->h_source, rw->smac, ETH_ALEN);
	if (rw->flags & AX_REWRITE_DMAC)
		__builtin_memcpy(eth->h_dest, rw->dmac, ETH_ALEN);
	return true;
}

static __always_inline bool write_dst(void *l3, void *end, const struct packet *p,
				      const struct ax_addr *dst)
{
	if (p->v4) {
		struct iphdr *ip = l3;

		if ((void *)(ip + 1) > end)
			return false;
		ip->check = csum_change_addr(ip->check, &p->dst, dst, true);
		ip->daddr = dst->w[3];
	} else {
		struct ipv6hdr *ip = l3;

		if ((void *)(ip + 1) > end)
			return false;
		__builtin_memcpy(&ip->daddr, dst, sizeof(ip->daddr));
	}
	return true;
}

/* The transport checksum and the port, of a packet whose header is there. */
static __always_inline bool rewrite_l4(void *data, void *end, const struct packet *p,
				       const struct ax_addr *dst, __be16 dport_be)
{
	__u32 at = csum_offset(p);
	__be16 *port = packet_at(data, p->l4_off);
	__u16 *check = packet_at(data, p->l4_off + at);
	bool none;

	if (!at || (void *)(check + 1) > end || (void *)(port + 2) > end)
		return false;
	none = p->proto == IPPROTO_UDP && !*check && p->v4;
	if (!none && p->proto != IPPROTO_ICMP)
		*check = csum_change_addr(*check, &p->dst, dst, p->v4);
	if (p->has_l4) {
		if (!none)
			*check = csum_change16(*check, port[1], dport_be);
		port[1] = dport_be;
	}
	if (!none && !*check && p->proto == IPPROTO_UDP)
		*check = 0xffff;
	return true;
}

/* Whether the rewrite can be done to such a packet. */
static __always_inline bool rewrite_fits(const struct ax_rewrite *rw, const struct packet *p)
{
	bool dst = rw->flags & AX_REWRITE_DST,
	     v4 = !rw->dst.w[0] && !rw->dst.w[1] && rw->dst.w[2] == bpf_htonl(0xffff);

	if (!(rw->flags & (AX_REWRITE_DST | AX_REWRITE_DPORT)))
		return true;
	if (p->fragment == AX_FRAGMENT_NOT_IP || (dst && v4 != p->v4))
		return false;
	return !(rw->flags & AX_REWRITE_DPORT) || p->has_l4 || p->later;
}

static __noinline __attribute__((unused)) int rewrite(struct xdp_md *ctx, const struct packet *p,
						      const struct ax_rewrite *rw, __u32 anew)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ax_addr dst = p->dst;
	__be16 dport = p->dport_be;

	if (!rewrite_fits(rw, p) || !rewrite_macs(rw, data, end))
		return -1;
	if (rw->flags & AX_REWRITE_DST)
		dst = rw->dst;
	if (rw->flags & AX_REWRITE_DPORT)
		dport = rw->dport_be;
	if (rw->flags & AX_REWRITE_DST && !write_dst(packet_at(data, p->l3_off), end, p, &dst))
		return -1;
	if ((p->has_l4 || (p->has_icmp && !p->v4)) &&
	    rw->flags & (AX_REWRITE_DST | AX_REWRITE_DPORT) &&
	    !rewrite_l4(data, end, p, &dst, dport))
		return -1;
	if (anew && p->fragment == AX_FRAGMENT_NONE && (p->has_l4 || p->has_icmp))
		return checksum_anew(ctx, p, &p->src, &dst);
	return 0;
}

#endif
