/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internet checksums (RFC 1071, 1624) on XDP, where no device completes them. */
#ifndef AX_CHECKSUM_BPF_H
#define AX_CHECKSUM_BPF_H

#include "csum_fold.bpf.h"
#include "rules.bpf.h"

#define SCRATCH_SIZE 512 /* bpf_csum_diff() takes no more */
struct scratch {
	__u64 w[SCRATCH_SIZE / 8 + 1]; /* one more: the verifier does not follow the rounding up */
};
/* Room that the stack has not; used within one packet's turn on its CPU. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_get(void)
{
	return bpf_map_lookup_elem(&scratches, &(__u32){0});
}

/* A checksum after one of its 16-bit words was changed. */
static __always_inline __u16 csum_change16(__u16 check, __u16 old, __u16 new)
{
	return csum_fold((__u64)(__u16)~check + (__u16)~old + new);
}

static __always_inline __u64 addr_sum(const struct ax_addr *a, bool v4)
{
	return v4 ? (__u64)a->w[3] : (__u64)a->w[0] + a->w[1] + a->w[2] + a->w[3];
}

/* A checksum after an address that it covers was changed. */
static __always_inline __u16 csum_change_addr(__u16 check, const struct ax_addr *old,
					      const struct ax_addr *new, bool v4)
{
	__u64 sum = (__u16)~check;

	sum += addr_sum(new, v4);
	if (v4)
		return csum_fold(sum + (__u32)~old->w[3]);
	sum += (__u64)(__u32)~old->w[0] + (__u32)~old->w[1] + (__u32)~old->w[2] + (__u32)~old->w[3];
	return csum_fold(sum);
}

/* A chunk of a packet, summed up. */
static __always_inline __s64 chunk_sum(struct xdp_md *ctx, struct scratch *s, __u32 off, __u32 n,
				       __u32 seed)
{
	n = size_within(n, SCRATCH_SIZE);
	if (!n)
		return -1;
	s->w[(n - 1) / 8] = 0; /* what the last bytes do not fill counts as 0 */
	if (bpf_xdp_load_bytes(ctx, off, s, n))
		return -1;
	return bpf_csum_diff(NULL, 0, (__be32 *)s, (n + 3) & ~3u, seed);
}

#define SUM_CHUNKS 18
#define SUM_MAX	   (SUM_CHUNKS * SCRATCH_SIZE)

/*
 * The sum over bytes [off, off + len) of a packet, whichever buffers they lie in; len may be up to
 * SUM_MAX. Returns it, or a negative number. A global function: it is verified once. (Weak: two
 * units of one object have it.)
 */
__weak __noinline __s64 packet_sum(struct xdp_md *ctx, __u32 off, __u32 len)
{
	struct scratch *s = scratch_get();
	__s64 sum = 0;

	if (!s || len > SUM_MAX)
		return -1;
	for (int i = 0; i < SUM_CHUNKS; i++) {
		if (len < SCRATCH_SIZE)
			break;
		sum = chunk_sum(ctx, s, off, SCRATCH_SIZE, (__u32)sum);
		if (sum < 0)
			return -1;
		off += SCRATCH_SIZE;
		len -= SCRATCH_SIZE;
	}
	return len ? chunk_sum(ctx, s, off, len, (__u32)sum) : sum;
}

/* Where the checksum of a packet's transport header is, from that header's start. 0: it has none
 * that we know. */
static __always_inline __u32 csum_offset(const struct packet *p)
{
	switch (p->proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
		return 6;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	default:
		return 0;
	}
}

/* How many bytes a transport checksum covers. A datagram may end before the IP packet does. */
static __always_inline __u32 csum_length(struct xdp_md *ctx, const struct packet *p)
{
	__be16 len;

	if (p->proto != IPPROTO_UDP || bpf_xdp_load_bytes(ctx, p->l4_off + 4, &len, sizeof(len)))
		return p->l4_len;
	return bpf_ntohs(len) < p->l4_len ? bpf_ntohs(len) : p->l4_len;
}

/* The transport checksum of an unfragmented packet with these addresses, computed from its bytes.
 * Returns 0 or -1: it cannot be done. */
static __noinline __attribute__((unused)) int checksum_anew(struct xdp_md *ctx,
							    const struct packet *p,
							    const struct ax_addr *src,
							    const struct ax_addr *dst)
{
	__u32 at = csum_offset(p), len = csum_length(ctx, p);
	__u16 check = 0;
	__s64 sum;

	if (!at || p->fragment != AX_FRAGMENT_NONE)
		return -1;
	if (bpf_xdp_store_bytes(ctx, p->l4_off + at, &check, sizeof(check)))
		return -1;
	sum = packet_sum(ctx, p->l4_off, len);
	if (sum < 0)
		return -1;
	if (p->proto != IPPROTO_ICMP) /* the pseudo header */
		sum += addr_sum(src, p->v4) + addr_sum(dst, p->v4) + bpf_htons((__u16)len) +
		       bpf_htons(p->proto);
	check = csum_fold((__u64)sum);
	if (!check && p->proto == IPPROTO_UDP)
		check = 0xffff;
	return bpf_xdp_store_bytes(ctx, p->l4_off + at, &check, sizeof(check)) ? -1 : 0;
}

#endif
