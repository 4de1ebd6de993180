/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks of processes that may have ended when they are shown. */
#ifndef AX_TOOLS_TRACE_READY_STACKS_H
#define AX_TOOLS_TRACE_READY_STACKS_H

#include "tools/trace/ready/ready.h"

struct mappings;
struct processes;

/* Zero at first. */
struct stacks {
	struct processes *names;
	struct mappings *mappings;
	int looks; /* since the last beginning */
};
/* Before the processes begin, if they are not there already. */
void stacks_begin(struct stacks *s);
/* While processes are there: what they have mapped is read, again for some of them. */
void stacks_look(struct stacks *s);
void stacks_note(struct stacks *s, int pid);
/* At a record of a process: read now, if it is not known yet. */
void stacks_see(struct stacks *s, int pid);
/* How many of such addresses are callers: where code has no frame pointers, what follows may be
 * anything that was in memory. At least the first. */
size_t stacks_callers(struct stacks *s, int pid, const uint64_t *addresses, size_t n);
/* Of addresses that calls return to. Text: lines that are indented; JSON: an array. */
void stacks_put(struct ready *r, struct stacks *s, int pid, const uint64_t *addresses, size_t n);
void stacks_free(struct stacks *s);

#endif
