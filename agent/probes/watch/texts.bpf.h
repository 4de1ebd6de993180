/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts that are longer than a record: memory of a process in pieces, and paths as the kernel has
 * them. */
#ifndef AX_PROBES_WATCH_TEXTS_BPF_H
#define AX_PROBES_WATCH_TEXTS_BPF_H

#include "syscall.bpf.h"

#define PIECES_MAX    4096 /* of AX_EXEC_CHUNK: the kernel allows 6 MiB */
#define CWD_DEPTH     128
#define CWD_BYTES     4096
#define NAME_BYTES    256
#define SCRATCH_BYTES 20480
#define FILE_BYTES    4096

/* A way from a directory up to the root. It is not on the stack: the verifier would follow every
 * length that the names so far may have. */
struct walk {
	struct dentry *dentry, *root;
	struct mount *mount, *root_mount;
	struct dentry *mount_root; /* of `mount` */
	__u32 used;		   /* of the scratch's bytes */
	__u32 limit;
	__u32 complete;
	__u32 pad;
};

/* Texts are put together here: of a path from inside to outside, of a failed exec's arguments. */
struct scratch {
	struct walk walk;
	union {
		struct ax_exec_piece piece;
		__u8 bytes[SCRATCH_BYTES];
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
	if (n > sizeof(s->bytes))
		n = sizeof(s->bytes);
	if (bpf_ringbuf_output(&records, s->bytes, n, piece_flags()) < 0)
		watch_count(AX_WATCH_CUT);
}

static __always_inline struct mount *mount_of(struct vfsmount *m)
{
	return (void *)((char *)m - bpf_core_field_offset(struct mount, mnt));
}

static long walk_up(__u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct dentry *dentry, *parent;
	struct mount *mount, *above;
	struct walk *w;
	__u32 used;
	long n;

	(void)i;
	(void)ctx;
	if (!s)
		return 1;
	w = &s->walk;
	dentry = w->dentry;
	mount = w->mount;
	used = w->used;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == w->root && mount == w->root_mount) {
		w->complete = 1;
		return 1;
	}
	if (dentry == w->mount_root || dentry == parent) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount) { /* outside of the root, as after pivot_root() */
			w->complete = 1;
			return 1;
		}
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->mount = above;
		w->mount_root = BPF_CORE_READ(above, mnt.mnt_root);
		return 0;
	}
	if (used > w->limit || used > SCRATCH_BYTES - NAME_BYTES)
		return 1;
	n = bpf_probe_read_kernel_str(&s->bytes[used], NAME_BYTES,
				      BPF_CORE_READ(dentry, d_name.name));
	if (n <= 0)
		return 1;
	w->used = used + (__u32)n;
	w->dentry = parent;
	return 0;
}

/* Writes the names of a path's directories into the scratch from `at` on, to s->walk.used. */
static __always_inline void walk_path(struct scratch *s, struct vfsmount *mnt,
				      struct dentry *dentry, __u32 at)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct fs_struct *fs = task->fs;
	struct walk *w = &s->walk;

	w->dentry = dentry;
	w->root = BPF_CORE_READ(fs, root.dentry);
	w->mount = mount_of(mnt);
	w->root_mount = mount_of(BPF_CORE_READ(fs, root.mnt));
	w->mount_root = BPF_CORE_READ(mnt, mnt_root);
	w->used = at;
	w->limit = at + CWD_BYTES - NAME_BYTES;
	w->complete = 0;
	bpf_loop(CWD_DEPTH, walk_up, NULL, 0);
}

static __always_inline void walk_cwd(struct scratch *s, __u32 at)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct fs_struct *fs = task->fs;

	walk_path(s, BPF_CORE_READ(fs, pwd.mnt), BPF_CORE_READ(fs, pwd.dentry), at);
}

static __always_inline __u32 send_cwd(void)
{
	struct scratch *s = get_scratch();

	if (!s)
		return 0;
	walk_cwd(s, sizeof(s->piece));
	send_scratch(s, AX_EXEC_CWD, s->walk.used - sizeof(s->piece));
	return s->walk.complete ? 0 : AX_EXEC_DEEP_CWD;
}

static __always_inline void send_file(const char *name, bool user)
{
	struct scratch *s = get_scratch();
	long n;

	if (!s)
		return;
	n = user ? bpf_probe_read_user_str(text_at(s, 0), FILE_BYTES, name)
		 : bpf_probe_read_kernel_str(text_at(s, 0), FILE_BYTES, name);
	if (n > 0)
		send_scratch(s, AX_EXEC_FILE, (__u32)n);
	else
		watch_count(AX_WATCH_CUT);
}

#endif
