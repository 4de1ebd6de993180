/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts under each rule's name what was redirected but never sent. The filter cannot see it: a
 * frame is sent, or thrown away, after the program is done with it, in a bulk with others. Only the
 * kernel's tracepoints tell, without saying of which frame; struct ax_redirected tells that.
 *
 * An object of its own, so that a kernel without these tracepoints has everything else. Raw
 * tracepoints: neither tracefs nor a perf event is needed, and their links can be pinned. What they
 * are given has been the same since Linux 5.13 (ee75aef23afe).
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "xdp.h"

/* The kernel's DEV_MAP_BULK_SIZE (and VETH_XDP_TX_BULK_SIZE), and CPU_MAP_BULK_SIZE. */
#define DEVICE_BULK 16
#define CPU_BULK    8

/* Those of the filter program, set by the loader, as are the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_rule_count);
} rule_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_redirected);
} redirected SEC(".maps");

/* The ifindex of each entry of map `devices`. That map itself belongs to programs of one type: the
 * kernel refuses it to others (bpf_prog_map_compatible()). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ifindexes SEC(".maps");

const volatile struct ax_watched watched;

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

static __always_inline bool is_ours(const struct net_device *dev)
{
	return (__u32)BPF_CORE_READ(dev, ifindex) == watched.ifindex &&
	       BPF_CORE_READ(dev, nd_net.net, net_cookie) == watched.netns_cookie;
}

static __always_inline struct ax_redirected *last_redirected(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&redirected, &zero);
}

static __always_inline __u32 target(enum ax_redirect_to kind, __u32 number)
{
	return (__u32)kind << AX_REDIRECT_TO_SHIFT | number;
}

static __always_inline void charge(struct ax_redirect *frame)
{
	__u32 counter = frame->counter;
	struct ax_rule_count *c = bpf_map_lookup_elem(&rule_counts, &counter);

	frame->to = target(AX_TO_NOWHERE, 0);
	if (c)
		c->failed++;
}

struct bulk {
	__u32 n;	/* frames that were entered */
	__u32 dev, cpu; /* where it was to go; dev 0: to the CPU */
	__u32 drops;
	bool full;
};

static __always_inline bool went_there(const struct ax_redirect *frame, const struct bulk *b)
{
	__u32 number = frame->to & ((1u << AX_REDIRECT_TO_SHIFT) - 1), *device;

	switch (frame->to >> AX_REDIRECT_TO_SHIFT) {
	case AX_TO_DEVICE:
		device = b->dev ? bpf_map_lookup_elem(&ifindexes, &number) : NULL;
		return device && *device == b->dev;
	case AX_TO_IFINDEX:
		return b->dev && number == b->dev;
	case AX_TO_CPU:
		return !b->dev && number == b->cpu;
	default:
		return false;
	}
}

static long look_at(__u32 i, struct bulk *b)
{
	struct ax_redirected *r = last_redirected();
	struct ax_redirect *frame;

	if (!r || i >= b->n)
		return 1;
	frame = &r->last[(b->n - 1 - i) % AX_REDIRECTED];
	if (!went_there(frame, b) || (b->full && i == 0))
		return 0;
	charge(frame);
	return --b->drops == 0;
}

/*
 * What is not sent are the last frames of a bulk. Bulks go out when the driver's poll ends, and
 * before that when one is full and there is another frame, which the filter has entered already.
 * (One that is just full when the poll ends looks the same: then its frame before is counted.)
 */
static __always_inline void not_sent(struct bulk *b)
{
	struct ax_redirected *r = last_redirected();

	if (!r)
		return;
	b->n = r->n;
	/* A loop that the verifier need not follow (Linux 5.17). */
	bpf_loop(AX_REDIRECTED, look_at, b, 0);
}

/* The frame that the filter is just done with went into no bulk. */
SEC("raw_tp/xdp_redirect_err")
int ax_redirect_err(struct bpf_raw_tracepoint_args *ctx)
{
	const struct net_device *from = (void *)ctx->args[0];
	__u32 map = (__u32)ctx->args[5], index = (__u32)ctx->args[6], to;
	struct ax_redirected *r = last_redirected();
	struct ax_redirect *frame;

	if (!r || !is_ours(from))
		return 0;
	/* Another program on the interface may redirect what this one let pass. */
	if (map == watched.devices)
		to = target(AX_TO_DEVICE, index);
	else if (map == watched.cpus)
		to = target(AX_TO_CPU, index);
	else
		to = target(AX_TO_IFINDEX, index);
	frame = &r->last[(r->n - 1) % AX_REDIRECTED];
	if (frame->to == to)
		charge(frame);
	return 0;
}

SEC("raw_tp/xdp_devmap_xmit")
int ax_devmap_xmit(struct bpf_raw_tracepoint_args *ctx)
{
	const struct net_device *from = (void *)ctx->args[0], *to = (void *)ctx->args[1];
	__u32 sent = (__u32)ctx->args[2];
	struct bulk b = {.drops = (__u32)ctx->args[3]};

	if (!b.drops || !is_ours(from))
		return 0;
	b.dev = (__u32)BPF_CORE_READ(to, ifindex);
	b.full = sent + b.drops == DEVICE_BULK;
	not_sent(&b);
	return 0;
}

/* XDP_TX on a veth, whose driver gathers and tells like a device map. */
SEC("raw_tp/xdp_bulk_tx")
int ax_bulk_tx(struct bpf_raw_tracepoint_args *ctx)
{
	const struct net_device *dev = (void *)ctx->args[0];
	__u32 sent = (__u32)ctx->args[1];
	struct bulk b = {.dev = watched.ifindex, .drops = (__u32)ctx->args[2]};

	if (!b.drops || !is_ours(dev))
		return 0;
	b.full = sent + b.drops == DEVICE_BULK;
	not_sent(&b);
	return 0;
}

SEC("raw_tp/xdp_cpumap_enqueue")
int ax_cpumap_enqueue(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 map = (__u32)ctx->args[0], sent = (__u32)ctx->args[1];
	struct bulk b = {.cpu = (__u32)ctx->args[3], .drops = (__u32)ctx->args[2]};

	if (!b.drops || map != watched.cpus)
		return 0;
	b.full = sent + b.drops == CPU_BULK;
	not_sent(&b);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
