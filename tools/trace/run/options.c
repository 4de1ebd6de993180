/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of ax trace that attach, and the options that they have in common. */
#include <signal.h>

#include "probes/session/scope.h"
#include "tools/lib/output.h"
#include "tools/trace/run/run.h"

/* What the options name. */
struct request {
	struct trace t;
	struct trace_args args;
	struct trace_arming arming;
	const char *buckets;
};

/* LEAST,GREATEST,STEP */
static int set_buckets(struct request *q, struct error *e)
{
	long long least, most, step;
	int end = 0;

	if (!q->buckets)
		return 0;
	if (sscanf(q->buckets, "%lld,%lld,%lld%n", &least, &most, &step, &end) != 3 ||
	    q->buckets[end] || least >= most || step <= 0 ||
	    ((unsigned long long)most - (unsigned long long)least) / (unsigned long long)step >
		    TRACE_BUCKETS_MAX)
		return error_set(e, -EINVAL,
				 "'%.60s' are no linear buckets: expected LEAST,GREATEST,STEP with "
				 "at most %d steps, as in 0,100,10",
				 q->buckets, TRACE_BUCKETS_MAX);
	q->t.parts[0].buckets = (struct trace_buckets){
		.least = least,
		.step = (uint64_t)step,
		.n = (uint32_t)(((uint64_t)most - (uint64_t)least + (uint64_t)step - 1) /
				(uint64_t)step),
	};
	return 0;
}

/* Mistakes that need no look at the machine. */
static int check_request(struct request *q, enum trace_action action, struct error *e)
{
	struct trace *t = &q->t;

	if (q->args.pid && t->command)
		return error_set(e, -EINVAL, "-p and -c name two processes: expected one");
	if (q->args.cgroup && q->args.app)
		return error_set(e, -EINVAL, "--app and --cgroup name two cgroups: expected one");
	if (q->args.pid > INT32_MAX)
		return error_set(e, -EINVAL, "%u is no number of a process", q->args.pid);
	if (action == TRACE_WATCH && t->interval_ms)
		return error_set(e, -EINVAL, "'watch' prints records as they come: expected no -i");
	if (action != TRACE_WATCH && t->count && !t->interval_ms)
		return error_set(e, -EINVAL,
				 "-n is the number of tables at intervals: expected -i with it");
	if (q->arming.per_thread && !q->arming.armed_by.n && !q->arming.disarmed_by.n)
		return error_set(e, -EINVAL,
				 "--per-thread is about --armed-by: expected that with it");
	if (q->arming.disarmed_by.n && !q->arming.armed_by.n)
		return error_set(e, -EINVAL,
				 "--disarmed-by takes back what --armed-by did: expected that "
				 "with it");
	return set_buckets(q, e);
}

/* What has to be there. */
static int find_targets(struct request *q, struct error *e)
{
	struct session_options *o = &q->t.options;

	if (q->args.pid && kill((pid_t)q->args.pid, 0) && errno == ESRCH)
		return error_set(e, -ESRCH, "there is no process %u", q->args.pid);
	o->pid = (int)q->args.pid;
	trace_find_apps(&q->t);
	if (q->args.cgroup)
		return scope_cgroup(q->args.cgroup, o, e);
	return q->args.app ? scope_app(&q->t.c->inst, q->args.app, o, e) : 0;
}

/* The main part happens only while the state is armed. */
static bool add_states(struct request *q, int *status)
{
	struct trace *t = &q->t;

	for (size_t i = 0; i < q->arming.armed_by.n + q->arming.disarmed_by.n; i++) {
		bool arms = i < q->arming.armed_by.n;
		const char *text = arms ? q->arming.armed_by.v[i]
					: q->arming.disarmed_by.v[i - q->arming.armed_by.n];
		size_t part = t->n_parts;

		if (!trace_add_part(t, text, arms ? TRACE_ARM : TRACE_DISARM, status))
			return false;
		t->parts[part].state = 1;
		t->parts[part].per_thread = q->arming.per_thread;
		if (t->specs[part].n_args || t->specs[part].n_by) {
			*status = cmd_usage(t->c,
					    "'%.100s': a probe that arms or disarms has no values, "
					    "only a condition",
					    text);
			return false;
		}
	}
	if (q->arming.armed_by.n) {
		t->parts[0].when = 1;
		t->parts[0].per_thread = q->arming.per_thread;
	}
	return true;
}

static int run_request(struct request *q, enum trace_action action, int argc, char **argv)
{
	struct error e = {0};
	int status;

	if (!trace_parse(&q->t, argc, argv, action, &status))
		return status;
	if (check_request(q, action, &e) < 0)
		return cmd_usage(q->t.c, "%s", e.text);
	if (!add_states(q, &status))
		return status;
	if (!cmd_root(q->t.c))
		return CMD_FAILED;
	if (find_targets(q, &e) < 0 || trace_out_file(&q->t.out, q->t.path, &e) < 0)
		return cmd_failed(q->t.c, &e);
	return trace_run(&q->t);
}

/* --- the command lines --- */

void trace_take_args(struct trace *t, const struct trace_args *a)
{
	t->json = a->output != 0;
	t->command = a->command;
	t->path = a->path;
}

static int run(struct cmd *c, int argc, char **argv, enum trace_action action)
{
	struct request q = {.t = {.c = c, .out.fd = -1}};
	int status;

	if (cmd_begin(c, &q, &argc, argv, &status)) {
		trace_take_args(&q.t, &q.args);
		q.t.options.exact = q.arming.exact;
		cmd_output();
		status = run_request(&q, action, argc, argv);
	}
	trace_free(&q.t);
	strv_free(&q.arming.armed_by);
	strv_free(&q.arming.disarmed_by);
	return status;
}

const struct opt trace_opts[] = {
	[TRACE_OPT_PID] = {"pid", 'p', OPT_NUMBER, "PID", "only this process",
			   offsetof(struct trace_args, pid), &words_process},
	[TRACE_OPT_COMMAND] = {"command", 'c', OPT_STRING, "CMD",
			       "run a command; only its own process, until it ends, with its exit "
			       "status",
			       offsetof(struct trace_args, command), &words_program},
	[TRACE_OPT_APP] = {"app", 0, OPT_STRING, "NAME",
			   "only processes of this app of ax (or its number)",
			   offsetof(struct trace_args, app), &words_app},
	[TRACE_OPT_CGROUP] = {"cgroup", 0, OPT_STRING, "DIR",
			      "only processes of this cgroup and those below it",
			      offsetof(struct trace_args, cgroup), &words_directory},
	[TRACE_OPT_OUTPUT] = {"output", 'o', OPT_CHOICE, "FORMAT",
			      "text (the default) or json (one object a line)",
			      offsetof(struct trace_args, output), &output_text_words},
	[TRACE_OPT_FILE] = {"output-file", 'O', OPT_STRING, "FILE",
			    "write to a file, not to the terminal",
			    offsetof(struct trace_args, path), &words_file},
};

const struct opt trace_arming_opts[] = {
	{"armed-by", 0, OPT_STRINGS, "PROBE",
	 "nothing counts before this probe happens ('PROBE if CONDITION' in one word)",
	 offsetof(struct trace_arming, armed_by), &trace_probe_words},
	{"disarmed-by", 0, OPT_STRINGS, "PROBE", "and nothing after this one",
	 offsetof(struct trace_arming, disarmed_by), &trace_probe_words},
	{"per-thread", 0, OPT_FLAG, NULL, "each thread is armed by itself",
	 offsetof(struct trace_arming, per_thread), NULL},
	{"exact", 0, OPT_FLAG, NULL,
	 "put probes exactly where they were asked for, whatever that costs",
	 offsetof(struct trace_arming, exact), NULL},
};

static const struct opt own[] = {
	{"duration", 'd', OPT_DURATION, "TIME", "end after this time",
	 offsetof(struct request, t.duration_ms), NULL},
	{"count", 'n', OPT_NUMBER, "N", "end after N records, or N tables",
	 offsetof(struct request, t.count), NULL},
	{"interval", 'i', OPT_DURATION, "TIME",
	 "print tables of each interval, not of the whole time",
	 offsetof(struct request, t.interval_ms), NULL},
};
static const struct opt linear[] = {
	{"linear", 'l', OPT_STRING, "LEAST,GREATEST,STEP",
	 "buckets of the same width, not powers of two", offsetof(struct request, buckets), NULL},
};

static const char *probe_kind(size_t i)
{
	return i <= PROBE_TRACEPOINT ? probe_kind_name((enum probe_kind)i) : NULL;
}

const struct words trace_probe_words = {.nth = probe_kind, .suffix = ":"};

#define SEE_MAN                                            \
	" 'ax trace explain' tells what a probe will do; " \
	"'man ax-trace' has all that can be said."

static int run_watch(struct cmd *c, int argc, char **argv)
{
	return run(c, argc, argv, TRACE_WATCH);
}

const struct command cmd_trace_watch = {
	.name = "trace watch",
	.about = "print a record each time",
	.run = run_watch,
	.syntax =
		{
			.usage =
				"ax trace watch PROBE [VALUE ...] [if CONDITION] [-p PID] [-c CMD] "
				"[-d TIME] [-n N]",
			.about = "Prints a record each time a probe happens. Without values, all "
				 "arguments of static probes and all fields of tracepoints are "
				 "shown." SEE_MAN,
			.own = {{trace_opts, TRACE_OPTS, offsetof(struct request, args)},
				{own, ARRAY_SIZE(own), 0},
				{trace_arming_opts, ARRAY_SIZE(trace_arming_opts),
				 offsetof(struct request, arming)}},
			.args = {&trace_probe_words},
		},
};

static int run_count(struct cmd *c, int argc, char **argv)
{
	return run(c, argc, argv, TRACE_COUNT);
}

const struct command cmd_trace_count = {
	.name = "trace count",
	.about = "count, by values",
	.run = run_count,
	.syntax =
		{
			.usage = "ax trace count PROBE [VALUE ...] [if CONDITION] [by VALUE ...] "
				 "[-i "
				 "TIME]",
			.about = "Counts how often a probe happens, for each value or combination "
				 "of up to four; without any, for each function." SEE_MAN,
			.own = {{trace_opts, TRACE_OPTS, offsetof(struct request, args)},
				{own, ARRAY_SIZE(own), 0},
				{trace_arming_opts, ARRAY_SIZE(trace_arming_opts),
				 offsetof(struct request, arming)}},
			.args = {&trace_probe_words},
		},
};

static int run_hist(struct cmd *c, int argc, char **argv)
{
	return run(c, argc, argv, TRACE_HIST);
}

const struct command cmd_trace_hist = {
	.name = "trace hist",
	.about = "show how a value is distributed",
	.run = run_hist,
	.syntax =
		{
			.usage =
				"ax trace hist PROBE VALUE [if CONDITION] [by VALUE ...] [-i TIME]",
			.about = "Shows how a value is distributed, in powers of two." SEE_MAN,
			.own = {{trace_opts, TRACE_OPTS, offsetof(struct request, args)},
				{own, ARRAY_SIZE(own), 0},
				{trace_arming_opts, ARRAY_SIZE(trace_arming_opts),
				 offsetof(struct request, arming)},
				{linear, ARRAY_SIZE(linear), 0}},
			.args = {&trace_probe_words},
		},
};

static int run_stats(struct cmd *c, int argc, char **argv)
{
	return run(c, argc, argv, TRACE_STATS);
}

const struct command cmd_trace_stats = {
	.name = "trace stats",
	.about = "sum, least, greatest and mean of a value",
	.run = run_stats,
	.syntax =
		{
			.usage = "ax trace stats PROBE VALUE [if CONDITION] [by VALUE ...] [-i "
				 "TIME]",
			.about = "Shows number, sum, mean, least and greatest of a value. At "
				 "intervals, least and greatest are still those of the whole "
				 "time." SEE_MAN,
			.own = {{trace_opts, TRACE_OPTS, offsetof(struct request, args)},
				{own, ARRAY_SIZE(own), 0},
				{trace_arming_opts, ARRAY_SIZE(trace_arming_opts),
				 offsetof(struct request, arming)}},
			.args = {&trace_probe_words},
		},
};

static int run_latency(struct cmd *c, int argc, char **argv)
{
	return run(c, argc, argv, TRACE_LATENCY);
}

const struct command cmd_trace_latency = {
	.name = "trace latency",
	.about = "show how long functions take, or the time between two probes",
	.run = run_latency,
	.syntax =
		{
			.usage = "ax trace latency uretprobe:FILE:FUNCTION|kretprobe:FUNCTION [if "
				 "CONDITION] [by VALUE ...]\n"
				 "       ax trace latency PROBE [on VALUE] to PROBE [on VALUE] [if "
				 "CONDITION] [by VALUE ...]",
			.about = "Shows how long functions take from entry to return, with the "
				 "time in what they call; or how much time passes from one probe "
				 "to another in the same thread, or with the same value of what "
				 "'on' names, whichever thread that is in. Times are in "
				 "nanoseconds. 'man ax-trace' has all that can be said of probes.",
			.own = {{trace_opts, TRACE_OPTS, offsetof(struct request, args)},
				{own, ARRAY_SIZE(own), 0},
				{trace_arming_opts, ARRAY_SIZE(trace_arming_opts),
				 offsetof(struct request, arming)},
				{linear, ARRAY_SIZE(linear), 0}},
			.args = {&trace_probe_words},
		},
};
