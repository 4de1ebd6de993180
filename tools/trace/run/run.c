/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace from attaching to the last line, which says what became of every event. */
#include <signal.h>
#include <time.h>

#include "tools/trace/run/run.h"
#include "tools/lib/run_signals.h"
#include "tools/lib/text.h"

#define NS_PER_MS    UINT64_C(1000000)
#define LOOK_RECORDS 1024 /* so many records at most between two looks at the time */

struct run {
	struct trace *t;
	struct trace_child child;
	struct trace_ends ends;
	uint64_t start_ns, end_ns, interval_ns, flush_ns; /* monotonic; 0: none */
	uint32_t records;				  /* since the last look at the time */
	uint32_t tables;
	bool done;
	struct session_table before; /* the last interval's */
	sigset_t open_mask;	     /* signals while waiting */
};

static bool is_records(const struct trace *t)
{
	return t->parts[0].action == TRACE_WATCH;
}

/* --- records --- */

static bool is_over(struct run *run)
{
	if (run->end_ns && time_mono_ns() >= run->end_ns)
		run->done = true;
	return run->done || run_signals_came();
}

/* Probes are attached and detached one kind after the other: to who puts records together, entries
 * without returns, or the reverse, would be more than they are. */
static bool is_of_half(const struct trace *t, const struct ax_probe_record *r)
{
	return t->on_record && (r->time_ns < t->begin_ns || (t->end_ns && r->time_ns > t->end_ns));
}

static int put_record(struct run *run, const struct ax_probe_record *r, size_t len)
{
	struct trace *t = run->t;

	t->received++;
	if (is_of_half(t, r))
		return 0;
	if (t->count && t->shown >= t->count)
		return 0;
	t->shown++;
	if (t->shown == t->count)
		run->done = true;
	return t->on_record ? t->on_record(t, r, len) : trace_put_record(t, r, len);
}

static int on_record(void *arg, const struct ax_probe_record *r, size_t len)
{
	struct run *run = arg;
	int err = put_record(run, r, len);

	if (err < 0)
		return err;
	if (++run->records % LOOK_RECORDS == 0 && is_over(run))
		return -ECANCELED;
	return run->done ? -ECANCELED : 0;
}

/* After the end everything is taken that is there still. */
static int on_last_record(void *arg, const struct ax_probe_record *r, size_t len)
{
	return put_record(arg, r, len);
}

/* --- tables --- */

static int read_table(struct trace *t, struct session_table *ret, struct error *e)
{
	int r = session_table(t->session, ret);

	if (r < 0)
		return error_set(e, r, "the table cannot be read: %s", strerror(-r));
	t->received = 0;
	for (size_t i = 0; i < ret->n; i++)
		t->received += ret->v[i].cell.count;
	return 0;
}

/* Leaves what was added since the last time. */
static int take_interval(struct run *run, struct session_table *now, struct error *e)
{
	struct session_table all = *now;

	now->v = malloc((all.n ? all.n : 1) * sizeof(*now->v));
	if (!now->v) {
		session_table_free(&all);
		now->n = 0;
		return error_set(e, -ENOMEM, "out of memory");
	}
	if (all.n)
		memcpy(now->v, all.v, all.n * sizeof(*now->v));
	session_table_since(now, &run->before);
	session_table_free(&run->before);
	run->before = all;
	return 0;
}

static int put_interval(struct run *run, bool last, struct error *e)
{
	struct trace *t = run->t;
	struct session_table now = {0};
	bool enough = last && t->count && run->tables >= t->count;
	int r = read_table(t, &now, e);

	if (r == 0 && t->interval_ms)
		r = take_interval(run, &now, e);
	if (r < 0)
		return r;
	/* after N tables there are no more, but what is in them is counted */
	if (!enough && (!last || !t->interval_ms || now.n))
		trace_put_table(t, &now, t->interval_ms ? time_real_ns() : 0);
	session_table_free(&now);
	return 0;
}

/* --- the loop --- */

static uint64_t wait_ns(const struct run *run, uint64_t now)
{
	uint64_t until = now + TRACE_TABLE_MS * NS_PER_MS;

	if (is_records(run->t))
		return SESSION_POLL_MS * NS_PER_MS;
	if (trace_table_has_names(run->t))
		until = now + TRACE_NOTE_MS * NS_PER_MS;
	if (run->end_ns && run->end_ns < until)
		until = run->end_ns;
	if (run->interval_ns && run->interval_ns < until)
		until = run->interval_ns;
	return until > now ? until - now : 0;
}

/* Nothing wakes us up for records, so this is also how long they lie in the ring. */
static void wait_a_little(struct run *run)
{
	if (trace_ends_wait(&run->ends, session_follow_fd(run->t->session),
			    wait_ns(run, time_mono_ns()), &run->open_mask))
		run->done = true;
}

static uint64_t dropped(const struct trace *t)
{
	struct session_totals totals;

	session_totals(t->session, &totals);
	return totals.dropped;
}

static void flush(struct run *run)
{
	struct trace *t = run->t;
	uint64_t now;

	if (trace_ctf_is_due(t))
		trace_ctf_flush(t, dropped(t), false);
	if (!t->out.n)
		return;
	if (t->path) {
		now = time_mono_ns();
		if (now < run->flush_ns)
			return;
		run->flush_ns = now + TRACE_FLUSH_MS * NS_PER_MS;
	}
	trace_out_flush(&t->out);
}

static int step(struct run *run, struct error *e)
{
	struct trace *t = run->t;
	int r = 0;

	if (is_records(t)) {
		r = session_records(t->session, on_record, run);
		if (r < 0 && r != -ECANCELED && !t->out.error)
			return error_set(e, r, "records cannot be read: %s", strerror(-r));
	}
	session_follow(t->session);
	if (!is_records(t) && trace_table_has_names(t))
		trace_note_table(t);
	if (run->interval_ns && time_mono_ns() >= run->interval_ns) {
		r = put_interval(run, false, e);
		if (r < 0)
			return r;
		run->interval_ns += t->interval_ms * NS_PER_MS;
		if (++run->tables == t->count)
			run->done = true;
	}
	flush(run);
	if (t->out.error)
		return error_set(e, -t->out.error, "the output could not be written: %s",
				 strerror(t->out.error));
	if (!is_over(run))
		wait_a_little(run);
	return 0;
}

/* What came between the last look and the end. */
static int finish(struct run *run, struct error *e)
{
	struct trace *t = run->t;
	int r;

	/* another Ctrl-C ends what takes too long */
	sigprocmask(SIG_SETMASK, &run->open_mask, NULL);
	t->end_ns = time_mono_ns();
	session_detach(t->session);
	if (!is_records(t))
		return put_interval(run, true, e);
	do
		r = session_records(t->session, on_last_record, run);
	while (r > 0);
	if (r < 0 && !t->out.error)
		return error_set(e, r, "records cannot be read: %s", strerror(-r));
	if (t->ctf)
		trace_ctf_flush(t, dropped(t), true);
	return t->on_end ? t->on_end(t, e) : 0;
}

/* --- the summary --- */

static void put_json_summary(struct trace *t, const struct session_totals *n, bool command,
			     int status)
{
	struct trace_out *o = &t->out;

	trace_out_printf(o, "{\"emitted\":%llu,\"received\":%llu,\"dropped\":%llu",
			 (unsigned long long)n->emitted, (unsigned long long)t->received,
			 (unsigned long long)n->dropped);
	if (is_records(t) && t->shown != t->received)
		trace_out_printf(o, ",\"shown\":%llu", (unsigned long long)t->shown);
	if (n->unmatched)
		trace_out_printf(o, ",\"unmatched\":%llu", (unsigned long long)n->unmatched);
	if (n->no_call)
		trace_out_printf(o, ",\"no_room\":%llu", (unsigned long long)n->no_call);
	if (n->too_deep)
		trace_out_printf(o, ",\"too_deep\":%llu", (unsigned long long)n->too_deep);
	if (n->missed)
		trace_out_printf(o, ",\"missed\":%llu", (unsigned long long)n->missed);
	if (n->unfollowed)
		trace_out_printf(o, ",\"unfollowed\":%llu", (unsigned long long)n->unfollowed);
	if (n->no_variable)
		trace_out_printf(o, ",\"no_variable\":%llu", (unsigned long long)n->no_variable);
	if (command)
		trace_out_printf(o, ",\"status\":%d", status);
	trace_out_text(o, "}\n");
}

/* A time is between two probes, not only that of a function. */
static bool has_beginnings(const struct trace *t)
{
	bool between = t->parts[0].between;

	for (size_t i = 0; i < t->n_script; i++)
		between |= t->script[i].between;
	return between;
}

static void put_text_summary(struct trace *t, const struct session_totals *n, bool command,
			     int status)
{
	char a[TRACE_THOUSANDS_MAX], b[TRACE_THOUSANDS_MAX], c[TRACE_THOUSANDS_MAX];

	trace_out_flush(&t->out);
	fprintf(stderr, "%s event%s, %s received, %s dropped", trace_thousands(n->emitted, a),
		n->emitted == 1 ? "" : "s", trace_thousands(t->received, b),
		trace_thousands(n->dropped, c));
	if (is_records(t) && t->shown != t->received)
		fprintf(stderr, ", %s shown", trace_thousands(t->shown, a));
	if (n->unmatched && has_beginnings(t))
		fprintf(stderr, "; %s time%s the end came without its beginning",
			trace_thousands(n->unmatched, a), n->unmatched == 1 ? "" : "s");
	else if (n->unmatched)
		fprintf(stderr, "; %s return%s without %s entry seen",
			trace_thousands(n->unmatched, a), n->unmatched == 1 ? "" : "s",
			n->unmatched == 1 ? "its" : "their");
	if (n->no_call)
		fprintf(stderr, "; %s entr%s of which there was no room to keep the time or values",
			trace_thousands(n->no_call, a), n->no_call == 1 ? "y" : "ies");
	if (n->too_deep)
		fprintf(stderr, "; %s return%s not seen, of calls more than 64 deep",
			trace_thousands(n->too_deep, a), n->too_deep == 1 ? "" : "s");
	if (n->missed)
		fprintf(stderr, "; %s missed while their processor saw another one",
			trace_thousands(n->missed, a));
	if (n->unfollowed)
		fprintf(stderr, "; %s process%s or files could not be followed",
			trace_thousands(n->unfollowed, a), n->unfollowed == 1 ? "" : "es");
	if (n->no_variable)
		fprintf(stderr, "; %s variable%s of threads not set, since there was no room",
			trace_thousands(n->no_variable, a), n->no_variable == 1 ? "" : "s");
	putc('\n', stderr);
	if (command && status) {
		fprintf(stderr, "ax %s: the command ", t->c->name);
		if (status > 128)
			fprintf(stderr, "was ended by signal %d\n", status - 128);
		else
			fprintf(stderr, "ended with status %d\n", status);
	}
}

void trace_put_summary(struct trace *t, bool command, int status)
{
	struct session_totals n;
	char a[TRACE_THOUSANDS_MAX];

	session_totals(t->session, &n);
	n.emitted -= t->controls;
	if (t->json)
		put_json_summary(t, &n, command, status);
	else
		put_text_summary(t, &n, command, status);
	if (n.emitted != t->received + n.dropped)
		fprintf(stderr, "ax %s: the sum is wrong by %s%s: this is a mistake of ax\n",
			t->c->name, n.emitted > t->received + n.dropped ? "" : "-",
			trace_thousands(n.emitted > t->received + n.dropped
						? n.emitted - t->received - n.dropped
						: t->received + n.dropped - n.emitted,
					a));
}

/* --- the whole --- */

#define SAID_MAX 4 /* of what is left out */

static void say_missing(const struct trace *t, const struct session_probe *p, const char *value,
			const char *why)
{
	fprintf(stderr, "ax %s: ", t->c->name);
	text_put(session_name(t->session, p->name), stderr);
	fputs(value ? ": " : " is left out: ", stderr);
	if (value) {
		text_put(value, stderr);
		fputs(" is not shown: ", stderr);
	}
	text_put(why, stderr);
	putc('\n', stderr);
}

/* Of several places, those that have not what was asked for. That a value is not there is to be
 * expected at lines, and each record says so. */
static void say_left_out(const struct trace *t)
{
	size_t said = 0;

	for (size_t i = 0; i < session_n_probes(t->session) && said < SAID_MAX; i++) {
		const struct session_probe *p = session_probe(t->session, i);

		if (!p->attached) {
			say_missing(t, p, NULL, p->place.why);
			said++;
		}
		if (t->parts[p->part < t->n_parts ? p->part : 0].spec->kind == PROBE_LINE)
			continue;
		for (size_t v = 0; v < p->fetch.n_values && said < SAID_MAX; v++)
			if (p->fetch.values[v].gone) {
				say_missing(t, p, p->fetch.values[v].name, p->fetch.values[v].gone);
				said++;
			}
	}
}

/* A file that nobody has yet may also be one whose name is mistyped. */
static void say_waiting(const struct trace *t)
{
	const struct session_part *parts = t->script ? t->script : t->parts;
	size_t n = t->script ? t->n_script : t->n_parts;

	for (size_t i = 0; i < n; i++) {
		bool again = false;

		if (!session_waits(t->session, (uint32_t)i))
			continue;
		for (size_t j = 0; j < i && !again; j++)
			again = parts[j].spec->file &&
				streq(parts[j].spec->file, parts[i].spec->file);
		if (again)
			continue;
		fprintf(stderr, "ax %s: there is no ", t->c->name);
		text_put(parts[i].spec->file, stderr);
		fputs(" yet: waiting for a process to come to one\n", stderr);
	}
}

void trace_say_attached(const struct trace *t)
{
	size_t n = 0, refused = 0;

	for (size_t i = 0; i < session_n_probes(t->session); i++) {
		const struct session_probe *p = session_probe(t->session, i);

		n += p->attached;
		refused += !p->attached;
	}
	if (t->script) /* several of its parts may be at one place, and some are at none */
		n = session_n_places(t->session);
	fprintf(stderr, "ax %s: %zu place%s probed", t->c->name, n, n == 1 ? "" : "s");
	if (n) {
		fputs(" by ", stderr);
		text_put(session_method(t->session), stderr);
	}
	if (refused)
		fprintf(stderr, "; %zu left out, see 'ax trace explain'", refused);
	fputs("; Ctrl-C ends\n", stderr);
	if (!t->script)
		say_left_out(t);
	say_waiting(t);
}

static int attach(struct run *run, struct error *e)
{
	struct trace *t = run->t;
	int r = 0;

	if (t->command)
		r = trace_child_start(&run->child, t->command, e);
	if (r < 0)
		return r;
	if (run->child.pid)
		r = trace_take_child(t, run->child.pid, e);
	if (r < 0)
		return r;
	trace_take_whom(t);
	r = session_open(t->parts, t->n_parts, &t->options, &t->session, e);
	if (r == 0)
		r = session_attach(t->session, e);
	if (r < 0)
		return r;
	trace_say_attached(t);
	run->start_ns = time_mono_ns();
	t->begin_ns = run->start_ns;
	t->real_offset_ns = (int64_t)(time_real_ns() - run->start_ns);
	if (t->duration_ms)
		run->end_ns = run->start_ns + t->duration_ms * NS_PER_MS;
	if (t->interval_ms)
		run->interval_ns = run->start_ns + t->interval_ms * NS_PER_MS;
	if (trace_ends_open(&run->ends, t->whom.v, t->whom.n) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	if (run->child.pid) {
		r = trace_child_go(&run->child, t->command, e);
		if (r == 0)
			trace_note_command(t, run->child.pid);
	}
	return r;
}

int trace_run(struct trace *t)
{
	struct run run = {.t = t, .child = TRACE_NO_CHILD};
	struct error e = {0};
	int r, status = 0;
	bool by_itself = false;

	run_signals_catch();
	run_signals_block(&run.open_mask);
	r = attach(&run, &e);
	while (r == 0 && !is_over(&run))
		r = step(&run, &e);
	if (r == 0)
		r = finish(&run, &e);
	if (run.child.pid) {
		int pid = run.child.pid;

		status = trace_child_end(&run.child, &by_itself);
		status = by_itself ? status : 0; /* not what became of it by our signal */
		run.child.pid = pid;
	}
	trace_ends_close(&run.ends);
	if (r == 0)
		trace_put_summary(t, run.child.pid, status);
	session_table_free(&run.before);
	trace_out_flush(&t->out);
	if (r == 0 && t->out.error)
		r = error_set(&e, -t->out.error, "the output could not be written: %s",
			      strerror(t->out.error));
	return r < 0 ? cmd_failed(t->c, &e) : status;
}
