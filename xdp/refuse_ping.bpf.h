/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an app gets for a ping that it is refused: an ICMP error instead of silence, as its connects
 * get an errno. */
#ifndef AX_REFUSE_PING_BPF_H
#define AX_REFUSE_PING_BPF_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include "count.bpf.h"
#include "csum_fold.bpf.h"
#include "ctl.h"
#include "endpoint.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "to_device.bpf.h"

#define ETHER sizeof(struct ethhdr)

/* Both protocols' (<linux/icmp.h> includes what BPF programs cannot) */
struct icmp_error {
	__u8 type, code;
	__be16 check;
	__u32 unused;
};
#define ECHO_REQUEST4 8
#define ECHO_REQUEST6 128
#define UNREACHABLE4  3
#define UNREACHABLE6  1
#define PROHIBITED4   13 /* administratively */
#define PROHIBITED6   1

/* Of the ping it quotes the headers, which say which one it was. */
struct ping_refused4 {
	struct iphdr ip;
	struct icmp_error icmp;
	__u32 quote[7];
};
_Static_assert(sizeof(struct ping_refused4) == 56, "a hole would be stack that nobody has written");

struct ping_refused6 {
	struct ipv6hdr ip;
	struct icmp_error icmp;
	__u32 quote[12];
};
_Static_assert(sizeof(struct ping_refused6) == 96, "a hole would be stack that nobody has written");

/* A question with nothing between its headers. */
static __always_inline bool is_ping(const struct packet *p)
{
	__u8 type = p->icmp >> 8;

	if (!p->has_icmp || p->fragment)
		return false;
	return p->v4 ? type == ECHO_REQUEST4 && p->l4_off == ETHER + sizeof(struct iphdr)
		     : type == ECHO_REQUEST6 && p->l4_off == ETHER + sizeof(struct ipv6hdr);
}

/* Makes what is in front of the quote's end as long as the answer. */
static __always_inline int make_room(struct __sk_buff *skb, __u32 quote, __u32 answer)
{
	return bpf_skb_change_tail(skb, ETHER + quote, 0) ||
	       bpf_skb_adjust_room(skb, (__s32)(answer - quote), BPF_ADJ_ROOM_MAC, 0);
}

/* 0, or -1: it may be spoilt. */
__weak __noinline int refuse_ping4(struct __sk_buff *skb, const struct packet *p)
{
	const struct ax_ctl *c = bpf_map_lookup_elem(&ctl, &(__u32){0});
	struct ping_refused4 a = {.ip.version = 4,
				  .ip.ihl = 5,
				  .ip.ttl = 64,
				  .ip.protocol = IPPROTO_ICMP,
				  .icmp.type = UNREACHABLE4,
				  .icmp.code = PROHIBITED4};

	if (!p || !c)
		return -1;
	a.ip.tot_len = bpf_htons(sizeof(a));
	a.ip.saddr = c->host4.w[3] ? c->host4.w[3] : p->dst.w[3];
	a.ip.daddr = p->src.w[3];
	a.ip.check = csum_fold((__u64)bpf_csum_diff(NULL, 0, (__be32 *)&a.ip, sizeof(a.ip), 0));
	if (bpf_skb_load_bytes(skb, ETHER, a.quote, sizeof(a.quote)))
		return -1;
	a.icmp.check = csum_fold((__u64)bpf_csum_diff(NULL, 0, (__be32 *)&a.icmp,
						      sizeof(a.icmp) + sizeof(a.quote), 0));
	return make_room(skb, sizeof(a.quote), sizeof(a)) ||
			       bpf_skb_store_bytes(skb, ETHER, &a, sizeof(a), 0)
		       ? -1
		       : 0;
}

__weak __noinline int refuse_ping6(struct __sk_buff *skb, const struct packet *p)
{
	const struct ax_ctl *c = bpf_map_lookup_elem(&ctl, &(__u32){0});
	const __u32 len = sizeof(struct ping_refused6) - sizeof(struct ipv6hdr);
	struct ping_refused6 a = {.ip.version = 6,
				  .ip.nexthdr = IPPROTO_ICMPV6,
				  .ip.hop_limit = 64,
				  .icmp.type = UNREACHABLE6,
				  .icmp.code = PROHIBITED6};
	__s64 sum;

	if (!p || !c)
		return -1;
	a.ip.payload_len = bpf_htons(len);
	if (!addr_is_zero(&c->host6))
		__builtin_memcpy(&a.ip.saddr, &c->host6, sizeof(a.ip.saddr));
	else
		__builtin_memcpy(&a.ip.saddr, &p->dst, sizeof(a.ip.saddr));
	__builtin_memcpy(&a.ip.daddr, &p->src, sizeof(a.ip.daddr));
	if (bpf_skb_load_bytes(skb, ETHER, a.quote, sizeof(a.quote)))
		return -1;
	sum = bpf_csum_diff(NULL, 0, (__be32 *)&a.ip.saddr, 2 * sizeof(a.ip.saddr), bpf_htonl(len));
	sum = bpf_csum_diff(NULL, 0, (__be32 *)&a.icmp, sizeof(a.icmp) + sizeof(a.quote),
			    (__u32)sum);
	a.icmp.check = csum_fold((__u64)(__u32)sum + bpf_htonl(IPPROTO_ICMPV6));
	return make_room(skb, sizeof(a.quote), sizeof(a)) ||
			       bpf_skb_store_bytes(skb, ETHER, &a, sizeof(a), 0)
		       ? -1
		       : 0;
}

/* Drops what comes from an app; where it can be told so, the app gets an answer back. */
static __always_inline int refuse_packet(struct __sk_buff *skb, const struct packet *p,
					 __u32 reason)
{
	count(reason);
	if (!is_ping(p) || (p->v4 ? refuse_ping4(skb, p) : refuse_ping6(skb, p)))
		return TC_ACT_SHOT;
	return to_device(skb, skb->ifindex);
}

#endif
