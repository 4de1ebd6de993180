/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ready commands ax trace exec, open and tcp have in common. */
#ifndef AX_TOOLS_TRACE_READY_READY_H
#define AX_TOOLS_TRACE_READY_READY_H

#include "probes/watch/watch.h"
#include "tools/trace/run/run.h"

/* What became of a record. */
enum ready_result {
	READY_PART,   /* it belongs to an event that comes later */
	READY_SHOWN,  /* an event */
	READY_HIDDEN, /* one that nobody asked for */
};

struct ready {
	struct cmd *c;
	/* of the command line */
	struct trace_args args;
	uint32_t count, duration_ms;
	bool alone;
	/* of the run */
	struct watch_options options;
	struct watch *watch;
	struct trace_child child;
	struct trace_out out;
	bool json;
	int64_t real_offset_ns; /* from CLOCK_MONOTONIC to the time of day */
	uint64_t received, shown;
	/* Writes a record. Below 0: no more can be written. */
	int (*put)(struct ready *r, const void *record, size_t len);
	/* When all is attached, before the command of -c begins; may be NULL. */
	int (*after_attach)(struct ready *r, struct error *e);
	/* Before the last records are read, with everything attached still; may be NULL. */
	int (*at_end)(struct ready *r, struct error *e);
	void *own;
};

/* Of a struct ready; those of trace_opts from TRACE_OPT_APP on, of its args, belong to them. */
extern const struct opt ready_opts[5];
/* Checks the options, finds what they name, starts the command of -c, opens the output. True: the
 * programs can be loaded with r->options. False: *status is to be returned. */
bool ready_begin(struct ready *r, int *status);
/* Attaches r->watch (load_result: what loading it returned, below 0 with a sentence in e), and goes
 * on until the end. Returns the exit status. */
int ready_run(struct ready *r, int load_result, struct error *e);
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
/* Into buf; NULL: it is no app of ax. */
const char *ready_app_name(const struct ax_watch_head *h, char buf[AX_EVENT_APP]);

extern const struct command cmd_trace_exec;
extern const struct command cmd_trace_open;
extern const struct command cmd_trace_tcp;

#endif
