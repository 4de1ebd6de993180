/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probes have seen as text and as JSON; and struct trace, which all of `ax trace` is about. */
#ifndef AX_TOOLS_TRACE_SHOW_SHOW_H
#define AX_TOOLS_TRACE_SHOW_SHOW_H

#include <limits.h>

#include "probes/session/session.h"
#include "probes/text/latency.h"
#include "tools/lib/cmd.h"
#include "tools/trace/show/defaults.h"
#include "tools/trace/show/out.h"

/* Where records become events of CTF. */
struct trace_ctf;
/* Where records become CTF. */
struct trace_ctf;
/* Its number shows how a record's parts are written that are the same each time. */
struct trace_layout;

/* Processes by their numbers. */
struct trace_whom {
	uint32_t *v;
	size_t n;
};

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
	/* Of a script: all its parts, and which of its tables is at hand. NULL: there is one table,
	 * the first part's. */
	const struct session_part *script;
	size_t n_script;
	uint32_t table;
	const char *table_name;
	bool json;
	uint32_t count; /* records, or tables at intervals; 0: no end */
	uint32_t duration_ms, interval_ms;
	char apps[PATH_MAX];	/* where apps have their cgroups, "" */
	struct trace_whom whom; /* -p, or the process of -c */
	const char *command;	/* -c */
	const char *path;	/* -O, a file */
	const char *ctf_path;	/* -O with -o ctf, a directory: NULL: records become no CTF */
	struct trace_ctf *ctf;

	struct trace_out out;
	struct trace_layout *layouts; /* of each probe, made when its first record comes */
	struct processes *names;      /* of functions in processes and the kernel */
	struct trace_stacks *stacks;  /* that were found by copies */
	int64_t real_offset_ns;	      /* from CLOCK_MONOTONIC to the time of day */
	uint64_t received, shown;
	uint64_t controls; /* of a script: records that only had something done, which are no events
			    */
	uint64_t begin_ns, end_ns; /* monotonic: all probes are attached, 0: not yet */

	/* Of commands that make more of records than a line each: called for each record of the
	 * time in which all probes are attached, and when the last one was. NULL: records become
	 * lines. */
	int (*on_record)(struct trace *t, const struct ax_probe_record *r, size_t len);
	int (*on_end)(struct trace *t, struct error *e);
	void *own;
};

/* --- value.c --- */

void trace_put_number(struct trace_out *o, const struct fetch_shown *shown, uint64_t v, bool json);
/* A part of a table's key; `words` begins with it. */
void trace_put_key(struct trace *t, const struct fetch_shown *shown, const uint64_t *words);

/* --- record.c --- */

int trace_put_record(struct trace *t, const struct ax_probe_record *r, size_t len);
/* The same with a text of `text_len` bytes, which only JSON has beside the values. */
int trace_put_record_text(struct trace *t, const struct ax_probe_record *r, size_t len,
			  const char *text, size_t text_len);
/* Its value number i. */
void trace_put_value(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
		     const struct fetch_shown *shown);
/* The first value of a record that fetch_evaluate() made, and no probe of the session. */
void trace_put_evaluated(struct trace *t, const struct ax_probe_record *r, size_t len,
			 const struct fetch *f);
void trace_layouts_free(struct trace *t);
/* The bytes of a string or buffer, NULL: the record does not have them. */
const char *trace_bytes_of(const struct ax_probe_record *r, size_t record_len, uint64_t v,
			   size_t *len);
/* "19:02:11.123456" */
#define TRACE_TIME_MAX 24
char *trace_write_time(char *at, uint64_t ns);

/* --- ctf.c: records as events of a trace in CTF --- */

/* If t->ctf_path names a directory for one. */
int trace_ctf_open(struct trace *t, struct error *e);
int trace_ctf_put(struct trace *t, const struct ax_probe_record *r, size_t len, const char *text,
		  size_t text_len);
/* Whether records are CTF, and some are to be written by now, or at the end. What fails is
 * t->out.error. `discarded`: how many events were lost since the start. */
bool trace_ctf_is_due(const struct trace *t);
int trace_ctf_flush(struct trace *t, uint64_t discarded, bool end);
void trace_ctf_free(struct trace *t);

/* --- copied_stacks.c --- */

#define TRACE_FRAMES   127 /* of a call stack */
#define TRACE_NO_STACK UINT64_MAX
/* The call stack whose number in a record says that it was copied, the innermost address first; of
 * callers where they return to. -ENOENT: nothing is known of it, and *by_frames is the number of
 * the one that frame pointers gave, or TRACE_NO_STACK. */
int trace_copied_stack(struct trace *t, uint64_t id, uint64_t addresses[TRACE_FRAMES],
		       uint64_t *by_frames);
void trace_stacks_free(struct trace *t);

/* --- stack.c: addresses as names --- */

bool trace_is_stack(const struct fetch_shown *shown);
void trace_put_symbol(struct trace *t, uint32_t pid, uint64_t address);
/* Text: lines that begin with `indent`; JSON: an array. `probe`: UINT32_MAX: not known. */
void trace_put_stack(struct trace *t, const struct fetch_shown *shown, uint32_t probe, uint32_t pid,
		     uint64_t id, uint64_t caller, const char *indent);
/* A process whose addresses will be asked for: it may have ended by then. */
void trace_note_process(struct trace *t, uint32_t pid);
/* It is another program now, or its number may be another process's. */
void trace_forget_process(struct trace *t, uint32_t pid);
/* The command of -c, which has just become its program: looks at it for a few milliseconds. */
void trace_note_command(struct trace *t, int pid);
/* A table's keys may be addresses of processes that are gone when it is printed: whether they are,
 * and what is to be done every TRACE_NOTE_MS then. */
bool trace_table_has_names(const struct trace *t);
void trace_note_table(struct trace *t);
void trace_names_free(struct trace *t);

/* --- table.c --- */

/* What the session has counted: of a script, the table at hand. */
int trace_read_table(const struct trace *t, struct session_table *ret);
/* How its keys are shown. */
const struct fetch *trace_table_fetch(const struct trace *t);
/* `ns`: time of day, 0: of the whole run. */
void trace_put_table(struct trace *t, const struct session_table *table, uint64_t ns);
/* A line of a histogram: of 0 (order 0), or of what is from 2^(order - 1) to 2^order; `most`: the
 * greatest count of its lines. */
void trace_put_power_bar(struct trace_out *o, unsigned order, uint64_t count, uint64_t most);

/* --- times.c --- */

#define TRACE_DURATION_MAX 32
/* "850ns", "12.3us", "1.20s" */
const char *trace_duration_text(uint64_t ns, char buf[TRACE_DURATION_MAX]);
/* What the buckets of one histogram say together, in nanoseconds. */
struct trace_times {
	uint64_t count, p50, p90, p99, least, greatest;
	double mean;
};
/* The table with a line for each power of two, of one that has several; `words`: of keys without
 * the bucket. -ENOMEM. */
int trace_times_merge(const struct session_table *fine, uint32_t words, struct session_table *ret);
/* False: there is nothing to say. */
bool trace_times_of(const struct session_row *rows, size_t n, struct trace_times *ret);
void trace_put_times(struct trace_out *o, const struct trace_times *t);
/* Members of an object that has some before. */
void trace_put_json_times(struct trace_out *o, const struct trace_times *t);

/* --- apps.c --- */

/* Where apps have their cgroups, into t->apps. */
void trace_find_apps(struct trace *t);
/* The name of the app that has this cgroup, or "-". */
void trace_put_app(struct trace *t, uint64_t cgroup);

#endif
