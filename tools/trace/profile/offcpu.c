// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace offcpu: where threads wait, and how long. */
#include "tools/trace/profile/profile.h"

static int after_attach(struct ready *r, struct error *e)
{
	struct profile *p = r->own;

	(void)e;
	p->names.watch = r->watch;
	return 0;
}

static int load(struct ready *r, struct error *e)
{
	struct profile *p = r->own;
	struct watch_offcpu_options x = {.preempted = p->preempted,
					 .kernel_threads = p->kernel_threads,
					 .least_ns = (uint64_t)p->least_ms * 1000000};

	r->json = p->format == PROFILE_JSON;
	p->by = !p->by; /* the first choice here is the second one there */
	return watch_offcpu_load(&r->options, &x, &r->watch, e);
}

/* Who is switched to is not the one that the event happens in. */
static int write_offcpu(const struct ready *r, FILE *f)
{
	const struct profile *p = r->own;
	if (p->format > PROFILE_JSON)
		return -ENOTSUP;
	fprintf(f,
		"# those that wait still at the end are not in it\n"
		"tracepoint:sched:sched_switch if %s%s {\n",
		p->preempted ? "" : "(prev_state & 0xff) != 0 && ",
		p->kernel_threads ? "prev_pid != 0" : "$task->mm != 0");
	fputs("\tset map.off[prev_pid] = nsecs;\n\tset map.kernel[prev_pid] = kstack;\n"
	      "\tset map.user[prev_pid] = ustack;\n\tset map.who[prev_pid] = comm\n}\n"
	      "tracepoint:sched:sched_switch anywhere if map.off[next_pid] {\n"
	      "\tstats nsecs-map.off[next_pid] by comm=map.who[next_pid] "
	      "map.kernel[next_pid]:kstack map.user[next_pid]:ustack as waits",
	      f);
	if (p->least_ms)
		fprintf(f, " if nsecs-map.off[next_pid] >= %u000000", p->least_ms);
	fputs(";\n\tset map.off[next_pid] = 0;\n\tset map.user[next_pid] = 0;\n"
	      "\tset map.kernel[next_pid] = 0;\n\tset map.who[next_pid] = \"\"\n}\n",
	      f);
	return 0;
}

static int run_offcpu(struct cmd *c, int argc, char **argv)
{
	struct profile p = {.r = {.load = load,
				  .after_attach = after_attach,
				  .write_script = write_offcpu,
				  .no_script = PROFILE_NO_SCRIPT},
			    .waits = true};

	return profile_run(&p, c, argc, argv);
}

static const char *const bys[] = {"stack", "function", NULL};
static const struct words by_words = {.choices = bys};

static const struct opt options[] = {
	{"least", 0, OPT_DURATION, "TIME", "only what lasted at least so long each time",
	 offsetof(struct profile, least_ms), NULL},
	{"kernel-threads", 0, OPT_FLAG, NULL, "also threads of the kernel itself",
	 offsetof(struct profile, kernel_threads), NULL},
	{"preempted", 0, OPT_FLAG, NULL,
	 "also threads that could go on, but had to give their processor to others",
	 offsetof(struct profile, preempted), NULL},
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "text (the default), json (a stack a line), folded (for other tools, with microseconds), "
	 "or "
	 "svg, a flame graph for a browser",
	 offsetof(struct profile, format), &profile_formats},
	{"by", 0, OPT_CHOICE, "WHAT",
	 "of text: each stack (the default) or a line for each function",
	 offsetof(struct profile, by), &by_words},
	{"top", 0, OPT_NUMBER, "N", "of text: so many of them (20)", offsetof(struct profile, top),
	 NULL},
};

const struct command cmd_trace_offcpu = {
	.name = "trace offcpu",
	.about = "show where threads wait, and how long",
	.run = run_offcpu,
	.syntax =
		{
			.usage =
				"ax trace offcpu [-p PID] [-c CMD] [--app NAME] [-d TIME] [--least "
				"TIME] [-o FORMAT] [--by WHAT]",
			.about = "Sums up how long threads wait, from when they leave their "
				 "processor to when they are on one again, by the calls that led "
				 "there, in the kernel and in the program. Those that wait still "
				 "at the end are in it. Callers in programs are found by frame "
				 "pointers.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct profile, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct profile, r.args)},
				{&trace_opts[TRACE_OPT_FILE], 1, offsetof(struct profile, r.args)}},
		},
};
