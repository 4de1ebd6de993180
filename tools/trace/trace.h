/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of `ax trace` share. */
#ifndef AX_TOOLS_TRACE_TRACE_H
#define AX_TOOLS_TRACE_TRACE_H

#include "probes/text/latency.h"
#include <limits.h>

#include "probes/session/session.h"
#include "tools/lib/subcommand.h"
#include "tools/trace/out.h"

/* Its number shows how a record's parts are written that are the same each time. */
struct trace_layout;

/* What a command line asks for, and how far it is done. */
struct trace {
	struct cmd *c;
	struct session_options options;
	/* The first part is what the command is about; the others arm, disarm or start it. */
	struct session_part parts[SESSION_PARTS_MAX];
	struct probe_spec specs[SESSION_PARTS_MAX];
	size_t n_parts;
	struct latency latency; /* what TRACE_LATENCY's parts point to */
	struct session *session;
	bool json;
	uint32_t count; /* records, or tables at intervals; 0: no end */
	uint32_t duration_ms, interval_ms;
	char apps[PATH_MAX]; /* where apps have their cgroups, "" */
	const char *command; /* -c */
	const char *path;    /* -O */

	struct trace_out out;
	struct trace_layout *layouts; /* of each probe, made when its first record comes */
	struct processes *names;      /* of functions in processes and the kernel */
	int64_t real_offset_ns;	      /* from CLOCK_MONOTONIC to the time of day */
	uint64_t received, shown;
	uint64_t end_ns; /* monotonic: when detaching began, 0: not yet */

	/* Of commands that make more of records than a line each: called for each record, and when
	 * the last one was. NULL: records become lines. */
	int (*on_record)(struct trace *t, const struct ax_probe_record *r, size_t len);
	int (*on_end)(struct trace *t, struct error *e);
	void *own;
};

/* Adds a part. False: the sentence was printed, *status is to be returned. */
bool trace_add_part(struct trace *t, const char *text, enum trace_action action, int *status);
/* The words of the command's probe as its first part. */
bool trace_parse(struct trace *t, int argc, char **argv, enum trace_action action, int *status);
void trace_free(struct trace *t);
/* Attaches, goes on until the end, and prints what came out. */
int trace_run(struct trace *t);

/* cmd_trace_options.c: what the commands that attach have in common */
int trace_command(struct cmd *c, int argc, char **argv, enum trace_action action, const char *usage,
		  const char *about);
int trace_open_output(struct trace *t, struct error *e);

/* cmd_trace_latency.c: PROBE [on VALUE] to PROBE [on VALUE] [by ...] */
bool trace_parse_latency(struct trace *t, int argc, char **argv, int *status);

/* cmd_trace_app.c */
void trace_find_apps(struct trace *t);
/* The name of the app that has this cgroup, or "-". */
void trace_put_app(struct trace *t, uint64_t cgroup);
/* The cgroup of a running app, by its name or number. */
int trace_app_cgroup(const struct instance *inst, const char *app, struct session_options *o,
		     struct error *e);
int trace_cgroup(const char *path, struct session_options *o, struct error *e);

/* cmd_trace_child.c: the process of -c, which waits until probes are attached */
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

/* cmd_trace_value.c */
void trace_put_number(struct trace_out *o, const struct fetch_shown *shown, uint64_t v, bool json);
/* A part of a table's key; `words` begins with it. */
void trace_put_key(struct trace *t, const struct fetch_shown *shown, const uint64_t *words);

/* cmd_trace_record.c */
int trace_put_record(struct trace *t, const struct ax_probe_record *r, size_t len);
/* Its value number i. */
void trace_put_value(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
		     const struct fetch_shown *shown);
void trace_layouts_free(struct trace *t);
/* "19:02:11.123456" */
#define TRACE_TIME_MAX 24
char *trace_write_time(char *at, uint64_t ns);

/* cmd_trace_stack.c: addresses as names */
bool trace_is_stack(const struct fetch_shown *shown);
void trace_put_symbol(struct trace *t, uint32_t pid, uint64_t address);
/* Text: lines that begin with `indent`; JSON: an array. `probe`: UINT32_MAX: not known. */
void trace_put_stack(struct trace *t, const struct fetch_shown *shown, uint32_t probe, uint32_t pid,
		     uint64_t id, uint64_t caller, const char *indent);
/* A process whose addresses will be asked for: it may have ended by then. */
void trace_note_process(struct trace *t, uint32_t pid);
/* The command of -c, which has just become its program: looks at it for a few milliseconds. */
void trace_note_command(struct trace *t, int pid);
/* A table's keys may be addresses of processes that are gone when it is printed: whether they are,
 * and what is to be done every TRACE_NOTE_MS then. */
#define TRACE_NOTE_MS 100
bool trace_table_has_names(const struct trace *t);
void trace_note_table(struct trace *t);
void trace_names_free(struct trace *t);

/* cmd_trace_table.c */
/* `ns`: time of day, 0: of the whole run. */
void trace_put_table(struct trace *t, const struct session_table *table, uint64_t ns);

int cmd_trace_watch(struct cmd *c, int argc, char **argv);
int cmd_trace_count(struct cmd *c, int argc, char **argv);
int cmd_trace_hist(struct cmd *c, int argc, char **argv);
int cmd_trace_stats(struct cmd *c, int argc, char **argv);
int cmd_trace_latency(struct cmd *c, int argc, char **argv);
int cmd_trace_exec(struct cmd *c, int argc, char **argv);
int cmd_trace_open(struct cmd *c, int argc, char **argv);
int cmd_trace_tcp(struct cmd *c, int argc, char **argv);
int cmd_trace_flow(struct cmd *c, int argc, char **argv);
int cmd_trace_list(struct cmd *c, int argc, char **argv);
int cmd_trace_explain(struct cmd *c, int argc, char **argv);

/* cmd_trace_named.c, cmd_trace_view.c */
int cmd_trace_add(struct cmd *c, int argc, char **argv);
int cmd_trace_ls(struct cmd *c, int argc, char **argv);
int cmd_trace_view(struct cmd *c, int argc, char **argv);
int cmd_trace_enable(struct cmd *c, int argc, char **argv);
int cmd_trace_disable(struct cmd *c, int argc, char **argv);
int cmd_trace_reset(struct cmd *c, int argc, char **argv);
int cmd_trace_rm(struct cmd *c, int argc, char **argv);

#endif
