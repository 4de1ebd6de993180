/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs of others, watched from both ends (ax xdp dump): what comes to them, what they make of
 * it, and which of a dispatcher's was the last one to run. The kernel calls these on entry and on
 * exit of the program that the loader names (fentry, fexit), which is not changed and does not
 * know.
 *
 * An object of its own: where the kernel has no trampolines for programs, nothing else lacks. The
 * helpers that read a packet by its struct xdp_md are not for these programs; bpf_xdp_output() is,
 * and takes packets of several buffers too (Linux 5.18), but it wants a perf ring.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "xdp_tap.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* the loader: CPUs */
	__type(key, __u32);
	__type(value, __u32);
} foreign_packets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_tap_count);
} foreign_counts SEC(".maps");

/* The packet that the program has now. No other one comes on this CPU before it is done with it. */
struct inside {
	__u32 sample; /* that it came was told, for so many; 0: it was not */
	__u8 by;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct inside);
} foreign_inside SEC(".maps");

/* One packet of so many is told of (ax xdp top); 0: all are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} foreign_sample SEC(".maps");

const volatile struct ax_foreign_options foreign = {};

/* What is read of the kernel's structs; the loader adapts the offsets. */
struct net {
	__u64 net_cookie;
} __attribute__((preserve_access_index));
struct net_device {
	int ifindex;
	struct {
		struct net *net;
	} nd_net;
} __attribute__((preserve_access_index));
struct xdp_rxq_info {
	struct net_device *dev;
	__u32 queue_index;
} __attribute__((preserve_access_index));
struct xdp_buff {
	struct xdp_rxq_info *rxq;
} __attribute__((preserve_access_index));

/* A program may be on several interfaces, and in several network namespaces. */
static __always_inline bool is_ours(const struct xdp_buff *xdp)
{
	return (__u32)BPF_CORE_READ(xdp, rxq, dev, ifindex) == foreign.ifindex &&
	       (!foreign.netns_cookie ||
		BPF_CORE_READ(xdp, rxq, dev, nd_net.net, net_cookie) == foreign.netns_cookie);
}

static __always_inline __u32 length(struct xdp_buff *xdp)
{
	return (__u32)bpf_xdp_get_buff_len((struct xdp_md *)xdp);
}

static __always_inline bool put(struct xdp_buff *xdp, struct ax_tapped *t)
{
	__u64 where = BPF_F_CURRENT_CPU;

	t->time_ns = bpf_ktime_get_boot_ns();
	t->frame_len = length(xdp);
	if (t->kind == AX_TAPPED_IN || (t->action != XDP_DROP && t->action != XDP_ABORTED))
		t->captured = t->frame_len < foreign.snap ? t->frame_len : foreign.snap;
	where |= (__u64)t->captured << 32;
	return !bpf_xdp_output(xdp, &foreign_packets, where, t, sizeof(*t));
}

SEC("fentry")
int ax_came(const __u64 *ctx)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx[0];
	struct ax_tap_count *n = bpf_map_lookup_elem(&foreign_counts, &(__u32){0});
	struct inside *in = bpf_map_lookup_elem(&foreign_inside, &(__u32){0});
	__u32 *every = bpf_map_lookup_elem(&foreign_sample, &(__u32){0}), sample;
	struct ax_tapped t = {.kind = AX_TAPPED_IN};

	if (!n || !in || !every)
		return 0;
	*in = (struct inside){0};
	if (!is_ours(xdp))
		return 0;
	n->packets++;
	n->bytes += length(xdp);
	sample = *(volatile __u32 *)every;
	if (sample > 1 && bpf_get_prandom_u32() % sample)
		return 0;
	t.sample = sample ? sample : 1;
	t.number = n->packets;
	t.cpu = bpf_get_smp_processor_id();
	t.queue = BPF_CORE_READ(xdp, rxq, queue_index);
	if (put(xdp, &t))
		in->sample = t.sample;
	else
		n->lost++;
	return 0;
}

/* On exit of each program in the dispatcher. */
SEC("fexit")
int ax_ran(const void *ctx)
{
	struct inside *in = bpf_map_lookup_elem(&foreign_inside, &(__u32){0});

	(void)ctx;
	if (in)
		in->by = foreign.place;
	return 0;
}

SEC("fexit")
int ax_went(const __u64 *ctx)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx[0];
	__u32 action = (__u32)ctx[1];
	struct ax_tap_count *n = bpf_map_lookup_elem(&foreign_counts, &(__u32){0});
	struct inside *in = bpf_map_lookup_elem(&foreign_inside, &(__u32){0});
	struct ax_tapped t = {
		.kind = AX_TAPPED_OUT,
		.action = action > 255 ? 255 : (__u8)action,
		.told.key = foreign.target,
	};

	if (!n || !in || !in->sample || !is_ours(xdp))
		return 0;
	t.number = n->packets;
	t.cpu = bpf_get_smp_processor_id();
	t.queue = BPF_CORE_READ(xdp, rxq, queue_index);
	t.told.rule = in->by;
	t.sample = in->sample;
	in->sample = 0;
	if (!put(xdp, &t))
		n->lost++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
