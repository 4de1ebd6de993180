// SPDX-License-Identifier: GPL-2.0-or-later
/* A script from attaching to the last line. */
#include <time.h>

#include "tools/lib/run_signals.h"
#include "tools/trace/script/script.h"

#define NS_PER_MS    UINT64_C(1000000)
#define LOOK_RECORDS 4096 /* so many records at most between two looks at the time */

/* --- what happens in ax itself --- */

/* Steps that follow none happen by themselves, and those that follow with them. */
static int run_clause(struct script_run *run, const struct script_clause *c, struct error *e)
{
	for (size_t i = c->first; i < c->first + c->n; i++) {
		int r = run->parts[i].follows ? 0 : session_run(run->t.session, (uint32_t)i);

		if (r < 0)
			return error_set(e, r, "what BEGIN, END or 'every' do cannot be done: %s",
					 strerror(-r));
	}
	return 0;
}

static int run_event(struct script_run *run, enum script_event event, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->script.n_clauses; i++)
		if (run->script.clauses[i].event == event)
			r = run_clause(run, &run->script.clauses[i], e);
	return r;
}

/* One that comes late does not come twice. */
static int run_every(struct script_run *run, uint64_t now, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->script.n_clauses; i++) {
		uint64_t every = run->script.clauses[i].every_ms * NS_PER_MS;

		if (!every || now < run->next_ns[i])
			continue;
		r = run_clause(run, &run->script.clauses[i], e);
		run->next_ns[i] += every * ((now - run->next_ns[i]) / every + 1);
	}
	return r;
}

/* --- the loop --- */

static bool is_over(struct script_run *run)
{
	if (run->end_ns && time_mono_ns() >= run->end_ns)
		run->done = true;
	return run->done || run_signals_came();
}

/* `show`, `clear`, `exit`. */
static bool is_control(const struct script_run *run, const struct ax_probe_record *r)
{
	uint32_t part = session_probe(run->t.session, r->probe)->part;

	return run->script.steps[part].verb >= SCRIPT_SHOW;
}

static int on_record(void *arg, const struct ax_probe_record *r, size_t len)
{
	struct script_run *run = arg;
	int err;

	if (r->probe >= session_n_probes(run->t.session))
		return 0;
	if (is_control(run, r))
		run->t.controls++;
	else
		run->t.received++;
	err = order_add(&run->order, r, len);
	if (err < 0)
		return err;
	return ++run->records % LOOK_RECORDS ? 0 : -ECANCELED;
}

static int on_ordered(void *arg, const struct ax_probe_record *r, size_t len)
{
	return script_act(arg, r, len);
}

static int not_read(int r, struct error *e)
{
	return error_set(e, r, "records cannot be read: %s", strerror(-r));
}

static int not_written(const struct script_run *run, struct error *e)
{
	return error_set(e, -run->t.out.error, "the output could not be written: %s",
			 strerror(run->t.out.error));
}

/* *settled_ns: until when all records are there, 0: that is not known. */
static int take_records(struct script_run *run, uint64_t *settled_ns, struct error *e)
{
	int r;

	*settled_ns = session_settled_ns(run->t.session);
	r = session_records(run->t.session, on_record, run);
	if (!session_has_settled(run->t.session))
		*settled_ns = 0;
	return r >= 0 || r == -ECANCELED ? 0 : not_read(r, e);
}

static int take_all_records(struct script_run *run, struct error *e)
{
	int r;

	do
		r = session_records(run->t.session, on_record, run);
	while (r > 0 || r == -ECANCELED);
	return r < 0 ? not_read(r, e) : 0;
}

static int give_records(struct script_run *run, uint64_t until_ns, struct error *e)
{
	int r = order_give(&run->order, until_ns, on_ordered, run);

	if (run->t.out.error)
		return not_written(run, e);
	return r < 0 ? not_read(r, e) : 0;
}

static void flush_ctf(struct script_run *run, bool end)
{
	struct session_totals totals;

	if (!run->t.ctf || (!end && !trace_ctf_is_due(&run->t)))
		return;
	session_totals(run->t.session, &totals);
	trace_ctf_flush(&run->t, totals.dropped, end);
}

static void flush(struct script_run *run, uint64_t now)
{
	flush_ctf(run, false);
	if (!run->t.out.n || (run->t.path && now < run->flush_ns))
		return;
	run->flush_ns = now + TRACE_FLUSH_MS * NS_PER_MS;
	trace_out_flush(&run->t.out);
}

/* Nothing wakes us up for records, so this is also how long they lie in the ring. */
static void wait_a_little(struct script_run *run)
{
	if (trace_ends_wait(&run->ends, session_follow_fd(run->t.session),
			    SESSION_POLL_MS * NS_PER_MS, &run->open_mask))
		run->done = true;
}

/* A program that waits for memory is not waited for longer than that. */
static uint64_t in_order_until(uint64_t now, uint64_t settled)
{
	uint64_t held = SCRIPT_ORDER_MS * NS_PER_MS, until = now > held ? now - held : 0;

	return settled > until ? settled - 1 : until;
}

static int step(struct script_run *run, struct error *e)
{
	uint64_t now = time_mono_ns(), settled;
	int r = take_records(run, &settled, e);

	session_follow(run->t.session);
	if (r == 0) /* there is room now for its records, however many others come */
		r = run_every(run, now, e);
	if (r == 0)
		r = give_records(run, in_order_until(now, settled), e);
	if (r < 0)
		return r;
	if (run->has_keys && now >= run->look_ns) {
		script_look(run);
		run->look_ns = now + SCRIPT_LOOK_MS * NS_PER_MS;
	}
	flush(run, now);
	if (run->t.out.error)
		return not_written(run, e);
	if (!is_over(run))
		wait_a_little(run);
	return 0;
}

/* What came between the last look and the end, then END, then tables. */
static int finish(struct script_run *run, struct error *e)
{
	int r;

	/* another Ctrl-C ends what takes too long */
	sigprocmask(SIG_SETMASK, &run->open_mask, NULL);
	session_detach(run->t.session);
	/* so that there is room for those of END */
	r = take_all_records(run, e);
	r = r < 0 ? r : run_event(run, SCRIPT_END, e);
	r = r < 0 ? r : take_all_records(run, e);
	r = r < 0 ? r : give_records(run, UINT64_MAX, e);
	if (r == 0 && script_flow_end(run) < 0)
		r = not_written(run, e);
	if (r < 0)
		return r;
	flush_ctf(run, true);
	if (!run->shown)
		script_show(run, 0, 0);
	run->t.received += script_counted(run);
	run->t.shown = run->t.received - run->unshown;
	return 0;
}

/* --- the whole --- */

static void start_times(struct script_run *run)
{
	struct trace *t = &run->t;
	uint64_t now = time_mono_ns();

	t->begin_ns = now;
	t->real_offset_ns = (int64_t)(time_real_ns() - now);
	if (t->duration_ms)
		run->end_ns = now + t->duration_ms * NS_PER_MS;
	for (size_t i = 0; i < run->script.n_clauses; i++)
		run->next_ns[i] = now + run->script.clauses[i].every_ms * NS_PER_MS;
}

/* `arg` is run->t, which run begins with. */
static int accept_probe(void *arg, const struct session_probe *p, struct error *e)
{
	return script_check_probe(arg, p, e);
}

static int open_session(struct script_run *run, struct error *e)
{
	struct trace *t = &run->t;
	uint32_t failed = UINT32_MAX;
	struct error own = {0};
	int r;

	t->options.script = true;
	t->options.failed = &failed;
	t->options.accept = accept_probe;
	r = session_open(run->parts, run->n_parts, &t->options, &t->session, &own);
	if (r < 0 && failed < run->script.n_steps)
		return error_set(e, r, "%.80s:%u:%u: %.380s", run->name,
				 run->script.steps[failed].at.line,
				 run->script.steps[failed].at.column, own.text);
	if (r < 0) {
		*e = own;
		return r;
	}
	r = script_check_session(run, e);
	return r < 0 ? r : session_load(t->session, e);
}

static int attach(struct script_run *run, struct error *e)
{
	struct trace *t = &run->t;
	int r = t->command ? trace_child_start(&run->child, t->command, e) : 0;

	if (r < 0)
		return r;
	if (run->child.pid)
		r = trace_take_child(t, run->child.pid, e);
	if (r < 0)
		return r;
	trace_take_whom(t);
	r = open_session(run, e);
	if (r < 0)
		return r;
	start_times(run);
	/* before anything else can happen */
	r = run_event(run, SCRIPT_BEGIN, e);
	r = r < 0 ? r : session_attach(t->session, e);
	if (r < 0)
		return r;
	trace_say_attached(t);
	start_times(run);
	if (trace_ends_open(&run->ends, t->whom.v, t->whom.n) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	if (run->child.pid) {
		r = trace_child_go(&run->child, t->command, e);
		if (r == 0)
			trace_note_command(t, run->child.pid);
	}
	return r;
}

static int end_child(struct script_run *run)
{
	bool by_itself = false;
	int status;

	trace_ends_close(&run->ends);
	if (!run->child.pid)
		return 0;
	status = trace_child_end(&run->child, &by_itself);
	return by_itself ? status : 0; /* not what became of it by our signal */
}

static void say_late(const struct script_run *run)
{
	if (run->order.late)
		fprintf(stderr,
			"ax %s: %llu line%s came too late to be in the order of their times\n",
			run->t.c->name, (unsigned long long)run->order.late,
			run->order.late == 1 ? "" : "s");
}

int script_do(struct script_run *run)
{
	struct trace *t = &run->t;
	struct error e = {0};
	bool command = t->command;
	int r, status;

	run_signals_catch();
	run_signals_block(&run->open_mask);
	run->next_ns = calloc(run->script.n_clauses + 1, sizeof(*run->next_ns));
	r = run->next_ns ? script_make_parts(run, &e) : -ENOMEM;
	if (r == -ENOMEM)
		error_set(&e, r, "out of memory");
	r = r < 0 ? r : attach(run, &e);
	while (r == 0 && !is_over(run))
		r = step(run, &e);
	if (r == 0)
		r = finish(run, &e);
	status = end_child(run);
	if (r == 0) {
		trace_put_summary(t, command, status);
		say_late(run);
	}
	trace_out_flush(&t->out);
	if (r == 0 && t->out.error)
		r = error_set(&e, -t->out.error, "the output could not be written: %s",
			      strerror(t->out.error));
	return r < 0 ? cmd_failed(t->c, &e) : status;
}
