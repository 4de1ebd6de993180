/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of ax trace that attach, and the options that they have in common. */
#include <fcntl.h>
#include <signal.h>

#include "probes/session/scope.h"
#include "tools/trace/run/run.h"

/* What the options name. */
struct request {
	struct trace t;
	uint32_t pid;
	int output;
	const char *cgroup, *app, *buckets;
	struct strv armed_by, disarmed_by;
	bool per_thread;
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
		    FETCH_BUCKETS_MAX)
		return error_set(e, -EINVAL,
				 "'%.60s' are no linear buckets: expected LEAST,GREATEST,STEP with "
				 "at most %d steps, as in 0,100,10",
				 q->buckets, FETCH_BUCKETS_MAX);
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

	if (q->pid && t->command)
		return error_set(e, -EINVAL, "-p and -c name two processes: expected one");
	if (q->cgroup && q->app)
		return error_set(e, -EINVAL, "--app and --cgroup name two cgroups: expected one");
	if (q->pid > INT32_MAX)
		return error_set(e, -EINVAL, "%u is no number of a process", q->pid);
	if (action == TRACE_WATCH && t->interval_ms)
		return error_set(e, -EINVAL, "'watch' prints records as they come: expected no -i");
	if (action != TRACE_WATCH && t->count && !t->interval_ms)
		return error_set(e, -EINVAL,
				 "-n is the number of tables at intervals: expected -i with it");
	if (q->per_thread && !q->armed_by.n && !q->disarmed_by.n)
		return error_set(e, -EINVAL,
				 "--per-thread is about --armed-by: expected that with it");
	if (q->disarmed_by.n && !q->armed_by.n)
		return error_set(e, -EINVAL,
				 "--disarmed-by takes back what --armed-by did: expected that "
				 "with it");
	return set_buckets(q, e);
}

/* What has to be there. */
static int find_targets(struct request *q, struct error *e)
{
	struct session_options *o = &q->t.options;

	if (q->pid && kill((pid_t)q->pid, 0) && errno == ESRCH)
		return error_set(e, -ESRCH, "there is no process %u", q->pid);
	o->pid = (int)q->pid;
	trace_find_apps(&q->t);
	if (q->cgroup)
		return scope_cgroup(q->cgroup, o, e);
	return q->app ? scope_app(&q->t.c->inst, q->app, o, e) : 0;
}

/* The main part happens only while the state is armed. */
static bool add_states(struct request *q, int *status)
{
	struct trace *t = &q->t;

	for (size_t i = 0; i < q->armed_by.n + q->disarmed_by.n; i++) {
		bool arms = i < q->armed_by.n;
		const char *text = arms ? q->armed_by.v[i] : q->disarmed_by.v[i - q->armed_by.n];
		size_t part = t->n_parts;

		if (!trace_add_part(t, text, arms ? TRACE_ARM : TRACE_DISARM, status))
			return false;
		t->parts[part].state = 1;
		t->parts[part].per_thread = q->per_thread;
		if (t->specs[part].n_args || t->specs[part].n_by) {
			*status = cmd_usage(t->c,
					    "'%.100s': a probe that arms or disarms has no values, "
					    "only a condition",
					    text);
			return false;
		}
	}
	if (q->armed_by.n) {
		t->parts[0].when = 1;
		t->parts[0].per_thread = q->per_thread;
	}
	return true;
}

int trace_open_output(struct trace *t, struct error *e)
{
	int fd = STDOUT_FILENO;

	if (t->path)
		fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_set(e, -errno, "cannot write to '%.200s': %s", t->path,
				 strerror(errno));
	if (trace_out_open(&t->out, fd) == 0)
		return 0;
	if (t->path)
		close(fd);
	return error_set(e, -ENOMEM, "out of memory");
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
	if (find_targets(q, &e) < 0 || trace_open_output(&q->t, &e) < 0)
		return cmd_failed(q->t.c, &e);
	return trace_run(&q->t);
}

#define COMMON_OPTS 13
static void common_opts(struct request *q, struct opt opts[COMMON_OPTS])
{
	static const char *const outputs[] = {"text", "json", NULL};
	const struct opt v[COMMON_OPTS] = {
		{"pid", 'p', OPT_NUMBER, "PID", "only this process", &q->pid, NULL},
		{"command", 'c', OPT_STRING, "CMD",
		 "run a command; only its own process, until it ends, with its exit status",
		 &q->t.command, NULL},
		{"app", 0, OPT_STRING, "NAME", "only processes of this app of ax (or its number)",
		 &q->app, NULL},
		{"cgroup", 0, OPT_STRING, "DIR", "only processes of this cgroup and those below it",
		 &q->cgroup, NULL},
		{"duration", 'd', OPT_DURATION, "TIME", "end after this time", &q->t.duration_ms,
		 NULL},
		{"count", 'n', OPT_NUMBER, "N", "end after N records, or N tables", &q->t.count,
		 NULL},
		{"interval", 'i', OPT_DURATION, "TIME",
		 "print tables of each interval, not of the whole time", &q->t.interval_ms, NULL},
		{"armed-by", 0, OPT_STRINGS, "PROBE",
		 "nothing counts before this probe happens ('PROBE if CONDITION' in one word)",
		 &q->armed_by, NULL},
		{"disarmed-by", 0, OPT_STRINGS, "PROBE", "and nothing after this one",
		 &q->disarmed_by, NULL},
		{"per-thread", 0, OPT_FLAG, NULL, "each thread is armed by itself", &q->per_thread,
		 NULL},
		{"exact", 0, OPT_FLAG, NULL,
		 "put probes exactly where they were asked for, whatever that costs",
		 &q->t.options.exact, NULL},
		{"output", 'o', OPT_CHOICE, "FORMAT",
		 "text (the default) or json (one object a line)", &q->output, outputs},
		{"output-file", 'O', OPT_STRING, "FILE", "write to a file, not to the terminal",
		 &q->t.path, NULL},
	};

	memcpy(opts, v, sizeof(v));
}

int trace_command(struct cmd *c, int argc, char **argv, enum trace_action action, const char *usage,
		  const char *about)
{
	struct request q = {.t = {.c = c, .out.fd = -1}};
	struct opt opts[COMMON_OPTS + 1];
	struct opt_syntax s = {.usage = usage, .about = about, .own = {opts, COMMON_OPTS}};
	int status;

	common_opts(&q, opts);
	if (action == TRACE_HIST || action == TRACE_LATENCY)
		opts[s.own.n++] = (struct opt){"linear",
					       'l',
					       OPT_STRING,
					       "LEAST,GREATEST,STEP",
					       "buckets of the same width, not powers of two",
					       &q.buckets,
					       NULL};
	if (cmd_begin(c, &s, &argc, argv, &status)) {
		q.t.json = q.output != 0;
		cmd_output();
		status = run_request(&q, action, argc, argv);
	}
	trace_free(&q.t);
	strv_free(&q.armed_by);
	strv_free(&q.disarmed_by);
	return status;
}

#define SEE_MAN " 'ax trace explain' tells what a probe will do; 'man ax-trace' has all that can be said."

int cmd_trace_watch(struct cmd *c, int argc, char **argv)
{
	return trace_command(
		c, argc, argv, TRACE_WATCH,
		"ax trace watch PROBE [VALUE ...] [if CONDITION] [-p PID] [-c CMD] [-d TIME] "
		"[-n N]",
		"Prints a record each time a probe happens. Without values, all arguments "
		"of static probes and all fields of tracepoints are shown." SEE_MAN);
}

int cmd_trace_count(struct cmd *c, int argc, char **argv)
{
	return trace_command(
		c, argc, argv, TRACE_COUNT,
		"ax trace count PROBE [VALUE ...] [if CONDITION] [by VALUE ...] [-i TIME]",
		"Counts how often a probe happens, for each value or combination of up to "
		"four; without any, for each function." SEE_MAN);
}

int cmd_trace_hist(struct cmd *c, int argc, char **argv)
{
	return trace_command(c, argc, argv, TRACE_HIST,
			     "ax trace hist PROBE VALUE [if CONDITION] [by VALUE ...] [-i TIME]",
			     "Shows how a value is distributed, in powers of two." SEE_MAN);
}

int cmd_trace_stats(struct cmd *c, int argc, char **argv)
{
	return trace_command(
		c, argc, argv, TRACE_STATS,
		"ax trace stats PROBE VALUE [if CONDITION] [by VALUE ...] [-i TIME]",
		"Shows number, sum, mean, least and greatest of a value. At intervals, least "
		"and greatest are still those of the whole time." SEE_MAN);
}
