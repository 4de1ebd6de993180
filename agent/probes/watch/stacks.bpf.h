/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks that are counted in the kernel: what profile and offcpu have in common. */
#ifndef AX_PROBES_WATCH_STACKS_BPF_H
#define AX_PROBES_WATCH_STACKS_BPF_H

#include "watch.bpf.h"
#include "profile.h"

const volatile struct ax_profile_config wanted;

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, WATCH_STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, AX_PROFILE_FRAMES * sizeof(__u64));
} stacks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATCH_STACK_KEYS);
	__type(key, struct ax_profile_key);
	__type(value, struct ax_profile_count);
} counts SEC(".maps");
/* Processes that the reader was woken for, so that it looks at them before they end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WATCH_KNOWN_PROCESSES);
	__type(key, __u32);
	__type(value, __u32);
} known SEC(".maps");

/* --- names of the kernel's functions: a few hundred are asked for, of all that it has --- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_profile_name);
} name SEC(".maps");

SEC("syscall")
int ax_profile_name(void *ctx)
{
	__u32 zero = 0;
	struct ax_profile_name *n = bpf_map_lookup_elem(&name, &zero);

	(void)ctx;
	if (n)
		BPF_SNPRINTF(n->name, sizeof(n->name), "%ps", (void *)n->address);
	return 0;
}

/* --- stacks --- */

static __always_inline __u64 wake_flags(__u32 pid)
{
	__u32 one = 1;

	if (bpf_map_lookup_elem(&known, &pid))
		return BPF_RB_NO_WAKEUP;
	bpf_map_update_elem(&known, &pid, &one, BPF_ANY);
	return BPF_RB_FORCE_WAKEUP;
}

/* Two stacks with the same hash: the later one cannot be told, and is none. */
static __always_inline __s32 stack_of(void *ctx, __u64 flags)
{
	long id = bpf_get_stackid(ctx, &stacks, flags);

	return id < 0 ? AX_PROFILE_NO_STACK : (__s32)id;
}

static __always_inline void fill_key(struct ax_profile_key *k, void *ctx, bool user)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->pid = bpf_get_current_pid_tgid() >> 32;
	k->kernel = stack_of(ctx, 0);
	k->user = user ? stack_of(ctx, BPF_F_USER_STACK) : AX_PROFILE_NO_STACK;
	bpf_get_current_comm(k->comm, sizeof(k->comm));
}

/* A key's first time. What became of its names is no event, so nobody counts it. */
static __always_inline void tell_new(const struct ax_profile_key *k)
{
	struct ax_profile_sample *s = bpf_ringbuf_reserve(&records, sizeof(*s), 0);

	if (!s)
		return;
	watch_head(&s->head, AX_PROFILE_NEW);
	s->key = *k;
	s->stack.len = 0;
	bpf_ringbuf_submit(s, wake_flags(k->pid));
}

/* NULL: there is no room for one more. To be called in the process that the key is about. */
static __always_inline struct ax_profile_count *count_of(const struct ax_profile_key *k)
{
	struct ax_profile_count *c = bpf_map_lookup_elem(&counts, k), zero = {};

	if (c)
		return c;
	if (bpf_map_update_elem(&counts, k, &zero, BPF_NOEXIST) == 0)
		tell_new(k);
	return bpf_map_lookup_elem(&counts, k);
}

static __always_inline void count(struct ax_profile_count *c, __u64 ns)
{
	watch_count(AX_WATCH_EMITTED);
	if (!c) {
		watch_count(AX_WATCH_DROPPED);
		return;
	}
	__sync_fetch_and_add(&c->times, 1);
	__sync_fetch_and_add(&c->ns, ns);
}

#endif
