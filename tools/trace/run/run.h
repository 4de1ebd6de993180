/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace from its command line to its last line: ax trace watch, count, hist, stats, latency. */
#ifndef AX_TOOLS_TRACE_RUN_RUN_H
#define AX_TOOLS_TRACE_RUN_RUN_H

#include "tools/lib/command.h"
#include "tools/trace/show/show.h"

/* --- parts.c: the probes that a command line names --- */

/* Adds a part. False: the sentence was printed, *status is to be returned. */
bool trace_add_part(struct trace *t, const char *text, enum trace_action action, int *status);
/* The words of the command's probe as its first part. */
bool trace_parse(struct trace *t, int argc, char **argv, enum trace_action action, int *status);
void trace_free(struct trace *t);
/* PROBE [on VALUE] to PROBE [on VALUE] [by ...] */
bool trace_parse_latency(struct trace *t, int argc, char **argv, int *status);

/* --- run.c --- */

/* Attaches, goes on until the end, and prints what came out. */
int trace_run(struct trace *t);

/* --- options.c: what the commands that attach have in common --- */

struct trace_args {
	uint32_t pid;
	const char *command, *app, *cgroup;
	int output; /* 0: text, 1: JSON */
	const char *path;
};
/* In parts, since some commands have not all of them, or others under these names. */
enum {
	TRACE_OPT_PID,
	TRACE_OPT_COMMAND,
	TRACE_OPT_APP,
	TRACE_OPT_CGROUP,
	TRACE_OPT_OUTPUT,
	TRACE_OPT_FILE,
	TRACE_OPTS
};
extern const struct opt trace_opts[TRACE_OPTS];

struct trace_arming {
	struct strv armed_by, disarmed_by;
	bool per_thread, exact;
};
extern const struct opt trace_arming_opts[4];

/* The kinds of probes, with which each one begins. */
extern const struct words trace_probe_words;

/* What is in the options goes where the trace looks for it. */
void trace_take_args(struct trace *t, const struct trace_args *a);

/* --- child.c: the process of -c, which waits until probes are attached --- */

struct trace_child {
	int pid;   /* 0: there is none */
	int go;	   /* closed: it is not to go on */
	int pidfd; /* tells its end */
	int errors;
};
#define TRACE_NO_CHILD                              \
	(struct trace_child)                        \
	{                                           \
		.go = -1, .pidfd = -1, .errors = -1 \
	}
int trace_child_start(struct trace_child *c, const char *command, struct error *e);
/* Executes the command. A negative errno with a sentence when there is no such program. */
int trace_child_go(struct trace_child *c, const char *command, struct error *e);
/* Ends it if it still runs; its exit status as in $?. */
int trace_child_end(struct trace_child *c, bool *by_itself);

extern const struct command cmd_trace_watch;
extern const struct command cmd_trace_count;
extern const struct command cmd_trace_hist;
extern const struct command cmd_trace_stats;
extern const struct command cmd_trace_latency;

#endif
