/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A script at work: `ax trace run`. */
#ifndef AX_TOOLS_TRACE_SCRIPT_SCRIPT_H
#define AX_TOOLS_TRACE_SCRIPT_SCRIPT_H

#include "probes/script/script.h"
#include "tools/trace/flow/flow.h"
#include "tools/trace/run/run.h"
#include "tools/trace/script/defaults.h"

/* --- order.c: records in the order of their times --- */

struct order_entry {
	uint64_t time_ns, number;
	size_t at, len; /* in `bytes` */
};
struct order {
	struct order_entry *v;
	size_t n, size;
	char *bytes, *spare;
	size_t used, room, spare_room;
	uint64_t number, last_ns;
	uint64_t late; /* given out behind one of a later time */
	bool unsorted;
};
int order_add(struct order *o, const struct ax_probe_record *r, size_t len);
/* Gives out all that happened up to then: 0, or what f returned below 0. */
int order_give(struct order *o, uint64_t until_ns,
	       int (*f)(void *arg, const struct ax_probe_record *r, size_t len), void *arg);
void order_free(struct order *o);

/* --- flow.c: lines of calls --- */

struct script_calls {
	struct flow *flow; /* NULL: none came */
	struct flow_lines lines;
	struct flow_function *functions; /* by the session's names */
	size_t n_functions;
	uint8_t *returns;
	uint64_t looked_ns, dropped;
};

/* --- the run --- */

struct script_run {
	struct trace t;
	struct script script;
	const char *name; /* of the script, for mistakes */
	struct session_part parts[SESSION_SCRIPT_MAX];
	size_t n_parts; /* the script's steps */
	struct trace_child child;
	struct trace_ends ends;
	struct order order;
	struct script_calls calls;
	struct session_table cleared[SCRIPT_TABLES_MAX + 1]; /* what is not shown again */
	uint64_t *next_ns;				     /* of each clause: `every` */
	uint64_t end_ns, look_ns, flush_ns;
	struct trace_out piece; /* where a value is written before it is padded */
	uint32_t records;	/* since the last look at the time */
	uint64_t unshown;	/* lines that came behind `exit` */
	bool done;
	bool exited;   /* by `exit`: only END prints from then on */
	bool has_keys; /* tables whose keys are functions of processes */
	bool shown;    /* by END: tables are not shown again */
	sigset_t open_mask;
};

/* parts.c: the script's steps as parts of a session; then what only the session knows. */
int script_make_parts(struct script_run *run, struct error *e);
int script_check_session(struct script_run *run, struct error *e);
int script_check_probe(struct script_run *run, const struct session_probe *p, struct error *e);

/* act.c: what a record stands for. */
int script_act(struct script_run *run, const struct ax_probe_record *r, size_t len);
void script_show(struct script_run *run, uint32_t tables, uint64_t real_ns);
/* All that has been counted, also what was cleared. */
uint64_t script_counted(const struct script_run *run);
void script_look(struct script_run *run);

/* flow.c */
int script_flow(struct script_run *run, const struct ax_probe_record *r, size_t len);
/* Calls that have not returned. */
int script_flow_end(struct script_run *run);
void script_calls_free(struct script_calls *c);

/* print.c */
int script_print(struct script_run *run, const struct script_step *step,
		 const struct ax_probe_record *r, size_t len);

/* run.c: attaches, goes on until the end, and returns the exit status. */
int script_do(struct script_run *run);

extern const struct command cmd_trace_run;

#endif
