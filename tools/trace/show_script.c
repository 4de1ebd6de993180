// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace show-script: another command as a script of ax trace run. */
#include "tools/trace/flow/flow.h"
#include "tools/trace/profile/profile.h"
#include "tools/trace/ready/ready.h"
#include "tools/trace/run/run.h"
#include "tools/trace/trace.h"

#define IS_A_SCRIPT	 "what it runs is a script already"
#define ATTACHES_NOTHING "it attaches nothing, so there is nothing to put into a script"
#define IS_NAMED                                                                             \
	"probes with names stay when ax ends, as no script does: expected the command that " \
	"they were made of (watch, count, hist, stats, latency)"
#define STOPS_THREADS                                                                            \
	"it stops threads and has a process of its own trace them (ptrace), which no probe can " \
	"do"
#define KEEPS_A_LOG                                                                                \
	"what it writes is a log of its own, of programs that look at whole processes and pages, " \
	"and not lines and tables"

/* Commands that print themselves, if they are told to (struct cmd); others have a reason. */
static const struct {
	const char *name;
	const struct command *command;
	const char *why_not;
} verbs[] = {
	{"watch", &cmd_trace_watch, NULL},
	{"count", &cmd_trace_count, NULL},
	{"hist", &cmd_trace_hist, NULL},
	{"stats", &cmd_trace_stats, NULL},
	{"latency", &cmd_trace_latency, NULL},
	{"exec", &cmd_trace_exec, NULL},
	{"open", &cmd_trace_open, NULL},
	{"syscalls", &cmd_trace_syscalls, NULL},
	{"signals", &cmd_trace_signals, NULL},
	{"files", &cmd_trace_files, NULL},
	{"tls", &cmd_trace_tls, NULL},
	{"malloc", &cmd_trace_malloc, NULL},
	{"locks", &cmd_trace_locks, NULL},
	{"hypercall", &cmd_trace_hypercall, NULL},
	{"profile", &cmd_trace_profile, NULL},
	{"offcpu", &cmd_trace_offcpu, NULL},
	{"flow", &cmd_trace_flow, NULL},
	{"tcp", &cmd_trace_tcp, NULL},
	{"run", NULL, IS_A_SCRIPT},
	{"list", NULL, ATTACHES_NOTHING},
	{"explain", NULL, ATTACHES_NOTHING},
	{"perfdata", NULL, ATTACHES_NOTHING},
	{"step", NULL, STOPS_THREADS},
	{"change", NULL, STOPS_THREADS},
	{"changes", NULL, ATTACHES_NOTHING},
	{"build", NULL, KEEPS_A_LOG},
	{"jit", NULL, KEEPS_A_LOG},
	{"add", NULL, IS_NAMED},
	{"ls", NULL, IS_NAMED},
	{"view", NULL, IS_NAMED},
	{"enable", NULL, IS_NAMED},
	{"disable", NULL, IS_NAMED},
	{"reset", NULL, IS_NAMED},
	{"rm", NULL, IS_NAMED},
};

/* The options of the other command are those that it has: it becomes the one that runs. */
static int run_show_script(struct cmd *c, int argc, char **argv)
{
	int status;

	for (size_t i = 0; argc && i < ARRAY_SIZE(verbs); i++) {
		if (!streq(argv[0], verbs[i].name))
			continue;
		if (verbs[i].why_not)
			return cmd_usage(c, "there is no script of 'ax trace %s': %s", argv[0],
					 verbs[i].why_not);
		c->command = verbs[i].command;
		c->name = verbs[i].command->name;
		c->shows_script = true;
		return verbs[i].command->run(c, argc - 1, argv + 1);
	}
	if (argc && argv[0][0] == '-') {
		if (!cmd_begin(c, c, &argc, argv, &status))
			return status;
	}
	return cmd_usage(c, "expected another command of 'ax trace', and what would be behind it, "
			    "as in 'ax trace show-script count PROBE by comm'");
}

static const char *shown_verb(size_t i)
{
	for (size_t j = 0; j < ARRAY_SIZE(verbs); j++)
		if (!verbs[j].why_not && verbs[j].command != &cmd_trace_tcp && !i--)
			return verbs[j].name;
	return NULL;
}

static const struct words shown_verbs = {.nth = shown_verb};

const struct command cmd_trace_show_script = {
	.name = "trace show-script",
	.about = "print what another command would be as a script",
	.run = run_show_script,
	.syntax =
		{
			.usage = "ax trace show-script COMMAND [WORD ...]",
			.about = "Prints the script of 'ax trace run' that does what another "
				 "command of 'ax trace' does, to begin one of one's own with. What "
				 "is printed first is how to run it.",
			.args = {&shown_verbs},
			.rest = &trace_probe_words,
			.command_follows = true,
		},
};
