// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace locks: how long threads wait for mutexes. They do so in futex(), and only if somebody
 * else has the mutex: one that is free costs nothing. What was called is found in user space, by
 * the registers and the upper end of the stack, since the C library has no frame pointers.
 */
#include "tally.bpf.h"
#include "user_stack.bpf.h"

#define FUTEX_WAIT	  0
#define FUTEX_LOCK_PI	  6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2	  13
#define FUTEX_CMD_MASK	  127
/* What a mutex holds while threads wait for it: glibc's and Rust's; and, with the number of a
 * thread or an error, musl's and robust ones. */
#define LOCKED_WITH_OTHERS 2
#define FUTEX_WAITERS	   0x80000000
#define FUTEX_TID_MASK	   0x3fffffff

#if defined(__TARGET_ARCH_x86)
#define NR_FUTEX 202
#elif defined(__TARGET_ARCH_arm64)
#define NR_FUTEX 98
#endif

const volatile struct {
	__u64 least_ns;
	__u32 all; /* whatever is waited for by futex() */
	__u32 pad;
} wanted;

/* What a thread waits for. */
struct wait {
	__u64 since; /* 0: nothing */
	__u64 lock;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait);
} waits SEC(".maps");

/* Processes of which the reader was told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TALLY_GROUPS);
	__type(key, __u32);
	__type(value, __u32);
} known SEC(".maps");

/* Before it waits for the first time: so it is looked at while it is there. That is no event, and
 * if there is no room for it, its call stacks may be short. */
static __always_inline void tell_process(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32, one = 1;
	struct ax_watch_head *h;

	if (bpf_map_lookup_elem(&known, &pid))
		return;
	h = bpf_ringbuf_reserve(&records, sizeof(*h), 0);
	if (!h)
		return;
	__builtin_memset(h, 0, sizeof(*h));
	h->type = AX_WATCH_LOCK;
	h->pid = pid;
	bpf_ringbuf_submit(h, BPF_RB_FORCE_WAKEUP);
	bpf_map_update_elem(&known, &pid, &one, BPF_ANY);
}

static __always_inline bool is_locked(__u32 value)
{
	__u32 owner = value & FUTEX_TID_MASK;

	return value == LOCKED_WITH_OTHERS ||
	       (value & FUTEX_WAITERS && owner && owner != FUTEX_TID_MASK);
}

static __always_inline bool is_lock(__u32 op, __u32 value)
{
	__u32 command = op & FUTEX_CMD_MASK;
	bool waits_for = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return true;
	return waits_for && (wanted.all || is_locked(value));
}

SEC("tp_btf/sys_enter")
int ax_locks_enter(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	struct wait *w;

	if (ctx[1] != NR_FUTEX || syscall_is_compat() || !watch_current() ||
	    !is_lock((__u32)SYSCALL_B(regs), (__u32)SYSCALL_C(regs)))
		return 0;
	w = bpf_task_storage_get(&waits, (void *)bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w) {
		watch_count(AX_WATCH_EMITTED);
		watch_count(AX_WATCH_DROPPED);
		return 0;
	}
	tell_process();
	w->lock = SYSCALL_A(regs);
	w->since = bpf_ktime_get_ns();
	return 0;
}

/* Of frames of the C library and some of the program's. A stack may end with its page. */
static __always_inline __u32 copy_stack(struct ax_user_stack *s, __u64 sp)
{
	__u32 len = USER_STACK_PAGE - (sp & (USER_STACK_PAGE - 1));

	if (bpf_probe_read_user(s->bytes, AX_LOCK_STACK, (void *)sp) == 0)
		return AX_LOCK_STACK;
	asm volatile("" : "+r"(len));
	if (len > AX_LOCK_STACK || bpf_probe_read_user(s->bytes, len, (void *)sp) < 0)
		return 0;
	return len;
}

SEC("tp_btf/sys_exit")
int ax_locks_exit(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	struct ax_lock_event *e;
	struct wait *w;
	__u64 ns;

	if (SYSCALL_NR(regs) != NR_FUTEX)
		return 0;
	w = bpf_task_storage_get(&waits, (void *)bpf_get_current_task_btf(), NULL, 0);
	if (!w || !w->since)
		return 0;
	ns = bpf_ktime_get_ns() - w->since;
	w->since = 0;
	if (ns < wanted.least_ns)
		return 0;
	watch_count(AX_WATCH_EMITTED);
	e = bpf_ringbuf_reserve(&records, sizeof(*e) + AX_LOCK_STACK, 0);
	if (!e) {
		watch_count(AX_WATCH_DROPPED);
		return 0;
	}
	watch_head(&e->head, AX_WATCH_LOCK);
	e->lock = w->lock;
	e->waited_ns = ns;
	e->stack.pad = 0;
	e->stack.len = copy_stack(&e->stack, user_registers(&e->stack, (void *)ctx[0]));
	bpf_ringbuf_submit(e, tally_wakeup());
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
