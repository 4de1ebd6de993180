/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A script: several probes, and what each does. Free of side effects, as probes/text is.
 *
 *   SCRIPT = CLAUSE ...          # a comment, up to the end of its line
 *   CLAUSE = EVENT [anywhere] [when STATE] [if CONDITION] { ACTION ; ACTION ... }
 *   EVENT  = TARGET | BEGIN | END | every TIME
 *   ACTION, one of                              each with [if CONDITION]
 *     watch [VALUE ...]                         a line, as of 'ax trace watch'
 *     print "TEXT" [VALUE ...]                  a line of one's own
 *     flow [VALUE ...]                          a line of a call, as deep as it is
 *     count [VALUE ...] [by VALUE ...] [as NAME]
 *     hist VALUE [linear LEAST,GREATEST,STEP] [by VALUE ...] [as NAME]
 *     stats VALUE [by VALUE ...] [as NAME]
 *     latency [since TIMER [on VALUE]] [linear L,G,S] [by VALUE ...] [as NAME]
 *     start TIMER [on VALUE]
 *     set global.NAME|thread.NAME|map.NAME[VALUE] =|+= VALUE
 *     arm STATE [per-thread]     disarm STATE
 *     show [NAME ...]   clear [NAME ...]   exit
 *
 * TARGET, VALUE and CONDITION are those of probes/text/spec.h; a VALUE may also be global.NAME,
 * thread.NAME, map.NAME[VALUE] or a text in quotes. A name with braces or semicolons is put in
 * quotes. A variable holds texts if one of those that it is set to says that it is one: comm, a
 * text in quotes, VALUE:string, or a variable that does.
 */
#ifndef AX_PROBES_SCRIPT_SCRIPT_H
#define AX_PROBES_SCRIPT_SCRIPT_H

#include "probes/text/action.h"
#include "probes/text/spec.h"

#define SCRIPT_TEXT_MAX	     65536 /* bytes */
#define SCRIPT_STEPS_MAX     96	   /* actions, and conditions of several together */
#define SCRIPT_TABLES_MAX    31
#define SCRIPT_STATES_MAX    15
#define SCRIPT_VARIABLES_MAX 31 /* global ones, as many of threads, and as many maps */
#define SCRIPT_EVERY_MIN_MS  10
#define SCRIPT_FLOW_VALUES   2 /* that tell calls apart */

enum script_verb {
	SCRIPT_WATCH,
	SCRIPT_PRINT,
	SCRIPT_FLOW, /* at entries its spec has two arguments more, before its own */
	SCRIPT_COUNT,
	SCRIPT_HIST,
	SCRIPT_STATS,
	SCRIPT_LATENCY,
	SCRIPT_START,
	SCRIPT_SET,
	SCRIPT_ARM,
	SCRIPT_DISARM,
	SCRIPT_SHOW,
	SCRIPT_CLEAR,
	SCRIPT_EXIT,
	SCRIPT_GATE, /* no word: the condition of several actions */
};

/* What `print` prints: texts, with a value behind each but the last one. */
struct script_piece {
	char *text;
	char how[8]; /* flags and width, "-16" */
	char type;   /* 'd', 'u', 'x', 'c', 's'; 0: the end */
};
struct script_format {
	struct script_piece *v;
	size_t n_values;
};

struct script_place {
	uint32_t line, column; /* from 1 on */
};

/* An action, or the condition of several: a probe's text of its own. */
struct script_step {
	enum script_verb verb;
	struct script_place at;
	struct probe_spec spec;
	struct probe_spec on; /* its only argument is the VALUE of `on` or of a map, or none */
	bool follows;	      /* happens only if the last step did that does not follow */
	bool all_parameters;  /* of `flow` without values */
	bool anywhere;	      /* also in processes that the options leave out */
	uint32_t when, state; /* states, from 1 on; 0: none */
	uint32_t timer;	      /* from 1 on, 0: none */
	uint32_t variable;    /* from 1 on */
	enum probe_variable_kind kind; /* of that; and what else `set` says: */
	bool adds;
	uint32_t table;		 /* from 1 on */
	uint32_t tables;	 /* of `show` and `clear`: bit n: table n; 0: all */
	struct strv table_names; /* the same as they were written */
	struct trace_buckets buckets;
	struct script_format format;
	/* A condition of several: whose values have their types in it, too. */
	const struct probe_spec **likes;
	size_t n_likes;
};

enum script_event { SCRIPT_PROBE, SCRIPT_BEGIN, SCRIPT_END, SCRIPT_EVERY };
struct script_clause {
	enum script_event event;
	uint32_t every_ms;
	size_t first, n; /* steps */
};
struct script_table {
	char *name;
	size_t step; /* the first that fills it */
};
struct script_state {
	char *name;
	bool per_thread;
	struct script_place asked; /* where it is tested first */
	bool armed;
};

struct script {
	struct script_step *steps;
	size_t n_steps;
	struct script_clause *clauses;
	size_t n_clauses;
	struct script_table tables[SCRIPT_TABLES_MAX];
	size_t n_tables;
	struct script_state states[SCRIPT_STATES_MAX];
	size_t n_states;
	struct strv timers;
	struct probe_scope scope; /* the variables */
	struct probe_texts texts; /* those that hold texts */
};

/* `name`: the file's, for mistakes: NAME:LINE:COLUMN: ... -EINVAL, -E2BIG. */
int script_parse(const char *name, const char *text, struct script *ret, struct error *e);
void script_free(struct script *s);
bool script_is_table(enum script_verb v);

#endif
