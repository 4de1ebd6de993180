/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace change: what a probe changes in a program, and how that is taken back. */
#ifndef AX_TOOLS_TRACE_STEP_CHANGE_H
#define AX_TOOLS_TRACE_STEP_CHANGE_H

#include <sys/types.h>

#include "tools/trace/step/step.h"

#define CHANGE_WRITES_MAX 8
#define CHANGE_LINE_MAX	  6144 /* of the list */

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
/* What one process has, or several that share it (vfork(), clone()), from its first change on. */
struct change_memory {
	size_t users;
	int fd; /* -1: it could not be opened */
	struct change_old *olds;
	size_t n_olds, max_olds;
	bool undone;
};
struct change_process {
	int pid;
	struct change_memory *memory;
};
/* The function by which the C library of a process tells where errno is. */
struct change_errno {
	int pid; /* 0: not known yet */
	uint64_t address;
	uint8_t code[64];
	size_t n;
};
struct change {
	bool returns;
	struct fetch_result result;
	int error; /* what errno becomes; 0: it stays */
	struct change_errno location;
	struct change_write writes[CHANGE_WRITES_MAX];
	size_t n_writes;
	uid_t owner;
	struct change_process *processes;
	size_t n, max;
	size_t n_back, n_others; /* of what was taken back */
	int listed;		 /* the file by which it is listed, locked as long as it lasts */
	char path[160];
};

/* --- changed.c: memory that was changed --- */

/* Of a process whose thread waits; NULL: out of memory. */
struct change_memory *change_memory(struct change *c, int pid, int tid);
/* Where it was remembered what had been at an address, or is from now on; NULL: no room. */
struct change_old *change_old_at(struct change_memory *m, uint64_t address, uint32_t size);
/* A process was started, which has what its parent (0: not known) has. */
void change_fork(struct change *c, int pid, int parent);
/* It is another program now, or has ended. */
void change_forget(struct change *c, int pid);
/* Takes back what is in memory still, and was not taken back before. */
void change_undo(struct change *c);
void change_free(struct change *c);
/* Whether all of the process is the owner's. */
bool change_is_owned(const struct change *c, int pid);

/* --- errno.c --- */

/* Where a thread that waits has its errno. NULL: that is known; else why not. */
const char *change_find_errno(struct change_errno *c, int pid, int tid, uint64_t *address);
/* By the name of an error, "EACCES"; 0: there is none. */
int change_errno_of(const char *name);
#define CHANGE_ERRNO_TEXT 16
/* Its name, or the number. */
const char *change_errno_name(int number, char buf[CHANGE_ERRNO_TEXT]);

/* --- apply.c --- */

/* At a thread that waits, behind the probe whose record it is. */
void change_apply(struct step_request *q, int pid, int tid, const struct ax_probe_record *r);
/* In the list of changes, before the first one and behind the last. */
int change_list(struct step_request *q, struct error *e);
void change_unlist(struct change *c);

extern const struct command cmd_trace_change;
extern const struct command cmd_trace_changes;

#endif
