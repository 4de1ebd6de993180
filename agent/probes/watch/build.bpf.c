// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace build: what one process and those that it starts do with files. System calls are seen at
 * their return, when the kernel has read the names, so that their pages are there. Which call has
 * its names where is a table: a call that is not in it costs other processes one look there.
 */
#include "texts.bpf.h"
#include "files.bpf.h"
#include "build_event.h"

#define AT_FDCWD      (-100)
#define ERRNO_MAX     4095
#define RESTART_LEAST 512 /* from here on they are the kernel's own, and the call is made again */
#define RESTART_MOST  516
#define FDS_MAX	      128   /* an exec leaves open: so many are looked at */
#define CREAT_FLAGS   01101 /* O_CREAT | O_WRONLY | O_TRUNC */
#define ELF_CLASS_32  1
#define NRS	      512

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct mm_struct___exe {
	struct file *exe_file;
};
struct linux_binprm {
	const char *filename;
	char buf[256];
};
#pragma clang attribute pop

/* --- which arguments a system call has where: 1 is the first, 0: none --- */

struct call {
	__u8 type; /* enum ax_build_type, 0: it is none of ours */
	__u8 dir, name, dir2, name2, flags, mode;
	__u8 fixed; /* its flags are FIXED_... */
};
enum { FIXED_NONE, FIXED_CREAT, FIXED_HOW };

static const struct call calls[NRS] = {
#if defined(__TARGET_ARCH_x86)
	[2] = {AX_BUILD_OPEN, .name = 1, .flags = 2, .mode = 3},
	[59] = {AX_BUILD_NO_EXEC, .name = 1},
	[76] = {AX_BUILD_TRUNCATE, .name = 1, .flags = 2},
	[77] = {AX_BUILD_TRUNCATE, .dir = 1, .flags = 2},
	[80] = {AX_BUILD_CHDIR, .name = 1},
	[81] = {AX_BUILD_CHDIR, .dir = 1},
	[82] = {AX_BUILD_RENAME, .name = 1, .name2 = 2},
	[83] = {AX_BUILD_MKDIR, .name = 1, .mode = 2},
	[84] = {AX_BUILD_RMDIR, .name = 1},
	[85] = {AX_BUILD_OPEN, .name = 1, .mode = 2, .fixed = FIXED_CREAT},
	[86] = {AX_BUILD_LINK, .name = 1, .name2 = 2},
	[87] = {AX_BUILD_UNLINK, .name = 1},
	[88] = {AX_BUILD_SYMLINK, .name = 1, .name2 = 2},
	[90] = {AX_BUILD_CHMOD, .name = 1, .mode = 2},
	[91] = {AX_BUILD_CHMOD, .dir = 1, .mode = 2},
	[133] = {AX_BUILD_MKNOD, .name = 1, .mode = 2},
	[257] = {AX_BUILD_OPEN, .dir = 1, .name = 2, .flags = 3, .mode = 4},
	[258] = {AX_BUILD_MKDIR, .dir = 1, .name = 2, .mode = 3},
	[259] = {AX_BUILD_MKNOD, .dir = 1, .name = 2, .mode = 3},
	[263] = {AX_BUILD_UNLINK, .dir = 1, .name = 2, .flags = 3},
	[264] = {AX_BUILD_RENAME, .dir = 1, .name = 2, .dir2 = 3, .name2 = 4},
	[265] = {AX_BUILD_LINK, .dir = 1, .name = 2, .dir2 = 3, .name2 = 4, .flags = 5},
	[266] = {AX_BUILD_SYMLINK, .name = 1, .dir2 = 2, .name2 = 3},
	[268] = {AX_BUILD_CHMOD, .dir = 1, .name = 2, .mode = 3},
	[316] = {AX_BUILD_RENAME, .dir = 1, .name = 2, .dir2 = 3, .name2 = 4, .flags = 5},
	[322] = {AX_BUILD_NO_EXEC, .dir = 1, .name = 2, .flags = 5},
#elif defined(__TARGET_ARCH_arm64)
	[33] = {AX_BUILD_MKNOD, .dir = 1, .name = 2, .mode = 3},
	[34] = {AX_BUILD_MKDIR, .dir = 1, .name = 2, .mode = 3},
	[35] = {AX_BUILD_UNLINK, .dir = 1, .name = 2, .flags = 3},
	[36] = {AX_BUILD_SYMLINK, .name = 1, .dir2 = 2, .name2 = 3},
	[37] = {AX_BUILD_LINK, .dir = 1, .name = 2, .dir2 = 3, .name2 = 4, .flags = 5},
	[38] = {AX_BUILD_RENAME, .dir = 1, .name = 2, .dir2 = 3, .name2 = 4},
	[45] = {AX_BUILD_TRUNCATE, .name = 1, .flags = 2},
	[46] = {AX_BUILD_TRUNCATE, .dir = 1, .flags = 2},
	[49] = {AX_BUILD_CHDIR, .name = 1},
	[50] = {AX_BUILD_CHDIR, .dir = 1},
	[52] = {AX_BUILD_CHMOD, .dir = 1, .mode = 2},
	[53] = {AX_BUILD_CHMOD, .dir = 1, .name = 2, .mode = 3},
	[56] = {AX_BUILD_OPEN, .dir = 1, .name = 2, .flags = 3, .mode = 4},
	[221] = {AX_BUILD_NO_EXEC, .name = 1},
	[276] = {AX_BUILD_RENAME, .dir = 1, .name = 2, .dir2 = 3, .name2 = 4, .flags = 5},
	[281] = {AX_BUILD_NO_EXEC, .dir = 1, .name = 2, .flags = 5},
#endif
	[437] = {AX_BUILD_OPEN, .dir = 1, .name = 2, .flags = 3, .fixed = FIXED_HOW},
	[452] = {AX_BUILD_CHMOD, .dir = 1, .name = 2, .mode = 3, .flags = 4},
};

/* struct open_how of <linux/openat2.h> */
struct how {
	__u64 flags, mode, resolve;
};

/* The command's number in its pid namespace, which is a container's if ax runs in one: the tree has
 * the numbers of the outermost. */
const volatile __u64 pidns_device, pidns_number;
const volatile __u32 command;
static bool command_seen;

static __always_inline bool is_command(__u32 tgid)
{
	struct bpf_pidns_info own;
	__u32 one = 1;

	if (command_seen ||
	    bpf_get_ns_current_pid_tgid(pidns_device, pidns_number, &own, sizeof(own)) < 0)
		return false;
	if (own.tgid != command)
		return false;
	command_seen = true;
	return bpf_map_update_elem(&tree, &tgid, &one, BPF_ANY) == 0;
}

/* --- records --- */

static __always_inline bool followed(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return bpf_map_lookup_elem(&tree, &tgid) || is_command(tgid);
}

static __always_inline void begin(struct ax_build_head *h, __u32 type)
{
	__u64 id = bpf_get_current_pid_tgid();

	h->time_ns = bpf_ktime_get_ns();
	h->type = type;
	h->pid = id >> 32;
	h->tid = (__u32)id;
	h->pad = 0;
}

static __always_inline void send(void *record, __u64 len)
{
	watch_count(AX_WATCH_EMITTED);
	asm volatile("" : "+r"(len));
	if (len > SCRATCH_BYTES)
		len = SCRATCH_BYTES;
	if (bpf_ringbuf_output(&records, record, len, piece_flags()) < 0)
		watch_count(AX_WATCH_DROPPED);
}

/* --- paths --- */

/* Where the next text goes, and what is sent, ends at s->walk.used. */
static __always_inline void walk_file(struct scratch *s, struct file *f, __u32 at)
{
	walk_path(s, BPF_CORE_READ(f, f_path.mnt), BPF_CORE_READ(f, f_path.dentry), at);
}

static __always_inline void fill_inode(struct ax_build_path *r, struct file *f)
{
	struct inode *inode = BPF_CORE_READ(f, f_inode);

	r->ino = BPF_CORE_READ(inode, i_ino);
	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->file_mode = BPF_CORE_READ(inode, i_mode);
}

/* Writes a name behind what is in the scratch. */
static __always_inline void put_name(struct scratch *s, __u64 name, __u32 which)
{
	struct ax_build_path *r = (void *)s->bytes;
	__u32 at = s->walk.used;
	long n;

	if (at > SCRATCH_BYTES - AX_BUILD_NAME_MAX)
		return;
	n = bpf_probe_read_user_str(&s->bytes[at], AX_BUILD_NAME_MAX, (void *)name);
	if (n <= 0) {
		r->path_flags |= AX_BUILD_FAULT;
		return;
	}
	r->len[which] = (__u32)n - 1;
	s->walk.used = at + (__u32)n - 1;
}

/* The directory that a name begins at, if that is not the current one: so that nobody has to follow
 * descriptors. Also the file that is meant if there is no name. */
static __always_inline void put_dir(struct scratch *s, __s32 fd, bool absolute, __u32 which)
{
	struct ax_build_path *r = (void *)s->bytes;
	__u32 at = s->walk.used;
	struct file *f;

	if (fd == AT_FDCWD || absolute)
		return;
	f = file_of(fd);
	if (!f)
		return;
	walk_file(s, f, at);
	r->len[which] = s->walk.used - at;
	if (!s->walk.complete)
		r->path_flags |= AX_BUILD_DEEP_DIR;
}

static __always_inline void put_real(struct scratch *s, __u32 type, long ret)
{
	struct ax_build_path *r = (void *)s->bytes;
	__u32 at = s->walk.used;
	struct file *f;

	if (type == AX_BUILD_CHDIR) {
		walk_cwd(s, at);
	} else if (type == AX_BUILD_OPEN) {
		f = file_of(ret);
		if (!f)
			return;
		fill_inode(r, f);
		walk_file(s, f, at);
	} else {
		return;
	}
	r->len[AX_BUILD_REAL] = s->walk.used - at;
	if (!s->walk.complete)
		r->path_flags |= AX_BUILD_DEEP_REAL;
}

/* Arguments by their numbers; the one with number 0 is never given. */
struct args {
	__u64 v[8];
};

static __always_inline __u64 arg(const struct args *a, __u8 i)
{
	return a->v[i & 7];
}

static __always_inline void put_flags(struct ax_build_path *r, const struct call *c,
				      const struct args *a)
{
	struct how how = {};

	r->flags = arg(a, c->flags);
	r->mode = (__u32)arg(a, c->mode);
	if (c->fixed == FIXED_CREAT) {
		r->flags = CREAT_FLAGS;
	} else if (c->fixed == FIXED_HOW) {
		bpf_probe_read_user(&how, sizeof(how), (void *)r->flags);
		r->flags = how.flags;
		r->mode = (__u32)how.mode;
	}
}

static __always_inline void send_call(const struct call *c, const struct args *a, long ret)
{
	struct scratch *s = get_scratch();
	struct ax_build_path *r;
	__u32 second;

	if (!s)
		return;
	r = (void *)s->bytes;
	__builtin_memset(r, 0, sizeof(*r));
	begin(&r->head, c->type);
	r->ret = ret;
	r->dir = c->dir ? (__s32)arg(a, c->dir) : AT_FDCWD;
	r->dir2 = c->dir2 ? (__s32)arg(a, c->dir2) : AT_FDCWD;
	put_flags(r, c, a);
	s->walk.used = sizeof(*r);
	if (c->name)
		put_name(s, arg(a, c->name), AX_BUILD_NAME);
	second = s->walk.used;
	if (c->name2)
		put_name(s, arg(a, c->name2), AX_BUILD_NAME2);
	put_dir(s, r->dir, s->bytes[sizeof(*r)] == '/' && r->len[AX_BUILD_NAME], AX_BUILD_DIR);
	put_dir(s, r->dir2,
		second < SCRATCH_BYTES && s->bytes[second] == '/' && r->len[AX_BUILD_NAME2],
		AX_BUILD_DIR2);
	if (ret >= 0)
		put_real(s, c->type, ret);
	send(r, s->walk.used);
}

SEC("tp_btf/sys_exit")
int ax_build_call(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1], nr = SYSCALL_NR(regs);
	const struct call *c;
	struct args a = {};

	if (nr < 0 || nr >= NRS)
		return 0;
	c = &calls[nr];
	if (!c->type || !followed() || syscall_is_compat())
		return 0;
	if (ret >= 0 && c->type == AX_BUILD_NO_EXEC)
		return 0; /* registers are the new program's */
	if (ret <= -RESTART_LEAST && ret >= -RESTART_MOST)
		return 0;
	a.v[1] = SYSCALL_A(regs);
	a.v[2] = SYSCALL_B(regs);
	a.v[3] = SYSCALL_C(regs);
	a.v[4] = SYSCALL_D(regs);
	a.v[5] = SYSCALL_E(regs);
	send_call(c, &a, ret);
	return 0;
}

/* --- processes --- */

SEC("tp_btf/sched_process_fork")
int ax_build_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 from = parent->tgid, to = child->tgid, one = 1;
	struct ax_build_fork r = {};

	if (from == to || !bpf_map_lookup_elem(&tree, &from))
		return 0;
	if (bpf_map_update_elem(&tree, &to, &one, BPF_ANY) < 0)
		watch_count(AX_WATCH_UNFOLLOWED);
	begin(&r.head, AX_BUILD_FORK);
	r.child = to;
	send(&r, sizeof(r));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int ax_build_exit(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct signal_struct *signal = task->signal;
	struct ax_build_exit r = {};
	__u32 tgid = task->tgid;

	if (signal->live.counter || !bpf_map_lookup_elem(&tree, &tgid))
		return 0;
	bpf_map_delete_elem(&tree, &tgid);
	begin(&r.head, AX_BUILD_EXIT);
	r.status = signal->flags & SIGNAL_GROUP_EXIT ? (__u32)signal->group_exit_code
						     : (__u32)task->group_leader->exit_code;
	send(&r, sizeof(r));
	return 0;
}

/* --- what is executed, and which files it is left --- */

static long tell_left(__u32 fd, void *ctx)
{
	struct scratch *s = get_scratch();
	struct ax_build_path *r;
	struct file *f = file_of(fd);

	(void)ctx;
	if (!f || !s)
		return 0;
	r = (void *)s->bytes;
	__builtin_memset(r, 0, sizeof(*r));
	fill_inode(r, f);
	if ((r->file_mode & S_IFMT) != S_IFREG)
		return 0;
	begin(&r->head, AX_BUILD_INHERIT);
	r->ret = fd;
	r->flags = BPF_CORE_READ(f, f_flags);
	r->dir = r->dir2 = AT_FDCWD;
	walk_file(s, f, sizeof(*r));
	r->len[AX_BUILD_REAL] = s->walk.used - sizeof(*r);
	r->path_flags = s->walk.complete ? 0 : AX_BUILD_DEEP_REAL;
	send(r, s->walk.used);
	return 0;
}

static __always_inline __u32 tell_files(struct task_struct *task)
{
	struct task_struct___files *t = (void *)task;
	__u32 max = BPF_CORE_READ(t, files, fdt, max_fds);

	bpf_loop(max < FDS_MAX ? max : FDS_MAX, tell_left, NULL, 0);
	return max > FDS_MAX ? AX_BUILD_MORE_FDS : 0;
}

static __always_inline void send_exec(struct task_struct *task, __u64 argv_len, __u64 env_len,
				      __u32 flags)
{
	struct scratch *s = get_scratch();
	struct ax_build_exec *r;
	struct mm_struct___exe *mm = (void *)task->mm;

	if (!s)
		return;
	r = (void *)s->bytes;
	walk_file(s, BPF_CORE_READ(mm, exe_file), sizeof(*r));
	begin(&r->head, AX_BUILD_EXEC);
	r->argv_len = argv_len;
	r->env_len = env_len;
	r->flags = flags | (s->walk.complete ? 0 : AX_BUILD_DEEP_EXE);
	r->exe_len = s->walk.used - sizeof(*r);
	send(r, s->walk.used);
}

SEC("tp_btf/sched_process_exec")
int ax_build_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct mm_struct *mm = task->mm;
	__u64 argv_len, env_len;
	__u32 flags = 0;

	if (!followed() || !mm)
		return 0;
	send_file(bprm->filename, false);
	argv_len = copy_memory(AX_EXEC_ARGV, mm->arg_start, mm->arg_end);
	env_len = copy_memory(AX_EXEC_ENV, mm->env_start, mm->env_end);
	if (send_cwd())
		flags |= AX_BUILD_DEEP_CWD;
	if (bprm->buf[4] == ELF_CLASS_32 && bprm->buf[0] == 0x7f)
		flags |= AX_BUILD_32BIT;
	flags |= tell_files(task);
	send_exec(task, argv_len, env_len, flags);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
