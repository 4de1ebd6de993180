/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ready commands ax trace exec, open, tcp and others have in common. */
#ifndef AX_TOOLS_TRACE_READY_READY_H
#define AX_TOOLS_TRACE_READY_READY_H

#include "probes/watch/watch.h"
#include "tools/trace/run/run.h"
#include "tools/trace/show/json_ctf.h"

/* What became of a record. */
enum ready_result {
	READY_PART,   /* it belongs to an event that comes later */
	READY_SHOWN,  /* an event */
	READY_HIDDEN, /* one that nobody asked for */
};

struct ready {
	struct cmd *c;
	/* What its word is, as "pattern" ("expected one pattern"); NULL: it takes none. */
	const char *word;
	const char *heading; /* of text, before anything is loaded; NULL: none */
	/* More about the command line (word: NULL if there is none), before anything is begun.
	 * Below 0, with a sentence: what is expected instead. May be NULL. */
	int (*check)(struct ready *r, const char *word, struct error *e);
	/* What it does, as clauses of a script; NULL: there is no such script, for this reason. */
	int (*write_script)(const struct ready *r, FILE *f);
	const char *no_script;
	/* Loads the programs into r->watch with r->options. Below 0, with a sentence. */
	int (*load)(struct ready *r, struct error *e);
	/* of the command line */
	struct trace_args args;
	uint32_t count, duration_ms;
	bool alone;
	/* of the run */
	struct trace_whom whom; /* -p */
	uint32_t own_pid;	/* of the command */
	struct watch_options options;
	struct watch *watch;
	struct trace_child child;
	struct trace_out out;
	bool json;
	struct json_ctf *ctf;	/* of -o ctf: gets what is JSON, from `out` */
	bool secret;		/* what is written to a file is its owner's alone */
	int64_t real_offset_ns; /* from CLOCK_MONOTONIC to the time of day */
	uint64_t received, shown;
	/* Writes a record. Below 0: no more can be written. */
	int (*put)(struct ready *r, const void *record, size_t len);
	/* When all is attached, before the command of -c begins; may be NULL. */
	int (*after_attach)(struct ready *r, struct error *e);
	/* Before the last records are read, with everything attached still; may be NULL. */
	int (*at_end)(struct ready *r, struct error *e);
	/* Of commands that count in the kernel: when nothing is attached any more, reads what was
	 * counted, and says how many events that are (maybe again, if some are on their way still);
	 * then writes it. May be NULL. */
	int (*read_counts)(struct ready *r, uint64_t *events, struct error *e);
	int (*put_counts)(struct ready *r, struct error *e);
	/* Every look_ms while it goes on; may be NULL. */
	void (*look)(struct ready *r);
	uint32_t look_ms; /* 0: TRACE_NOTE_MS */
	/* More of the summary, as ", ..." and as members of the object; may be NULL. */
	void (*put_more)(struct ready *r);
	uint32_t poll_ms; /* 0: WATCH_POLL_MS */
	const char *cut;  /* what is missing of records; NULL: pieces of arguments */
	void *own;
};

/* Of a struct ready; those of trace_opts from TRACE_OPT_APP on, of its args, belong to them. */
extern const struct opt ready_opts[6];
#define READY_OPTS_TABLE 5 /* so many of them have commands that print nothing but tables */
/* The whole of a command: r is the first member of what its options are read into, and says what is
 * its own. Returns the exit status; ready_end() is to be called then. */
int ready_command(struct ready *r, int argc, char **argv);
/* Frees everything but `own`. */
void ready_end(struct ready *r);

/* --- cells.c: pieces of lines --- */

void ready_time(struct ready *r, uint64_t ns);
/* Text that fills at least `width` columns, made harmless for a terminal, and a blank. */
void ready_cell(struct ready *r, const char *text, size_t width);
void ready_cell_safe(struct ready *r, const char *text, size_t len, size_t width);
/* At the right of `width` columns, and a blank. */
void ready_number(struct ready *r, uint64_t v, size_t width);
void ready_duration(struct ready *r, uint64_t ns, size_t width);
/* "ENOENT" */
const char *ready_errno(int err, char buf[32]);
/* An object's first members; the caller ends it. */
void ready_json_head(struct ready *r, const struct ax_watch_head *h, const char *event);
void ready_json_string(struct ready *r, const char *key, const char *text, size_t len);
void ready_json_number(struct ready *r, const char *key, int64_t v);
/* A word (with a NUL behind) so that a shell takes it back; what a terminal would not show as it
 * is stands as in $'\033'. */
void ready_shell_word(struct trace_out *o, const char *word, size_t len);
/* "web" of "web-7"; into buf; NULL: it is no app of ax. */
const char *ready_app_text(const char cgroup[AX_EVENT_APP], char buf[AX_EVENT_APP]);
const char *ready_app_name(const struct ax_watch_head *h, char buf[AX_EVENT_APP]);

extern const struct command cmd_trace_exec;
extern const struct command cmd_trace_open;
extern const struct command cmd_trace_tcp;
extern const struct command cmd_trace_hypercall;
extern const struct command cmd_trace_syscalls;
extern const struct command cmd_trace_signals;
extern const struct command cmd_trace_files;
extern const struct command cmd_trace_tls;
extern const struct command cmd_trace_malloc;
extern const struct command cmd_trace_locks;

#endif
