// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace jit: memory that becomes executable is copied by the system call that makes it so,
 * before it returns: nobody can have executed it yet, and who changes it afterwards does not change
 * the copy. What stays writable, there or through another mapping, is copied again at the end of
 * the process; in between user space looks at it.
 *
 * Only pages that are there are read: a page that nobody has written has no code in it.
 *
 * What may be executed but not read (mprotect() with nothing but PROT_EXEC on a processor with
 * protection keys, or a key of the program's own) cannot be read here either. It is copied before
 * the call takes effect; and user space, which can, is told to look at it.
 */
#include "jit_event.h"
#include "pid_number.bpf.h"
#include "syscall.bpf.h"

#define PROT_READ      1
#define PROT_WRITE     2
#define PROT_EXEC      4
#define VM_READ	       1
#define VM_PKEY(flags) ((flags) >> 32 & 15)
#define VM_MAYSHARE    0x80 /* also if it is of a file that was opened only for reading */
#define MAP_SHARED     1
#define MAP_ANONYMOUS  0x20
#define MAP_FIXED      0x10
#define MADV_DONTNEED  4
#define MADV_FREE      8
#define ERRNO_MAX      4095
#define PAGE_MASK      (AX_JIT_PAGE - 1ull)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct vm_area_struct {
	unsigned long vm_flags;
	void *vm_file;
};
#pragma clang attribute pop

const volatile struct {
	__u32 pidns;
	__u32 pad;
} wanted;

/* By processes of the map `tree`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCH_TREE_ENTRIES);
	__type(key, __u32);
	__type(value, struct ax_jit_ranges);
} writable SEC(".maps");

static const struct ax_jit_ranges no_ranges;

/* --- copies --- */

struct copy {
	__u64 address, time;
	__u32 number, tid;
};

static long copy_page(__u32 i, struct copy *c)
{
	__u64 address = c->address + (__u64)i * AX_JIT_PAGE;
	struct ax_jit_page *p;
	__u8 byte;

	if (bpf_probe_read_user(&byte, 1, (void *)address))
		return 0;
	p = bpf_ringbuf_reserve(&records, sizeof(*p), 0);
	if (!p) {
		watch_count(AX_WATCH_CUT);
		return 0;
	}
	p->no_time = 0;
	p->time_ns = c->time;
	p->address = address;
	p->number = c->number;
	p->tid = c->tid;
	if (bpf_probe_read_user(p->data, AX_JIT_PAGE, (void *)address))
		bpf_ringbuf_discard(p, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(p, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void copy_range(struct copy *c, __u64 start, __u64 end)
{
	__u64 n = (end - start) / AX_JIT_PAGE;

	if (n > AX_JIT_PAGES_MAX) {
		n = AX_JIT_PAGES_MAX;
		watch_count(AX_WATCH_CUT);
	}
	c->address = start;
	bpf_loop((__u32)n, copy_page, c, 0);
}

static __always_inline void begin_copy(struct copy *c, struct task_struct *task)
{
	c->time = bpf_ktime_get_ns();
	c->number = pid_number((void *)task, wanted.pidns);
	c->tid = (__u32)bpf_get_current_pid_tgid();
}

/* --- what is told --- */

static __always_inline struct ax_jit_event *begin_event(__u32 kind, __u32 number)
{
	struct ax_jit_event *e = watch_reserve(sizeof(*e));

	if (!e)
		return NULL;
	watch_head(&e->head, AX_WATCH_JIT);
	e->address = e->length = 0;
	e->kind = kind;
	e->prot = e->shared = e->file = e->parent = e->hidden = e->pad = 0;
	e->number = number;
	return e;
}

/* --- what becomes executable --- */

struct found {
	__u32 shared, file, hidden;
};

static long see_vma(struct task_struct *task, struct vm_area_struct *vma, struct found *f)
{
	__u64 flags = BPF_CORE_READ(vma, vm_flags);

	(void)task;
	f->shared = (flags & VM_MAYSHARE) != 0;
	f->hidden = !(flags & VM_READ) || VM_PKEY(flags);
	f->file = BPF_CORE_READ(vma, vm_file) != NULL;
	return 0;
}

struct joined {
	__u64 start, end;
	__u32 tgid, done;
	__u64 place; /* one that is free again */
};

/* Loops are the kernel's, since what the verifier follows would be multiplied by those of ours. */
static long join_range(__u32 i, struct joined *j)
{
	struct ax_jit_ranges *r = bpf_map_lookup_elem(&writable, &j->tgid);
	struct ax_jit_range *v;

	if (!r || i >= AX_JIT_RANGES_MAX || i >= r->n)
		return 1;
	v = &r->v[i];
	if (!v->end)
		j->place = i;
	if (j->start > v->end || j->end < v->start)
		return 0;
	if (j->start < v->start)
		v->start = j->start;
	if (j->end > v->end)
		v->end = j->end;
	j->done = true;
	return 1;
}

/* Ranges that touch are one, as those that a heap for code grows by. Two threads at once may take
 * a place each for the same, which does no harm. */
static __always_inline void keep_range(__u32 tgid, __u64 start, __u64 end)
{
	struct joined j = {.start = start, .end = end, .tgid = tgid, .place = AX_JIT_RANGES_MAX};
	struct ax_jit_ranges *r;
	__u64 at;

	bpf_map_update_elem(&writable, &tgid, &no_ranges, BPF_NOEXIST);
	bpf_loop(AX_JIT_RANGES_MAX, join_range, &j, 0);
	r = bpf_map_lookup_elem(&writable, &tgid);
	if (!r)
		return;
	r->own = true;
	if (j.done)
		return;
	/* of two threads at once one gets the free place */
	at = j.place;
	if (at >= AX_JIT_RANGES_MAX || __sync_val_compare_and_swap(&r->v[at].start, 0, start))
		at = __sync_fetch_and_add(&r->n, 1);
	if (at < AX_JIT_RANGES_MAX) {
		r->v[at].start = start;
		r->v[at].end = end;
	}
}

/* `empty`: nobody can have written there. */
static __always_inline void see_executable(__u32 kind, __u64 start, __u64 length, __u32 prot,
					   const struct found *f, bool empty)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 end = (start + length + PAGE_MASK) & ~PAGE_MASK;
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct copy c = {};
	struct ax_jit_event *e;

	if (end <= start)
		return;
	begin_copy(&c, task);
	/* programs and libraries are files that anybody may read later */
	if (!empty && !(kind == AX_JIT_MMAP && f->file && !f->shared))
		copy_range(&c, start, end);
	if (prot & PROT_WRITE || f->shared)
		keep_range(tgid, start, end);
	e = begin_event(kind, c.number);
	if (!e)
		return;
	e->head.time_ns = c.time;
	e->address = start;
	e->length = end - start;
	e->prot = prot;
	e->shared = f->shared;
	e->file = f->file;
	e->hidden = f->hidden;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

SEC("tp_btf/sys_exit")
int ax_jit_mapped(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct found f = {};
	__u64 ret = ctx[1], flags;
	long nr = SYSCALL_NR(regs);
	__u32 prot;

	if (nr != NR_MMAP && nr != NR_MPROTECT && nr != NR_PKEY_MPROTECT)
		return 0;
	prot = (__u32)SYSCALL_C(regs);
	if (!(prot & PROT_EXEC) || ret > -(__u64)ERRNO_MAX - 1 || syscall_is_compat() ||
	    !watch_current())
		return 0;
	if (nr == NR_MMAP) {
		/* as asked for: to look at the mapping fails while another thread changes one */
		flags = SYSCALL_D(regs);
		f.shared = flags & MAP_SHARED;
		f.file = !(flags & MAP_ANONYMOUS);
		see_executable(AX_JIT_MMAP, ret, SYSCALL_B(regs), prot, &f, !f.file);
		return 0;
	}
	f.hidden = !(prot & PROT_READ);
	bpf_find_vma((void *)task, SYSCALL_A(regs), see_vma, &f, 0);
	see_executable(AX_JIT_MPROTECT, SYSCALL_A(regs), SYSCALL_B(regs), prot, &f, false);
	return 0;
}

/* --- ends --- */

struct last {
	struct copy copy;
	__u64 start, end;
	__u32 tgid;
	__u16 gone, any;
};

/* What was copied is to be copied no more. Of one that loses its middle the whole stays. */
static __always_inline void trim(struct ax_jit_range *v, __u64 start, __u64 end)
{
	if (start <= v->start && end >= v->end)
		v->start = v->end = 0;
	else if (start <= v->start)
		v->start = end;
	else if (end >= v->end)
		v->end = start;
}

static long copy_last(__u32 i, struct last *l)
{
	struct ax_jit_ranges *r = bpf_map_lookup_elem(&writable, &l->tgid);
	__u64 start = l->start, end = l->end;
	struct ax_jit_range *v;

	if (!r || i >= AX_JIT_RANGES_MAX || i >= r->n)
		return 1;
	v = &r->v[i];
	if (start < v->start)
		start = v->start;
	if (end > v->end)
		end = v->end;
	if (start >= end)
		return 0;
	l->any = true;
	copy_range(&l->copy, start, end);
	if (l->gone)
		trim(v, start, end);
	return 0;
}

/* Whether the call takes pages away from the range that it names, or `*gone`, makes it another. */
static __always_inline bool takes_away(const struct pt_regs___kernel *regs, long nr, bool *gone)
{
	*gone = true;
	switch (nr) {
	case NR_MUNMAP:
		return true;
	case NR_MPROTECT:
	case NR_PKEY_MPROTECT:
		return !(SYSCALL_C(regs) & PROT_EXEC);
	case NR_MMAP:
		return SYSCALL_D(regs) & MAP_FIXED;
	case NR_MADVISE:
		*gone = false;
		return SYSCALL_C(regs) == MADV_DONTNEED || SYSCALL_C(regs) == MADV_FREE;
	default:
		return false;
	}
}

static __always_inline bool hides(const struct pt_regs___kernel *regs, long nr)
{
	return (nr == NR_MPROTECT || nr == NR_PKEY_MPROTECT) &&
	       (SYSCALL_C(regs) & (PROT_READ | PROT_WRITE | PROT_EXEC)) == PROT_EXEC &&
	       !syscall_is_compat() && watch_current();
}

/* The last moment that it can be read. Should the call fail, which it hardly does, there are copies
 * of what was not executed. */
static __always_inline void copy_before(const struct pt_regs___kernel *regs)
{
	__u64 start = SYSCALL_A(regs) & ~PAGE_MASK;
	__u64 end = (start + SYSCALL_B(regs) + PAGE_MASK) & ~PAGE_MASK;
	struct copy c = {};

	if (end <= start)
		return;
	begin_copy(&c, (void *)bpf_get_current_task_btf());
	copy_range(&c, start, end);
}

/* Programs give their code back before they end, as Node.js does. */
SEC("tp_btf/sys_enter")
int ax_jit_last(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	struct last l = {.end = ~0ull};
	long nr = (long)ctx[1];
	struct ax_jit_ranges *r;
	struct ax_jit_event *e;
	bool gone = false;

	if (hides(regs, nr)) {
		copy_before(regs);
		return 0; /* it stays executable */
	}
	if (nr != NR_EXIT_GROUP && nr != NR_EXECVE && nr != NR_EXECVEAT) {
		if (!takes_away(regs, nr, &gone))
			return 0;
		l.start = SYSCALL_A(regs) & ~PAGE_MASK;
		l.end = (l.start + SYSCALL_B(regs) + PAGE_MASK) & ~PAGE_MASK;
	}
	l.gone = gone;
	l.tgid = bpf_get_current_pid_tgid() >> 32;
	r = bpf_map_lookup_elem(&writable, &l.tgid);
	if (!r || syscall_is_compat())
		return 0;
	/* who starts a command has its parent's code, and calls this for each directory of PATH */
	if ((nr == NR_EXECVE || nr == NR_EXECVEAT) && !r->own)
		return 0;
	begin_copy(&l.copy, (void *)bpf_get_current_task_btf());
	bpf_loop(AX_JIT_RANGES_MAX, copy_last, &l, 0);
	if (!l.any || !gone)
		return 0;
	e = begin_event(AX_JIT_GONE, l.copy.number);
	if (!e)
		return 0;
	e->address = l.start;
	e->length = l.end - l.start;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int ax_jit_program(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct ax_jit_event *e;

	if (!watch_current())
		return 0;
	bpf_map_delete_elem(&writable, &tgid);
	e = begin_event(AX_JIT_PROGRAM, pid_number((void *)task, wanted.pidns));
	if (e)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The map `tree` has the child only afterwards, maybe. */
SEC("tp_btf/sched_process_fork")
int ax_jit_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 from = parent->tgid, tgid = child->tgid;
	struct ax_jit_ranges *r;
	struct ax_jit_event *e;

	if (from == tgid || !watch_current())
		return 0;
	r = bpf_map_lookup_elem(&writable, &from);
	if (r) {
		bpf_map_update_elem(&writable, &tgid, r, BPF_ANY);
		r = bpf_map_lookup_elem(&writable, &tgid);
		if (r)
			r->own = false;
	}
	e = begin_event(AX_JIT_FORK, pid_number((void *)child, wanted.pidns));
	if (!e)
		return 0;
	e->parent = pid_number((void *)parent, wanted.pidns);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int ax_jit_end(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 tgid = task->tgid;
	struct ax_jit_event *e;

	if (BPF_CORE_READ(task, signal, live.counter))
		return 0;
	bpf_map_delete_elem(&writable, &tgid);
	/* whether the map `tree` has it still depends on who is first */
	if (!bpf_map_lookup_elem(&tree, &tgid))
		return 0;
	e = begin_event(AX_JIT_END, pid_number((void *)task, wanted.pidns));
	if (e)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
