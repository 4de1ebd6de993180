// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace files: which files are opened, read and written, by whom and how long that takes. All is
 * counted here; a file's name is told once, when the first of its calls is counted.
 */
#include "files.bpf.h"
#include "tally.bpf.h"

#define ERRNO_MAX     4095
#define RESTART_LEAST 512 /* from here on they are the kernel's own, and the call is made again */
#define RESTART_MOST  516
#define NRS	      512

const volatile __u32 all_kinds; /* not only regular files */

/* Which argument is the descriptor that is read or written: 1 is the first, 0: none. */
struct call {
	__u8 reads, writes;
	__u8 opens; /* the result is one */
};
static const struct call calls[NRS] = {
#if defined(__TARGET_ARCH_x86)
	[0] = {.reads = 1},		   /* read */
	[1] = {.writes = 1},		   /* write */
	[2] = {.opens = 1},		   /* open */
	[17] = {.reads = 1},		   /* pread64 */
	[18] = {.writes = 1},		   /* pwrite64 */
	[19] = {.reads = 1},		   /* readv */
	[20] = {.writes = 1},		   /* writev */
	[40] = {.reads = 2, .writes = 1},  /* sendfile */
	[85] = {.opens = 1},		   /* creat */
	[257] = {.opens = 1},		   /* openat */
	[275] = {.reads = 1, .writes = 3}, /* splice */
	[295] = {.reads = 1},		   /* preadv */
	[296] = {.writes = 1},		   /* pwritev */
	[326] = {.reads = 1, .writes = 3}, /* copy_file_range */
	[327] = {.reads = 1},		   /* preadv2 */
	[328] = {.writes = 1},		   /* pwritev2 */
#elif defined(__TARGET_ARCH_arm64)
	[56] = {.opens = 1},		   /* openat */
	[63] = {.reads = 1},		   /* read */
	[64] = {.writes = 1},		   /* write */
	[65] = {.reads = 1},		   /* readv */
	[66] = {.writes = 1},		   /* writev */
	[67] = {.reads = 1},		   /* pread64 */
	[68] = {.writes = 1},		   /* pwrite64 */
	[69] = {.reads = 1},		   /* preadv */
	[70] = {.writes = 1},		   /* pwritev */
	[71] = {.reads = 2, .writes = 1},  /* sendfile */
	[76] = {.reads = 1, .writes = 3},  /* splice */
	[285] = {.reads = 1, .writes = 3}, /* copy_file_range */
	[286] = {.reads = 1},		   /* preadv2 */
	[287] = {.writes = 1},		   /* pwritev2 */
#endif
	[437] = {.opens = 1}, /* openat2 */
};

static __always_inline bool is_seen(const struct call *c)
{
	return c->reads || c->writes || c->opens;
}

/* The call that a thread is in, with its files as they were when it began. */
struct entry {
	__u64 since; /* 0: none */
	struct ax_file_key keys[AX_FILE_WAYS];
	__u8 has[AX_FILE_WAYS];
	__u8 opens;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entry);
} entries SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_FILES);
	__type(key, struct ax_file_key);
	__type(value, struct ax_file_cell);
} files SEC(".maps");

/* --- files --- */

static __always_inline void tell_name(const struct ax_file_key *key, struct file *f,
				      struct ax_file_cell *c)
{
	struct scratch *s = get_scratch();
	struct ax_file_name *r;
	__u64 len;

	if (!s)
		return;
	r = (void *)s->bytes;
	walk_path(s, BPF_CORE_READ(f, f_path.mnt), BPF_CORE_READ(f, f_path.dentry), sizeof(*r));
	r->no_time = 0;
	r->key = *key;
	r->complete = s->walk.complete;
	r->len = s->walk.used - sizeof(*r);
	len = s->walk.used;
	asm volatile("" : "+r"(len));
	if (len > SCRATCH_BYTES)
		len = SCRATCH_BYTES;
	/* without room it is tried again with the next call */
	c->named = bpf_ringbuf_output(&records, r, len, piece_flags()) == 0;
}

static __always_inline struct ax_file_cell *cell_of(const struct ax_file_key *key)
{
	struct ax_file_cell *c = bpf_map_lookup_elem(&files, key), none = {};

	if (c)
		return c;
	bpf_map_update_elem(&files, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&files, key);
}

/* False: it is not of the kind that is looked at. */
static __always_inline bool file_key(struct file *f, __u64 group, struct ax_file_key *key)
{
	struct inode *inode = BPF_CORE_READ(f, f_inode);
	__u16 mode = BPF_CORE_READ(inode, i_mode);
	struct ax_file_cell *c;

	if (!all_kinds && (mode & S_IFMT) != S_IFREG)
		return false;
	key->group = group;
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->generation = BPF_CORE_READ(inode, i_generation);
	c = cell_of(key);
	if (c && !c->named) {
		c->mode = mode;
		tell_name(key, f, c);
	}
	return true;
}

/* --- calls --- */

static __always_inline __u64 arg(const struct pt_regs___kernel *regs, __u8 i)
{
	return i == 1 ? SYSCALL_A(regs) : i == 2 ? SYSCALL_B(regs) : SYSCALL_C(regs);
}

static __always_inline void enter_way(struct entry *e, __u32 way, __u64 fd, __u64 group)
{
	struct file *f = file_of((__s32)fd);

	e->has[way] = f && file_key(f, group, &e->keys[way]);
}

SEC("tp_btf/sys_enter")
int ax_files_enter(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	const struct call *c;
	__u64 nr = ctx[1], group;
	struct entry *e;

	if (nr >= NRS)
		return 0;
	c = &calls[nr];
	if (!is_seen(c) || syscall_is_compat() || !watch_current())
		return 0;
	e = bpf_task_storage_get(&entries, (void *)bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e) {
		watch_count(AX_WATCH_EMITTED);
		watch_count(AX_WATCH_DROPPED);
		return 0;
	}
	group = tally_group();
	e->has[AX_FILE_READ] = e->has[AX_FILE_WRITE] = 0;
	if (c->reads)
		enter_way(e, AX_FILE_READ, arg(regs, c->reads), group);
	if (c->writes)
		enter_way(e, AX_FILE_WRITE, arg(regs, c->writes), group);
	e->opens = c->opens;
	if (!c->opens && !e->has[AX_FILE_READ] && !e->has[AX_FILE_WRITE]) {
		e->since = 0;
		return 0;
	}
	e->since = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count_open(long fd)
{
	struct file *f = fd < 0 ? NULL : file_of(fd);
	struct ax_file_key key = {};
	struct ax_file_cell *c;

	if (!f || !file_key(f, tally_group(), &key))
		return;
	watch_count(AX_WATCH_EMITTED);
	c = bpf_map_lookup_elem(&files, &key);
	if (c)
		__sync_fetch_and_add(&c->opens, 1);
	else
		watch_count(AX_WATCH_DROPPED);
}

static __always_inline void count_way(struct entry *e, __u32 way, long ret, __u64 ns)
{
	struct ax_file_cell *c;

	if (!e->has[way])
		return;
	watch_count(AX_WATCH_EMITTED);
	c = bpf_map_lookup_elem(&files, &e->keys[way]);
	if (!c) {
		watch_count(AX_WATCH_DROPPED);
		return;
	}
	__sync_fetch_and_add(&c->calls[way], 1);
	__sync_fetch_and_add(&c->sum, ns);
	raise_to(&c->most, ns);
	if (ret < 0 && ret >= -ERRNO_MAX)
		__sync_fetch_and_add(&c->failed, 1);
	else
		__sync_fetch_and_add(&c->bytes[way], ret);
}

SEC("tp_btf/sys_exit")
int ax_files_exit(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1], nr = SYSCALL_NR(regs);
	struct entry *e;
	__u64 ns;

	if (nr < 0 || nr >= NRS || !is_seen(&calls[nr]))
		return 0;
	e = bpf_task_storage_get(&entries, (void *)bpf_get_current_task_btf(), NULL, 0);
	if (!e || !e->since)
		return 0;
	ns = bpf_ktime_get_ns() - e->since;
	e->since = 0;
	if (ret <= -RESTART_LEAST && ret >= -RESTART_MOST)
		return 0;
	if (e->opens) {
		count_open(ret);
		return 0;
	}
	count_way(e, AX_FILE_READ, ret, ns);
	count_way(e, AX_FILE_WRITE, ret, ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
