// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What xdpbench.c puts around the programs that it measures. Runs of BPF_PROG_TEST_RUN share one
 * packet, so what has to differ from run to run, or was changed by the former one, is written here
 * before the tail call to the program that is meant, which stands for that of ax's root program.
 * The same with nothing to call says what the writing costs.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define HEAD 64 /* bytes of the packet that are written anew */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

const volatile __u32 addresses; /* how many there are to choose from; 0: the packet's own */
const volatile __u32 frame_len;
const volatile __u32 first_port, ports; /* of flood's frames; 0: the packet's own */

__u64 head[HEAD / 8];
__u64 chance = 1;
__u32 turn;
volatile __u32 out; /* interface that flood sends by; 0: none */

SEC("xdp")
int nothing(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/* Any of the addresses i * 2654435761 mod 2^32 with 0 < i <= addresses: i is by chance, and the
 * factor spreads them over all there are, each once. */
static __always_inline __be32 any_address(void)
{
	__u64 i;

	chance = chance * 6364136223846793005ull + 1442695040888963407ull;
	i = (chance >> 32) * addresses >> 32;
	return bpf_htonl(((__u32)i + 1) * 2654435761u);
}

SEC("xdp")
int any_source(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	ip->saddr = any_address();
	bpf_tail_call(ctx, &target, 0);
	return XDP_PASS;
}

/* The packet is as it was at first (its source may be any). The helper is called also when there is
 * nothing to take away: so a program that calls it once itself pays for it. */
SEC("xdp")
int as_before(struct xdp_md *ctx)
{
	struct iphdr *ip;
	__u64 *to;
	long len = (void *)(long)ctx->data_end - (void *)(long)ctx->data;

	asm volatile("" : "+r"(len)); /* or there is arithmetic with 32 bits of a pointer */
	if (bpf_xdp_adjust_head(ctx, (int)len - (int)frame_len))
		return XDP_ABORTED;
	to = (void *)(long)ctx->data;
	if ((void *)(to + HEAD / 8) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	for (int i = 0; i < HEAD / 8; i++)
		to[i] = head[i];
	ip = (void *)to + sizeof(struct ethhdr);
	if (addresses)
		ip->saddr = any_address();
	bpf_tail_call(ctx, &target, 0);
	return XDP_PASS;
}

/* Sends frames, each to the next of the ports. Their memory comes back as who got them left it. */
SEC("xdp")
int flood(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u64 *to = (void *)eth;

	if ((void *)(to + HEAD / 8) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	for (int i = 0; i < HEAD / 8; i++)
		to[i] = head[i];
	if (ports) {
		udp->dest = bpf_htons((__u16)(first_port + turn));
		turn = turn + 1 < ports ? turn + 1 : 0;
	}
	return out ? bpf_redirect(out, 0) : XDP_DROP;
}

/* Sends SYNs, each from another address in 32.0.0.0/3 and another port. No checksum changes: of two
 * words of 16 bits, one is what the other is not. */
SEC("xdp")
int syns(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct tcphdr *tcp = (void *)(ip + 1);
	__u32 any = bpf_get_prandom_u32();
	__u16 *source = (void *)&ip->saddr, *seq = (void *)&tcp->seq;
	__u64 *to = (void *)eth;

	if ((void *)(to + HEAD / 8) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	for (int i = 0; i < HEAD / 8; i++)
		to[i] = head[i];
	source[0] = bpf_htons(0x2000 | (any & 0x1fff));
	source[1] = ~source[0];
	tcp->source = (__u16)(any >> 16);
	seq[0] = ~tcp->source;
	return out ? bpf_redirect(out, 0) : XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
