/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace profile and offcpu. */
#ifndef AX_TOOLS_TRACE_PROFILE_PROFILE_H
#define AX_TOOLS_TRACE_PROFILE_PROFILE_H

#include "probes/watch/stacks.h"
#include "tools/trace/ready/ready.h"

/* --- collect.c: different call stacks, with how often and how long each was seen --- */

struct stack {
	uint32_t pid;
	char comm[AX_EVENT_COMM];
	const char *app; /* NULL: none */
	/* In `addresses`, the innermost first: the kernel's, then the program's, of calls. */
	size_t from, n_kernel, n_user;
	bool cut; /* it is deeper */
	uint64_t times, ns;
};
struct collection {
	struct stack *v;
	size_t n, size;
	uint64_t *addresses;
	size_t n_addresses, addresses_size;
	uint32_t *index; /* hash table: the number of a stack, plus one */
	size_t index_size;
	struct process_app {
		uint32_t pid;
		char *app;
	} * apps;
	size_t n_apps;
};
/* Adds to the stack that is like `s`, whose addresses are given here. -ENOMEM. */
int collection_add(struct collection *c, const struct stack *s, const uint64_t *kernel,
		   const uint64_t *user);
/* The app of a process, from a record about it; and as it was said. */
int collection_note_app(struct collection *c, const struct ax_watch_head *h);
const char *collection_app(const struct collection *c, uint32_t pid);
void collection_free(struct collection *c);

/* --- names.c: functions at addresses, by number --- */

struct profile_names {
	struct watch *watch; /* borrowed */
	struct processes *processes;
	struct function_name {
		char *text; /* "read", "vfs_read_[k]", "[libx.so]" */
		char *file; /* "" */
	} * v;
	size_t n, size;
	uint32_t *index;
	size_t index_size;
	struct known_address {
		uint64_t address, owner; /* owner: which process it is of, 0: free */
		uint32_t function;	 /* plus one */
	} * known;
	size_t n_known, known_size;
};
/* A number for what is to be shown. UINT32_MAX: out of memory. */
uint32_t names_number(struct profile_names *n, const char *text, const char *file);
uint32_t names_of_kernel(struct profile_names *n, uint64_t address);
/* comm: so that what a process executed before is told apart. */
uint32_t names_of_process(struct profile_names *n, uint32_t pid, const char *comm,
			  uint64_t address);
void profile_names_free(struct profile_names *n);

/* --- the run --- */

enum profile_format { PROFILE_TEXT, PROFILE_JSON, PROFILE_FOLDED, PROFILE_SVG };

struct profile {
	struct ready r;
	/* of the command line */
	uint32_t hz;
	int stack; /* 0: by .eh_frame, 1: by frame pointers */
	int format, by;
	uint32_t top;
	bool preempted, kernel_threads;
	uint32_t least_ms;
	/* of the run */
	bool waits; /* it is about waiting */
	struct watch_clocks clocks;
	struct collection stacks;
	struct profile_names names;
	uint64_t uncopied; /* samples whose stacks there was no room for */
};
/* The whole of a command, which says how it loads and begins, and frees it. */
int profile_run(struct profile *p, struct cmd *c, int argc, char **argv);
extern const struct words profile_formats;
#define PROFILE_NO_SCRIPT "a script prints tables, no graphs: expected -o text or json"

/* show.c: writes what was collected. */
int profile_show(struct profile *p, struct error *e);
/* table.c */
int profile_put_functions(struct profile *p);
void profile_put_stacks(struct profile *p);
/* The functions of a stack, the innermost first; `max`: room for them. */
size_t profile_functions(struct profile *p, const struct stack *s, uint32_t *functions, size_t max);
#define PROFILE_FRAMES_MAX (2 * AX_PROFILE_FRAMES + 4)
uint64_t profile_weight(const struct profile *p, const struct stack *s);

extern const struct command cmd_trace_profile;
extern const struct command cmd_trace_offcpu;

#endif
