// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which processes are followed: a map of their numbers in the outermost pid namespace, which is
 * what other programs look into at every event. Its values are the numbers that who traces knows.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "defaults.h"
#include "follow_event.h"
#include "pid_number.bpf.h"
#include "scope.bpf.h"

#define PROT_EXEC     4
#define MAP_ANONYMOUS 0x20
#define ERRNO_MAX     4095

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
struct super_block {
	__u32 s_dev;
};
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	long i_ctime_sec;
	__u32 i_ctime_nsec;
};
struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};
struct inode___before_6_11 {
	struct timespec64 __i_ctime;
};
struct inode___before_6_6 {
	struct timespec64 i_ctime;
};
struct file {
	struct inode *f_inode;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct mm_struct {
	struct file *exe_file;
};
struct thread_info {
	unsigned long flags;
	__u32 status;
};
struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	struct files_struct *files;
	struct mm_struct *mm;
};
struct bpf_iter__task {
	struct task_struct *task;
};
#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel {
	unsigned long dx, r10, r8, orig_ax;
};
#define SYSCALL_NR(regs) ((long)(regs)->orig_ax)
#define MMAP_PROT(regs)	 ((regs)->dx)
#define MMAP_FLAGS(regs) ((regs)->r10)
#define MMAP_FD(regs)	 ((int)(regs)->r8)
#define NR_MMAP		 9
#define COMPAT(task)	 ((task)->thread_info.status & 2) /* TS_COMPAT */
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel {
	__u64 regs[31];
	__s32 syscallno;
};
#define SYSCALL_NR(r) ((long)(r)->syscallno)
#define MMAP_PROT(r)  ((r)->regs[2])
#define MMAP_FLAGS(r) ((r)->regs[3])
#define MMAP_FD(r)    ((int)(r)->regs[4])
#define NR_MMAP	      222
#define COMPAT(task)  ((task)->thread_info.flags >> 22 & 1) /* TIF_32BIT */
#else
#error "the numbers of system calls are not known for this architecture"
#endif
#pragma clang attribute pop

const volatile struct ax_follow_config follow;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FOLLOW_PROCESSES);
	__type(key, __u32);
	__type(value, __u32);
} tree SEC(".maps");
/* Those that were named, by the numbers that who traces knows. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} named SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct ax_follow_key);
	__type(value, __u32);
} files SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FOLLOW_RING_BYTES);
} told SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_FOLLOW_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} follow_counters SEC(".maps");

__u32 added; /* by the last look at all processes */

static __always_inline void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&follow_counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline __u32 number_of(struct task_struct *task)
{
	return pid_number((void *)task, follow.pidns);
}

static __always_inline bool add(struct task_struct *task)
{
	__u32 tgid = task->tgid, number = number_of(task);

	if (bpf_map_update_elem(&tree, &tgid, &number, BPF_ANY) == 0)
		return true;
	count(AX_FOLLOW_LOST);
	return false;
}

/* --- those that are started, and those that end --- */

SEC("tp_btf/sched_process_fork")
int ax_follow_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 from = parent->tgid;

	if (parent->tgid != child->tgid && bpf_map_lookup_elem(&tree, &from))
		add(child);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int ax_follow_exit(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 tgid = task->tgid;

	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&tree, &tgid);
	return 0;
}

/* --- those that are there: looked at again until there are no more --- */

SEC("iter/task")
int ax_follow_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 tgid, parent, number;

	if (!task || task->pid != task->tgid)
		return 0;
	tgid = task->tgid;
	parent = BPF_CORE_READ(task, real_parent, tgid);
	number = number_of(task);
	if (bpf_map_lookup_elem(&tree, &tgid) ||
	    !((number && bpf_map_lookup_elem(&named, &number)) ||
	      (follow.children && bpf_map_lookup_elem(&tree, &parent))))
		return 0;
	if (!add(task))
		return 0;
	/* its end may have been told before, and its number is another one's then */
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&tree, &tgid);
	else
		added++;
	return 0;
}

/* --- files --- */

static __always_inline bool is_followed(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!follow.all && !bpf_map_lookup_elem(&tree, &tgid))
		return false;
	return scope_has_current(&follow.scope);
}

/* A new file may get the number of one that was deleted just before, as in every build. */
static __always_inline __u32 changed(struct inode *inode)
{
	struct inode___before_6_11 *old = (void *)inode;
	struct inode___before_6_6 *older = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_nsec))
		return BPF_CORE_READ(inode, i_ctime_sec) + BPF_CORE_READ(inode, i_ctime_nsec);
	if (bpf_core_field_exists(old->__i_ctime))
		return BPF_CORE_READ(old, __i_ctime.tv_sec) + BPF_CORE_READ(old, __i_ctime.tv_nsec);
	return BPF_CORE_READ(older, i_ctime.tv_sec) + BPF_CORE_READ(older, i_ctime.tv_nsec);
}

static __always_inline void tell(struct task_struct *task, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct ax_follow_key key = {.ino = BPF_CORE_READ(inode, i_ino),
				    .dev = BPF_CORE_READ(inode, i_sb, s_dev),
				    .changed = changed(inode)};
	struct ax_follow_file *f;
	__u32 pid;

	if (!inode || bpf_map_lookup_elem(&files, &key))
		return;
	pid = number_of(task);
	if (!pid || bpf_map_update_elem(&files, &key, &pid, BPF_NOEXIST))
		return;
	f = bpf_ringbuf_reserve(&told, sizeof(*f), 0);
	if (!f) {
		bpf_map_delete_elem(&files, &key);
		count(AX_FOLLOW_FILES);
		return;
	}
	f->key = key;
	f->pid = pid;
	f->pad = 0;
	bpf_ringbuf_submit(f, BPF_RB_FORCE_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int ax_follow_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (is_followed())
		tell(task, BPF_CORE_READ(task, mm, exe_file));
	return 0;
}

static __always_inline struct file *file_of(struct task_struct *task, int fd)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **fds, *f = NULL;

	if (fd < 0 || (__u32)fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	fds = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&f, sizeof(f), fds + fd);
	return f;
}

SEC("tp_btf/sys_exit")
int ax_follow_mapped(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	struct task_struct *task;
	struct file *file;

	if (SYSCALL_NR(regs) != NR_MMAP || (__u64)ctx[1] > -(__u64)ERRNO_MAX - 1 ||
	    !(MMAP_PROT(regs) & PROT_EXEC) || MMAP_FLAGS(regs) & MAP_ANONYMOUS)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	if (COMPAT(task) || !is_followed())
		return 0;
	file = file_of(task, MMAP_FD(regs));
	if (file)
		tell(task, file);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
