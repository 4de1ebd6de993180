/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace change: what a probe changes in a program, and how that is taken back. */
#ifndef AX_TOOLS_TRACE_STEP_CHANGE_H
#define AX_TOOLS_TRACE_STEP_CHANGE_H

#include <sys/types.h>

#include "tools/trace/step/step.h"

#define CHANGE_WRITES_MAX 8

struct change_write {
	char *text; /* as it was asked for */
	uint64_t value;
	uint32_t size;
	char type;	/* u, s, x: as the number is shown */
	bool is_static; /* a variable that is there as long as the program: taken back at the end */
};
/* What was somewhere in memory before. */
struct change_old {
	uint64_t address, old, now;
	uint32_t size;
};
struct change {
	bool returns;
	struct fetch_result result;
	struct change_write writes[CHANGE_WRITES_MAX];
	size_t n_writes;
	uid_t owner;
	int memory; /* the program's, from its first change on; -1: none */
	struct change_old *olds;
	size_t n_olds, max_olds;
	int listed; /* the file by which it is listed, locked as long as it lasts */
	char path[160];
};

/* Whether all of the process is the owner's. */
bool change_is_owned(const struct step_request *q);
/* At a thread that waits, behind the probe whose record it is. */
void change_apply(struct step_request *q, int tid, const struct ax_probe_record *r);
/* It is another program now. */
void change_forget(struct change *c);
/* Takes back what is in memory still. */
void change_undo(struct step_request *q);
/* In the list of changes, before the first one and behind the last. */
int change_list(struct step_request *q, struct error *e);
void change_unlist(struct change *c);
void change_free(struct change *c);

extern const struct command cmd_trace_change;
extern const struct command cmd_trace_changes;

#endif
