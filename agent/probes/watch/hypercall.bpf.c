// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace hypercall: a thread that runs a vCPU leaves the guest (kvm_exit), handles what it left
 * for, maybe a hypercall (kvm_hypercall), and enters the guest again (kvm_entry). What the thread
 * left for is kept with the thread, so that no number of vCPUs is too many and nothing of it stays.
 *
 * What an exit's reason is, the kernel finds out only for the tracepoint's record: so these are
 * programs on records, whose fields are where this kernel's format files say.
 */
#include "watch.bpf.h"
#include "hypercall_event.h"

#define NUMBERS_MAX 64 /* rows of a vCPU: a guest chooses numbers as it likes */

const volatile struct ax_hypercall_config wanted;

struct vcpu {
	__u64 since; /* of the exit; 0: it is in the guest */
	__u64 nr, args[AX_HYPERCALL_ARGS];
	__u32 called;
	__u32 reason, isa;
	__u32 rows;  /* that were made for its calls */
	__u32 known; /* user space was told of it */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct vcpu);
} vcpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCH_HYPERCALL_ROWS);
	__type(key, struct ax_hypercall_key);
	__type(value, struct ax_hypercall_cell);
} hypercalls SEC(".maps");

static const struct ax_hypercall_cell no_calls;

static __always_inline struct vcpu *current_vcpu(__u64 flags)
{
	return bpf_task_storage_get(&vcpus, (void *)bpf_get_current_task_btf(), NULL, flags);
}

/* --- the table --- */

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u64 v = ns;
	__u32 power = 0;

	if (ns < 8)
		return (__u32)ns;
	for (__u32 step = 32; step; step /= 2)
		if (v >> step) {
			v >>= step;
			power += step;
		}
	if (power >= AX_HYPERCALL_POWERS)
		return AX_HYPERCALL_BUCKETS - 1;
	return (power - 2) << AX_HYPERCALL_FINE_BITS |
	       (__u32)(ns >> (power - AX_HYPERCALL_FINE_BITS) & 7);
}

static __always_inline struct ax_hypercall_cell *make_cell(const struct ax_hypercall_key *key)
{
	bpf_map_update_elem(&hypercalls, key, &no_calls, BPF_NOEXIST);
	return bpf_map_lookup_elem(&hypercalls, key);
}

static __always_inline struct ax_hypercall_cell *cell_of(struct ax_hypercall_key *key,
							 struct vcpu *s)
{
	struct ax_hypercall_cell *c = bpf_map_lookup_elem(&hypercalls, key);

	if (c || key->kind != AX_HYPERCALL_CALL)
		return c ? c : make_cell(key);
	if (s->rows < NUMBERS_MAX) {
		s->rows++;
		return make_cell(key);
	}
	key->kind = AX_HYPERCALL_OTHER;
	key->nr = 0;
	c = bpf_map_lookup_elem(&hypercalls, key);
	return c ? c : make_cell(key);
}

/* Only the thread that runs the vCPU comes here, so that nothing is added twice at once. */
static __always_inline void count_in_table(struct vcpu *s, __u32 vcpu, __u64 ns)
{
	struct ax_hypercall_key key = {
		.vm = bpf_get_current_pid_tgid() >> 32,
		.vcpu = vcpu,
		.kind = wanted.all ? AX_HYPERCALL_EXIT : AX_HYPERCALL_CALL,
		.isa = s->isa,
		.reason = s->reason,
		.nr = wanted.all ? 0 : s->nr,
	};
	struct ax_hypercall_cell *c = cell_of(&key, s);
	__u32 bucket = bucket_of(ns);

	watch_count(AX_WATCH_EMITTED);
	if (!c) {
		watch_count(AX_WATCH_DROPPED);
		return;
	}
	c->count++;
	c->sum += ns;
	if (ns > c->most)
		c->most = ns;
	if (~ns > c->least)
		c->least = ~ns;
	if (bucket < AX_HYPERCALL_BUCKETS)
		c->buckets[bucket]++;
}

/* --- records --- */

/* Its page is there unless it was swapped out. */
static __always_inline __u32 read_words(char *words)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	__u64 start, len;

	if (!mm)
		return 0;
	start = mm->arg_start;
	len = mm->arg_end - start;
	if (len > AX_HYPERCALL_WORDS)
		len = AX_HYPERCALL_WORDS;
	return bpf_probe_read_user(words, len, (void *)start) ? 0 : (__u32)len;
}

/* The ring may be full: then it is told when the next one comes. */
static __always_inline void introduce(struct vcpu *s)
{
	struct ax_hypercall_vcpu *v = bpf_ringbuf_reserve(&records, sizeof(*v), 0);
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (!v)
		return;
	watch_head(&v->head, AX_WATCH_VCPU);
	v->head.time_ns = 0;
	BPF_CORE_READ_STR_INTO(&v->head.comm, task, group_leader, comm);
	v->len = read_words(v->words);
	v->pad = 0;
	bpf_ringbuf_submit(v, BPF_RB_NO_WAKEUP);
	s->known = 1;
}

static __always_inline void send(const struct vcpu *s, __u32 vcpu, __u64 ns)
{
	struct ax_hypercall_event *e = watch_reserve(sizeof(*e));

	if (!e)
		return;
	watch_head(&e->head, AX_WATCH_HYPERCALL);
	e->nr = s->nr;
	for (int i = 0; i < AX_HYPERCALL_ARGS; i++)
		e->args[i] = s->args[i];
	e->duration_ns = ns;
	e->called = s->called;
	e->isa = s->isa;
	e->reason = s->reason;
	e->vcpu = vcpu;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* --- the three steps --- */

static __always_inline void leave(__u32 reason, __u32 isa)
{
	struct vcpu *s;

	if (!watch_current())
		return;
	s = current_vcpu(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s)
		return;
	s->since = bpf_ktime_get_ns();
	s->called = 0;
	s->nr = 0;
	s->reason = reason;
	s->isa = isa;
}

static __always_inline void call(__u64 nr, const __u64 *args)
{
	struct vcpu *s;

	if (wanted.only && nr != wanted.nr)
		return;
	s = current_vcpu(0);
	if (!s || !s->since)
		return;
	s->called = 1;
	s->nr = nr;
	for (int i = 0; i < AX_HYPERCALL_ARGS; i++)
		s->args[i] = args[i];
}

static __always_inline void enter(__u32 vcpu)
{
	struct vcpu *s = current_vcpu(0);
	__u64 ns;

	if (!s || !s->since)
		return;
	ns = bpf_ktime_get_ns() - s->since;
	s->since = 0;
	if (!wanted.all && !s->called)
		return;
	if (!s->known)
		introduce(s);
	if (wanted.live)
		send(s, vcpu, ns);
	else
		count_in_table(s, vcpu, ns);
}

/* --- where they are seen --- */

static __always_inline __u64 field(void *record, const volatile struct ax_record_field *f)
{
	__u64 v = 0;
	__u32 size = f->size;

	if (size && size <= sizeof(v))
		bpf_probe_read_kernel(&v, size, record + f->offset);
	return v;
}

SEC("tracepoint")
int ax_kvm_exit(void *ctx)
{
	leave((__u32)field(ctx, &wanted.layout.reason), (__u32)field(ctx, &wanted.layout.isa));
	return 0;
}

SEC("tracepoint")
int ax_kvm_hypercall(void *ctx)
{
	__u64 args[AX_HYPERCALL_ARGS];

	for (int i = 0; i < AX_HYPERCALL_ARGS; i++)
		args[i] = field(ctx, &wanted.layout.args[i]);
	call(field(ctx, &wanted.layout.nr), args);
	return 0;
}

SEC("tracepoint")
int ax_kvm_entry(void *ctx)
{
	enter((__u32)field(ctx, &wanted.layout.vcpu));
	return 0;
}

/* For tests: the same steps without a virtual machine. 0: exit, 1: hypercall, 2: entry. */
SEC("raw_tracepoint")
int ax_kvm_step(__u64 *ctx)
{
	__u64 args[AX_HYPERCALL_ARGS] = {ctx[2], ctx[3], ctx[4], ctx[5]};

	if (ctx[0] == 0)
		leave((__u32)ctx[1], (__u32)ctx[2]);
	else if (ctx[0] == 1)
		call(ctx[1], args);
	else
		enter((__u32)ctx[1]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
