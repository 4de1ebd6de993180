// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace open: what open(), openat(), openat2() and creat() were asked for, and what came of it.
 * At the return the arguments are still in their registers, and the name's page is there, since the
 * kernel has read it. The entry is needed only for the time.
 *
 * Raw tracepoints see every system call, which costs the others 75 ns each (135 ns with the time),
 * where perf events on the eight tracepoints of these calls cost 45; but those take 110 ms each to
 * go away again.
 */
#include "syscall.bpf.h"

#define AT_FDCWD      (-100)
#define CREAT_FLAGS   01101	     /* O_CREAT | O_WRONLY | O_TRUNC */
#define NAME_SHORT    AX_OPEN_PREFIX /* most names are: a record of this size is tried first */
#define ERRNO_MAX     4095
#define RESTART_LEAST 512 /* from here on they are the kernel's own, and the call is made again */

const volatile struct ax_open_config wanted;

/* struct open_how of <linux/openat2.h> */
struct how {
	__u64 flags, mode, resolve;
};

/* When a thread's call began. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} entries SEC(".maps");

static __always_inline bool is_open(long nr)
{
	return nr == NR_OPENAT || nr == NR_OPEN || nr == NR_OPENAT2 || nr == NR_CREAT;
}

SEC("tp_btf/sys_enter")
int ax_open_enter(__u64 *ctx)
{
	__u64 *since;

	if (!is_open((long)ctx[1]) || syscall_is_compat() || !watch_current())
		return 0;
	since = bpf_task_storage_get(&entries, (void *)bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (since)
		*since = bpf_ktime_get_ns();
	return 0;
}

/* The beginning of the name is compared here, so that others cost no record. */
static __always_inline bool has_prefix(const char *name)
{
	for (__u32 i = 0; i < AX_OPEN_PREFIX; i++) {
		if (i >= wanted.prefix_len)
			return true;
		if (name[i] != wanted.prefix[i])
			return false;
	}
	return true;
}

struct asked {
	__u64 name;
	struct how how;
	__s32 directory;
};

static __always_inline void read_arguments(const struct pt_regs___kernel *regs, long nr,
					   struct asked *a)
{
	a->directory = AT_FDCWD;
	if (nr == NR_OPEN || nr == NR_CREAT) {
		a->name = SYSCALL_A(regs);
		a->how.flags = nr == NR_OPEN ? (__u32)SYSCALL_B(regs) : CREAT_FLAGS;
		a->how.mode = (__u32)(nr == NR_OPEN ? SYSCALL_C(regs) : SYSCALL_B(regs));
		return;
	}
	a->directory = (__s32)SYSCALL_A(regs);
	a->name = SYSCALL_B(regs);
	if (nr == NR_OPENAT2) {
		bpf_probe_read_user(&a->how, sizeof(a->how), (void *)SYSCALL_C(regs));
		return;
	}
	a->how.flags = (__u32)SYSCALL_C(regs);
	a->how.mode = (__u32)SYSCALL_D(regs);
}

static __always_inline __u64 latency(void)
{
	__u64 *since, ns;

	if (!wanted.latency)
		return 0;
	since = bpf_task_storage_get(&entries, (void *)bpf_get_current_task_btf(), NULL, 0);
	if (!since || !*since)
		return 0;
	ns = bpf_ktime_get_ns() - *since;
	*since = 0;
	return ns;
}

static __always_inline void fill(struct ax_open_event *e, const struct asked *a, long ret, __u64 ns)
{
	watch_head(&e->head, AX_WATCH_OPEN);
	e->latency_ns = ns;
	e->flags = a->how.flags;
	e->resolve = a->how.resolve;
	e->ret = (__s32)ret;
	e->directory = a->directory;
	e->mode = (__u32)a->how.mode;
}

/* One that is not wanted gives its room back, and was no event. */
static __always_inline void send_long(const struct asked *a, long ret, __u64 ns)
{
	struct ax_open_event *e = bpf_ringbuf_reserve(&records, sizeof(*e) + AX_OPEN_PATH, 0);
	long n;

	watch_count(AX_WATCH_EMITTED);
	if (!e) {
		watch_count(AX_WATCH_DROPPED);
		return;
	}
	n = bpf_probe_read_user_str(e->name, AX_OPEN_PATH, (void *)a->name);
	e->len = n > 0 ? (__u32)n - 1 : AX_OPEN_FAULT;
	fill(e, a, ret, ns);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline void send(const struct asked *a, long ret, __u64 ns)
{
	struct ax_open_event *e = bpf_ringbuf_reserve(&records, sizeof(*e) + NAME_SHORT, 0);
	long n;

	if (!e) {
		/* whether its name is wanted is not known: rather one too many than one too few */
		watch_count(AX_WATCH_EMITTED);
		watch_count(AX_WATCH_DROPPED);
		return;
	}
	n = bpf_probe_read_user_str(e->name, NAME_SHORT, (void *)a->name);
	if ((n <= 0 && wanted.prefix_len) || (n > 0 && !has_prefix(e->name))) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return;
	}
	if (n == NAME_SHORT) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		send_long(a, ret, ns);
		return;
	}
	watch_count(AX_WATCH_EMITTED);
	e->len = n > 0 ? (__u32)n - 1 : AX_OPEN_FAULT;
	fill(e, a, ret, ns);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sys_exit")
int ax_open_exit(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1], nr = SYSCALL_NR(regs);
	struct asked a = {};
	__u64 ns;

	if (!is_open(nr) || syscall_is_compat() || !watch_current())
		return 0;
	ns = latency();
	if (ret <= -RESTART_LEAST && ret > -RESTART_LEAST - 10)
		return 0;
	if (wanted.failed_only && (ret >= 0 || ret < -ERRNO_MAX))
		return 0;
	read_arguments(regs, nr, &a);
	send(&a, ret, ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
