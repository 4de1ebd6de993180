/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a probe at work has, what of it is in maps, and how it reads memory. */
#ifndef AX_PROBES_ENGINE_MEMORY_BPF_H
#define AX_PROBES_ENGINE_MEMORY_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "probe.h"
#include "defaults.h"
#include "scope.bpf.h"
#include "verifier.bpf.h"

#define REGISTERS_ROOM 64 /* for AX_PROBE_REGISTERS: a mask is made of it */

/* Where a probe at work keeps what it has. */
struct scratch {
	__u32 busy;
	__u32 slot; /* its index */
	__u32 used; /* bytes of the record */
	__u64 ctx;  /* as a number: places in it are not constant */
	__u64 now_ns;
	__u64 thread, sp; /* as in a record */
	__u64 registers[REGISTERS_ROOM];
	__u64 began_ns; /* the entry's time, or that of the other probe; 0: none */
	__u64 stack_id; /* of the call stack that the next operation is about, with has_stack */
	__u64 acc;
	__u32 depth;
	__u32 timer;		   /* the probe's */
	struct ax_probe_call call; /* what the entry kept, if is_return */
	bool is_return;
	bool has_registers; /* those that config.registers has */
	bool has_stack, wants_stack;
	bool fault;	  /* something of the accumulator could not be fetched */
	bool filtered;	  /* the probe does not happen */
	__u8 faults;	  /* bit of each value on the stack: the same */
	__u64 key_faults; /* bit of each word of the key: the same */
	__u64 stack[AX_PROBE_STACK];
	__u64 text[AX_PROBE_TEXT / 8];
	struct ax_probe_variable_text variable;
	__u64 key[AX_PROBE_KEY + AX_PROBE_KEY_TEXT / 8];
	__u64 kept[AX_PROBE_SAVED];
	union {
		struct ax_probe_record record;
		__u8 bytes[AX_PROBE_BYTES + AX_PROBE_FETCH];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_PROBE_SLOTS);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_probe_op);
} ops SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_probe_text);
} texts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_PROBE_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} probe_counters SEC(".maps");
/* Calls that never return (exit(), longjmp(), exec()) stay here until newer ones need the room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ENGINE_CALLS);
	__type(key, struct ax_probe_call_key);
	__type(value, struct ax_probe_call);
} calls SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, AX_PROBE_FRAMES * sizeof(__u64));
} stacks SEC(".maps");
/* A script's. Number 0 counts those of threads for which there was no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_PROBE_VARIABLES);
	__type(key, __u32);
	__type(value, __u64);
} globals SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct ax_probe_state_key);
	__type(value, __u64);
} thread_variables SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct ax_probe_state_key);
	__type(value, struct ax_probe_variable_text);
} text_variables SEC(".maps");

const volatile struct ax_probe_config config;

/* Whether one of these operations, actions or flags is anywhere in the session: a constant for the
 * verifier, which does not look at what is behind it then. */
#define CODE(c)	  (1ull << (c))
#define ACTION(a) (1u << (a))
static __always_inline bool has_codes(__u64 codes)
{
	return config.codes & codes;
}
static __always_inline bool has_actions(__u32 actions)
{
	return config.actions & actions;
}
static __always_inline bool has_flags(__u32 flags)
{
	return config.flags & flags;
}

/* The operations of one probe, from one on. */
struct run {
	struct scratch *s;
	void *ctx; /* only where there are call stacks */
	__u32 first_op;
	__u32 n_ops;
	bool copies; /* a program's stack is copied for the record */
};

/* As bpf_get_current_pid_tgid(), but in the pid namespace of who traces. False: the process is in
 * another one, so that those are the numbers of the outermost. */
static __always_inline bool own_ids(__u64 *ret)
{
	struct bpf_pidns_info own;

	*ret = bpf_get_current_pid_tgid();
	if (!config.pidns_number)
		return true;
	if (bpf_get_ns_current_pid_tgid(config.pidns_device, config.pidns_number, &own,
					sizeof(own)))
		return false;
	*ret = (__u64)own.tgid << 32 | own.pid;
	return true;
}

static __always_inline __u64 shown_ids(void)
{
	__u64 ids;

	own_ids(&ids);
	return ids;
}

static __always_inline void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&probe_counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline __u64 extended(__u64 v, __u8 size, bool with_sign)
{
	__u32 shift = (64 - size * 8) & 63;

	return with_sign ? (__u64)((__s64)(v << shift) >> shift) : v << shift >> shift;
}

/* --- memory --- */

/* What a program has not touched yet, such as a constant string, may not be in memory. Reading one
 * byte of it by a helper that may sleep makes it so. False: nothing to try again for. */
static __always_inline bool fault_in(bool sleeps, __u64 address)
{
	char c;

	return sleeps && !bpf_copy_from_user(&c, sizeof(c), (void *)address);
}

static __always_inline long read_user(bool sleeps, void *to, __u32 size, __u64 address)
{
	long r = bpf_probe_read_user(to, size, (void *)address);

	if (r && fault_in(sleeps, address) && fault_in(sleeps, address + size - 1))
		r = bpf_probe_read_user(to, size, (void *)address);
	return r;
}

/* A string may go on in the next page. */
static __always_inline long read_user_text(bool sleeps, void *to, __u32 size, __u64 address)
{
	long r = bpf_probe_read_user_str(to, size, (void *)address);

	if (r < 0 && fault_in(sleeps, address))
		r = bpf_probe_read_user_str(to, size, (void *)address);
	if (r < 0 && fault_in(sleeps, (address | 4095) + 1))
		r = bpf_probe_read_user_str(to, size, (void *)address);
	return r;
}

/* The kernel has the upper half of all addresses. What a probe in it finds in the lower half is a
 * program's, such as the file name that a system call was given: ftrace reads it so, too. */
static __always_inline bool is_kernel(bool kernel, __u64 address)
{
	return kernel && address >> 63;
}

static __always_inline long read_memory(bool sleeps, void *to, __u32 size, __u64 address,
					bool kernel)
{
	return is_kernel(kernel, address) ? bpf_probe_read_kernel(to, size, (void *)address)
					  : read_user(sleeps, to, size, address);
}

static __always_inline __u64 fetch(bool sleeps, struct scratch *s, const struct ax_probe_op *op,
				   __u64 address, bool kernel)
{
	__u32 size = size_within(op->size, sizeof(__u64));
	__u64 v = 0;

	if (!size || read_memory(sleeps, &v, size, address, kernel)) {
		s->fault = true;
		return 0;
	}
	return op->flags & AX_OP_SIGNED ? extended(v, op->size, true) : v;
}

/* A helper's call costs more than all else that is done for an operation: what the context of a
 * function has is there already. */
static __always_inline __u64 fetch_context(bool sleeps, struct scratch *s,
					   const struct ax_probe_op *op)
{
	__u64 at = op->value;

	if (!config.registers || !s->has_registers ||
	    at >= AX_PROBE_REGISTERS * sizeof(s->registers[0]))
		return fetch(sleeps, s, op, s->ctx + at, true);
	return extended(s->registers[at / 8 & (REGISTERS_ROOM - 1)] >> (at % 8 * 8), op->size,
			op->flags & AX_OP_SIGNED);
}

static __always_inline long read_text(bool sleeps, void *to, __u32 size, __u64 address, bool kernel)
{
	return is_kernel(kernel, address) ? bpf_probe_read_kernel_str(to, size, (void *)address)
					  : read_user_text(sleeps, to, size, address);
}

#endif
