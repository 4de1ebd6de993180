/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of ax trace that attach, and the options that they have in common. */
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

bool trace_is_buffer(uint32_t mib)
{
	return mib && mib <= TRACE_BUFFER_MAX_MIB && !(mib & (mib - 1));
}

int trace_check_args(struct trace *t, const struct trace_args *a, struct error *e)
{
	if (a->pid.n && t->command)
		return error_set(e, -EINVAL, "-p and -c name two processes: expected one");
	if (a->cgroup && a->app)
		return error_set(e, -EINVAL, "--app and --cgroup name two cgroups: expected one");
	if (trace_check_output(a, e) < 0)
		return e->code;
	if (a->buffer_mib && !trace_is_buffer(a->buffer_mib))
		return error_set(e, -EINVAL, "--buffer %u: expected a power of two from 1 to %u",
				 a->buffer_mib, TRACE_BUFFER_MAX_MIB);
	return trace_whom_read(&t->whom, &a->pid, e);
}

int trace_check_output(const struct trace_args *a, struct error *e)
{
	if (a->output == TRACE_CTF && !a->path)
		return error_set(e, -EINVAL, "-o ctf writes a directory: expected -O DIR with it");
	if (a->output == TRACE_CTF && streq(a->path, "-"))
		return error_set(
			e, -EINVAL,
			"-o ctf writes a directory, which cannot go to standard output: expected "
			"-O DIR (./- for one of that name)");
	return 0;
}

/* Mistakes that need no look at the machine. */
static int check_request(struct request *q, enum trace_action action, struct error *e)
{
	struct trace *t = &q->t;
	int r = trace_check_args(t, &q->args, e);

	if (r < 0)
		return r;
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
	return q->buckets ? trace_buckets_parse(q->buckets, &t->parts[0].buckets, e) : 0;
}

int trace_find_scope(struct trace *t, const struct trace_args *a, struct error *e)
{
	struct session_options *o = &t->options;
	int r = trace_whom_check(&t->whom, e);

	if (r < 0)
		return r;
	o->follow = a->follow;
	trace_take_whom(t);
	trace_find_apps(t);
	if (a->cgroup)
		return scope_cgroup(a->cgroup, o, e);
	return a->app ? scope_app(&t->c->inst, a->app, o, e) : 0;
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
	if (trace_find_scope(&q->t, &q->args, &e) < 0 ||
	    trace_out_file(&q->t.out, q->t.path, &e) < 0 || trace_ctf_open(&q->t, &e) < 0)
		return cmd_failed(q->t.c, &e);
	return trace_run(&q->t);
}

/* --- the command lines --- */

void trace_take_args(struct trace *t, const struct trace_args *a)
{
	t->json = a->output == TRACE_JSON;
	t->options.frame_pointers = a->stack == 1;
	t->options.ring_bytes = a->buffer_mib << 20;
	t->command = a->command;
	t->path = a->output == TRACE_CTF ? NULL : a->path;
	t->ctf_path = a->output == TRACE_CTF ? a->path : NULL;
}

void trace_args_free(struct trace_args *a)
{
	strv_free(&a->pid);
}

static int show_request(struct request *q, enum trace_action action, int argc, char **argv)
{
	struct error e = {0};
	int status;

	if (!trace_parse(&q->t, argc, argv, action, &status))
		return status;
	if (check_request(q, action, &e) < 0)
		return cmd_usage(q->t.c, "%s", e.text);
	if (!add_states(q, &status))
		return status;
	if (trace_write_script(&q->t, &q->args, q->buckets, stdout) < 0)
		return cmd_usage(q->t.c, "out of memory");
	return cmd_finish(q->t.c, CMD_OK);
}

static int run(struct cmd *c, int argc, char **argv, enum trace_action action)
{
	struct request q = {.t = {.c = c, .out.fd = -1}};
	int status;

	if (cmd_begin(c, &q, &argc, argv, &status)) {
		trace_take_args(&q.t, &q.args);
		q.t.options.exact = q.arming.exact;
		q.t.options.types = q.arming.types;
		cmd_output();
		status = c->shows_script ? show_request(&q, action, argc, argv)
					 : run_request(&q, action, argc, argv);
	}
	trace_free(&q.t);
	trace_args_free(&q.args);
	strv_free(&q.arming.armed_by);
	strv_free(&q.arming.disarmed_by);
	return status;
}

const struct opt trace_opts[] = {
	[TRACE_OPT_PID] = {"pid", 'p', OPT_STRINGS, "PID",
			   "only this process; several: -p 1,2 or -p 1 -p 2",
			   offsetof(struct trace_args, pid), &words_process},
	[TRACE_OPT_COMMAND] = {"command", 'c', OPT_STRING, "CMD",
			       "run a command; only its own process, until it ends, with its exit "
			       "status",
			       offsetof(struct trace_args, command), &words_program},
	[TRACE_OPT_FOLLOW] = {"follow", 'f', OPT_FLAG, NULL,
			      "also the processes that these start, and the files under a probe's "
			      "name that they come to later",
			      offsetof(struct trace_args, follow), NULL},
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

static const char *const record_formats[] = {
	[TRACE_TEXT] = "text", [TRACE_JSON] = "json", [TRACE_CTF] = "ctf", NULL};
static const struct words record_words = {.choices = record_formats};

const struct opt trace_record_opts[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "text (the default), json (one object a line) or ctf (with -O: a directory)",
	 offsetof(struct trace_args, output), &record_words},
	{"output-file", 'O', OPT_STRING, "FILE", "write to a file, not to the terminal",
	 offsetof(struct trace_args, path), &words_file},
};

static const char *const stacks[] = {"dwarf", "fp", NULL};
static const struct words stack_words = {.choices = stacks};

const struct opt trace_way_opts[] = {
	{"stack", 0, OPT_CHOICE, "HOW",
	 "how 'ustack' finds callers: dwarf (the default) copies the stack, fp follows frame "
	 "pointers",
	 offsetof(struct trace_args, stack), &stack_words},
	{"buffer", 0, OPT_NUMBER, "MIB",
	 "room for records on their way, a power of two (2): what comes while it is full is "
	 "dropped",
	 offsetof(struct trace_args, buffer_mib), NULL},
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
	{"types", 0, OPT_STRING, "FILE", TRACE_TYPES_TEXT, offsetof(struct trace_arming, types),
	 &words_file},
};

static const struct opt own[] = {
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct request, t.duration_ms), NULL},
	{"count", 'n', OPT_NUMBER, "N", "end after N records, or N tables",
	 offsetof(struct request, t.count), NULL},
	{"interval", 'i', OPT_SPAN, "TIME", "print tables of each interval, not of the whole time",
	 offsetof(struct request, t.interval_ms), NULL},
};
static const struct opt linear[] = {
	{"linear", 'l', OPT_STRING, "LEAST,GREATEST,STEP",
	 "buckets of the same width, not powers of two", offsetof(struct request, buckets), NULL},
};

static const char *probe_kind(size_t i)
{
	return i <= PROBE_PROFILE ? probe_kind_name((enum probe_kind)i) : NULL;
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
				 "parameters of functions whose types are known, all arguments of "
				 "static probes, all fields of tracepoints and all variables of "
				 "lines are shown." SEE_MAN,
			.own = {{trace_opts, TRACE_OPT_OUTPUT, offsetof(struct request, args)},
				{trace_record_opts, ARRAY_SIZE(trace_record_opts),
				 offsetof(struct request, args)},
				{trace_way_opts, TRACE_WAY_OPTS, offsetof(struct request, args)},
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
