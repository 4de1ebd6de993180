/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow of calls, from entries and returns of functions. No side effects: it only looks at
 * events, one after the other as they happened in each thread.
 *
 * What belongs together is told by the stack pointer where the return address is: the same at a
 * function's entry and at its return. So calls that never return (longjmp, exceptions, execve) are
 * noticed as soon as the stack is above them, and a lost record does not bring what follows out of
 * step.
 */
#ifndef AX_PROBES_FLOW_FLOW_H
#define AX_PROBES_FLOW_FLOW_H

#include "base/util.h"

#define FLOW_NONE UINT32_MAX

/* How the returns of a function become events. */
enum flow_returns {
	/* The kernel puts a trampoline in the place of the return address (uretprobe). A function
	 * that was left by a jump to another returns too, after that one. */
	FLOW_BY_TRAMPOLINE,
	FLOW_AT_RET, /* probes on its RET instructions: there is none after a jump to another */
	FLOW_NEVER,  /* they are not probed */
};

struct flow_event {
	bool is_return;
	uint32_t function; /* a number below that of flow_new() */
	uint32_t pid;
	uint64_t thread; /* its id, or a goroutine's */
	uint64_t time_ns;
	uint64_t sp;	/* where the return address is, or was */
	uint64_t back;	/* entries: the return address, 0: unknown */
	uint64_t image; /* where the file is in memory: another one after execve; 0: unknown */
};

enum flow_what {
	FLOW_ENTRY,
	FLOW_RETURN,
	FLOW_ORPHAN, /* a return whose entry was not seen */
	/* what follows closes a call without an event of its own, before the event that shows it */
	FLOW_JUMPED,   /* returned, together with the function that it jumped to */
	FLOW_LEFT,     /* never returned: longjmp, an exception, execve */
	FLOW_LOST,     /* whether it returned is unknown: records were lost */
	FLOW_DEEP,     /* the same: the kernel follows only so many nested calls */
	FLOW_UNPROBED, /* the same: FLOW_NEVER */
	FLOW_OPEN,     /* had not returned at the end */
};

/* What became of an event. */
struct flow_step {
	enum flow_what what;
	uint32_t function;
	uint32_t caller; /* function of the call around it, FLOW_NONE: none that is known */
	uint32_t pid;
	uint64_t thread;
	uint32_t depth; /* the number of calls around it */
	bool jumped;	/* entries: not called, but jumped to by `caller` */
	uint64_t time_ns;
	uint64_t duration_ns; /* not of entries and orphans; but for returns, at most this long */
	uint64_t self_ns;     /* of that, not in calls that are known */
	const struct flow_event *event; /* NULL: at the end */
};
typedef int (*flow_step_fn)(void *arg, const struct flow_step *s);

/* Every way in which functions were called: the calls from the same node are its children. */
struct flow_node {
	uint32_t function;    /* FLOW_NONE: the root, or what is too deep to be told apart */
	uint32_t parent;      /* always a smaller number */
	uint32_t depth;	      /* 0: the root */
	uint32_t child, next; /* first child, next of the same parent; 0: none */
	uint64_t calls;
	uint64_t total_ns, self_ns;
};
struct flow_tree {
	struct flow_node *v; /* the root first */
	size_t n;
	bool cut; /* some were too deep, or too many */
};

struct flow_options {
	const uint8_t *returns; /* enum flow_returns of each function; borrowed */
	uint32_t n_functions;
	uint32_t under; /* only what is called while inside this function, FLOW_NONE: all */
	bool tree;	/* to be made */
	/* Functions may begin a second time, when there was too little stack (Go): an entry like
	 * that of the innermost call is the same call. */
	bool restarts;
};

struct flow_totals {
	uint64_t entries, returns, orphans, left, lost, deep;
	uint64_t outside;  /* events while not inside `under` */
	uint64_t restarts; /* entries that are no new calls */
};

/* The uprobes' trampoline is at the beginning of a page of its own. */
static inline bool flow_is_trampoline(uint64_t return_address)
{
	return return_address && return_address % 4096 == 0;
}

struct flow;
/* f: called for each step, in order; below 0: an error that flow_add() returns. NULL: out of
 * memory. */
struct flow *flow_new(const struct flow_options *o, flow_step_fn f, void *arg);
void flow_free(struct flow *f);
static inline void flow_freep(struct flow **f)
{
	if (*f)
		flow_free(*f);
}
int flow_add(struct flow *f, const struct flow_event *ev);
/* Records of some time between these two were lost. To be said before what happened then is added;
 * in order. */
void flow_gap(struct flow *f, uint64_t from_ns, uint64_t to_ns);
/* Closes what is open, thread by thread. */
int flow_end(struct flow *f);
const struct flow_tree *flow_tree(const struct flow *f);
const struct flow_totals *flow_totals(const struct flow *f);

#endif
