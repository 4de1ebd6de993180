/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations of fetch programs. */
#ifndef AX_PROBES_ENGINE_INTERPRETER_BPF_H
#define AX_PROBES_ENGINE_INTERPRETER_BPF_H

#include "variables.bpf.h"

static __always_inline void clear_text(__u64 *w)
{
#pragma unroll
	for (int i = 0; i < AX_PROBE_TEXT / 8; i++)
		w[i] = 0;
}

static __always_inline __u64 text_is(struct scratch *s, __u64 which)
{
	__u32 index = (__u32)which;
	struct ax_probe_text *t = bpf_map_lookup_elem(&texts, &index);
	__u64 differ = 0;

	if (!t)
		return 0;
#pragma unroll
	for (int i = 0; i < AX_PROBE_TEXT / 8; i++)
		differ |= s->text[i] ^ t->w[i];
	return !differ;
}

/* Where the record's next bytes go, NULL: it is full. */
static __always_inline void *record_end(struct scratch *s)
{
	__u32 used = s->used;

	opaque(used);
	if (used >= AX_PROBE_BYTES)
		return NULL;
	return s->bytes + used;
}

static __always_inline __u64 record_add(struct scratch *s, long len, __u32 with_nul)
{
	__u64 v = (__u64)s->used << 32;

	if (len < 0) {
		s->fault = true;
		return v;
	}
	s->used += (__u32)len;
	return v | (__u32)(len - with_nul);
}

static __always_inline __u64 add_string(bool sleeps, struct scratch *s,
					const struct ax_probe_op *op)
{
	__u32 size = size_within((__u32)op->value, AX_PROBE_FETCH);
	void *to = record_end(s);
	long n = -1;

	if (to && size)
		n = read_text(sleeps, to, size, s->acc, op->flags & AX_OP_KERNEL);
	/* of a size of 0 there is not even a NUL */
	return record_add(s, n == 0 ? -1 : n, 1);
}

static __always_inline __u64 add_buffer(bool sleeps, struct scratch *s,
					const struct ax_probe_op *op)
{
	__u32 size = size_within((__u32)op->value, AX_PROBE_FETCH);
	void *to = record_end(s);
	long r = -1;

	if (to && size)
		r = read_memory(sleeps, to, size, s->acc, op->flags & AX_OP_KERNEL);
	return record_add(s, r ? -1 : (long)size, 0);
}

static __always_inline __u64 add_comm(struct scratch *s)
{
	void *to = record_end(s);
	long r = to ? bpf_get_current_comm(to, AX_PROBE_COMM) : -1;

	return record_add(s, r ? -1 : AX_PROBE_COMM, 0);
}

/* The next bytes of a buffer that is put together. */
static __always_inline __u64 put(struct scratch *s, const struct ax_probe_op *op)
{
	__u64 *to = record_end(s);

	if (!to) {
		s->fault = true;
		return 0;
	}
	*to = s->acc;
	s->used += op->size;
	return (__u64)(s->used - (__u32)op->value) << 32 | (__u32)op->value;
}

/* --- texts of a length that is told --- */

/* The length is the last value on the stack. */
static __always_inline __u32 pop_length(struct scratch *s, __u32 most)
{
	__u32 at = --s->depth & (AX_PROBE_STACK - 1);
	__u64 len = s->stack[at];

	s->fault |= s->faults >> at & 1;
	return len < most ? (__u32)len : most;
}

/* How many bytes, or less than 0. */
static __always_inline long read_long(bool sleeps, struct scratch *s, void *to, __u32 len,
				      __u32 most, bool kernel)
{
	__u32 size = size_within(len, most);

	if (s->fault)
		return -1;
	if (!size)
		return 0;
	return read_memory(sleeps, to, size, s->acc, kernel) ? -1 : (long)size;
}

static __always_inline __u64 add_string_long(bool sleeps, struct scratch *s,
					     const struct ax_probe_op *op)
{
	__u32 most = (__u32)op->value < AX_PROBE_FETCH ? (__u32)op->value : AX_PROBE_FETCH;
	__u32 len = pop_length(s, most);
	void *to = record_end(s);
	long n = -1;

	if (to)
		n = read_long(sleeps, s, to, len, AX_PROBE_FETCH, op->flags & AX_OP_KERNEL);
	return record_add(s, n, 0);
}

static __always_inline __u64 op_text_long(bool sleeps, struct scratch *s,
					  const struct ax_probe_op *op)
{
	__u64 *key = s->key + (op->to & (AX_PROBE_KEY - 1));
	bool kernel = op->flags & AX_OP_KERNEL;

	if (op->code == AX_CODE_STRING_LONG)
		return has_codes(CODE(AX_CODE_STRING_LONG)) ? add_string_long(sleeps, s, op) : 0;
	if (op->code == AX_CODE_TEXT_EQ_LONG) {
		if (!has_codes(CODE(AX_CODE_TEXT_EQ_LONG)))
			return 0;
		clear_text(s->text);
		if (read_long(sleeps, s, s->text, pop_length(s, AX_PROBE_TEXT), AX_PROBE_TEXT,
			      kernel) < 0)
			s->fault = true;
		return text_is(s, op->value);
	}
	if (!has_codes(CODE(AX_CODE_KEY_STRING_LONG)))
		return 0;
	clear_text(key);
	if (read_long(sleeps, s, key, pop_length(s, AX_PROBE_KEY_TEXT - 1), AX_PROBE_KEY_TEXT,
		      kernel) < 0)
		s->key_faults |= 1ull << (op->to & (AX_PROBE_KEY - 1));
	s->fault = false;
	s->depth = 0;
	return 0;
}

/* --- operations --- */

static __always_inline __u64 op_text(bool sleeps, struct scratch *s, const struct ax_probe_op *op)
{
	__u64 *key = s->key + (op->to & (AX_PROBE_KEY - 1));

	switch (op->code) {
	case AX_CODE_STRING:
		return has_codes(CODE(AX_CODE_STRING)) ? add_string(sleeps, s, op) : 0;
	case AX_CODE_BUFFER:
		return has_codes(CODE(AX_CODE_BUFFER)) ? add_buffer(sleeps, s, op) : 0;
	case AX_CODE_PUT:
		return has_codes(CODE(AX_CODE_PUT)) ? put(s, op) : 0;
	case AX_CODE_TEXT_EQ_LONG:
	case AX_CODE_STRING_LONG:
	case AX_CODE_KEY_STRING_LONG:
		return op_text_long(sleeps, s, op);
	case AX_CODE_COMM:
		return has_codes(CODE(AX_CODE_COMM)) ? add_comm(s) : 0;
	case AX_CODE_KEY_STRING:
		if (!has_codes(CODE(AX_CODE_KEY_STRING)))
			return 0;
		clear_text(key);
		if (s->fault ||
		    read_text(sleeps, key, AX_PROBE_KEY_TEXT, s->acc, op->flags & AX_OP_KERNEL) < 0)
			s->key_faults |= 1ull << (op->to & (AX_PROBE_KEY - 1));
		s->fault = false;
		return 0;
	case AX_CODE_KEY_COMM:
		bpf_get_current_comm(key, AX_PROBE_COMM);
		return 0;
	case AX_CODE_COMM_EQ:
		if (!has_codes(CODE(AX_CODE_COMM_EQ)))
			return 0;
		clear_text(s->text);
		bpf_get_current_comm(s->text, AX_PROBE_COMM);
		return text_is(s, op->value);
	case AX_CODE_TEXT_EQ:
		if (!has_codes(CODE(AX_CODE_TEXT_EQ)))
			return 0;
		clear_text(s->text);
		if (read_text(sleeps, s->text, AX_PROBE_TEXT, s->acc, op->flags & AX_OP_KERNEL) < 0)
			s->fault = true;
		return text_is(s, op->value);
	default:
		return s->acc;
	}
}

#define NO_STACK (~0ull)

static __always_inline void begin_key(struct scratch *s, __u64 table)
{
	s->key[0] = table;
#pragma unroll
	for (int i = 1; i < AX_PROBE_KEY_SHORT; i++)
		s->key[i] = 0;
}

static __always_inline __u64 op_source(bool sleeps, struct scratch *s, const struct ax_probe_op *op)
{
	switch (op->code) {
	case AX_CODE_CONST:
		return op->value;
	case AX_CODE_CTX:
		return fetch_context(sleeps, s, op);
	case AX_CODE_ADDRESS:
		return s->ctx + op->value;
	case AX_CODE_SAVED:
		if (!has_codes(CODE(AX_CODE_SAVED)))
			return 0;
		if (!s->is_return || s->call.faults & 1u << (op->value & 31)) {
			s->fault = true;
			return 0;
		}
		return s->call.values[op->value & (AX_PROBE_SAVED - 1)];
	case AX_CODE_PID:
		return shown_ids() >> 32;
	case AX_CODE_TID:
		return (__u32)shown_ids();
	case AX_CODE_NSECS:
		return s->now_ns ? s->now_ns : bpf_ktime_get_ns();
	case AX_CODE_CPU:
		return bpf_get_smp_processor_id();
	case AX_CODE_CGROUP:
		return bpf_get_current_cgroup_id();
	case AX_CODE_ELAPSED:
		/* another thread may have begun while this program waited for memory */
		return s->began_ns && s->now_ns > s->began_ns ? s->now_ns - s->began_ns : 0;
	case AX_CODE_FAULTS:
		return s->key_faults;
	case AX_CODE_GLOBAL:
	case AX_CODE_THREAD:
		return has_codes(CODE(AX_CODE_GLOBAL) | CODE(AX_CODE_THREAD)) ? get_variable(s, op)
									      : 0;
	case AX_CODE_SET_GLOBAL:
	case AX_CODE_SET_THREAD:
		/* what could not be fetched leaves the variable as it was */
		if (has_codes(SETS_VARIABLE) && !s->fault)
			set_variable(s->thread, op, s->acc);
		return s->acc;
	case AX_CODE_MAP:
		return has_codes(CODE(AX_CODE_MAP)) ? map_variable(s->acc, op) : 0;
	case AX_CODE_SET_MAP:
		if (has_codes(CODE(AX_CODE_SET_MAP)) && !s->fault)
			set_map(s, op);
		return s->acc;
	case AX_CODE_TEXT:
		return has_codes(CODE(AX_CODE_TEXT)) ? text_address(s, op) : 0;
	case AX_CODE_SET_TEXT:
		if (has_codes(CODE(AX_CODE_SET_TEXT)) && !s->fault)
			set_text(sleeps, s, op);
		return s->acc;
	case AX_CODE_TASK:
		return bpf_get_current_task();
	case AX_CODE_TABLE:
		if (has_codes(CODE(AX_CODE_TABLE)))
			begin_key(s, op->value);
		return s->acc;
	case AX_CODE_STACK:
		s->has_stack = false;
		s->fault |= s->stack_id == NO_STACK;
		return s->stack_id;
	default:
		return s->acc;
	}
}

/* What follows from one side alone does not need the other: p == 0 || *p == 3. */
static __always_inline __u64 op_logic(struct scratch *s, bool any, bool a, bool a_fault, bool b,
				      bool b_fault)
{
	if ((!a_fault && a == any) || (!b_fault && b == any)) {
		s->fault = false;
		return any;
	}
	s->fault = a_fault || b_fault;
	return !any;
}

/* BPF knows it of unsigned ones only (before Linux 6.6). */
static __always_inline __u64 divided(struct scratch *s, __u64 a, __u64 b, bool rest)
{
	bool a_below = (__s64)a < 0, b_below = (__s64)b < 0;
	__u64 v;

	if (!b) {
		s->fault = true;
		return 0;
	}
	a = a_below ? 0 - a : a;
	b = b_below ? 0 - b : b;
	v = rest ? a % b : a / b;
	return a_below != (b_below && !rest) ? 0 - v : v;
}

static __always_inline __u64 op_binary(struct scratch *s, const struct ax_probe_op *op)
{
	bool a_fault = s->fault, b_fault = false;
	/* with it the order of signed numbers is that of unsigned ones */
	__u64 flip = (__u64)(op->flags & AX_OP_UNSIGNED) << 56;
	__u64 a, b;

	if (op->flags & AX_OP_IMMEDIATE) {
		a = s->acc;
		b = op->value;
	} else {
		s->depth--;
		a = s->stack[s->depth & (AX_PROBE_STACK - 1)];
		b = s->acc;
		b_fault = s->fault;
		a_fault = s->faults >> (s->depth & (AX_PROBE_STACK - 1)) & 1;
		s->fault |= a_fault;
	}
	switch (op->code) {
	case AX_CODE_ADD:
		return a + b;
	case AX_CODE_SUB:
		return a - b;
	case AX_CODE_MUL:
		return a * b;
	case AX_CODE_DIV:
	case AX_CODE_MOD:
		return has_codes(CODE(AX_CODE_DIV) | CODE(AX_CODE_MOD))
			       ? divided(s, a, b, op->code == AX_CODE_MOD)
			       : 0;
	case AX_CODE_AND:
		return a & b;
	case AX_CODE_OR:
		return a | b;
	case AX_CODE_XOR:
		return a ^ b;
	case AX_CODE_SHL:
		return b < 64 ? a << (b & 63) : 0;
	case AX_CODE_SHR:
		return b < 64 ? a >> (b & 63) : 0;
	case AX_CODE_EQ:
		return a == b;
	case AX_CODE_NE:
		return a != b;
	case AX_CODE_LT:
		return (__s64)(a ^ flip) < (__s64)(b ^ flip);
	case AX_CODE_LE:
		return (__s64)(a ^ flip) <= (__s64)(b ^ flip);
	case AX_CODE_GT:
		return (__s64)(a ^ flip) > (__s64)(b ^ flip);
	case AX_CODE_GE:
		return (__s64)(a ^ flip) >= (__s64)(b ^ flip);
	default: /* AX_CODE_LAND, AX_CODE_LOR */
		return op_logic(s, op->code == AX_CODE_LOR, a, a_fault, b, b_fault);
	}
}

static __always_inline __u64 ordered(struct scratch *s, const struct ax_probe_op *op)
{
	__u64 sign = op->size == 4 ? 1ull << 31 : 1ull << 63;
	__u64 infinite = op->size == 4 ? 0x7f800000ull : 0x7ff0000000000000ull;
	__u64 most = s->acc & (sign - 1);

	if (most > infinite)
		s->fault = true;
	return s->acc & sign ? 0 - most : most;
}

static __always_inline __u64 swap(struct scratch *s)
{
	__u32 at = (s->depth - 1) & (AX_PROBE_STACK - 1);
	__u64 v = s->stack[at];
	bool fault = s->faults >> at & 1;

	s->stack[at] = s->acc;
	s->faults = (__u8)((s->faults & ~(1u << at)) | (__u32)s->fault << at);
	s->fault = fault;
	return v;
}

static __always_inline __u64 op_unary(bool sleeps, struct scratch *s, const struct ax_probe_op *op)
{
	switch (op->code) {
	case AX_CODE_USER:
		if (!has_codes(CODE(AX_CODE_USER)))
			return 0;
		return fetch(sleeps, s, op, s->acc + op->value, false);
	case AX_CODE_KERNEL:
		if (!has_codes(CODE(AX_CODE_KERNEL)))
			return 0;
		return fetch(sleeps, s, op, s->acc + op->value, true);
	case AX_CODE_DATA_LOC:
		return s->ctx + op->value + (s->acc & 0xffff);
	case AX_CODE_EXTEND:
		return extended(s->acc, op->size, op->flags & AX_OP_SIGNED);
	case AX_CODE_ORDER:
		return has_codes(CODE(AX_CODE_ORDER)) ? ordered(s, op) : 0;
	case AX_CODE_SWAP:
		return has_codes(CODE(AX_CODE_SWAP)) ? swap(s) : 0;
	default: /* AX_CODE_NOT */
		return !s->acc;
	}
}

static __always_inline __u64 op_result(bool sleeps, struct scratch *s, const struct ax_probe_op *op)
{
	__u8 code = op->code;

	if (code >= AX_CODE_TEXT_EQ)
		return has_codes(-CODE(AX_CODE_TEXT_EQ)) ? op_text(sleeps, s, op) : 0;
	if (code >= AX_CODE_ADD)
		return has_codes(CODE(AX_CODE_TEXT_EQ) - CODE(AX_CODE_ADD)) ? op_binary(s, op) : 0;
	if (code == AX_CODE_USER || code == AX_CODE_KERNEL || code == AX_CODE_DATA_LOC ||
	    (code >= AX_CODE_EXTEND && code <= AX_CODE_NOT))
		return op_unary(sleeps, s, op);
	return op_source(sleeps, s, op);
}

/* An expression's end. */
static __always_inline void op_end(struct scratch *s, const struct ax_probe_op *op, __u64 v)
{
	if (op->flags & AX_OP_STORE)
		s->record.values[op->to & (AX_PROBE_VALUES - 1)] = v;
	if (op->flags & AX_OP_KEEP)
		s->kept[op->to & (AX_PROBE_SAVED - 1)] = v;
	if (op->flags & AX_OP_KEY) {
		s->key[op->to & (AX_PROBE_KEY - 1)] = s->fault ? 0 : v;
		s->key_faults |= (__u64)s->fault << (op->to & (AX_PROBE_KEY - 1));
	}
	if (s->fault && op->flags & (AX_OP_STORE | AX_OP_KEEP))
		s->record.faults |= 1u << (op->to & 31);
	s->fault = false;
	s->depth = 0;
}

/* The other probe's time, which serves once: for who deletes it. What was deleted may be another
 * call at once, since elements are given back without a grace period. */
static __always_inline bool op_find(struct scratch *s, const struct ax_probe_op *op)
{
	struct ax_probe_call_key key = {.pair = s->timer};
	struct ax_probe_call *call;

	if (op->flags & AX_OP_IMMEDIATE)
		key.thread = s->thread;
	else
		key.sp = s->kept[0];
	call = bpf_map_lookup_elem(&calls, &key);
	if (call)
		s->began_ns = call->time_ns;
	if (!call || bpf_map_delete_elem(&calls, &key)) {
		count(AX_PROBE_UNMATCHED);
		return false;
	}
	s->record.faults = 0;
	return true;
}

static __always_inline long do_op(bool sleeps, struct scratch *s, __u32 index)
{
	const struct ax_probe_op *op = bpf_map_lookup_elem(&ops, &index);

	if (!op || !s)
		return 1;
	if (has_codes(CODE(AX_CODE_STACK)) && op->code == AX_CODE_STACK && !s->has_stack) {
		s->wants_stack = true; /* of who has the context; it comes here again then */
		return 1;
	}
	if (op->flags & AX_OP_PUSH) {
		__u32 at = s->depth & (AX_PROBE_STACK - 1);

		s->stack[at] = s->acc;
		s->faults = (__u8)((s->faults & ~(1u << at)) | (__u32)s->fault << at);
		s->fault = false;
		s->depth++;
	}
	if (has_codes(CODE(AX_CODE_FILTER) | CODE(AX_CODE_FIND)) &&
	    (op->code == AX_CODE_FILTER || op->code == AX_CODE_FIND)) {
		if (has_codes(CODE(AX_CODE_FIND)) && op->code == AX_CODE_FIND)
			s->filtered = !op_find(s, op);
		else
			s->filtered = !s->acc || s->fault;
		s->fault = false;
		s->depth = 0;
		return s->filtered;
	}
	s->acc = op_result(sleeps, s, op);
	if (op->flags & (AX_OP_STORE | AX_OP_KEY | AX_OP_KEEP))
		op_end(s, op, s->acc);
	return 0;
}

#endif
