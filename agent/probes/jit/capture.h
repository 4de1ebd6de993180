/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Versions of executable pages of processes: what differs from the one before is written. */
#ifndef AX_PROBES_JIT_CAPTURE_H
#define AX_PROBES_JIT_CAPTURE_H

#include "probes/jit/jitdump.h"

#define JIT_PAGE 4096u

struct jit_capture_options {
	struct jitdump_writer *writer;
	uint64_t max_bytes; /* of code; what is more is only counted */
	size_t max_pages;   /* of all processes that are told apart; 0: JIT_PAGES_ALL */
	/* For each piece that was written; it was seen then, and may have been there since its
	 * time. */
	void (*written)(void *arg, const struct jitdump_code *c, uint64_t seen_ns);
	void *arg;
};
struct jit_counts {
	uint64_t pages, pieces; /* that were written */
	uint64_t same;		/* pages as they were known already */
	uint64_t left_out;	/* beyond max_bytes */
	uint64_t too_many;	/* when max_pages were known: they were not looked at */
	uint64_t unread;	/* ranges of jit_capture_hidden() of which nothing is known */
	uint64_t looks;
	int error; /* negative errno: nothing more could be written */
};

struct jit_capture;
int jit_capture_new(const struct jit_capture_options *o, struct jit_capture **ret, struct error *e);
void jit_capture_free(struct jit_capture *c);
/* A page (JIT_PAGE bytes) as it was seen then. In memory that is watched it is taken to have been
 * there since the last look. Pages of one time that lie side by side become one piece. */
void jit_capture_page(struct jit_capture *c, uint32_t pid, uint32_t tid, uint64_t seen_ns,
		      uint64_t address, const uint8_t *data);
/* Writes what waits for more beside it. */
void jit_capture_flush(struct jit_capture *c);
/* Memory that may change while it is executable, since that time: it is looked at again. */
void jit_capture_watch(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end,
		       uint64_t since_ns);
/* No more at this part of it. */
void jit_capture_unwatch(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end);
/* Looks at all of that; `pid`, 0: of all processes. */
void jit_capture_look(struct jit_capture *c, uint32_t pid);
/* Reads a range once: all of its pages that are there. */
void jit_capture_range(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end);
/* The same of a range that the process itself may execute but not read, since that time. If it is
 * gone, and nothing was copied of it before, it is counted. */
void jit_capture_hidden(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end,
			uint64_t since_ns);
void jit_capture_fork(struct jit_capture *c, uint32_t parent, uint32_t child, uint64_t time_ns);
/* The process ended, or is another program from now on. */
void jit_capture_forget(struct jit_capture *c, uint32_t pid);
const struct jit_counts *jit_capture_counts(const struct jit_capture *c);

#endif
