// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace malloc: memory that is allocated, by whom, and what is not freed. Each piece is in a
 * table from its allocation to its release. It is taken out when free() begins: when that has
 * ended, another thread may have the same address already.
 */
#include "function.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___life {
	__u64 self_exec_id;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TALLY_BLOCKS);
	__type(key, struct ax_heap_key);
	__type(value, struct ax_heap_block);
} blocks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_SITES);
	__type(key, struct ax_heap_site);
	__type(value, struct ax_heap_cell);
} sites SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, TALLY_STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, AX_TALLY_FRAMES * sizeof(__u64));
} stacks SEC(".maps");

/* What a realloc() that is not over yet has taken out of the table. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_heap_block);
} moved SEC(".maps");

static __always_inline __u32 life_of(void)
{
	struct task_struct___life *t = (void *)bpf_get_current_task_btf();

	return (__u32)BPF_CORE_READ(t, self_exec_id);
}

static __always_inline void block_key(struct ax_heap_key *key, __u64 address)
{
	key->address = address;
	key->pid = bpf_get_current_pid_tgid() >> 32;
	key->life = life_of();
}

/* --- what is freed --- */

static __always_inline void count_free(const struct ax_heap_block *b)
{
	struct ax_heap_cell *c = bpf_map_lookup_elem(&sites, &b->site);

	if (!c)
		return;
	__sync_fetch_and_add(&c->freed, 1);
	__sync_fetch_and_add(&c->freed_bytes, b->size);
}

/* False: it is not known, as what was allocated before the start. */
static __always_inline bool take_block(__u64 address, struct ax_heap_block *to)
{
	struct ax_heap_key key = {};
	struct ax_heap_block *b;

	block_key(&key, address);
	b = bpf_map_lookup_elem(&blocks, &key);
	if (!b) {
		watch_count(AX_WATCH_UNKNOWN);
		return false;
	}
	*to = *b;
	bpf_map_delete_elem(&blocks, &key);
	return true;
}

static __always_inline void begin_realloc(__u64 old)
{
	struct ax_heap_block *m = bpf_task_storage_get(&moved, (void *)bpf_get_current_task_btf(),
						       NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!m)
		return;
	m->time_ns = 0;
	if (old)
		take_block(old, m);
}

SEC("uprobe")
int ax_heap_enter(struct pt_regs *ctx)
{
	struct ax_heap_block b;
	struct function_call *c;

	keep_own_stack(ctx);
	if (!watch_current())
		return 0;
	c = function_enter(ctx);
	if (!c)
		return 0;
	if (c->function == AX_HEAP_FREE) {
		c->frame = 0; /* whatever it calls is none of ours, but its return is not seen */
		if (c->args[0] && take_block(c->args[0], &b))
			count_free(&b);
	} else if (c->function == AX_HEAP_REALLOC || c->function == AX_HEAP_REALLOCARRAY) {
		begin_realloc(c->args[0]);
	}
	return 0;
}

/* --- what is allocated --- */

static __always_inline struct ax_heap_cell *cell_of(const struct ax_heap_site *site)
{
	struct ax_heap_cell *c = bpf_map_lookup_elem(&sites, site), none = {};

	if (c)
		return c;
	bpf_map_update_elem(&sites, site, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sites, site);
}

static __always_inline void add_block(struct pt_regs *ctx, __u64 address, __u64 size)
{
	struct ax_heap_block b = {.size = size, .time_ns = bpf_ktime_get_ns()};
	struct ax_heap_key key = {};
	struct ax_heap_cell *c;

	block_key(&key, address);
	b.site.pid = key.pid;
	b.site.life = key.life;
	b.site.caller = PT_REGS_IP(ctx);
	tally_group(); /* for its name */
	b.site.stack = (__s32)bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	if (b.site.stack < 0) {
		watch_count(AX_WATCH_NO_STACK);
		b.site.stack = -1;
	}
	watch_count(AX_WATCH_EMITTED);
	c = cell_of(&b.site);
	if (!c) {
		watch_count(AX_WATCH_DROPPED);
		return;
	}
	__sync_fetch_and_add(&c->allocated, 1);
	__sync_fetch_and_add(&c->allocated_bytes, size);
	if (bpf_map_update_elem(&blocks, &key, &b, BPF_ANY) < 0) {
		__sync_fetch_and_add(&c->unkept, 1);
		__sync_fetch_and_add(&c->unkept_bytes, size);
	}
}

/* What it took out of the table is freed, or there again if it failed. */
static __always_inline void end_realloc(__u64 old, __u64 size, __u64 new)
{
	struct ax_heap_block *m =
		bpf_task_storage_get(&moved, (void *)bpf_get_current_task_btf(), NULL, 0);
	struct ax_heap_key key = {};

	if (!m || !m->time_ns)
		return;
	if (new || !size) {
		count_free(m);
	} else {
		block_key(&key, old);
		bpf_map_update_elem(&blocks, &key, m, BPF_ANY);
	}
	m->time_ns = 0;
}

/* What the function was asked for. */
static __always_inline __u64 size_of(const struct function_call *c)
{
	switch (c->function) {
	case AX_HEAP_MALLOC:
		return c->args[0];
	case AX_HEAP_CALLOC:
		return c->args[0] * c->args[1];
	case AX_HEAP_REALLOCARRAY:
		return c->args[1] * c->args[2];
	case AX_HEAP_POSIX_MEMALIGN:
		return c->args[2];
	default:
		return c->args[1];
	}
}

SEC("uprobe")
int ax_heap_leave(struct pt_regs *ctx)
{
	__u64 address = PT_REGS_RC(ctx), size;
	struct function_call *c;

	keep_own_stack(ctx);
	c = function_leave(ctx);
	if (!c)
		return 0;
	size = size_of(c);
	if (c->function == AX_HEAP_REALLOC || c->function == AX_HEAP_REALLOCARRAY)
		end_realloc(c->args[0], size, address);
	if (c->function == AX_HEAP_POSIX_MEMALIGN &&
	    ((int)address != 0 ||
	     bpf_probe_read_user(&address, sizeof(address), (void *)c->args[0]) < 0))
		return 0;
	if (address)
		add_block(ctx, address, size);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
