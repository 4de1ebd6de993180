// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace exec: every command with all of its arguments. At sched_process_exec the kernel has just
 * written them onto the new stack, so that they can be read without faults.
 */
#include "syscall.bpf.h"

#define PIECES_MAX    4096 /* of AX_EXEC_CHUNK: the kernel allows 6 MiB */
#define CWD_DEPTH     128
#define CWD_BYTES     4096
#define NAME_BYTES    256
#define FAILED_ARGS   512
#define FAILED_BYTES  8192
#define FAILED_STRING 4096

const volatile struct {
	__u32 env, cwd, exits;
} wanted;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct linux_binprm {
	const char *filename;
};
#pragma clang attribute pop

/* When processes executed what they are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCH_RUNNING_MAX);
	__type(key, __u32);
	__type(value, __u64);
} running SEC(".maps");

/* Texts are put together here: of a path from inside to outside, of a failed exec's arguments. */
struct scratch {
	union {
		struct ax_exec_piece piece;
		__u8 bytes[sizeof(struct ax_exec_piece) + FAILED_BYTES + FAILED_STRING];
	};
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *get_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline __u8 *text_at(struct scratch *s, __u32 used)
{
	return &s->bytes[sizeof(s->piece) + used];
}

/* Pieces come by the hundred, so their reader is woken before the ring is full. */
static __always_inline __u64 piece_flags(void)
{
	__u64 size = bpf_ringbuf_query(&records, BPF_RB_RING_SIZE);

	return bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) > size / WATCH_WAKE_FRACTION
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

static __always_inline void piece_begin(struct ax_exec_piece *p, __u32 what, __u64 offset,
					__u32 len)
{
	p->no_time = 0;
	p->pad = 0;
	p->pid = bpf_get_current_pid_tgid() >> 32;
	p->what = what;
	p->offset = offset;
	p->len = len;
}

/* --- memory of the process --- */

struct copy {
	__u64 from;
	__u64 len;
	__u32 what;
	__u32 pad;
};

/* `size` is constant, and what a record's room is; `len` is at most that. */
#define COPY_PIECE(c, done, len, size)                                                           \
	do {                                                                                     \
		struct ax_exec_piece *p = bpf_ringbuf_reserve(&records, sizeof(*p) + (size), 0); \
		__u32 n = (len);                                                                 \
                                                                                                 \
		if (!p) {                                                                        \
			watch_count(AX_WATCH_CUT);                                               \
			return 0;                                                                \
		}                                                                                \
		piece_begin(p, (c)->what, done, n);                                              \
		/* a compiler that knows it below `size` would leave out what the verifier needs \
		 */                                                                              \
		asm volatile("" : "+r"(n));                                                      \
		if (n > (size))                                                                  \
			n = (size);                                                              \
		if (bpf_probe_read_user(p->data, n, (void *)((c)->from + (done))) < 0) {         \
			bpf_ringbuf_discard(p, BPF_RB_NO_WAKEUP);                                \
			watch_count(AX_WATCH_CUT);                                               \
			return 0;                                                                \
		}                                                                                \
		bpf_ringbuf_submit(p, piece_flags());                                            \
	} while (0)

/* Three sizes, so that short commands take little of the ring. */
static long copy_piece(__u32 i, struct copy *c)
{
	__u64 done = (__u64)i * AX_EXEC_CHUNK, left;

	if (done >= c->len)
		return 1;
	left = c->len - done;
	if (left > 1024)
		COPY_PIECE(c, done, left > AX_EXEC_CHUNK ? AX_EXEC_CHUNK : (__u32)left,
			   AX_EXEC_CHUNK);
	else if (left > 192)
		COPY_PIECE(c, done, (__u32)left, 1024);
	else
		COPY_PIECE(c, done, (__u32)left, 192);
	return 0;
}

static __always_inline __u64 copy_memory(__u32 what, __u64 from, __u64 to)
{
	struct copy c = {.from = from, .len = to - from, .what = what};

	if (from >= to)
		return 0;
	bpf_loop(PIECES_MAX, copy_piece, &c, 0);
	return c.len;
}

/* --- names --- */

static __always_inline void send_scratch(struct scratch *s, __u32 what, __u32 len)
{
	__u64 n = sizeof(s->piece) + len;

	piece_begin(&s->piece, what, 0, len);
	asm volatile("" : "+r"(n));
	if (n > sizeof(*s))
		n = sizeof(*s);
	if (bpf_ringbuf_output(&records, s, n, piece_flags()) < 0)
		watch_count(AX_WATCH_CUT);
}

struct walk {
	struct dentry *dentry, *root;
	struct mount *mount, *root_mount;
	__u32 used;
	__u32 complete;
};

static __always_inline struct mount *mount_of(struct vfsmount *m)
{
	return (void *)((char *)m - bpf_core_field_offset(struct mount, mnt));
}

static long walk_up(__u32 i, struct walk *w)
{
	struct dentry *dentry = w->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct mount *mount = w->mount, *above;
	struct scratch *s = get_scratch();
	__u32 used = w->used;
	long n;

	(void)i;
	if (dentry == w->root && mount == w->root_mount) {
		w->complete = 1;
		return 1;
	}
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root) || dentry == parent) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount) { /* outside of the root, as after pivot_root() */
			w->complete = 1;
			return 1;
		}
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->mount = above;
		return 0;
	}
	if (!s || used > CWD_BYTES - NAME_BYTES)
		return 1;
	n = bpf_probe_read_kernel_str(text_at(s, used), NAME_BYTES,
				      BPF_CORE_READ(dentry, d_name.name));
	if (n <= 0)
		return 1;
	w->used = used + (__u32)n;
	w->dentry = parent;
	return 0;
}

static __always_inline __u32 send_cwd(struct task_struct *task)
{
	struct fs_struct *fs = task->fs;
	struct walk w = {
		.dentry = BPF_CORE_READ(fs, pwd.dentry),
		.root = BPF_CORE_READ(fs, root.dentry),
		.mount = mount_of(BPF_CORE_READ(fs, pwd.mnt)),
		.root_mount = mount_of(BPF_CORE_READ(fs, root.mnt)),
	};
	struct scratch *s = get_scratch();

	if (!s)
		return 0;
	bpf_loop(CWD_DEPTH, walk_up, &w, 0);
	send_scratch(s, AX_EXEC_CWD, w.used);
	return w.complete ? 0 : AX_EXEC_DEEP_CWD;
}

static __always_inline void send_file(const char *name, bool user)
{
	struct scratch *s = get_scratch();
	long n;

	if (!s)
		return;
	n = user ? bpf_probe_read_user_str(text_at(s, 0), FAILED_STRING, name)
		 : bpf_probe_read_kernel_str(text_at(s, 0), FAILED_STRING, name);
	if (n > 0)
		send_scratch(s, AX_EXEC_FILE, (__u32)n);
	else
		watch_count(AX_WATCH_CUT);
}

/* --- what was executed --- */

static __always_inline void send_event(int ret, __u32 flags, __u64 argv_len, __u64 env_len)
{
	struct ax_exec_event *e = watch_reserve(sizeof(*e));

	if (!e)
		return;
	watch_head(&e->head, AX_WATCH_EXEC);
	e->ret = ret;
	e->flags = flags;
	e->argv_len = argv_len;
	e->env_len = env_len;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int ax_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct mm_struct *mm = task->mm;
	__u64 argv_len, env_len = 0, now;
	__u32 flags = 0, tgid;

	if (!watch_current() || !mm)
		return 0;
	send_file(bprm->filename, false);
	argv_len = copy_memory(AX_EXEC_ARGV, mm->arg_start, mm->arg_end);
	if (wanted.env)
		env_len = copy_memory(AX_EXEC_ENV, mm->env_start, mm->env_end);
	if (wanted.cwd)
		flags |= send_cwd(task);
	send_event(0, flags, argv_len, env_len);
	if (wanted.exits) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		now = bpf_ktime_get_ns();
		bpf_map_update_elem(&running, &tgid, &now, BPF_ANY);
	}
	return 0;
}

/* --- what was not --- */

struct collect {
	__u64 argv;
	__u32 used;
	__u32 more;
};

static long collect_arg(__u32 i, struct collect *c)
{
	struct scratch *s = get_scratch();
	__u32 used = c->used;
	__u64 arg = 0;
	long n;

	if (bpf_probe_read_user(&arg, sizeof(arg), (void *)(c->argv + (__u64)i * sizeof(arg))) <
		    0 ||
	    !arg)
		return 1;
	if (!s || used > FAILED_BYTES || i == FAILED_ARGS - 1) {
		c->more = AX_EXEC_MORE_ARGS;
		return 1;
	}
	n = bpf_probe_read_user_str(text_at(s, used), FAILED_STRING, (void *)arg);
	if (n <= 0) {
		c->more = AX_EXEC_MORE_ARGS;
		return 1;
	}
	if (n == FAILED_STRING)
		c->more = AX_EXEC_MORE_ARGS;
	c->used = used + (__u32)n;
	return 0;
}

SEC("tp_btf/sys_exit")
int ax_exec_failed(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1];
	struct scratch *s;
	struct collect c = {};
	__u64 file;
	__u32 flags;
	long nr;

	if (ret >= 0)
		return 0;
	nr = SYSCALL_NR(regs);
	if (nr != NR_EXECVE && nr != NR_EXECVEAT)
		return 0;
	if (syscall_is_compat() || !watch_current())
		return 0;
	s = get_scratch();
	if (!s)
		return 0;
	file = nr == NR_EXECVE ? SYSCALL_A(regs) : SYSCALL_B(regs);
	c.argv = nr == NR_EXECVE ? SYSCALL_B(regs) : SYSCALL_C(regs);
	send_file((void *)file, true);
	bpf_loop(FAILED_ARGS, collect_arg, &c, 0);
	send_scratch(s, AX_EXEC_ARGV, c.used);
	flags = c.more;
	if (wanted.cwd)
		flags |= send_cwd((void *)bpf_get_current_task_btf());
	send_event((int)ret, flags, c.used, 0);
	return 0;
}

/* --- ends --- */

#define SIGNAL_GROUP_EXIT 4

SEC("tp_btf/sched_process_exit")
int ax_exit(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct signal_struct *signal = task->signal;
	__u32 tgid = task->tgid;
	struct ax_exit_event *e;
	__u64 *since, begin;

	if (signal->live.counter)
		return 0;
	since = bpf_map_lookup_elem(&running, &tgid);
	if (!since)
		return 0;
	begin = *since;
	bpf_map_delete_elem(&running, &tgid);
	e = watch_reserve(sizeof(*e));
	if (!e)
		return 0;
	watch_head(&e->head, AX_WATCH_EXIT);
	e->duration_ns = e->head.time_ns - begin;
	e->status = signal->flags & SIGNAL_GROUP_EXIT ? (__u32)signal->group_exit_code
						      : (__u32)task->group_leader->exit_code;
	e->pad = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
