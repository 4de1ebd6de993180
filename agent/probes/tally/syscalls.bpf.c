// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace syscalls: how often each system call is made, how long it takes, and with which errors
 * it fails. All is counted here: only tables go to user space. A call is counted when it returns.
 */
#include "tally.bpf.h"

#define ERRNO_MAX 4095
#define NRS	  1024 /* no kernel has as many; so nobody fills the table by calling what is none */

/* The call that a thread is in. */
struct entry {
	__u64 since; /* 0: none */
	__u64 nr;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entry);
} entries SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_SYSCALLS);
	__type(key, struct ax_syscall_key);
	__type(value, struct ax_syscall_cell);
} calls SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_ERRORS);
	__type(key, struct ax_syscall_key);
	__type(value, __u64);
} errors SEC(".maps");
/* What a new line begins as: it would be much of the stack. */
static struct ax_syscall_cell no_cell;

SEC("tp_btf/sys_enter")
int ax_syscalls_enter(__u64 *ctx)
{
	struct entry *e;

	if (syscall_is_compat() || !watch_current())
		return 0;
	e = bpf_task_storage_get(&entries, (void *)bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e) {
		watch_count(AX_WATCH_EMITTED);
		watch_count(AX_WATCH_DROPPED);
		return 0;
	}
	e->nr = ctx[1];
	e->since = bpf_ktime_get_ns();
	return 0;
}

static __always_inline struct ax_syscall_cell *cell_of(const struct ax_syscall_key *key)
{
	struct ax_syscall_cell *c = bpf_map_lookup_elem(&calls, key);

	if (c)
		return c;
	bpf_map_update_elem(&calls, key, &no_cell, BPF_NOEXIST);
	return bpf_map_lookup_elem(&calls, key);
}

/* One for which there is no room is still among the failed ones. */
static __always_inline void count_error(struct ax_syscall_key *key, long error)
{
	__u64 *n, zero = 0;

	key->error = (__s32)error;
	n = bpf_map_lookup_elem(&errors, key);
	if (!n) {
		bpf_map_update_elem(&errors, key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&errors, key);
	}
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Its number is what the entry had: registers may be another program's or a signal handler's.
 * False: its beginning was not seen. */
static __always_inline bool end_of(struct entry *e, struct ax_syscall_key *key, __u64 *ns)
{
	if (!e->since)
		return false;
	*ns = bpf_ktime_get_ns() - e->since;
	e->since = 0;
	key->nr = (__u32)e->nr;
	return true;
}

/* What a filter (seccomp) refuses ends without having begun. */
static __always_inline bool is_refused(__u64 *ctx, struct ax_syscall_key *key)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1], nr = SYSCALL_NR(regs);

	/* the compiler would read this and what the entry had by one instruction */
	asm volatile("" : "+r"(nr));
	if (ret >= 0 || ret < -ERRNO_MAX || syscall_is_compat() || !watch_current())
		return false;
	key->nr = (__u32)nr;
	return true;
}

SEC("tp_btf/sys_exit")
int ax_syscalls_exit(__u64 *ctx)
{
	struct entry *e =
		bpf_task_storage_get(&entries, (void *)bpf_get_current_task_btf(), NULL, 0);
	struct ax_syscall_key key = {};
	struct ax_syscall_cell *c;
	long ret = (long)ctx[1];
	__u64 ns = 0;

	if (!e || (!end_of(e, &key, &ns) && !is_refused(ctx, &key)))
		return 0;
	key.group = tally_group();
	if (key.nr >= NRS)
		key.nr = AX_SYSCALL_NONE;
	watch_count(AX_WATCH_EMITTED);
	c = cell_of(&key);
	if (!c) {
		watch_count(AX_WATCH_DROPPED);
		return 0;
	}
	tally_time(&c->times, ns);
	if (ret < 0 && ret >= -ERRNO_MAX) {
		__sync_fetch_and_add(&c->failed, 1);
		count_error(&key, -ret);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
