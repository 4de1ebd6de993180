// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace step: its command line. */
#include "tools/lib/output.h"
#include "tools/trace/step/step.h"

static void free_request(struct step_request *q)
{
	struct probe_spec rest = {.n_args = q->n_values};

	memcpy(rest.args, q->values, sizeof(q->values));
	probe_spec_free(&rest);
	trace_args_free(&q->args);
	step_close_output(q);
	trace_free(&q->t);
}

/* Values are those of the steps, not of the probe's own record. */
static void take_values(struct step_request *q)
{
	struct probe_spec *spec = &q->t.specs[0];

	memcpy(q->values, spec->args, sizeof(q->values));
	q->n_values = spec->n_args;
	memset(spec->args, 0, sizeof(spec->args));
	spec->n_args = 0;
	q->t.parts[0].all_parameters = true;
	q->t.parts[0].stops = true;
}

static int check_value(const struct probe_arg *a, struct error *e)
{
	for (size_t i = 0; i < a->expr.n; i++)
		switch (a->expr.v[i].op) {
		case EXPR_ARG:
		case EXPR_RETVAL:
		case EXPR_ELAPSED:
		case EXPR_ENTRY:
			return error_set(
				e, -EINVAL,
				"%.64s is known only where a function begins or returns, not "
				"in the midst of it: expected a variable or a %%register",
				a->text);
		default:
			break;
		}
	if (a->type == VALUE_USER_STACK || a->type == VALUE_KERNEL_STACK)
		return error_set(e, -EINVAL, "call stacks are not shown of each step");
	return 0;
}

static int check_request(struct step_request *q, struct error *e)
{
	const struct trace *t = &q->t;
	int r = step_check_whom(q, e);

	for (size_t i = 0; r == 0 && i < q->n_values; i++)
		r = check_value(&q->values[i], e);
	if (r < 0)
		return r;
	switch (t->specs[0].kind) {
	case PROBE_UPROBE:
	case PROBE_URETPROBE:
	case PROBE_USDT:
	case PROBE_LINE:
		break;
	default:
		return error_set(e, -EINVAL,
				 "only programs are stepped, not the kernel: expected uprobe:, "
				 "uretprobe:, usdt: or line:");
	}
	if (!q->steps || q->steps > STEP_COUNT_MAX)
		return error_set(e, -EINVAL, "expected 1 to %d steps", STEP_COUNT_MAX);
	return 0;
}

static int run_request(struct step_request *q, int argc, char **argv)
{
	struct error e = {0};
	int status;

	if (!trace_parse(&q->t, argc, argv, TRACE_WATCH, &status))
		return status;
	take_values(q);
	if (check_request(q, &e) < 0)
		return cmd_usage(q->t.c, "%s", e.text);
	if (!cmd_root(q->t.c))
		return CMD_FAILED;
	if (step_find_whom(q, &e) < 0 || step_open_output(q, &e) < 0)
		return cmd_failed(q->t.c, &e);
	return step_launch(q);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct step_request q = {.t = {.c = c, .out.fd = -1},
				 .steps = STEP_COUNT_DEFAULT,
				 .times = STEP_TIMES_DEFAULT};
	int status;

	if (cmd_begin(c, &q, &argc, argv, &status)) {
		trace_take_args(&q.t, &q.args);
		q.t.options.exact = q.exact;
		cmd_output();
		status = run_request(&q, argc, argv);
	}
	free_request(&q);
	return status;
}

static const struct opt own[] = {
	{"steps", 'n', OPT_NUMBER, "N", "so many steps (20 unless given)",
	 offsetof(struct step_request, steps), NULL},
	{"lines", 0, OPT_FLAG, NULL, "steps are lines of the source, not instructions",
	 offsetof(struct step_request, lines), NULL},
	{"times", 0, OPT_NUMBER, "N",
	 "do that the first N times that the probe happens (1 unless given; 0: until the end)",
	 offsetof(struct step_request, times), NULL},
	{"duration", 'd', OPT_DURATION, "TIME", "end after this time",
	 offsetof(struct step_request, t.duration_ms), NULL},
	{"exact", 0, OPT_FLAG, NULL, "put the probe exactly where it was asked for",
	 offsetof(struct step_request, exact), NULL},
};

const struct command cmd_trace_step = {
	.name = "trace step",
	.about = "print what a thread executes behind a probe",
	.run = run,
	.syntax =
		{
			.usage =
				"ax trace step PROBE [VALUE ...] [if CONDITION] -p PID|-c CMD [-f] "
				"[-n N] [--lines]",
			.about =
				"Stops the thread that comes to a probe, alone, and lets it go on "
				"instruction by instruction, or line by line: each is printed with "
				"the registers that it changed, or with the values that are asked "
				"for. Then the thread goes on by itself. While this command runs "
				"the processes are traced by ptrace, so no debugger can be "
				"attached to them.",
			.own = {{own, ARRAY_SIZE(own), 0},
				{&trace_opts[TRACE_OPT_PID], 3,
				 offsetof(struct step_request, args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct step_request, args)}},
			.args = {&trace_probe_words},
		},
};
