// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace locks: for which mutexes threads wait, how long, and where they were called. */
#include "probes/process/process.h"
#include "probes/tally/locks.h"
#include "tools/trace/ready/stacks.h"
#include "tools/trace/ready/tally.h"
#include "tools/trace/ready/scripts.h"

#define FRAMES	  32
#define LINES_MAX 16384
#define SLOTS	  (4 * LINES_MAX) /* a power of two */

/* A lock, and the calls that wait for it. */
struct line {
	uint32_t pid;
	uint32_t n; /* addresses; 0: all that there was no room for */
	uint64_t lock;
	uint64_t addresses[FRAMES];
	struct ax_tally_times times;
	char comm[AX_EVENT_COMM], app[AX_EVENT_APP];
};

struct request {
	struct tally_view view;
	struct tally_locks_options x;
	uint32_t least_ms;
	struct tally_lines lines;
	uint32_t *slots; /* 1 + the index of a line; 0: none */
	struct stacks stacks;
};

/* --- lines --- */

static uint64_t hash_of(const struct line *l)
{
	uint64_t h = (uint64_t)l->pid * 0x9e3779b97f4a7c15u ^ l->lock;

	for (uint32_t i = 0; i < l->n; i++)
		h = (h ^ l->addresses[i]) * 0x100000001b3u + (h >> 29);
	return h ^ h >> 32;
}

static bool is_same(const struct line *a, const struct line *b)
{
	return a->pid == b->pid && a->lock == b->lock && a->n == b->n &&
	       memcmp(a->addresses, b->addresses, a->n * sizeof(*a->addresses)) == 0;
}

/* The line of what is wanted, which is new if it has to be; NULL: out of memory. */
static struct line *line_of(struct request *q, const struct line *wanted)
{
	static const struct line others;
	size_t i = hash_of(wanted) & (SLOTS - 1);
	struct line *l;

	while (q->slots[i]) {
		l = (struct line *)q->lines.v + q->slots[i] - 1;
		if (is_same(l, wanted))
			return l;
		i = (i + 1) & (SLOTS - 1);
	}
	if (q->lines.n >= LINES_MAX && wanted->n)
		return line_of(q, &others);
	l = tally_add(&q->lines);
	if (!l)
		return NULL;
	*l = *wanted;
	q->slots[i] = (uint32_t)q->lines.n;
	return l;
}

static void add_time(struct ax_tally_times *t, uint64_t ns)
{
	size_t i = ns ? 64 - (size_t)__builtin_clzll(ns) : 0;

	t->count++;
	t->sum += ns;
	t->most = ns > t->most ? ns : t->most;
	t->buckets[i < AX_TALLY_BUCKETS ? i : AX_TALLY_BUCKETS - 1]++;
}

/* --- records --- */

/* Of callers it is told where they call: here all are where calls return to. */
static uint32_t find_callers(struct request *q, const struct ax_lock_event *e,
			     uint64_t addresses[FRAMES])
{
	bool cut;
	int n = 0;

	stacks_see(&q->stacks, (int)e->head.pid);
	if (q->stacks.names)
		n = processes_callers(q->stacks.names, (int)e->head.pid, &e->stack, addresses,
				      FRAMES, &cut);
	for (int i = 1; i < n; i++)
		addresses[i]++;
	if (n > 0)
		return (uint32_t)n;
	addresses[0] = e->stack.pc;
	return 1;
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_lock_event *e = record;
	struct request *q = r->own;
	struct line wanted, *l;

	if (len < sizeof(e->head) || e->head.type != AX_WATCH_LOCK)
		return READY_HIDDEN;
	if (!e->head.time_ns) { /* one that will wait */
		stacks_see(&q->stacks, (int)e->head.pid);
		return READY_PART;
	}
	if (len < sizeof(*e) || e->stack.len > len - sizeof(*e))
		return READY_HIDDEN;
	wanted = (struct line){.pid = e->head.pid, .lock = e->lock};
	wanted.n = find_callers(q, e, wanted.addresses);
	memcpy(wanted.comm, e->head.comm, sizeof(wanted.comm));
	memcpy(wanted.app, e->head.app, sizeof(wanted.app));
	l = line_of(q, &wanted);
	if (!l)
		return -ENOMEM;
	add_time(&l->times, e->waited_ns);
	return READY_SHOWN;
}

/* --- the table --- */

static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;

	(void)arg;
	if (x->times.sum != y->times.sum)
		return x->times.sum > y->times.sum ? -1 : 1;
	return memcmp(x, y, offsetof(struct line, times));
}

static void put_text(struct ready *r, const void *line)
{
	struct request *q = r->own;
	const struct line *l = line;
	char buf[AX_EVENT_APP], sum[TRACE_DURATION_MAX], most[TRACE_DURATION_MAX];
	const char *app = ready_app_text(l->app, buf);

	trace_out_printf(&r->out, "%s in %llu waits (at most %s) ",
			 trace_duration_text(l->times.sum, sum), (unsigned long long)l->times.count,
			 trace_duration_text(l->times.most, most));
	if (!l->n) {
		trace_out_text(&r->out, "in other places, for which there was no room\n");
		return;
	}
	trace_out_printf(&r->out, "for 0x%llx of %u ", (unsigned long long)l->lock, l->pid);
	trace_out_safe(&r->out, l->comm, strnlen(l->comm, sizeof(l->comm)));
	if (app) {
		trace_out_text(&r->out, ", app ");
		trace_out_safe(&r->out, app, strlen(app));
	}
	trace_out_char(&r->out, '\n');
	stacks_put(r, &q->stacks, (int)l->pid, l->addresses, l->n);
	if (q->view.hist)
		tally_put_times(r, &l->times);
}

static void put_json(struct ready *r, const void *line)
{
	struct request *q = r->own;
	const struct line *l = line;
	char buf[AX_EVENT_APP];
	const char *app = ready_app_text(l->app, buf);

	trace_out_printf(&r->out, "{\"pid\":%u", l->pid);
	ready_json_string(r, "comm", l->comm, strnlen(l->comm, sizeof(l->comm)));
	if (app)
		ready_json_string(r, "app", app, strlen(app));
	trace_out_printf(&r->out, ",\"lock\":\"0x%llx\"", (unsigned long long)l->lock);
	ready_json_number(r, "waits", (int64_t)l->times.count);
	tally_put_json_times(r, &l->times);
	trace_out_text(&r->out, ",\"stack\":");
	stacks_put(r, &q->stacks, (int)l->pid, l->addresses, l->n);
	trace_out_text(&r->out, "}\n");
}

static int put_counts(struct ready *r, struct error *e)
{
	static const struct tally_table table = {
		.what = "places",
		.put_text = put_text,
		.put_json = put_json,
	};
	struct request *q = r->own;

	(void)e;
	tally_sort(&q->lines, compare_lines, NULL);
	tally_put_table(r, &q->view, &q->lines, &table);
	return 0;
}

/* --- the command --- */

struct args {
	struct ready r;
	struct request q;
};

static void look(struct ready *r)
{
	stacks_look(&((struct request *)r->own)->stacks);
}

static int at_end(struct ready *r, struct error *e)
{
	(void)e;
	look(r);
	return 0;
}

static int check(struct ready *r, const char *word, struct error *e)
{
	struct request *q = r->own;

	(void)word;
	q->slots = calloc(SLOTS, sizeof(*q->slots));
	return q->slots ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;

	tally_begin(r, &q->view);
	stacks_begin(&q->stacks);
	q->x.least_ns = q->least_ms * UINT64_C(1000000);
	return tally_locks_load(&r->options, &q->x, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	script_locks(q->least_ms * UINT64_C(1000000), q->x.all, q->view.hist, f);
	return 0;
}

static int run_locks(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .check = check,
		      .write_script = write_script,
		      .load = load,
		      .put = put,
		      .at_end = at_end,
		      .look = look,
		      .put_counts = put_counts,
		      .own = &a.q},
		.q = {.view.top = TALLY_TOP_UNSET, .lines.size = sizeof(struct line)},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	stacks_free(&a.q.stacks);
	free(a.q.lines.v);
	free(a.q.slots);
	return status;
}

static const struct opt options[] = {
	{"all", 'a', OPT_FLAG, NULL,
	 "also other waits by futex(): condition variables, semaphores, threads that are joined",
	 offsetof(struct args, q.x.all), NULL},
	{"least", 0, OPT_DURATION, "TIME", "shorter waits do not count",
	 offsetof(struct args, q.least_ms), NULL},
	{"hist", 0, OPT_FLAG, NULL, "show how the times of each are distributed",
	 offsetof(struct args, q.view.hist), NULL},
};

const struct command cmd_trace_locks = {
	.name = "trace locks",
	.about = "show which mutexes threads wait for, how long and where",
	.run = run_locks,
	.syntax =
		{
			.usage = "ax trace locks [-a] [--least TIME] [--hist] [--top N] [-p PID] "
				 "[-c "
				 "CMD] [-d TIME]",
			.about = "Adds up how long threads wait for mutexes that others have, by "
				 "mutex "
				 "and call stack, and prints it at the end. A mutex that is free "
				 "costs "
				 "nothing.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{tally_opts, TALLY_OPTS_TOP, offsetof(struct args, q.view)},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPTS - TRACE_OPT_APP,
				 offsetof(struct args, r.args)}},
		},
};
