/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of splicing, for BPF programs only: types here, definitions in sk_msg.bpf.c. The agent
 * puts the dataplane's maps in the place of those that bear its names. */
#ifndef AX_SPLICE_MAPS_BPF_H
#define AX_SPLICE_MAPS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "app.h"
#include "service.h"
#include "splicing.h"

#ifndef AX_SPLICE_MAP /* the defining unit sets it to nothing */
#define AX_SPLICE_MAP extern
#endif

/* Nothing of an instance: sockets join when they are established, and connections need no app. */
extern const volatile bool gate;

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, AX_SPLICE_MEMBERS_MAX);
	__type(key, __u64);
	__type(value, __u64);
} splice_members SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_splice_end);
} splice_ends SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SPLICE_WANTED_MAX);
	__type(key, __u64);
	__type(value, struct ax_splice_wanted);
} splice_wanted SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_splice_ctl);
} splice_ctl SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65537);
	__type(key, __u32);
	__type(value, __u32);
} splice_apps SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AX_SPLICE_SIZES_MAX);
	__type(key, __u64);
	__type(value, struct ax_splice_size);
} splice_sizes SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_SPLICE_COUNTS);
	__type(key, __u32);
	__type(value, struct ax_splice_counted);
} splice_count SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} splice_events SEC(".maps");

/* Of the gate: a socket's addresses -> who it is. */
struct splice_tuple {
	__u64 netns;
	struct ax_endpoint local;
	struct ax_endpoint remote;
};

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct splice_tuple);
	__type(value, struct ax_splice_wanted);
} splice_tuples SEC(".maps");

/* --- the dataplane's (bpf/maps.bpf.h) --- */

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct ax_addr);
	__type(value, struct ax_vip);
} vips SEC(".maps");

AX_SPLICE_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_asked);
} asked SEC(".maps");

/* Once until the agent looks. what: a bit of enum ax_splice_told. */
static __always_inline void splice_tell(__u32 what)
{
	struct ax_splice_ctl *c;
	__u32 zero = 0, *told, *ev;

	c = bpf_map_lookup_elem(&splice_ctl, &zero);
	if (gate || !c)
		return;
	told = what == AX_SPLICE_TOLD_NEW ? &c->told_new : &c->told_unread;
	if (*told || __sync_lock_test_and_set(told, 1))
		return;
	ev = bpf_ringbuf_reserve(&splice_events, sizeof(*ev), 0);
	if (!ev)
		return; /* it has not read the last one: that says the same */
	*ev = what;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void splice_counted(__u32 what, __u64 bytes)
{
	struct ax_splice_counted *n = bpf_map_lookup_elem(&splice_count, &what);

	if (n) { /* per CPU */
		n->messages++;
		n->bytes += bytes;
	}
}

#endif
