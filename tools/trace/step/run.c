// SPDX-License-Identifier: GPL-2.0-or-later
/* The process that traces: threads that a probe stopped, step by step. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "tools/lib/run_signals.h"
#include "tools/trace/step/change.h"
#include "tools/trace/step/step.h"

#define NS_PER_MS     UINT64_C(1000000)
#define BLOCK	      512 /* of struct stat */
#define UNDO_LOOKS    3
#define UNDO_PAUSE_NS 2000000
#define REFUSED	      1000 /* so often processes may be met that cannot be seized */

/* A record whose thread was not seen to stop yet. */
struct waiting {
	struct waiting *next;
	size_t len;
	struct ax_probe_record record;
};
/* A thread that is stepped. */
struct hit {
	int tid, pid;
	bool began; /* `before` is the first instruction's that is one of the program's */
	uint32_t done, instructions;
	struct step_registers before;
	struct dwarf_at line;
	uint64_t line_ip;
};
struct run {
	struct step_request *q;
	struct step_tracees *tracees;
	struct step_places *places;
	struct waiting *records;
	struct hit *hits;
	size_t n, max;
	uint32_t begun;
	uint64_t end_ns, follow_ns;
	unsigned refused;
	bool gone, full;
};

/* --- records --- */

/* Another thread's was not told to stop, since nobody traces it: it was started so that the kernel
 * told nobody (CLONE_UNTRACED), or before those who start others were seized. */
static bool is_traced(struct run *run, const struct ax_probe_record *r)
{
	if (step_has(run->tracees, (int)r->tid))
		return true;
	if (run->q->args.follow && run->refused < REFUSED &&
	    !step_seize_child(run->tracees, (int)r->pid))
		run->refused++;
	return false;
}

static int on_record(void *arg, const struct ax_probe_record *r, size_t len)
{
	struct run *run = arg;
	struct waiting *w;

	run->q->t.received++;
	if (!is_traced(run, r))
		return 0;
	w = malloc(offsetof(struct waiting, record) + len);
	if (!w)
		return -ENOMEM;
	w->len = len;
	memcpy(&w->record, r, len);
	w->next = run->records;
	run->records = w;
	return 0;
}

static void drop_records(struct run *run)
{
	while (run->records) {
		struct waiting *next = run->records->next;

		free(run->records);
		run->records = next;
	}
}

static void take_records(struct run *run)
{
	while (session_records(run->q->t.session, on_record, run) > 0)
		;
}

/* The last one: of two places at once the thread stops behind the second. */
static struct waiting *take_record(struct run *run, int tid)
{
	struct waiting *ret = NULL;

	for (struct waiting **at = &run->records; *at;) {
		struct waiting *w = *at;

		if ((int)w->record.tid != tid) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		if (ret)
			free(w);
		else
			ret = w;
	}
	return ret;
}

/* --- hits --- */

static struct hit *find_hit(struct run *run, int tid)
{
	for (size_t i = 0; i < run->n; i++)
		if (run->hits[i].tid == tid)
			return &run->hits[i];
	return NULL;
}

static struct hit *add_hit(struct run *run, int pid, int tid)
{
	if (run->n == run->max) {
		size_t more = run->max ? run->max * 2 : 16;
		struct hit *v = reallocarray(run->hits, more, sizeof(*v));

		if (!v)
			return NULL;
		run->hits = v;
		run->max = more;
	}
	run->hits[run->n] = (struct hit){.tid = tid, .pid = pid};
	return &run->hits[run->n++];
}

static void end_hit(struct run *run, struct hit *h)
{
	*h = run->hits[--run->n];
}

static void put_event(struct run *run, const struct hit *h, const char *what, int signal)
{
	step_put_event(run->q, h->pid, h->tid, what, signal);
}

/* Of a process; 0: of all. */
static void end_hits(struct run *run, int pid, const char *what)
{
	for (size_t i = run->n; i-- > 0;)
		if (!pid || run->hits[i].pid == pid) {
			put_event(run, &run->hits[i], what, 0);
			free(take_record(run, run->hits[i].tid));
			end_hit(run, &run->hits[i]);
		}
}

static bool wants_more(const struct run *run)
{
	return !run->q->times || run->begun < run->q->times;
}

/* --- steps --- */

static struct step_stop stop_of(const struct hit *h, const struct step_registers *now)
{
	return (struct step_stop){.number = h->done, .pid = h->pid, .tid = h->tid, .now = now};
}

/* A statement of a line begins, or the same line begins again. */
static bool is_new_line(struct run *run, struct hit *h, uint64_t ip)
{
	struct dwarf_at at;
	bool first = !h->line.source;

	if (step_places_line(run->places, h->pid, ip, &at) < 0 || (!at.begins && !first))
		return false;
	if (!first && at.line == h->line.line && at.source == h->line.source && ip > h->line_ip)
		return false;
	h->line = at;
	h->line_ip = ip;
	return true;
}

/* True: it was the last one. */
static bool note_line(struct run *run, struct hit *h, const struct step_registers *now)
{
	struct step_stop s;

	if (is_new_line(run, h, step_ip(now))) {
		h->done++;
		s = stop_of(h, now);
		step_put(run->q, run->places, &s);
	}
	if (h->instructions < STEP_LINES_INSTRUCTIONS)
		return h->done == run->q->steps;
	put_event(run, h, "so many instructions without further lines", 0);
	return true;
}

static bool note_instruction(struct run *run, struct hit *h, const struct step_registers *now)
{
	struct step_stop s;

	h->done++;
	s = stop_of(h, now);
	s.before = &h->before;
	step_put(run->q, run->places, &s);
	return h->done == run->q->steps;
}

static void let_on(struct run *run, struct hit *h)
{
	step_on(run->tracees, h->tid);
	end_hit(run, h);
}

static void one_more(struct run *run, struct hit *h)
{
	if (step_one(run->tracees, h->tid))
		return;
	put_event(run, h,
		  "not stepped: it ignores SIGTRAP, or has one waiting, which would be lost", 0);
	let_on(run, h);
}

/* The thread waits; a step is what was executed since `before`. */
static void advance(struct run *run, struct hit *h)
{
	struct step_registers now;
	bool last = false;

	if (step_get_registers(h->tid, &now) < 0) {
		let_on(run, h);
		return;
	}
	h->instructions++;
	if (step_places_is_kernels(run->places, h->pid, step_ip(&now)) &&
	    h->instructions < STEP_LINES_INSTRUCTIONS) {
		one_more(run, h);
		return;
	}
	if (run->q->lines)
		last = note_line(run, h, &now);
	else if (h->began)
		last = note_instruction(run, h, &now);
	h->began = true;
	h->before = now;
	if (!last && !run->full) {
		one_more(run, h);
		return;
	}
	let_on(run, h);
}

/* No instruction was executed on the way to it. */
static void enter_handler(struct run *run, struct hit *h)
{
	if (step_get_registers(h->tid, &h->before) == 0)
		h->began = true;
	one_more(run, h);
}

/* The values of what is written are its addresses, which are told with what is written there. */
static void put_record(struct run *run, struct waiting *w)
{
	uint16_t n = w->record.n_values;

	if (run->q->change && run->q->change->n_writes)
		w->record.n_values = 0;
	trace_put_record(&run->q->t, &w->record, w->len);
	w->record.n_values = n;
}

static void begin(struct run *run, const struct step_report *r)
{
	struct waiting *w = take_record(run, r->tid);
	struct hit *h;

	if (!w || !wants_more(run)) {
		free(w);
		step_on(run->tracees, r->tid);
		return;
	}
	run->begun++;
	run->q->t.shown++;
	put_record(run, w);
	if (run->q->change) {
		change_apply(run->q, r->pid, r->tid, &w->record);
		step_on(run->tracees, r->tid);
	}
	free(w);
	if (run->q->change)
		return;
	step_places_look_again(run->places, r->pid);
	h = add_hit(run, r->pid, r->tid);
	if (h)
		advance(run, h);
	else
		step_on(run->tracees, r->tid);
}

static void on_probe(struct run *run, const struct step_report *r)
{
	struct hit *h = find_hit(run, r->tid);

	take_records(run);
	if (!h) {
		begin(run, r);
		return;
	}
	/* it came to the probe again by its own steps */
	free(take_record(run, r->tid));
	one_more(run, h);
}

/* --- processes that come and go --- */

/* Its number may be another one's from now on. */
static void forget(struct run *run, int pid)
{
	step_places_look_again(run->places, pid);
	trace_forget_process(&run->q->t, (uint32_t)pid);
	if (run->q->change) /* its memory is gone, and what was changed there */
		change_forget(run->q->change, pid);
}

static void on_thread_end(struct run *run, const struct step_report *r)
{
	struct hit *h = find_hit(run, r->tid);

	if (h) {
		put_event(run, h, "the thread ended", 0);
		end_hit(run, h);
	}
	free(take_record(run, r->tid));
}

static void on_report(struct run *run, const struct step_report *r)
{
	struct hit *h = find_hit(run, r->tid);

	switch (r->event) {
	case STEP_PROBE:
		on_probe(run, r);
		break;
	case STEP_DONE:
		if (h)
			advance(run, h);
		else
			step_on(run->tracees, r->tid);
		break;
	case STEP_HANDLER:
		if (h)
			enter_handler(run, h);
		else
			step_on(run->tracees, r->tid);
		break;
	case STEP_SIGNAL:
		if (h)
			put_event(run, h, "signal", r->signal);
		break;
	case STEP_FORK:
		if (run->q->change)
			change_fork(run->q->change, r->pid, r->parent);
		step_on(run->tracees, r->tid);
		break;
	case STEP_EXEC:
		end_hits(run, r->pid, "exec: the process is another program");
		free(take_record(run, r->tid));
		forget(run, r->pid);
		break;
	case STEP_EXIT:
		on_thread_end(run, r);
		break;
	case STEP_END:
		end_hits(run, r->pid, "the process ended");
		free(take_record(run, r->tid));
		forget(run, r->pid);
		break;
	case STEP_GONE:
		end_hits(run, 0, "the process ended");
		run->gone = true;
		break;
	case STEP_NOTHING:
		break;
	}
}

/* --- the whole --- */

/* What was read has no memory any more. */
static bool is_full(const struct trace_out *o)
{
	struct stat st;

	return o->error || fstat(o->fd, &st) || st.st_blocks > STEP_OUTPUT_MAX / BLOCK;
}

static bool is_over(struct run *run)
{
	trace_out_flush(&run->q->t.out);
	run->full = is_full(&run->q->t.out);
	return run->gone || run->full || run_signals_came() ||
	       (run->end_ns && time_mono_ns() >= run->end_ns) || (!run->n && !wants_more(run));
}

/* Files that processes come to later; and records of those that are not traced yet. */
static void follow(struct run *run)
{
	uint64_t now = time_mono_ns();
	sigset_t ticks;

	if (!run->q->args.follow || now < run->follow_ns)
		return;
	run->follow_ns = now + STEP_TICK_MS * NS_PER_MS;
	/* which may load programs, too: see begin_ticks() */
	sigemptyset(&ticks);
	sigaddset(&ticks, SIGALRM);
	sigprocmask(SIG_BLOCK, &ticks, NULL);
	session_follow(run->q->t.session);
	sigprocmask(SIG_UNBLOCK, &ticks, NULL);
	take_records(run);
}

static int attach(struct run *run, struct error *e)
{
	struct step_request *q = run->q;
	struct trace *t = &q->t;
	int r = session_open(t->parts, t->n_parts, &t->options, &t->session, e);

	if (r == 0 && step_places_new(q, &run->places) < 0)
		r = error_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = session_load(t->session, e);
	if (r == 0 && q->change)
		r = change_list(q, e);
	if (r == 0)
		r = step_seize(t->whom.v, t->whom.n, q->args.follow, &run->tracees, e);
	if (r == 0)
		r = session_attach(t->session, e);
	if (r < 0)
		return r;
	trace_say_attached(t);
	t->begin_ns = time_mono_ns();
	t->real_offset_ns = (int64_t)(time_real_ns() - t->begin_ns);
	if (t->duration_ms)
		run->end_ns = t->begin_ns + t->duration_ms * NS_PER_MS;
	return 0;
}

/* By threads and not by their number, which a program could pretend by a signal to itself. */
static bool on_end_waits(void *arg)
{
	const struct run *run = arg;

	return run->records != NULL;
}

/* Who comes and goes at the end is to be taken back, too. */
static void on_end_told(void *arg, const struct step_report *r)
{
	struct run *run = arg;
	struct change *c = run->q->change;

	switch (r->event) {
	case STEP_FORK:
		if (c)
			change_fork(c, r->pid, r->parent);
		break;
	case STEP_EXEC:
	case STEP_END:
		if (c)
			change_forget(c, r->pid);
		free(take_record(run, r->tid));
		break;
	case STEP_PROBE:
	case STEP_EXIT:
		free(take_record(run, r->tid));
		break;
	default:
		break;
	}
}

static bool end_steps(struct run *run)
{
	const struct step_end end = {.waits = on_end_waits, .told = on_end_told, .arg = run};

	return step_let_go(run->tracees, &end);
}

/* No probe tells a thread to stop any more, and nobody is in the midst of a step. */
static void let_go(struct run *run)
{
	struct trace *t = &run->q->t;

	if (t->session) {
		session_detach(t->session);
		take_records(run);
	}
	if (!run->gone && !end_steps(run))
		fprintf(stderr,
			"ax %s: a thread could not be brought to the end of its step in time\n",
			t->c->name);
	drop_records(run);
}

/* A child that is made meanwhile has what its parent had a moment before, and is told a moment
 * after: it is looked for again. */
static void take_back(struct run *run)
{
	const struct timespec pause = {.tv_nsec = UNDO_PAUSE_NS};
	struct change *c = run->q->change;
	int looks = run->q->args.follow ? UNDO_LOOKS : 0;

	change_undo(c);
	for (int i = 0; i < looks && !run->gone; i++) {
		nanosleep(&pause, NULL);
		end_steps(run);
		change_undo(c);
	}
	if (c->n_back + c->n_others)
		fprintf(stderr,
			"ax %s: %zu of %zu places have again what they had; %zu are others by "
			"now\n",
			run->q->t.c->name, c->n_back, c->n_back + c->n_others, c->n_others);
}

static void end_change(struct run *run)
{
	if (run->tracees && !run->gone)
		take_back(run);
	change_unlist(run->q->change);
	change_free(run->q->change);
}

static void say_unknown(const struct run *run)
{
	for (size_t i = 0; i < run->q->n_values; i++) {
		const char *why = step_places_unknown(run->places, i);

		if (why)
			fprintf(stderr, "ax %s: nowhere known: %s\n", run->q->t.c->name, why);
	}
}

static void free_run(struct run *run)
{
	drop_records(run);
	if (run->places)
		step_places_free(run->places);
	if (run->tracees)
		step_free(run->tracees);
	free(run->hits);
}

static void say_end(const struct run *run)
{
	struct session_totals totals;

	say_unknown(run);
	if (run->q->ctf) {
		session_totals(run->q->t.session, &totals);
		*run->q->dropped = totals.dropped;
		run->q->t.json = false; /* the account is for who reads the terminal */
	}
	trace_put_summary(&run->q->t, false, 0);
	if (run->full)
		fprintf(stderr, "ax %s: ended, since there is no room for more output\n",
			run->q->t.c->name);
	trace_out_flush(&run->q->t.out);
}

/* Not before programs are loaded: the kernel gives up looking at one when a signal comes, again and
 * again where it takes longer than that. */
static void begin_ticks(void)
{
	const struct itimerval tick = {.it_interval.tv_usec = STEP_TICK_MS * 1000,
				       .it_value.tv_usec = STEP_TICK_MS * 1000};

	setitimer(ITIMER_REAL, &tick, NULL);
}

int step_run(struct step_request *q, int ready)
{
	struct run run = {.q = q};
	struct step_report report;
	struct error e = {0};
	int r = attach(&run, &e);

	if (r == 0) {
		begin_ticks();
		step_say_ready(ready);
	}
	while (r == 0 && !is_over(&run)) {
		report = step_wait(run.tracees);
		on_report(&run, &report);
		follow(&run);
	}
	if (run.tracees)
		let_go(&run);
	if (q->change)
		end_change(&run);
	if (r == 0)
		say_end(&run);
	free_run(&run);
	return r < 0 ? cmd_failed(q->t.c, &e) : CMD_OK;
}
