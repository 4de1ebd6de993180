// SPDX-License-Identifier: GPL-2.0-or-later
/* A run of a ready command, from its options to the line that says what became of every event. */
#include <sys/stat.h>

#include "probes/session/scope.h"
#include "tools/lib/run_signals.h"
#include "tools/trace/ready/ready.h"
#include "machine/mounts.h"

#define NS_PER_MS UINT64_C(1000000)

struct ready_run {
	struct ready *r;
	struct trace_ends ends;
	uint64_t end_ns, flush_ns, look_ns;
	bool done;
	sigset_t open_mask; /* signals while waiting */
};

/* --- the command line --- */

const struct opt ready_opts[] = {
	{"pid", 'p', OPT_STRINGS, "PID",
	 "only this process and those that it starts; several: -p 1,2 or -p 1 -p 2",
	 offsetof(struct ready, args.pid), &words_process},
	{"command", 'c', OPT_STRING, "CMD",
	 "run a command; only it and those that it starts, until it ends, with its exit status",
	 offsetof(struct ready, args.command), &words_program},
	{"follow", 'f', OPT_FLAG, NULL, "those that it starts, too: so it is without it",
	 offsetof(struct ready, args.follow), NULL},
	{"alone", 0, OPT_FLAG, NULL, "with -p or -c: not those that it starts",
	 offsetof(struct ready, alone), NULL},
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct ready, duration_ms), NULL},
	{"count", 'n', OPT_NUMBER, "N", "end after N lines", offsetof(struct ready, count), NULL},
};

static int check(struct ready *r, struct error *e)
{
	bool named = r->args.pid.n || r->args.command;

	if (r->args.pid.n && r->args.command)
		return error_set(e, -EINVAL, "-p and -c name two processes: expected one");
	if (r->args.cgroup && r->args.app)
		return error_set(e, -EINVAL, "--app and --cgroup name two cgroups: expected one");
	if (r->alone && !named)
		return error_set(e, -EINVAL, "--alone is about -p or -c: expected one with it");
	if (r->alone && r->args.follow)
		return error_set(e, -EINVAL, "--alone is the opposite of --follow: expected one");
	if (trace_check_output(&r->args, e) < 0)
		return e->code;
	return trace_whom_read(&r->whom, &r->args.pid, e);
}

/* Where the cgroups of apps are, if there are any. */
static void find_apps(struct ready *r)
{
	struct session_options o = {0};
	char root[3072], apps[4096];
	struct error e = {0};

	if (mount_find("cgroup2", root, sizeof(root)) < 0)
		return;
	snprintf(apps, sizeof(apps), "%s/%s", root, r->c->inst.name);
	if (access(apps, F_OK) < 0 || scope_cgroup(apps, &o, &e) < 0)
		return;
	r->options.apps = o.scope.cgroups[0];
	r->options.apps_level = o.scope.level;
}

static int find_targets(struct ready *r, struct error *e)
{
	struct session_options o = {0};
	int status = trace_whom_check(&r->whom, e);

	if (status < 0)
		return status;
	find_apps(r);
	if (r->args.cgroup)
		status = scope_cgroup(r->args.cgroup, &o, e);
	else if (r->args.app)
		status = scope_app(&r->c->inst, r->args.app, &o, e);
	r->options.alone = r->alone;
	r->options.scope = o.scope;
	return status;
}

static int open_output(struct ready *r, struct error *e)
{
	const char *path = r->args.path;
	int err;

	if (r->args.output != TRACE_CTF)
		return r->secret && path ? trace_out_private(&r->out, path, e)
					 : trace_out_file(&r->out, path, e);
	err = json_ctf_open(path, &r->ctf, e);
	if (err == 0 && r->secret && chmod(path, 0700) < 0)
		err = error_set(e, -errno, "cannot keep '%.200s' to its owner: %s", path,
				strerror(errno));
	return err < 0 ? err : trace_out_memory(&r->out, e);
}

/* Finds what the options name, starts the command of -c, opens the output. True: the programs can
 * be loaded with r->options. False: *status is to be returned. */
static bool begin(struct ready *r, int *status)
{
	struct error e = {0};
	int err;

	r->json = r->args.output != 0;
	r->child = TRACE_NO_CHILD;
	if (check(r, &e) < 0) {
		*status = cmd_usage(r->c, "%s", e.text);
		return false;
	}
	if (!cmd_root(r->c)) {
		*status = CMD_FAILED;
		return false;
	}
	err = find_targets(r, &e);
	if (err == 0)
		err = open_output(r, &e);
	if (err == 0 && r->args.command)
		err = trace_child_start(&r->child, r->args.command, &e);
	if (err < 0) {
		*status = cmd_failed(r->c, &e);
		return false;
	}
	r->own_pid = (uint32_t)r->child.pid;
	r->options.pids = r->child.pid ? &r->own_pid : r->whom.v;
	r->options.n_pids = r->child.pid ? 1 : r->whom.n;
	return true;
}

void ready_end(struct ready *r)
{
	bool by_itself;

	if (r->child.pid)
		trace_child_end(&r->child, &by_itself);
	watch_free(r->watch);
	trace_whom_free(&r->whom);
	trace_args_free(&r->args);
	trace_out_close(&r->out);
	json_ctf_free(r->ctf);
}

/* --- the loop --- */

static bool is_over(struct ready_run *run)
{
	if (run->end_ns && time_mono_ns() >= run->end_ns)
		run->done = true;
	return run->done || run_signals_came();
}

static int flush_ctf(struct ready *r, bool end)
{
	struct watch_totals totals = {0};

	if (!end && !json_ctf_is_due(r->ctf))
		return 0;
	watch_totals(r->watch, &totals);
	return json_ctf_flush(r->ctf, totals.dropped, end);
}

static int put(struct ready_run *run, const void *record, size_t len)
{
	struct ready *r = run->r;
	const struct ax_watch_head *h = record;
	int what;

	if (r->count && r->shown >= r->count) {
		r->received += h->time_ns != 0;
		return 0;
	}
	what = r->put(r, record, len);
	if (what >= 0 && r->ctf) {
		/* (what has no time of its own is told at the end) */
		int err = json_ctf_take(r->ctf, h->time_ns ? h->time_ns : time_mono_ns(), &r->out);

		what = err < 0 ? err : what;
	}
	if (what < 0)
		return what;
	r->received += what != READY_PART;
	r->shown += what == READY_SHOWN;
	if (r->count && r->shown >= r->count)
		run->done = true;
	return 0;
}

static int on_record(void *arg, const void *record, size_t len)
{
	struct ready_run *run = arg;
	int err = put(run, record, len);

	if (err < 0)
		return err;
	return is_over(run) ? -ECANCELED : 0;
}

/* After the end everything is taken that is there still. */
static int on_last_record(void *arg, const void *record, size_t len)
{
	return put(arg, record, len);
}

/* Nothing wakes us up but a ring that fills, so this is also how long records lie in it. */
static void wait_a_little(struct ready_run *run)
{
	uint64_t ms = run->r->poll_ms ? run->r->poll_ms : WATCH_POLL_MS;

	if (trace_ends_wait(&run->ends, watch_fd(run->r->watch), ms * NS_PER_MS, &run->open_mask))
		run->done = true;
}

static int output_failed(const struct ready *r, struct error *e)
{
	return error_set(e, -r->out.error, "the output could not be written: %s",
			 strerror(r->out.error));
}

static void flush(struct ready_run *run)
{
	uint64_t now;

	if (!run->r->out.n)
		return;
	if (run->r->args.path) {
		now = time_mono_ns();
		if (now < run->flush_ns)
			return;
		run->flush_ns = now + TRACE_FLUSH_MS * NS_PER_MS;
	}
	trace_out_flush(&run->r->out);
}

static void look(struct ready_run *run)
{
	uint64_t now = run->r->look ? time_mono_ns() : 0;

	if (!now || now < run->look_ns)
		return;
	run->look_ns = now + (run->r->look_ms ? run->r->look_ms : TRACE_NOTE_MS) * NS_PER_MS;
	run->r->look(run->r);
}

static int step(struct ready_run *run, struct error *e)
{
	int err = watch_records(run->r->watch, on_record, run);

	if (err < 0 && err != -ECANCELED)
		return error_set(e, err, "records cannot be read: %s", strerror(-err));
	if (run->r->ctf) {
		err = flush_ctf(run->r, false);
		if (err < 0)
			return error_set(e, err, "the trace could not be written: %s",
					 strerror(-err));
	}
	flush(run);
	look(run);
	if (run->r->out.error)
		return output_failed(run->r, e);
	if (!is_over(run))
		wait_a_little(run);
	return 0;
}

/* What came between the last look and the end. */
static int finish(struct ready_run *run, struct watch_totals *totals, struct error *e)
{
	struct ready *r = run->r;
	uint64_t counted = 0;
	int err = r->at_end ? r->at_end(r, e) : 0;

	if (err < 0)
		return err;
	watch_detach(r->watch);
	for (int i = 0; i < READY_LAST_TRIES; i++) {
		err = watch_records(r->watch, on_last_record, run);
		if (err < 0)
			return error_set(e, err, "records cannot be read: %s", strerror(-err));
		watch_totals(r->watch, totals);
		if (r->read_counts)
			err = r->read_counts(r, &counted, e);
		if (err < 0)
			return err;
		if (totals->emitted == r->received + counted + totals->dropped)
			break;
		usleep(1000);
	}
	r->received += counted;
	r->shown += counted;
	if (r->ctf) {
		err = flush_ctf(r, true);
		r->json = false; /* the summary is for who has called this */
	}
	if (err < 0)
		return error_set(e, err, "the trace could not be written: %s", strerror(-err));
	return r->put_counts ? r->put_counts(r, e) : 0;
}

/* --- the summary --- */

static void put_json_summary(struct ready *r, const struct watch_totals *n, bool child, int status)
{
	struct trace_out *o = &r->out;

	trace_out_printf(o, "{\"emitted\":%llu,\"received\":%llu,\"dropped\":%llu",
			 (unsigned long long)n->emitted, (unsigned long long)r->received,
			 (unsigned long long)n->dropped);
	if (r->shown != r->received)
		trace_out_printf(o, ",\"shown\":%llu", (unsigned long long)r->shown);
	if (n->missed)
		trace_out_printf(o, ",\"missed\":%llu", (unsigned long long)n->missed);
	if (n->unfollowed)
		trace_out_printf(o, ",\"unfollowed\":%llu", (unsigned long long)n->unfollowed);
	if (n->cut)
		trace_out_printf(o, ",\"cut\":%llu", (unsigned long long)n->cut);
	if (r->put_more)
		r->put_more(r);
	if (child)
		trace_out_printf(o, ",\"status\":%d", status);
	trace_out_text(o, "}\n");
}

static void put_number(const char *before, uint64_t v, const char *after)
{
	char buf[TRACE_THOUSANDS_MAX];

	fprintf(stderr, "%s%s%s", before, trace_thousands(v, buf), after);
}

static void put_text_summary(struct ready *r, const struct watch_totals *n, bool child, int status)
{
	trace_out_flush(&r->out);
	put_number("", n->emitted, n->emitted == 1 ? " event, " : " events, ");
	put_number("", r->received, " received, ");
	put_number("", n->dropped, " dropped");
	if (r->shown != r->received)
		put_number(", ", r->shown, " shown");
	if (n->missed)
		put_number("; ", n->missed, " missed while their processor saw another one");
	if (n->unfollowed)
		put_number("; ", n->unfollowed, " processes could not be followed");
	if (n->cut)
		put_number("; ", n->cut,
			   r->cut ? r->cut : " pieces of arguments or environments are missing");
	if (r->put_more)
		r->put_more(r);
	putc('\n', stderr);
	if (child && status > 128)
		fprintf(stderr, "ax %s: the command was ended by signal %d\n", r->c->name,
			status - 128);
	else if (child && status)
		fprintf(stderr, "ax %s: the command ended with status %d\n", r->c->name, status);
}

static void put_summary(struct ready *r, const struct watch_totals *n, bool child, int status)
{
	if (r->json)
		put_json_summary(r, n, child, status);
	else
		put_text_summary(r, n, child, status);
	if (n->emitted != r->received + n->dropped)
		fprintf(stderr, "ax %s: the sum is wrong: this is a mistake of ax\n", r->c->name);
}

/* --- the whole --- */

static int start(struct ready_run *run, struct error *e)
{
	struct ready *r = run->r;
	uint64_t now;
	int err = watch_attach(r->watch, e);

	if (err == 0 && r->after_attach)
		err = r->after_attach(r, e);
	if (err < 0)
		return err;
	now = time_mono_ns();
	r->real_offset_ns = (int64_t)(time_real_ns() - now);
	if (r->duration_ms)
		run->end_ns = now + r->duration_ms * NS_PER_MS;
	if (trace_ends_open(&run->ends, r->options.pids, r->options.n_pids) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	if (r->child.pid)
		return trace_child_go(&r->child, r->args.command, e);
	fprintf(stderr, "ax %s: attached; Ctrl-C ends\n", r->c->name);
	return 0;
}

/* Loads the programs, and goes on until the end. Returns the exit status. */
static int go_on(struct ready *r, struct error *e)
{
	struct ready_run run = {.r = r};
	struct watch_totals totals = {0};
	bool child = r->child.pid > 0, by_itself = true;
	int err = r->load(r, e), status = 0;

	run_signals_catch();
	run_signals_block(&run.open_mask);
	if (err == 0)
		err = start(&run, e);
	while (err == 0 && !is_over(&run))
		err = step(&run, e);
	if (err == 0)
		err = finish(&run, &totals, e);
	if (child)
		status = trace_child_end(&r->child, &by_itself);
	trace_ends_close(&run.ends);
	status = by_itself ? status : 0; /* not what became of it by our signal */
	if (err == 0)
		put_summary(r, &totals, child, status);
	trace_out_flush(&r->out);
	if (err == 0 && r->out.error)
		err = output_failed(r, e);
	return err < 0 ? cmd_failed(r->c, e) : status;
}

static int show_script(struct ready *r)
{
	struct trace_script_options o = {
		.args = &r->args, .whom = &r->whom, .duration_ms = r->duration_ms};
	autofree char *text = NULL;
	struct error e = {0};
	size_t size = 0;
	FILE *f;
	int err;

	if (check(r, &e) < 0)
		return cmd_usage(r->c, "%s", e.text);
	if (r->count)
		return cmd_usage(r->c, "a script ends by 'exit if': expected no -n");
	f = open_memstream(&text, &size);
	if (!f)
		return cmd_usage(r->c, "out of memory");
	err = r->write_script ? r->write_script(r, f) : -ENOTSUP;
	if (fclose(f) || err < 0)
		return cmd_usage(r->c, "%s", r->no_script);
	o.follow = !r->alone && (r->whom.n || r->args.command);
	trace_write_script_options(&o, stdout);
	fputs(text, stdout);
	return cmd_finish(r->c, CMD_OK);
}

static int run(struct ready *r, int argc, char **argv)
{
	const char *word = r->word && argc ? argv[0] : NULL;
	struct error e = {0};
	int status;

	if (argc > 1 && word)
		return cmd_usage(r->c, "unexpected word '%.100s': expected one %s", argv[1],
				 r->word);
	if (argc && !word)
		return cmd_usage(r->c, "unexpected word '%.100s'", argv[0]);
	if (r->check && r->check(r, word, &e) < 0)
		return cmd_usage(r->c, "%s", e.text);
	if (r->c->shows_script)
		return show_script(r);
	if (!begin(r, &status))
		return status;
	if (r->heading && !r->json)
		trace_out_text(&r->out, r->heading);
	return go_on(r, &e);
}

int ready_command(struct ready *r, int argc, char **argv)
{
	int status;

	r->out.fd = -1;
	if (!cmd_begin(r->c, r, &argc, argv, &status))
		return status;
	cmd_output();
	return run(r, argc, argv);
}
