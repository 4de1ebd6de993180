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
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "xdp.h"

/* The kernel's DEV_MAP_BULK_SIZE and CPU_MAP_BULK_SIZE. */
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
	__uint(max_entries, AX_DEVICES_MAX);
	__type(key, __u32);
	__type(value, struct ax_redirected);
} redirected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, AX_DEVICES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

const volatile __u64 netns_cookie; /* of the interface's network namespace */
const volatile __u32 ifindex;	   /* of the interface */
const volatile __u32 devices_id;   /* of map `devices` */
const volatile __u32 cpus_id;	   /* of map `cpus`, 0: there is none */

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

static __always_inline void charge(const struct ax_redirected *r, __u32 at)
{
	__u32 counter = r->counter[at % AX_REDIRECTED];
	struct ax_rule_count *c = bpf_map_lookup_elem(&rule_counts, &counter);

	if (c)
		c->failed++;
}

/* The last frame that the filter redirected there on this CPU went into no bulk. */
static __always_inline void refused(__u32 index)
{
	struct ax_redirected *r = bpf_map_lookup_elem(&redirected, &index);

	if (r)
		charge(r, --r->n);
}

/*
 * A bulk is sent at the end of a poll, and before that whenever it is full and another frame comes,
 * which the filter has already entered then. What is not sent are the bulk's last frames.
 */
static __always_inline void flushed(__u32 index, __u32 sent, __u32 drops, __u32 bulk)
{
	struct ax_redirected *r = bpf_map_lookup_elem(&redirected, &index);
	__u32 n = sent + drops, first;

	if (!r || n > bulk || drops > bulk)
		return;
	first = r->n - n;
	if (n == bulk && first != r->flushed)
		first--;
	r->flushed = first + n;
	for (__u32 i = 0; i < CPU_BULK || i < DEVICE_BULK; i++) {
		if (i >= drops)
			break;
		charge(r, first + sent + i);
	}
}

SEC("raw_tp/xdp_redirect_err")
int ax_redirect_err(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 map = (__u32)ctx->args[5], index = (__u32)ctx->args[6];

	if (map == devices_id)
		refused(index);
	else if (cpus_id && map == cpus_id)
		refused(AX_DEVICES_MAX + index);
	return 0;
}

SEC("raw_tp/xdp_devmap_xmit")
int ax_devmap_xmit(struct bpf_raw_tracepoint_args *ctx)
{
	const struct net_device *from = (void *)ctx->args[0], *to = (void *)ctx->args[1];
	__u32 target;

	if ((__u32)BPF_CORE_READ(from, ifindex) != ifindex ||
	    BPF_CORE_READ(from, nd_net.net, net_cookie) != netns_cookie)
		return 0;
	target = (__u32)BPF_CORE_READ(to, ifindex);
	for (__u32 i = 0; i < AX_DEVICES_MAX; i++) {
		__u32 key = i, *device = bpf_map_lookup_elem(&devices, &key);

		if (!device || *device != target)
			continue;
		flushed(key, (__u32)ctx->args[2], (__u32)ctx->args[3], DEVICE_BULK);
		return 0;
	}
	return 0;
}

SEC("raw_tp/xdp_cpumap_enqueue")
int ax_cpumap_enqueue(struct bpf_raw_tracepoint_args *ctx)
{
	if (cpus_id && (__u32)ctx->args[0] == cpus_id)
		flushed(AX_DEVICES_MAX + (__u32)ctx->args[3], (__u32)ctx->args[1],
			(__u32)ctx->args[2], CPU_BULK);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
