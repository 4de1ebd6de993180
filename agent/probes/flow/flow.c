// SPDX-License-Identifier: GPL-2.0-or-later
/* The flow of calls: a stack of calls for each thread, held against the stack pointer. */
#include "probes/flow/priv.h"

/* MAX_URETPROBE_DEPTH of the kernel (kernel/events/uprobes.c): returns of deeper ones do not
 * happen. */
#define TRAMPOLINES_MAX 64
/* So many threads keep the memory of their stacks while nothing is open. */
#define THREADS_KEPT 1024
/* Older ones become one with the next. */
#define GAPS_MAX 32

struct call {
	uint64_t sp, back, time_ns, child_ns;
	uint32_t function;
	uint32_t node;
	bool trampoline; /* its return will be seen, if nothing is lost */
};

struct thread {
	uint64_t id;
	uint32_t pid;
	uint32_t trampolines; /* calls with one */
	uint64_t image;
	uint64_t last_ns;
	struct call *v; /* the innermost last */
	uint32_t n, size;
	uint32_t under; /* calls of the function that everything is to be under */
};

struct flow {
	struct flow_options o;
	flow_step_fn step;
	void *arg;
	struct thread *threads;
	size_t n_threads, size_threads;
	struct flow_index index;
	struct flow_paths paths;
	struct flow_totals totals;
	struct gap {
		uint64_t from_ns, to_ns;
	} gaps[GAPS_MAX]; /* the last ones */
	size_t n_gaps;
};

struct flow *flow_new(const struct flow_options *o, flow_step_fn f, void *arg)
{
	struct flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return NULL;
	flow->o = *o;
	flow->step = f;
	flow->arg = arg;
	if (flow_paths_begin(&flow->paths) == 0)
		return flow;
	flow_free(flow);
	return NULL;
}

void flow_free(struct flow *f)
{
	for (size_t i = 0; i < f->n_threads; i++)
		free(f->threads[i].v);
	free(f->threads);
	free(f->index.v);
	flow_paths_free(&f->paths);
	free(f);
}

const struct flow_tree *flow_tree(const struct flow *f)
{
	return &f->paths.tree;
}

const struct flow_totals *flow_totals(const struct flow *f)
{
	return &f->totals;
}

void flow_gap(struct flow *f, uint64_t from_ns, uint64_t to_ns)
{
	struct gap *last = f->n_gaps ? &f->gaps[f->n_gaps - 1] : NULL;

	if (last && from_ns <= last->to_ns) {
		last->to_ns = to_ns;
		return;
	}
	if (f->n_gaps == GAPS_MAX) {
		f->gaps[1].from_ns = f->gaps[0].from_ns;
		memmove(f->gaps, f->gaps + 1, --f->n_gaps * sizeof(*f->gaps));
	}
	f->gaps[f->n_gaps++] = (struct gap){from_ns, to_ns};
}

static bool has_gap(const struct flow *f, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < f->n_gaps; i++)
		if (f->gaps[i].from_ns < to_ns && f->gaps[i].to_ns > from_ns)
			return true;
	return false;
}

static struct thread *thread_of(struct flow *f, const struct flow_event *ev)
{
	uint32_t i = flow_index_find(&f->index, ev->thread, ev->pid);

	if (i != FLOW_NONE)
		return &f->threads[i];
	if (f->n_threads == f->size_threads) {
		size_t size = f->size_threads ? f->size_threads * 2 : 16;
		struct thread *v = realloc(f->threads, size * sizeof(*v));

		if (!v)
			return NULL;
		f->threads = v;
		f->size_threads = size;
	}
	if (flow_index_add(&f->index, ev->thread, ev->pid, (uint32_t)f->n_threads) < 0)
		return NULL;
	f->threads[f->n_threads] = (struct thread){.id = ev->thread, .pid = ev->pid};
	return &f->threads[f->n_threads++];
}

static enum flow_returns returns_of(const struct flow *f, uint32_t function)
{
	return f->o.returns ? (enum flow_returns)f->o.returns[function] : FLOW_BY_TRAMPOLINE;
}

static uint32_t caller_of(const struct thread *t)
{
	return t->n ? t->v[t->n - 1].function : FLOW_NONE;
}

static uint64_t since(uint64_t begin, uint64_t end)
{
	return end > begin ? end - begin : 0;
}

/* --- the end of calls --- */

static void count_closed(struct flow *f, enum flow_what what)
{
	switch (what) {
	case FLOW_RETURN:
		f->totals.returns++;
		break;
	case FLOW_LEFT:
		f->totals.left++;
		break;
	case FLOW_LOST:
		f->totals.lost++;
		break;
	case FLOW_DEEP:
		f->totals.deep++;
		break;
	default:
		break;
	}
}

/* Ends the innermost call. */
static int close_call(struct flow *f, struct thread *t, enum flow_what what, uint64_t now,
		      const struct flow_event *ev)
{
	struct call c = t->v[--t->n];
	struct flow_step s = {.what = what,
			      .function = c.function,
			      .caller = caller_of(t),
			      .pid = t->pid,
			      .thread = t->id,
			      .depth = t->n,
			      .time_ns = now,
			      .event = ev};

	s.duration_ns = since(c.time_ns, now);
	s.self_ns = since(c.child_ns, s.duration_ns);
	if (t->n)
		t->v[t->n - 1].child_ns += s.duration_ns;
	t->trampolines -= c.trampoline;
	t->under -= c.function == f->o.under;
	if (c.node) {
		/* the node is the same when calls are too deep: then it is in the outer one's */
		if (!t->n || t->v[t->n - 1].node != c.node)
			f->paths.tree.v[c.node].total_ns += s.duration_ns;
		f->paths.tree.v[c.node].self_ns += s.self_ns;
	}
	if (!t->n && f->n_threads > THREADS_KEPT) {
		free(t->v);
		t->v = NULL;
		t->size = 0;
	}
	count_closed(f, what);
	return f->step ? f->step(f->arg, &s) : 0;
}

/* Why the innermost call is over, although its return was not seen. */
static enum flow_what why_over(const struct flow *f, const struct thread *t, uint64_t now)
{
	const struct call *c = &t->v[t->n - 1];

	if (returns_of(f, c->function) == FLOW_NEVER)
		return FLOW_UNPROBED;
	if (returns_of(f, c->function) == FLOW_BY_TRAMPOLINE && !c->trampoline)
		return FLOW_DEEP;
	return has_gap(f, c->time_ns, now) ? FLOW_LOST : FLOW_LEFT;
}

static int close_over(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	return close_call(f, t, why_over(f, t, ev->time_ns), ev->time_ns, ev);
}

static int close_below(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	int r = 0;

	while (r >= 0 && t->n && t->v[t->n - 1].sp < ev->sp)
		r = close_over(f, t, ev);
	return r;
}

/* --- entries --- */

/*
 * Is the entry at the innermost call's stack pointer a jump from it (a tail call), not a new call
 * after it? By a trampoline that is in the return address's place; without one by the return
 * address, which has to be the same. It is also the same if the same place calls again, but then
 * mostly the same function.
 */
static bool is_jump(const struct call *c, const struct flow_event *ev)
{
	/* whoever put it there: another tracer's is as good */
	if (flow_is_trampoline(ev->back))
		return true;
	if (c->trampoline)
		return !ev->back && ev->function != c->function;
	return ev->back == c->back && ev->function != c->function;
}

static int push_call(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	struct call *c;
	uint32_t node = 0;
	int r = 0;

	if (t->n == t->size) {
		uint32_t size = t->size ? t->size * 2 : 8;
		struct call *v = realloc(t->v, size * sizeof(*v));

		if (!v)
			return -ENOMEM;
		t->v = v;
		t->size = size;
	}
	if (f->o.tree)
		r = flow_paths_enter(&f->paths, t->n ? t->v[t->n - 1].node : 0, ev->function,
				     &node);
	if (r < 0)
		return r;
	f->paths.tree.v[node].calls++;
	c = &t->v[t->n++];
	*c = (struct call){.sp = ev->sp,
			   .back = ev->back,
			   .time_ns = ev->time_ns,
			   .function = ev->function,
			   .node = node};
	c->trampoline = returns_of(f, ev->function) == FLOW_BY_TRAMPOLINE &&
			t->trampolines < TRAMPOLINES_MAX;
	t->trampolines += c->trampoline;
	t->under += ev->function == f->o.under;
	f->totals.entries++;
	return 0;
}

static bool is_outside(const struct flow *f, const struct thread *t, const struct flow_event *ev)
{
	return f->o.under != FLOW_NONE && !t->under &&
	       (ev->is_return || ev->function != f->o.under);
}

static bool is_restart(const struct flow *f, const struct thread *t, const struct flow_event *ev)
{
	const struct call *c = t->n ? &t->v[t->n - 1] : NULL;

	return f->o.restarts && c && c->sp == ev->sp && c->function == ev->function &&
	       c->back == ev->back;
}

static int add_entry(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	struct flow_step s = {.what = FLOW_ENTRY,
			      .function = ev->function,
			      .pid = ev->pid,
			      .thread = ev->thread,
			      .time_ns = ev->time_ns,
			      .event = ev};
	int r = 0;

	if (is_restart(f, t, ev)) {
		f->totals.restarts++;
		return 0;
	}
	while (r >= 0 && t->n && t->v[t->n - 1].sp == ev->sp && !s.jumped) {
		s.jumped = is_jump(&t->v[t->n - 1], ev);
		if (!s.jumped)
			r = close_over(f, t, ev);
	}
	if (r < 0)
		return r;
	if (is_outside(f, t, ev)) {
		f->totals.outside++;
		return 0;
	}
	s.caller = caller_of(t);
	s.depth = t->n;
	r = push_call(f, t, ev);
	return r < 0 || !f->step ? r : f->step(f->arg, &s);
}

/* --- returns --- */

/* How many calls to close until the one that the event ends is closed too; 0: it is none. */
static uint32_t find_call(const struct thread *t, const struct flow_event *ev)
{
	for (uint32_t n = t->n; n && t->v[n - 1].sp == ev->sp; n--)
		if (t->v[n - 1].function == ev->function)
			return t->n - n + 1;
	return 0;
}

static int add_orphan(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	struct flow_step s = {.what = FLOW_ORPHAN,
			      .function = ev->function,
			      .caller = caller_of(t),
			      .pid = ev->pid,
			      .thread = ev->thread,
			      .depth = t->n,
			      .time_ns = ev->time_ns,
			      .event = ev};

	if (is_outside(f, t, ev)) {
		f->totals.outside++;
		return 0;
	}
	f->totals.orphans++;
	return f->step ? f->step(f->arg, &s) : 0;
}

/* A function that jumped to the one which has returned has returned with it. If a trampoline is in
 * its return address's place, an event is still to come. */
static int close_jumped(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	int r = 0;

	while (r >= 0 && t->n && t->v[t->n - 1].sp == ev->sp && !t->v[t->n - 1].trampoline)
		r = close_call(f, t, FLOW_JUMPED, ev->time_ns, ev);
	return r;
}

static int add_return(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	uint32_t n = find_call(t, ev);
	int r = 0;

	if (!n)
		return add_orphan(f, t, ev);
	while (r >= 0 && n-- > 1)
		r = close_over(f, t, ev);
	if (r >= 0)
		r = close_call(f, t, FLOW_RETURN, ev->time_ns, ev);
	return r < 0 ? r : close_jumped(f, t, ev);
}

/* --- the whole --- */

/* The thread is now another program: nothing of the old one returns. */
static int close_all(struct flow *f, struct thread *t, const struct flow_event *ev)
{
	int r = 0;

	while (r >= 0 && t->n)
		r = close_call(f, t, FLOW_LEFT, ev->time_ns, ev);
	return r;
}

int flow_add(struct flow *f, const struct flow_event *ev)
{
	struct thread *t;
	int r;

	if (ev->function >= f->o.n_functions)
		return -EINVAL;
	t = thread_of(f, ev);
	if (!t)
		return -ENOMEM;
	if (t->image && ev->image && t->image != ev->image)
		r = close_all(f, t, ev);
	else
		r = close_below(f, t, ev);
	if (ev->image)
		t->image = ev->image;
	t->last_ns = ev->time_ns;
	if (r < 0)
		return r;
	return ev->is_return ? add_return(f, t, ev) : add_entry(f, t, ev);
}

int flow_end(struct flow *f)
{
	int r = 0;

	for (size_t i = 0; i < f->n_threads && r >= 0; i++)
		while (r >= 0 && f->threads[i].n)
			r = close_call(f, &f->threads[i], FLOW_OPEN, f->threads[i].last_ns, NULL);
	return r < 0 ? r : 0;
}
