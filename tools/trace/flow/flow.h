/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of `ax trace flow` share. */
#ifndef AX_TOOLS_TRACE_FLOW_FLOW_H
#define AX_TOOLS_TRACE_FLOW_FLOW_H

#include "probes/flow/graph.h"
#include "tools/trace/run/run.h"
#include "tools/trace/show/json_ctf.h"

enum flow_graph_kind { FLOW_LINES, FLOW_DOT, FLOW_SVG, FLOW_FOLDED };

/* Values that every entry's record has, before the function's parameters. */
enum flow_value { FLOW_VALUE_BACK, FLOW_VALUE_IP, FLOW_VALUES };

struct flow_function {
	char *name;
	uint64_t offset, size; /* in the file */
	uint64_t address;      /* as the file has it */
};

/* What is needed for lines. */
struct flow_lines {
	struct trace *t;
	const struct flow_function *functions;
	struct binary *binary; /* with `callers` */
	bool callers;	       /* where a call came from */
	struct json_ctf *ctf;  /* of -o ctf: gets what is JSON, from t->out */
	const struct ax_probe_record *record;
	size_t record_len;
	uint64_t image; /* what is added to the file's addresses in the record's process */
	uint64_t start_ns;
};

struct flow_request {
	struct trace t;
	struct trace_args args;
	const char *under_name;
	int graph; /* 0: none, then enum flow_graph_kind */
	bool folded, calls, callers, at_rets;

	enum flow_graph_kind kind;
	struct binary *binary;
	struct flow_function *functions; /* sorted by offset */
	size_t n_functions, size_functions;
	size_t n_inlined;
	bool typed;	  /* there is debug data */
	uint32_t under;	  /* FLOW_NONE: all */
	uint8_t *returns; /* enum flow_returns of each function */
	/* what the parts' specs are for: functions without `under`, those whose returns are
	 * probed, `under` */
	uint64_t *entries, *with_return;
	size_t n_entries, n_with_return;

	struct flow *flow;
	uint32_t *function_of; /* of each probe of the session */
	struct flow_lines lines;
	uint64_t looked_ns, dropped;
	/* records that were lost, which is said before the first one that came later than this */
	uint64_t lost, lost_until_ns;
};

/* find.c: which functions, and how their returns are seen. */
int flow_find(struct flow_request *q, char **globs, size_t n, struct error *e);
/* The function that an offset of the file is in, FLOW_NONE: none. */
uint32_t flow_function_at(const struct flow_request *q, uint64_t offset);

/* events.c */
int flow_put_record(struct trace *t, const struct ax_probe_record *r, size_t len);
int flow_put_end(struct trace *t, struct error *e);
/* 0 or a negative errno. `end`: nothing comes after it. */
int flow_flush_ctf(struct flow_lines *q, bool end);

/* line.c: `arg` is struct flow_lines */
int flow_put_step(void *arg, const struct flow_step *s);
void flow_put_loss(struct flow_lines *q, uint64_t lost);

extern const struct command cmd_trace_flow;

#endif
