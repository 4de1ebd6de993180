// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tap: who looks at an interface's packets (ax xdp dump, top) has them come by here on their
 * way to the list, see include/xdp_tap.h. A tail call from a function ends in that function's
 * return, so the list's verdict is known here, and nothing of the list is done in another way.
 */
#include "root.bpf.h"
#include "verifier.bpf.h"
#include "xdp_tap.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, AX_TAP_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} taps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* the reader sets it */
} tapped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_tap_control);
} tap_control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_tap_count);
} tap_counts SEC(".maps");

/* What the list that tells says of the packet. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_explain);
} told SEC(".maps");

const volatile struct ax_tap_options tap = {};

/* In the entry of the interface's program array, where it stays if the reader was killed. */
SEC("xdp")
int ax_tap_door(struct xdp_md *ctx)
{
	bpf_tail_call_static(ctx, &taps, AX_TAP_ENTRY);
	*(volatile __u16 *)&root.tapped = 0;
	return to_list(ctx);
}

/* What comes back if nobody is there is a variable to the verifier: before Linux 6.19 it does not
 * think of what a function's tail call returns, and takes the rest for all that there is. (So it is
 * in judged(), too.) */
static __noinline int wanted(struct xdp_md *ctx, __u32 nobody)
{
	bpf_tail_call_static(ctx, &taps, AX_TAP_WANTED);
	opaque(nobody); /* nor does the compiler */
	return (int)nobody;
}

static __noinline int judged(struct xdp_md *ctx)
{
	if (*(volatile __u16 *)&root.told && !is_over())
		bpf_tail_call_static(ctx, &taps, AX_TAP_TOLD);
	return to_list(ctx);
}

/* A record with room for `room` bytes (a constant, as the verifier wants it). No reader is woken:
 * that would take a hundred times as long as the record. */
static __always_inline bool put_record(struct xdp_md *ctx, const struct ax_tapped *head, __u32 len,
				       __u32 room)
{
	struct ax_tapped *t = bpf_ringbuf_reserve(&tapped, sizeof(*t) + room, 0);

	if (!t)
		return false;
	len = size_within(len, room);
	if (len && bpf_xdp_load_bytes(ctx, 0, t + 1, len))
		len = 0;
	*t = *head;
	t->captured = len;
	bpf_ringbuf_submit(t, BPF_RB_NO_WAKEUP);
	return true;
}

static __noinline bool put(struct xdp_md *ctx, const struct ax_tapped *head)
{
	__u32 len = head->frame_len < tap.snap ? head->frame_len : tap.snap;

	if (head->kind == AX_TAPPED_OUT && head->action != XDP_TX && head->action != XDP_REDIRECT)
		return put_record(ctx, head, 0, 0);
	if (len <= 128)
		return put_record(ctx, head, len, 128);
	if (len <= 512)
		return put_record(ctx, head, len, 512);
	if (len <= 2048)
		return put_record(ctx, head, len, 2048);
	return put_record(ctx, head, len, AX_CAPTURE_MAX);
}

/* A packet, and what becomes of it. */
static __always_inline int look(struct xdp_md *ctx, struct ax_tap_count *n, __u32 sample)
{
	struct ax_explain *x = bpf_map_lookup_elem(&told, &(__u32){0});
	struct ax_tapped t = {
		.time_ns = bpf_ktime_get_boot_ns(),
		.number = n->packets,
		.cpu = bpf_get_smp_processor_id(),
		.queue = ctx->rx_queue_index,
		.frame_len = (__u32)bpf_xdp_get_buff_len(ctx),
		.sample = sample,
		.kind = AX_TAPPED_IN,
	};

	if (!put(ctx, &t)) {
		n->lost++;
		return judged(ctx);
	}
	if (!tap.verdicts || !x)
		return judged(ctx);
	x->key = 0;
	t.action = (__u8)judged(ctx);
	t.kind = AX_TAPPED_OUT;
	t.time_ns = bpf_ktime_get_boot_ns();
	t.frame_len = (__u32)bpf_xdp_get_buff_len(ctx);
	t.told = *x;
	if (!put(ctx, &t))
		n->lost++;
	return t.action;
}

SEC("xdp")
int ax_tap(struct xdp_md *ctx)
{
	const struct ax_tap_control *c = bpf_map_lookup_elem(&tap_control, &(__u32){0});
	struct ax_tap_count *n = bpf_map_lookup_elem(&tap_counts, &(__u32){0});
	__u32 sample;

	if (!c || !n ||
	    (tap.filtered && wanted(ctx, *(const volatile __u32 *)&c->nobody) != XDP_PASS))
		return to_list(ctx);
	n->packets++;
	n->bytes += bpf_xdp_get_buff_len(ctx);
	sample = *(const volatile __u32 *)&c->sample;
	if (sample > 1 && bpf_get_prandom_u32() % sample)
		return to_list(ctx);
	return look(ctx, n, sample > 1 ? sample : 1);
}

char LICENSE[] SEC("license") = "GPL";
