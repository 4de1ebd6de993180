/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call stacks. The kernel follows frame pointers, which most programs do not have: of a program
 * whose stack goes into a record the upper end of it is copied too, for its reader to find the
 * callers by what the program's files say (probes/process/stack.c).
 */
#ifndef AX_PROBES_STACK_BPF_H
#define AX_PROBES_STACK_BPF_H

#include "interpreter.bpf.h"
#include "user_stack.bpf.h"

struct task_struct___memory {
	void *mm; /* NULL: a thread of the kernel */
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stack_copies SEC(".maps");

__u64 stack_copies_made;

/* Below 0: there is none. One stack may not be told from another with the same hash: that one could
 * not be fetched. */
static __always_inline long stack_by_frames(const struct run *r, bool user)
{
	return user ? bpf_get_stackid(r->ctx, &stacks, BPF_F_USER_STACK)
		    : bpf_get_stackid(r->ctx, &stacks, 0);
}

/* The copy's number, or 0: there is no room for it, or nothing to copy. */
static __noinline __u64 copy_user_stack(__s64 by_frames)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct ax_stack_copy *c;
	__u64 ids, id;

	if (!((struct task_struct___memory *)task)->mm || !own_ids(&ids))
		return 0;
	c = bpf_ringbuf_reserve(&stack_copies, sizeof(*c) + AX_USER_STACK_ROOM, 0);
	if (!c)
		return 0;
	id = AX_STACK_COPIED | (1 + __sync_fetch_and_add(&stack_copies_made, 1));
	c->id = id;
	c->by_frames = by_frames;
	c->pid = ids >> 32;
	c->pad = 0;
	user_stack_take(&c->stack, task);
	/* whoever reads the record looks for it */
	bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);
	return id;
}

static __always_inline void find_stack(const struct run *r)
{
	const struct ax_probe_op *op = bpf_map_lookup_elem(&ops, &r->first_op);
	bool user = op && op->value & BPF_F_USER_STACK;
	long by_frames = stack_by_frames(r, user);
	__u64 copy = config.copies && user && r->copies ? copy_user_stack(by_frames) : 0;

	r->s->stack_id = copy ? copy : by_frames < 0 ? NO_STACK : (__u64)by_frames;
	r->s->has_stack = true;
	r->s->wants_stack = false;
}

#endif
