// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One program for all probes: what a probe fetches and does is data, found by its BPF cookie. So
 * nothing is compiled when a probe is attached, and the verifier has seen everything.
 *
 * Programs on user functions can be preempted by others on the same CPU, hence slots that are
 * taken, and atomic additions even where a counter is a CPU's own.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "actions.bpf.h"
#include "stack.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define CTX_SP	   152 /* of struct pt_regs */
#define CTX_GO	   8   /* %r14, where Go's ABI has the goroutine */
#define RETURN_POP 8   /* the return took its address from the stack */
#elif defined(__TARGET_ARCH_arm64)
#define CTX_SP	   248
#define CTX_GO	   224 /* x28 */
#define RETURN_POP 0
#else
#error "where struct pt_regs has the stack pointer is not known for this architecture"
#endif

/* AX_PROBE_WORK of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} at_work SEC(".maps");

/* Processes that are followed (probes/follow). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tree SEC(".maps");

/* Text of who pinned this; no program reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} about SEC(".maps");

/* Places are attached one after the other: nothing counts before all are. */
volatile __u32 active;

static __always_inline bool is_wanted(void)
{
	__u64 ids;
	__u32 tgid;

	if (config.pid && (!own_ids(&ids) || ids >> 32 != config.pid))
		return false;
	if (config.tree) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		if (!bpf_map_lookup_elem(&tree, &tgid))
			return false;
	}
	return scope_has_current(&config.scope);
}

static __always_inline struct scratch *take_scratch(bool sleeps)
{
	for (__u32 i = 0; i < (sleeps ? AX_PROBE_SLEEPERS : AX_PROBE_SLOTS); i++) {
		__u32 index = i;
		struct scratch *s = bpf_map_lookup_elem(&scratches, &index);

		if (s && !__sync_lock_test_and_set(&s->busy, 1)) {
			s->slot = i;
			return s;
		}
	}
	return NULL;
}

/* --- a probe --- */

/* bpf_loop()'s functions (Linux 5.17): the verifier looks at them once, however long programs are.
 */
static long run_op(__u32 i, struct run *r)
{
	return do_op(false, r->s, r->first_op + i);
}

static long run_op_sleeping(__u32 i, struct run *r)
{
	return do_op(true, r->s, r->first_op + i);
}

/* Not static for the verifier, as act(). Return how many were begun. That there is a scratch is
 * known before the loop: found out in it, it would make another round that is looked at anew. */
__noinline int run_ops(struct scratch *s, __u32 first, __u32 n)
{
	struct run r = {.s = s, .first_op = first};

	return s ? (int)bpf_loop(n, run_op, &r, 0) : 0;
}

__noinline int run_ops_sleeping(struct scratch *s, __u32 first, __u32 n)
{
	struct run r = {.s = s, .first_op = first};

	return s ? (int)bpf_loop(n, run_op_sleeping, &r, 0) : 0;
}

/* Up to the next call stack, which needs the context. */
static long run_to_stack(__u32 i, struct run *r)
{
	__u32 done = (__u32)run_ops(r->s, r->first_op, r->n_ops) - 1;

	(void)i;
	if (!r->s->wants_stack || done >= r->n_ops)
		return 1;
	r->first_op += done;
	r->n_ops -= done;
	find_stack(r);
	return 0;
}

static __always_inline void run_all(bool sleeps, void *ctx, const struct ax_probe *p,
				    struct scratch *s)
{
	struct run r = {.s = s,
			.ctx = ctx,
			.first_op = p->first_op,
			.n_ops = p->n_ops,
			.copies = p->action == AX_ACTION_RECORD};

	if (sleeps) {
		run_ops_sleeping(s, p->first_op, p->n_ops);
	} else if (has_codes(CODE(AX_CODE_STACK))) { /* whose maps are not for those that sleep */
		s->has_stack = false;
		s->wants_stack = false;
		bpf_loop(AX_PROBE_OPS_MAX, run_to_stack, &r, 0);
	} else {
		run_ops(s, p->first_op, p->n_ops);
	}
}

struct happening {
	void *ctx;
	__u64 thread, sp;
	struct ax_probe_call *call;
	bool has_registers; /* as a function's context has */
};

static __always_inline void begin_call(struct scratch *s, const struct ax_probe_call *call)
{
	s->is_return = call;
	s->began_ns = call ? call->time_ns : 0;
	if (call && has_codes(CODE(AX_CODE_SAVED)))
		s->call = *call;
}

/* Where it is said that a record is being made; NULL: nobody wants to know. */
static __always_inline __u64 *begin_work(const struct scratch *s, const struct ax_probe *p)
{
	__u32 index;
	__u64 *work;

	if (!config.ordered || p->action != AX_ACTION_RECORD)
		return NULL;
	index = bpf_get_smp_processor_id() * AX_PROBE_WORK + s->slot;
	work = bpf_map_lookup_elem(&at_work, &index);
	if (work) /* before the clock is looked at: what begins later has a later time */
		__sync_lock_test_and_set(work, AX_WORK_BEGINS);
	return work;
}

/* Most sessions want one register or two: of some at once the verifier sees that none is wanted. */
#define REGISTERS_AT_ONCE 8
static __always_inline bool some_wanted(__u32 from)
{
	return config.registers >> from & ((1u << REGISTERS_AT_ONCE) - 1);
}

static __always_inline bool is_register(__u32 i)
{
	return i < AX_PROBE_REGISTERS && config.registers & 1ull << i;
}

/* At constant places the context is read as any memory is, without a helper. */
static __always_inline void copy_registers(const struct happening *h, struct scratch *s)
{
	s->has_registers = h->has_registers;
	if (!h->has_registers)
		return;
#pragma unroll
	for (__u32 from = 0; from < AX_PROBE_REGISTERS; from += REGISTERS_AT_ONCE) {
		if (!some_wanted(from))
			continue;
#pragma unroll
		for (__u32 i = from; i < from + REGISTERS_AT_ONCE; i++)
			if (is_register(i))
				s->registers[i] = *(__u64 *)(h->ctx + i * sizeof(__u64));
	}
}

static __always_inline void run_probe(bool sleeps, const struct happening *h, __u32 index,
				      const struct ax_probe *p, struct scratch *s, __u64 *work)
{
	s->ctx = (__u64)h->ctx;
	s->thread = h->thread;
	s->sp = h->sp;
	s->timer = p->timer;
	if (config.registers)
		copy_registers(h, s);
	begin_call(s, h->call);
	s->depth = 0;
	s->fault = false;
	s->filtered = false;
	s->record.faults = 0;
	s->key_faults = 0;
	s->used = sizeof(s->record) + (p->n_values & (AX_PROBE_VALUES - 1)) * sizeof(__u64);
	s->now_ns =
		p->action != AX_ACTION_COUNT && p->action != AX_ACTION_SET ? bpf_ktime_get_ns() : 0;
	if (work)
		*(volatile __u64 *)work = s->now_ns;
	if (has_codes(~0ull) && p->n_ops)
		run_all(sleeps, h->ctx, p, s);
	if (s->filtered)
		return;
	if (p->action == AX_ACTION_SET)
		return;
	if (p->action == AX_ACTION_ENTRY || p->action == AX_ACTION_START) {
		if (has_actions(ACTION(AX_ACTION_ENTRY) | ACTION(AX_ACTION_START)))
			keep_call(s, p);
	} else if (p->action >= AX_ACTION_ARM) {
		if (has_actions(ACTION(AX_ACTION_ARM) | ACTION(AX_ACTION_DISARM)))
			set_state(p, h->thread, h->sp);
	} else {
		act(s->slot, index);
	}
}

/* Of one thread the kernel remembers no more calls whose returns are probed (by anybody): a return
 * from those that are deeper is not told. (MAX_URETPROBE_DEPTH) */
#define CALLS_DEPTH 64
static __always_inline bool is_too_deep(void)
{
	const void *task, *utask;

	if (!config.utask_offset)
		return false;
	task = bpf_get_current_task_btf(); /* read without a helper, at constant offsets */
	utask = *(const void *const *)(task + config.utask_offset);
	return utask && *(const int *)(utask + config.utask_depth_offset) >= CALLS_DEPTH;
}

/* --- quick probes (quick.c) --- */

/* What is counted by most often needs no slot and no loop, whose calls cost more than what is done.
 */
static __always_inline __u64 register_of(const struct happening *h, const struct ax_probe_op *op)
{
	__u64 v = 0;

#pragma unroll
	for (__u32 from = 0; from < AX_PROBE_REGISTERS; from += REGISTERS_AT_ONCE) {
		if (!some_wanted(from))
			continue;
#pragma unroll
		for (__u32 i = from; i < from + REGISTERS_AT_ONCE; i++)
			if (is_register(i) && op->value == i * sizeof(__u64))
				v = *(__u64 *)(h->ctx + i * sizeof(__u64));
	}
	return extended(v, op->size, op->flags & AX_OP_SIGNED);
}

static __always_inline void count_quickly(const struct happening *h, const struct ax_probe *p)
{
	__u64 key[AX_PROBE_KEY_SHORT] = {0};

#pragma unroll
	for (__u32 i = 0; i < AX_PROBE_QUICK_OPS; i++) {
		__u32 index = p->first_op + i;
		const struct ax_probe_op *op = bpf_map_lookup_elem(&ops, &index);

		if (!op || i >= p->n_ops)
			break;
		key[i] = op->code == AX_CODE_TABLE ? op->value : register_of(h, op);
	}
	count_in_table(key);
}

static __always_inline void set_quickly(const struct happening *h, const struct ax_probe *p)
{
	__u32 from = p->first_op, to = from + 1;
	const struct ax_probe_op *source = bpf_map_lookup_elem(&ops, &from);
	const struct ax_probe_op *op = bpf_map_lookup_elem(&ops, &to);

	if (source && op)
		set_variable(h->thread, op,
			     source->code == AX_CODE_NSECS ? bpf_ktime_get_ns() : source->value);
}

static __always_inline void do_quickly(const struct happening *h, __u32 index,
				       const struct ax_probe *p)
{
	if (p->action == AX_ACTION_SET) {
		if (has_codes(SETS_VARIABLE))
			set_quickly(h, p);
	} else if (config.short_keys && has_actions(ACTION(AX_ACTION_COUNT))) {
		/* longer keys are never counted here, and the verifier refuses what reads them */
		count_hit(index);
		count_quickly(h, p);
	}
}

static __always_inline bool is_quick(const struct ax_probe *p)
{
	return has_flags(AX_PROBE_QUICK) && p->flags & AX_PROBE_QUICK;
}

/* --- all probes --- */

/* False: its condition was not true, or that is not known. */
static __always_inline bool do_probe(bool sleeps, const struct happening *h, __u32 index,
				     const struct ax_probe *p)
{
	struct scratch *s;
	__u64 *work;
	bool passed;

	if (!is_armed(p, h->thread, h->sp))
		return false;
	if (has_flags(AX_PROBE_NESTED) && p->flags & AX_PROBE_NESTED && is_too_deep()) {
		count(AX_PROBE_TOO_DEEP);
		return false;
	}
	if (has_actions(ACTION(AX_ACTION_LOOK)) && p->action == AX_ACTION_LOOK)
		return true;
	if (!p->n_ops && p->action == AX_ACTION_COUNT) {
		count_hit(index);
		return true;
	}
	if (!has_codes(~0ull) && !has_actions(~ACTION(AX_ACTION_COUNT)))
		return true; /* that was all that there is */
	if (has_actions(ACTION(AX_ACTION_ARM) | ACTION(AX_ACTION_DISARM)) && !p->n_ops &&
	    (p->action == AX_ACTION_ARM || p->action == AX_ACTION_DISARM)) {
		set_state(p, h->thread, h->sp);
		return true;
	}
	s = take_scratch(sleeps);
	if (s) {
		work = begin_work(s, p);
		run_probe(sleeps, h, index, p, s, work);
		if (work)
			*(volatile __u64 *)work = 0;
		passed = !s->filtered;
		*(volatile __u32 *)&s->busy = 0;
		return passed;
	}
	if (p->action == AX_ACTION_SET) {
		count(AX_PROBE_DROPPED);
		count_hit(index);
	} else if (p->action >= AX_ACTION_ENTRY) {
		count(AX_PROBE_NO_CALL);
	} else {
		count_hit(index);
		count(AX_PROBE_DROPPED);
	}
	return false;
}

/* A goroutine is at the start of what %r14 points to: the bounds of its stack, which is moved as a
 * whole, so that what stays the same is how far a frame is from its end. */
static __always_inline bool find_goroutine(struct happening *h)
{
	__u64 end, g = *(__u64 *)(h->ctx + CTX_GO);

	if (bpf_probe_read_user(&end, sizeof(end), (void *)(g + sizeof(__u64))))
		return false;
	h->thread = g;
	h->sp = ~(end - h->sp); /* the deeper the less, as with addresses */
	return true;
}

static __always_inline bool is_paired(const struct ax_probe *p)
{
	return has_flags(AX_PROBE_PAIRED) && p->flags & AX_PROBE_PAIRED;
}

static __always_inline struct ax_probe_call_key call_key(const struct happening *h,
							 const struct ax_probe *p)
{
	return (struct ax_probe_call_key){.thread = h->thread, .sp = h->sp, .pair = p->pair};
}

/* What the entry has kept of the call that returns; false: it is not known. */
static __always_inline bool find_call(struct happening *h, const struct ax_probe *p, bool wanted)
{
	struct ax_probe_call_key key = call_key(h, p);

	h->call = bpf_map_lookup_elem(&calls, &key);
	/* while nothing is armed, entries are not kept */
	if (!h->call && wanted && is_armed(p, h->thread, h->sp))
		count(AX_PROBE_UNMATCHED);
	return h->call;
}

static __always_inline void forget_call(const struct happening *h, const struct ax_probe *p)
{
	struct ax_probe_call_key key = call_key(h, p);

	bpf_map_delete_elem(&calls, &key);
}

const volatile __u32 never;

/*
 * From Linux 6.13 on, kprobe programs with more than a few bytes of stack have one that belongs to
 * the CPU, not to the task, because a second one would not be started there
 * meanwhile. That holds for kprobes, but not for uprobes: one that sleeps or is preempted would
 * find what another left there, pointers among it. Programs with tail calls keep the task's stack,
 * and the verifier looks for those before it knows that this one is never made.
 */
static __always_inline void keep_own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, NULL, 0);
}

/* It stays 0, which the verifier does not know. */
volatile __u64 nothing;

/*
 * Those on one place. All of a loop's function is looked at once by the verifier, if it knows no
 * more of the first round than of all others: so all that rounds change are words that are read.
 */
struct chain {
	void *ctx;
	__u64 thread;
	__u64 next;	 /* 1 + the index of a probe */
	__u64 passed;	 /* the last one that follows none happened */
	__u64 elsewhere; /* in a process that only some of them are about */
};

static __always_inline void begin_rounds(struct chain *c)
{
	if (!has_flags(AX_PROBE_CHAINED))
		return;
	c->passed = nothing;
	c->elsewhere = nothing;
}

/* False: none of them is about this process. */
static __always_inline bool begin_chain(struct chain *c)
{
	if (!active)
		return false;
	begin_rounds(c);
	if (is_wanted())
		return true;
	c->elsewhere = true;
	return has_flags(AX_PROBE_ANYWHERE);
}

static __always_inline bool is_about(const struct chain *c, const struct ax_probe *p)
{
	return !has_flags(AX_PROBE_ANYWHERE) || !c->elsewhere || p->flags & AX_PROBE_ANYWHERE;
}

static __always_inline bool follows(const struct ax_probe *p)
{
	return has_flags(AX_PROBE_FOLLOWS) && p->flags & AX_PROBE_FOLLOWS;
}

/* Returns what struct ax_probe has as `next`. */
static __always_inline __u32 probe_function(struct chain *c, bool sleeps)
{
	__u32 index = (__u32)c->next - 1;
	const struct ax_probe *p = bpf_map_lookup_elem(&probes, &index);
	struct happening h = {.ctx = c->ctx,
			      .thread = c->thread,
			      .sp = *(__u64 *)(c->ctx + CTX_SP),
			      .has_registers = true};
	bool wanted, happened = false;

	if (!p)
		return 0;
	if (!is_about(c, p))
		return p->next;
	wanted = !follows(p) || c->passed;
	if (p->flags & AX_PROBE_POPPED)
		h.sp -= RETURN_POP;
	if (has_flags(AX_PROBE_GO) && p->flags & AX_PROBE_GO && !find_goroutine(&h))
		return p->next;
	if (is_paired(p) && !find_call(&h, p, wanted))
		wanted = false;
	if (wanted && is_quick(p))
		do_quickly(&h, index, p);
	else if (wanted)
		happened = do_probe(sleeps, &h, index, p);
	if (is_paired(p) && h.call)
		forget_call(&h, p);
	/* by what it is and not by what was done: a third less for the verifier to follow */
	if (!follows(p))
		c->passed = happened || is_quick(p);
	return p->next;
}

/* Not part of who calls them, who would be twice as long for it. */
static __noinline long chained_function(__u32 i, struct chain *c)
{
	(void)i;
	c->next = probe_function(c, false);
	return !c->next;
}

static __noinline long chained_function_sleeping(__u32 i, struct chain *c)
{
	(void)i;
	c->next = probe_function(c, true);
	return !c->next;
}

/* Those that only count by what is fetched do not. */
#define TEXT_CODES (CODE(AX_CODE_TEXT) | CODE(AX_CODE_SET_TEXT))
#define THREAD_CODES \
	(CODE(AX_CODE_THREAD) | CODE(AX_CODE_SET_THREAD) | CODE(AX_CODE_FIND) | TEXT_CODES)
static __always_inline bool wants_thread(void)
{
	return has_actions(~(TABLE_ACTIONS | ACTION(AX_ACTION_SET))) || has_codes(THREAD_CODES) ||
	       has_flags(AX_PROBE_PAIRED | AX_PROBE_PER_THREAD);
}

static __always_inline int at_function(void *ctx, bool sleeps)
{
	struct chain c = {.ctx = ctx, .next = bpf_get_attach_cookie(ctx) + 1};

	keep_own_stack(ctx);
	if (!begin_chain(&c))
		return 0;
	if (wants_thread())
		c.thread = (__u32)bpf_get_current_pid_tgid();
	if (has_flags(AX_PROBE_CHAINED)) {
		if (sleeps)
			bpf_loop(AX_PROBE_CHAIN, chained_function_sleeping, &c, 0);
		else
			bpf_loop(AX_PROBE_CHAIN, chained_function, &c, 0);
	} else if (sleeps) {
		chained_function_sleeping(0, &c);
	} else {
		chained_function(0, &c);
	}
	return 0;
}

SEC("uprobe")
int ax_function(void *ctx)
{
	return at_function(ctx, false);
}

/* Where user memory is read: it may have to be read in. (6.0) */
SEC("uprobe.s")
int ax_function_sleeping(void *ctx)
{
	return at_function(ctx, true);
}

SEC("kprobe")
int ax_kernel_function(void *ctx)
{
	return at_function(ctx, false);
}

static __always_inline __u32 probe_tracepoint(struct chain *c)
{
	__u32 index = (__u32)c->next - 1;
	const struct ax_probe *p = bpf_map_lookup_elem(&probes, &index);
	struct happening h = {.ctx = c->ctx, .thread = (__u32)bpf_get_current_pid_tgid()};

	if (!p)
		return 0;
	if (!is_about(c, p))
		return p->next;
	if (!follows(p))
		c->passed = do_probe(false, &h, index, p);
	else if (c->passed)
		do_probe(false, &h, index, p);
	return p->next;
}

static __noinline long chained_tracepoint(__u32 i, struct chain *c)
{
	(void)i;
	c->next = probe_tracepoint(c);
	return !c->next;
}

static __always_inline int probe_tracepoints(struct chain *c)
{
	if (has_flags(AX_PROBE_CHAINED))
		bpf_loop(AX_PROBE_CHAIN, chained_tracepoint, c, 0);
	else
		chained_tracepoint(0, c);
	return 0;
}

static __always_inline int at_tracepoint(void *ctx)
{
	struct chain c = {.ctx = ctx, .next = bpf_get_attach_cookie(ctx) + 1};

	return begin_chain(&c) ? probe_tracepoints(&c) : 0;
}

/* A tracepoint's context is its record, as its format file describes it. */
SEC("tracepoint")
int ax_tracepoint(void *ctx)
{
	return at_tracepoint(ctx);
}

/* For probes on tracepoints that fetch none of its fields. Cookies: Linux 6.10. */
SEC("raw_tracepoint")
int ax_raw_tracepoint(void *ctx)
{
	return at_tracepoint(ctx);
}

/* A clock ticks on each processor; of one that has nothing to do there is nothing to tell. */
SEC("perf_event")
int ax_clock(void *ctx)
{
	return (__u32)bpf_get_current_pid_tgid() ? at_tracepoint(ctx) : 0;
}

/* Variables of a thread that ends: another one may get its number. */
SEC("raw_tracepoint")
int ax_forget(void *ctx)
{
	struct ax_probe_state_key key = {.thread = (__u32)bpf_get_current_pid_tgid()};

	(void)ctx;
	for (__u32 i = 1; i < AX_PROBE_VARIABLES; i++) {
		if (i > config.thread_variables)
			break;
		key.state = i;
		bpf_map_delete_elem(&thread_variables, &key);
		if (has_codes(CODE(AX_CODE_SET_TEXT)))
			bpf_map_delete_elem(&text_variables, &key);
	}
	return 0;
}

/* The key is given by its address: a text of that length has no room beside others on the stack. */
static __always_inline void move_text(struct ax_probe_state_key *old,
				      struct ax_probe_state_key *now)
{
	struct ax_probe_variable_text *v = bpf_map_lookup_elem(&text_variables, old);

	if (!v)
		return;
	if (bpf_map_update_elem(&text_variables, now, v, BPF_ANY))
		count_no_variable();
	bpf_map_delete_elem(&text_variables, old);
}

/* A thread that executes becomes its process's first one, with that one's number: its variables go
 * with it. The first thread's own are gone, since it has ended. */
SEC("raw_tracepoint")
int ax_renumber(__u64 *ctx)
{
	struct ax_probe_state_key old = {.thread = (__u32)ctx[1]};
	struct ax_probe_state_key now = {.thread = (__u32)bpf_get_current_pid_tgid()};

	if (old.thread == now.thread)
		return 0;
	for (__u32 i = 1; i < AX_PROBE_VARIABLES; i++) {
		__u64 *v, value;

		if (i > config.thread_variables)
			break;
		old.state = now.state = i;
		if (has_codes(CODE(AX_CODE_SET_TEXT)))
			move_text(&old, &now);
		v = bpf_map_lookup_elem(&thread_variables, &old);
		if (!v)
			continue;
		value = *v;
		bpf_map_delete_elem(&thread_variables, &old);
		if (bpf_map_update_elem(&thread_variables, &now, &value, BPF_ANY))
			count_no_variable();
	}
	return 0;
}

/* What a script does by itself: run by its process, which names the probe. */
SEC("raw_tracepoint")
int ax_self(__u64 *ctx)
{
	struct chain c = {.ctx = ctx, .next = ctx[0] + 1};

	begin_rounds(&c);
	return probe_tracepoints(&c);
}

char LICENSE[] SEC("license") = "GPL";
