/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a probe does with what was fetched: records, tables, calls that are kept, states. */
#ifndef AX_PROBES_ENGINE_ACTIONS_BPF_H
#define AX_PROBES_ENGINE_ACTIONS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "defaults.h"
#include "interpreter.bpf.h"

/* Sizes of maps that depend on the probes, and of the key, are set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_probe);
} probes SEC(".maps");
/* How often each probe happened. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ENGINE_RING_BYTES);
} records SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* else starting would take as long as all entries */
	__uint(max_entries, ENGINE_TABLE_ENTRIES);
	__uint(key_size, sizeof(__u64));
	__uint(value_size, sizeof(struct ax_probe_cell));
} table SEC(".maps");
/* The last records, when none is sent. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ax_probe_flight));
} flight SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} flight_number SEC(".maps");
/* Which states are armed: for all threads, and for some. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_PROBE_STATES);
	__type(key, __u32);
	__type(value, __u64);
} states SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct ax_probe_state_key);
	__type(value, __u64);
} thread_states SEC(".maps");

static __always_inline void count_hit(__u32 probe)
{
	__u64 *n = bpf_map_lookup_elem(&hits, &probe);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* --- records --- */

/* Writers of the same slot at the same time are as many records apart as there are slots. */
static __always_inline void keep_record(const struct scratch *s, __u32 len)
{
	__u32 zero = 0, index, max = config.flight_bytes;
	__u64 *next = bpf_map_lookup_elem(&flight_number, &zero), number;
	struct ax_probe_flight *f;

	if (!next || !config.flight_slots)
		return;
	number = __sync_fetch_and_add(next, 1);
	index = (__u32)(number % config.flight_slots);
	f = bpf_map_lookup_elem(&flight, &index);
	if (!f)
		return;
	f->number = 0;
	f->full_len = len;
	len = size_within(len < max ? len : max, max);
	f->len = len;
	if (len)
		bpf_probe_read_kernel(f->record, len, s->bytes);
	*(volatile __u64 *)&f->number = number + 1;
}

/*
 * The thread stops before it is back in its program, and alone: the signal is taken by the tracer
 * that has seized it. Without one the whole process would stop for good.
 */
#define SIGSTOP 19
static __always_inline void stop_thread(void)
{
	__u64 task = bpf_get_current_task();
	__u32 traced = 0;

	if (!config.ptrace_offset ||
	    bpf_probe_read_kernel(&traced, sizeof(traced), (void *)(task + config.ptrace_offset)) ||
	    !traced)
		return;
	bpf_send_signal_thread(SIGSTOP);
}

static __always_inline void put_record(struct scratch *s, __u32 index, const struct ax_probe *p)
{
	struct ax_probe_record *rec = &s->record;
	__u64 id = shown_ids();
	__u32 len = size_within(s->used, sizeof(s->bytes));

	rec->time_ns = s->now_ns;
	rec->sp = s->sp;
	rec->thread = s->thread;
	rec->probe = index;
	rec->pid = (__u32)(id >> 32);
	rec->tid = (__u32)id;
	rec->cpu = (__u16)bpf_get_smp_processor_id();
	rec->n_values = (__u16)p->n_values;
	rec->pad = 0;
	bpf_get_current_comm(rec->comm, sizeof(rec->comm));
	if (config.flight_slots)
		keep_record(s, len);
	/* The reader looks every few milliseconds: waking it would cost more than all else. */
	else if (!len || bpf_ringbuf_output(&records, rec, len, BPF_RB_NO_WAKEUP))
		count(AX_PROBE_DROPPED);
	else if (has_flags(AX_PROBE_STOPS) && p->flags & AX_PROBE_STOPS)
		stop_thread();
}

static __always_inline void raise(__u64 *most, __u64 v)
{
	/* Only a program that preempted this one can have changed it. */
#pragma unroll
	for (int i = 0; i < AX_PROBE_SLOTS; i++) {
		__u64 old = *(volatile __u64 *)most;

		if (v <= old || __sync_val_compare_and_swap(most, old, v) == old)
			return;
	}
}

#define TABLE_ACTIONS                                                                  \
	(ACTION(AX_ACTION_COUNT) | ACTION(AX_ACTION_LOG2) | ACTION(AX_ACTION_LINEAR) | \
	 ACTION(AX_ACTION_STATS))

/* Returns the key's cell, of this CPU; NULL: there is no room. */
static __always_inline struct ax_probe_cell *count_in_table(const void *key)
{
	struct ax_probe_cell *cell = bpf_map_lookup_elem(&table, key);

	if (!cell) {
		struct ax_probe_cell none = {0};

		bpf_map_update_elem(&table, key, &none, BPF_NOEXIST);
		cell = bpf_map_lookup_elem(&table, key);
	}
	if (cell)
		__sync_fetch_and_add(&cell->count, 1);
	else
		count(AX_PROBE_DROPPED);
	return cell;
}

/* Also of each bucket: mean and quantiles are told by that. */
static __always_inline void add_to_table(struct scratch *s, const struct ax_probe *p)
{
	struct ax_probe_cell *cell = count_in_table(s->key);
	__u64 v = s->record.values[0];

	if (!cell)
		return;
	if (!has_actions(TABLE_ACTIONS & ~ACTION(AX_ACTION_COUNT)) ||
	    p->action == AX_ACTION_COUNT || p->flags & AX_PROBE_ONLY_COUNTS)
		return;
	__sync_fetch_and_add(&cell->sum, v);
	if (p->flags & AX_PROBE_SIGNED)
		v ^= 1ull << 63;
	raise(&cell->most, v);
	raise(&cell->least, ~v);
}

static __always_inline __u64 log2_bucket(__u64 v, bool with_sign)
{
	__u64 n = 1;

	if (with_sign && (__s64)v < 0)
		return AX_BUCKET_NEGATIVE;
	if (!v)
		return 0;
		/* without branches, which the verifier would follow in all combinations */
#pragma unroll
	for (int shift = 32; shift; shift >>= 1) {
		__u64 none = (v >> shift) - 1, by;

		opaque(none);
		by = (__u64)shift & ~(__u64)((__s64)none >> 63);
		v >>= by & 63;
		n += by;
	}
	return n;
}

static __always_inline __u64 fine_bucket(__u64 v)
{
	__u64 n = log2_bucket(v, false), high = (n - 1) & 63;

	if (!v)
		return AX_BUCKET_FINE;
	v = high > AX_BUCKETS_FINE_BITS ? v >> ((high - AX_BUCKETS_FINE_BITS) & 63)
					: v << ((AX_BUCKETS_FINE_BITS - high) & 63);
	return AX_BUCKET_FINE + (n << AX_BUCKETS_FINE_BITS | (v & (AX_BUCKETS_FINE - 1)));
}

static __always_inline __u64 linear_bucket(const struct ax_probe *p, __u64 v)
{
	__u64 at = v - (__u64)p->least;

	if (p->flags & AX_PROBE_SIGNED ? (__s64)v < p->least : v < (__u64)p->least)
		return 0;
	at = p->step ? at / p->step : 0;
	return at < p->n_buckets ? at + 1 : p->n_buckets + 1;
}

static __always_inline void keep_call(struct scratch *s, const struct ax_probe *p)
{
	struct ax_probe_call_key key = {.thread = s->thread, .sp = s->sp, .pair = p->pair};
	struct ax_probe_call call = {.faults = s->record.faults};

	if (p->action == AX_ACTION_START) {
		if (s->record.faults & 1)
			return; /* nothing by which the other probe could find it */
		key.pair = p->timer;
		key.sp = p->flags & AX_PROBE_BY_THREAD ? 0 : s->kept[0];
		key.thread = p->flags & AX_PROBE_BY_THREAD ? s->thread : 0;
	}
	__builtin_memcpy(call.values, s->kept, sizeof(call.values));
	call.time_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&calls, &key, &call, BPF_ANY))
		count(AX_PROBE_NO_CALL);
}

/* --- states --- */

/* Armed in a function, a state of a thread lasts until that returns: the outermost one, when it is
 * armed again further down. One that was left by longjmp() is above the stack pointer. */
static __always_inline void arm_thread(const struct ax_probe *p, __u64 thread, __u64 sp)
{
	struct ax_probe_state_key key = {.thread = thread, .state = p->state};
	__u64 *armed = bpf_map_lookup_elem(&thread_states, &key);

	if (!armed || *armed < sp)
		bpf_map_update_elem(&thread_states, &key, &sp, BPF_ANY);
}

static __always_inline void disarm_thread(const struct ax_probe *p, __u64 thread, __u64 sp)
{
	struct ax_probe_state_key key = {.thread = thread, .state = p->state};
	__u64 *armed = bpf_map_lookup_elem(&thread_states, &key);

	if (armed && (!(p->flags & AX_PROBE_RETURN) || sp >= *armed))
		bpf_map_delete_elem(&thread_states, &key);
}

static __always_inline void set_state(const struct ax_probe *p, __u64 thread, __u64 sp)
{
	__u32 index = p->state;
	bool arms = p->action == AX_ACTION_ARM;
	__u64 *armed;

	if (p->flags & AX_PROBE_PER_THREAD) {
		if (arms)
			arm_thread(p, thread, sp);
		else
			disarm_thread(p, thread, sp);
		return;
	}
	armed = bpf_map_lookup_elem(&states, &index);
	if (armed)
		*armed = arms;
}

static __always_inline bool is_armed(const struct ax_probe *p, __u64 thread, __u64 sp)
{
	struct ax_probe_state_key key = {.thread = thread, .state = p->when};
	__u32 index = p->when;
	__u64 *armed;

	if (!p->when)
		return true;
	if (!(p->flags & AX_PROBE_PER_THREAD)) {
		armed = bpf_map_lookup_elem(&states, &index);
		return armed && *armed;
	}
	armed = bpf_map_lookup_elem(&thread_states, &key);
	return armed && (!sp || !*armed || sp <= *armed);
}

/*
 * What is made of what was fetched. Not static, so that the verifier looks at it by itself, once,
 * and not anew for whatever may be the case where it is called: that would be half of the time of a
 * start. By numbers, since kernels before 6.2 take no key from memory that such a function is
 * given.
 */
__noinline int act(__u32 slot, __u32 index)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &slot);
	const struct ax_probe *p = bpf_map_lookup_elem(&probes, &index);
	__u64 *bucket, v;

	if (!s || !p)
		return 0;
	v = s->record.values[0];
	bucket = &s->key[p->key_words & (AX_PROBE_KEY - 1)];
	count_hit(index);
	switch (p->action) {
	case AX_ACTION_RECORD:
		if (has_actions(ACTION(AX_ACTION_RECORD)))
			put_record(s, index, p);
		return 0;
	case AX_ACTION_COUNT:
		if (!p->key_words)
			return 0;
		*bucket = 0; /* a histogram of the session may have one there */
		break;
	case AX_ACTION_STATS:
		*bucket = 0;
		break;
	case AX_ACTION_LOG2:
		if (has_flags(AX_PROBE_FINE) && p->flags & AX_PROBE_FINE)
			*bucket = fine_bucket(v);
		else if (has_actions(ACTION(AX_ACTION_LOG2)))
			*bucket = log2_bucket(v, p->flags & AX_PROBE_SIGNED);
		break;
	case AX_ACTION_LINEAR:
		if (has_actions(ACTION(AX_ACTION_LINEAR)))
			*bucket = linear_bucket(p, v);
		break;
	default:
		break;
	}
	if (!has_actions(TABLE_ACTIONS))
		return 0;
	/* A value that could not be fetched is none. */
	if (p->action != AX_ACTION_COUNT && s->record.faults & 1)
		count(AX_PROBE_DROPPED);
	else
		add_to_table(s, p);
	return 0;
}

#endif
