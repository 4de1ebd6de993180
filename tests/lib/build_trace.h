/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces of builds that are put together by hand. */
#ifndef AX_TESTS_LIB_BUILD_TRACE_H
#define AX_TESTS_LIB_BUILD_TRACE_H

#include "base/util.h"
#include "build_event.h"

struct build_trace {
	uint8_t *v;
	size_t len;
	uint64_t time; /* of the next record; it counts up */
};

void build_trace_begin(struct build_trace *t, uint32_t pid);
void build_trace_free(struct build_trace *t);
void build_trace_fork(struct build_trace *t, uint32_t pid, uint32_t child);
/* The words of a text, divided by blanks. cwd: absolute. */
void build_trace_exec(struct build_trace *t, uint32_t pid, const char *cwd, const char *words);
void build_trace_exit(struct build_trace *t, uint32_t pid, uint32_t status);
/* A call of a type with its two names (NULL: none). dir: where the first one begins, NULL: in the
 * current directory; real: what was opened, or the new directory. */
struct build_trace_call {
	uint32_t type;
	int64_t ret;
	uint64_t flags;
	const char *name, *name2, *dir, *real;
};
void build_trace_call(struct build_trace *t, uint32_t pid, const struct build_trace_call *c);
void build_trace_open(struct build_trace *t, uint32_t pid, uint64_t flags, const char *real);
void build_trace_end(struct build_trace *t);

#endif
