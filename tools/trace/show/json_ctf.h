/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of JSON as events of a trace in CTF: -o ctf of commands whose records are no probes'. An
 * event is called as its line's "event" says; "pid", "tid" (or "thread") and "comm" are what all
 * events have; its other members are its fields. Those of objects have both names, as
 * "arguments.n".
 */
#ifndef AX_TOOLS_TRACE_SHOW_JSON_CTF_H
#define AX_TOOLS_TRACE_SHOW_JSON_CTF_H

#include "tools/trace/show/out.h"

struct json_ctf;
/* With what ctf_open() says. */
int json_ctf_open(const char *directory, struct json_ctf **ret, struct error *e);
/* Of times that are so far from those since 1970. */
int json_ctf_open_at(const char *directory, int64_t offset_ns, struct json_ctf **ret,
		     struct error *e);
void json_ctf_free(struct json_ctf *x); /* NULL is fine */
/* Takes the lines that were written to memory (trace_out_memory()), of what happened at a time of
 * CLOCK_MONOTONIC. 0 or a negative errno. */
int json_ctf_take(struct json_ctf *x, uint64_t time_ns, struct trace_out *from);
/* Takes lines that begin with their "time" of day; one that has no "event" is called as its "probe"
 * says, and one that has neither is no event. Only whole lines are taken: *taken bytes. */
int json_ctf_take_timed(struct json_ctf *x, const char *lines, size_t len, size_t *taken);
/* Whether some are to be written now. */
bool json_ctf_is_due(const struct json_ctf *x);
/* Writes what no earlier event is to be expected before; `end`: all. `discarded`: how many were
 * lost since the start. 0 or a negative errno. */
int json_ctf_flush(struct json_ctf *x, uint64_t discarded, bool end);

#endif
