/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variables of scripts: of all threads, of each, and in maps; numbers and texts. */
#ifndef AX_PROBES_ENGINE_VARIABLES_BPF_H
#define AX_PROBES_ENGINE_VARIABLES_BPF_H

#include "memory.bpf.h"

/* --- variables --- */

#define SETS_VARIABLE (CODE(AX_CODE_SET_GLOBAL) | CODE(AX_CODE_SET_THREAD))

static __always_inline __u64 *global_variable(const struct ax_probe_op *op)
{
	__u32 index = (__u32)op->value;

	return bpf_map_lookup_elem(&globals, &index);
}

static __always_inline __u64 get_variable(const struct scratch *s, const struct ax_probe_op *op)
{
	struct ax_probe_state_key key = {.thread = s->thread, .state = op->value};
	__u64 *v = op->code == AX_CODE_GLOBAL ? global_variable(op)
					      : bpf_map_lookup_elem(&thread_variables, &key);

	return v ? *v : 0;
}

/* Of a thread that ends, ax_forget has taken what it had, or is about to: what it is given from now
 * on would stay for good, as in the last sched_switch. */
#define PF_EXITING 0x4
static __always_inline bool is_ending(void)
{
	__u64 task = bpf_get_current_task();
	__u32 flags = 0;

	return config.flags_offset &&
	       !bpf_probe_read_kernel(&flags, sizeof(flags),
				      (void *)(task + config.flags_offset)) &&
	       flags & PF_EXITING;
}

static __always_inline void count_no_variable(void)
{
	__u32 full = 0;
	__u64 *n = bpf_map_lookup_elem(&globals, &full);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* One that becomes 0 keeps its room, to be set again: to give it back and to find some anew would
 * cost more than all else. That of a goroutine does not, since nobody tells of its end. */
static __always_inline void set_thread(__u64 thread, const struct ax_probe_op *op, __u64 v)
{
	struct ax_probe_state_key key = {.thread = thread, .state = op->value};
	__u64 *old = bpf_map_lookup_elem(&thread_variables, &key);
	bool is_map = op->code == AX_CODE_SET_MAP;

	if (op->flags & AX_OP_IMMEDIATE && old)
		v += *old;
	if (old && (v || (!(thread >> 32) && !is_map)))
		*(volatile __u64 *)old = v;
	else if (old)
		bpf_map_delete_elem(&thread_variables, &key);
	else if (v && (is_map || !is_ending()) &&
		 bpf_map_update_elem(&thread_variables, &key, &v, BPF_ANY))
		count_no_variable();
}

/* Several processors may add to the same one at once. */
static __always_inline void add_to_map(__u64 by, const struct ax_probe_op *op, __u64 v)
{
	struct ax_probe_state_key key = {.thread = by, .state = op->value};
	__u64 *old = bpf_map_lookup_elem(&thread_variables, &key);

	if (!old && !bpf_map_update_elem(&thread_variables, &key, &v, BPF_NOEXIST))
		return;
	if (!old)
		old = bpf_map_lookup_elem(&thread_variables, &key);
	if (old)
		__sync_fetch_and_add(old, v);
	else
		count_no_variable();
}

/* By what was kept, if that could be fetched. */
static __always_inline void set_map(const struct scratch *s, const struct ax_probe_op *op)
{
	if (s->record.faults & 1)
		return;
	if (op->flags & AX_OP_IMMEDIATE)
		add_to_map(s->kept[0], op, s->acc);
	else
		set_thread(s->kept[0], op, s->acc);
}

static __always_inline __u64 map_variable(__u64 by, const struct ax_probe_op *op)
{
	struct ax_probe_state_key key = {.thread = by, .state = op->value};
	__u64 *v = bpf_map_lookup_elem(&thread_variables, &key);

	return v ? *v : 0;
}

/* --- texts in variables --- */

static __always_inline struct ax_probe_state_key text_key(const struct scratch *s,
							  const struct ax_probe_op *op, __u64 by)
{
	return (struct ax_probe_state_key){.thread = op->size == AX_TEXT_THREAD ? s->thread
						     : op->size == AX_TEXT_MAP	? by
										: 0,
					   /* (of all and of threads they count from 1 on both) */
					   .state = op->size == AX_TEXT_GLOBAL
							    ? op->value + 2 * AX_PROBE_MAPS_FROM
							    : op->value};
}

/* As a number: it is read as any memory of the kernel is. One that is not set is empty. */
static __always_inline __u64 text_address(struct scratch *s, const struct ax_probe_op *op)
{
	struct ax_probe_state_key key = text_key(s, op, s->acc);
	__u32 index = (__u32)op->value;
	void *text;

	if (op->size == AX_TEXT_COMM) {
		bpf_get_current_comm(s->text, AX_PROBE_COMM);
		return (__u64)(void *)s->text;
	}
	if (op->size == AX_TEXT_CONSTANT)
		text = bpf_map_lookup_elem(&texts, &index);
	else
		text = bpf_map_lookup_elem(&text_variables, &key);
	if (text)
		return (__u64)text;
	s->text[0] = 0;
	return (__u64)(void *)s->text;
}

/* Kernels before 6.2 take what is stored only from where a map was looked up itself: that of s is.
 */
static __always_inline void set_text(bool sleeps, struct scratch *s, const struct ax_probe_op *op)
{
	struct ax_probe_state_key key = text_key(s, op, s->kept[0]);
	__u32 slot = s->slot;
	struct scratch *own = bpf_map_lookup_elem(&scratches, &slot);

	if (!own || (op->size == AX_TEXT_MAP && s->record.faults & 1))
		return;
	if (read_text(sleeps, &own->variable, sizeof(own->variable), s->acc,
		      op->flags & AX_OP_KERNEL) < 0)
		return;
	if (!*(char *)&own->variable)
		bpf_map_delete_elem(&text_variables, &key);
	else if ((op->size != AX_TEXT_THREAD || !is_ending()) &&
		 bpf_map_update_elem(&text_variables, &key, &own->variable, BPF_ANY))
		count_no_variable();
}

static __always_inline void set_variable(__u64 thread, const struct ax_probe_op *op, __u64 v)
{
	__u64 *global;

	if (op->code == AX_CODE_SET_THREAD) {
		set_thread(thread, op, v);
		return;
	}
	global = global_variable(op);
	if (global && op->flags & AX_OP_IMMEDIATE)
		__sync_fetch_and_add(global, v);
	else if (global)
		*(volatile __u64 *)global = v;
}

#endif
