/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace from its command line to its last line: ax trace watch, count, hist, stats, latency. */
#ifndef AX_TOOLS_TRACE_RUN_RUN_H
#define AX_TOOLS_TRACE_RUN_RUN_H

#include <poll.h>
#include <signal.h>

#include "tools/lib/command.h"
#include "tools/trace/show/show.h"

enum trace_format { TRACE_TEXT, TRACE_JSON, TRACE_CTF };
struct trace_args {
	struct strv pid;
	bool follow;
	const char *command, *app, *cgroup;
	int output;	     /* enum trace_format */
	int stack;	     /* 1: frame pointers lead to callers, no stack is copied */
	uint32_t buffer_mib; /* for records on their way; 0: as it is */
	const char *path;
};

/* --- parts.c: the probes that a command line names --- */

/* Adds a part. False: the sentence was printed, *status is to be returned. */
bool trace_add_part(struct trace *t, const char *text, enum trace_action action, int *status);
/* The words of the command's probe as its first part. */
bool trace_parse(struct trace *t, int argc, char **argv, enum trace_action action, int *status);
void trace_free(struct trace *t);
/* PROBE [on VALUE] to PROBE [on VALUE] [by ...] */
bool trace_parse_latency(struct trace *t, int argc, char **argv, int *status);

/* --- whom.c --- */

#define TRACE_PIDS_MAX 256

/* The numbers in what -p had, which may be several with commas. -EINVAL. */
int trace_whom_read(struct trace_whom *w, const struct strv *texts, struct error *e);
int trace_whom_check(const struct trace_whom *w, struct error *e); /* -ESRCH */
void trace_whom_free(struct trace_whom *w);
/* The process of -c is the one that it is about. -ENOMEM. */
int trace_take_child(struct trace *t, int pid, struct error *e);
/* t->whom becomes what the session is about. */
void trace_take_whom(struct trace *t);

/* When all of some processes have ended. */
struct trace_ends {
	struct pollfd *v; /* of those that run, and room for one more */
	size_t n;
	bool ended;
};
int trace_ends_open(struct trace_ends *ends, const uint32_t *pids, size_t n); /* -ENOMEM */
void trace_ends_close(struct trace_ends *ends);
/* Waits until then, until `also` (-1: nothing) can be read, or so long. True: they have ended. */
bool trace_ends_wait(struct trace_ends *ends, int also, uint64_t ns, const sigset_t *mask);

/* --- run.c --- */

/* Attaches, goes on until the end, and prints what came out. */
int trace_run(struct trace *t);
/* What became of every event; `command`: there was one, which ended with that status. */
void trace_put_summary(struct trace *t, bool command, int status);
/* How many places, in what, and by which means. */
void trace_say_attached(const struct trace *t);
/* What has to be there of what the options name; scope and apps go into t->options. */
int trace_find_scope(struct trace *t, const struct trace_args *a, struct error *e);
int trace_check_args(struct trace *t, const struct trace_args *a, struct error *e);
int trace_check_output(const struct trace_args *a, struct error *e);

/* --- options.c: what the commands that attach have in common --- */

/* In parts, since some commands have not all of them, or others under these names. */
enum {
	TRACE_OPT_PID,
	TRACE_OPT_COMMAND,
	TRACE_OPT_FOLLOW,
	TRACE_OPT_APP,
	TRACE_OPT_CGROUP,
	TRACE_OPT_OUTPUT,
	TRACE_OPT_FILE,
	TRACE_OPTS
};
extern const struct opt trace_opts[TRACE_OPTS];
/* The last two, of commands whose records can be CTF. */
#define TRACE_RECORD_OPTS 2
extern const struct opt trace_record_opts[TRACE_RECORD_OPTS];

/* Of commands that print records. */
#define TRACE_WAY_OPTS 2
extern const struct opt trace_way_opts[TRACE_WAY_OPTS];
#define TRACE_BUFFER_MAX_MIB 1024
/* A power of two up to that. */
bool trace_is_buffer(uint32_t mib);

struct trace_arming {
	struct strv armed_by, disarmed_by;
	bool per_thread, exact;
	const char *types;
};
extern const struct opt trace_arming_opts[5];
/* --types: for commands that have no others of them. */
#define TRACE_TYPES_TEXT "what functions take and return, for programs without debug data"

/* The kinds of probes, with which each one begins. */
extern const struct words trace_probe_words;

/* What is in the options goes where the trace looks for it. */
void trace_take_args(struct trace *t, const struct trace_args *a);
void trace_args_free(struct trace_args *a);

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
/* The same for a command that is in words, the last one NULL. */
int trace_child_start_words(struct trace_child *c, char **words, struct error *e);
/* Executes the command. A negative errno with a sentence when there is no such program. */
int trace_child_go(struct trace_child *c, const char *command, struct error *e);
/* Ends it if it still runs; its exit status as in $?. */
int trace_child_end(struct trace_child *c, bool *by_itself);

/* --- show_script.c --- */

/* What stays an option of the command line: whose, how long and where to. */
struct trace_script_options {
	const struct trace_args *args;
	const struct trace_whom *whom;
	bool follow, exact;
	uint32_t duration_ms;
};
void trace_write_script_options(const struct trace_script_options *o, FILE *f);

/* What the command line asks for, as a script of ax trace run. `buckets`: of -l, or NULL. -ENOMEM
 */
int trace_write_script(const struct trace *t, const struct trace_args *a, const char *buckets,
		       FILE *f);

extern const struct command cmd_trace_watch;
extern const struct command cmd_trace_count;
extern const struct command cmd_trace_hist;
extern const struct command cmd_trace_stats;
extern const struct command cmd_trace_latency;

#endif
