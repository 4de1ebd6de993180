/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `ax trace perfdata`: what `perf record` wrote, for people and as JSON. */
#ifndef AX_TOOLS_TRACE_PERFDATA_PERFDATA_H
#define AX_TOOLS_TRACE_PERFDATA_PERFDATA_H

#include "probes/perfdata/perfdata.h"
#include "tools/lib/command.h"
#include "tools/trace/show/out.h"

extern const struct command cmd_trace_perfdata;
extern const struct command cmd_trace_perfdata_info;
extern const struct command cmd_trace_perfdata_events;
extern const struct command cmd_trace_perfdata_aux;
extern const struct command cmd_trace_perfdata_pt;
extern const struct command cmd_trace_perfdata_flow;

/* open.c: the one file that is named, "-": standard input. */
int perf_file_open(const char *path, struct perfdata **ret, struct error *e);
/* How a run of one file begins: its options, then the file is opened. False: it ends with *status.
 */
bool perf_run_begin(struct cmd *c, void *options, int argc, char **argv, struct perfdata **ret,
		    int *status);

/* show.c: fields as text ("name=value ...") or as members of a JSON object. */
#define PERF_SHOW_DEPTH 16
struct perf_show {
	struct trace_out *out;
	bool json;
	bool whole; /* long runs of bytes too */
	bool lines; /* text: a line for each object, and for those in it */
	unsigned depth;
	struct {
		bool list;
		bool some; /* it has a member already */
		bool bare; /* no brackets */
	} at[PERF_SHOW_DEPTH];
};
struct perfdata_sink perf_sink(struct perf_show *s);
void perf_put_number(struct perf_show *s, const char *name, uint64_t v);
void perf_put_hex(struct perf_show *s, const char *name, uint64_t v);
void perf_put_text(struct perf_show *s, const char *name, const char *v);
void perf_begin(struct perf_show *s, const char *name, enum perfdata_kind kind);
void perf_end(struct perf_show *s);

/* queue.c: "cpu 3", "tid 17". */
#define PERF_QUEUE_TEXT 24
const char *perf_queue_text(const struct perfdata_aux *a, char buf[PERF_QUEUE_TEXT]);

/* Whether two pieces are of one CPU or thread. */
bool perf_same_queue(const struct perfdata_aux *a, const struct perfdata_aux *b);
#define PERF_QUEUES_MAX 4096 /* CPUs or threads of one recording */
/* The place *at of a's CPU or thread in a list of *n elements of this size, each of which begins
 * with the first piece of its own (struct perfdata_aux). One that is new is appended, zero behind
 * that. Returns the list, which may have moved; NULL: see e, and the list is as it was. */
void *perf_queue_at(void *list, size_t *n, size_t size, const struct perfdata_aux *a, size_t *at,
		    struct error *e);

/* What a run ends with: output that could not be written, or what went wrong before. */
int perf_finish(struct cmd *c, struct trace_out *out, int r, struct error *e);

#endif
