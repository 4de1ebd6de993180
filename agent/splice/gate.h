/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gate: whether programs see on spliced connections what they see on TCP, on this kernel. A
 * process of its own, in a network namespace and a cgroup of its own, runs the behaviours
 * (behaviour.h) on TCP, on members and on redirected connections; the lines that differ are kept in
 * a file of the instance's run directory until the kernel is another or is started again.
 */
#ifndef AX_SPLICE_GATE_H
#define AX_SPLICE_GATE_H

#include "base/loop.h"
#include "base/util.h"
#include "machine/instance.h"
#include "splice/policy.h"

#define GATE_WORDS_MAX 96
#define GATE_LINES_MAX 256

enum gate_mode { GATE_TCP, GATE_MEMBER, GATE_REDIRECTED, GATE_MODES };

/* A behaviour that differs. */
struct gate_line {
	const struct behaviour *behaviour;
	enum gate_mode mode;	  /* GATE_MEMBER: it takes no more than being a member */
	bool nonblock;		  /* the variant */
	bool ipv6;		  /* over which it was tried */
	char tcp[GATE_WORDS_MAX]; /* what was seen, printable */
	char seen[GATE_WORDS_MAX];
};
struct gate_result {
	struct gate_line lines[GATE_LINES_MAX];
	size_t n;
};
const char *gate_mode_name(enum gate_mode m);
void gate_judge(const struct gate_result *r, struct gate_verdict *v);

/* --- behaviours (gate_run.c) --- */
size_t gate_behaviours(void); /* how many there are */
const struct behaviour *gate_behaviour(size_t i);
/* Runs them all, in a cgroup's directory that it makes and network namespace of its own: in the
 * caller's process, which is to be a child, alone. The result in the file's form goes to `out`; on
 * failure a line "failed SENTENCE" does. */
void gate_run(int out, const char *cgroup);

/* --- its text (gate_text.c) --- */
struct gate_kernel {
	char kernel[256]; /* release and version */
	char boot[64];	  /* the boot's id */
};
int gate_kernel_read(struct gate_kernel *ret);
/* malloc'ed. */
int gate_format(const struct gate_result *r, const struct gate_kernel *k, char **ret);
/* -ESTALE: of another kernel, or of before it was started; -EINVAL: it is not understood. Then the
 * gate is to run anew. */
int gate_parse(const char *text, const struct gate_kernel *k, struct gate_result *ret);
/* Where the result of an instance is kept, and what is there. -ENOENT: nothing; else as
 * gate_parse(). A file that others than root could write is none. */
void gate_path(const struct instance *inst, char *path, size_t size);
int gate_read(const struct instance *inst, struct gate_result *ret);

/* --- in the agent (gate.c) --- */
struct gate;

/* Takes the result that is kept, if there is one. `done` is called when another one is there, or
 * when there will be none. */
int gate_open(int epoll, const struct instance *inst, const char *cgroup, void (*done)(void *arg),
	      void *arg, struct gate **ret);
void gate_close(struct gate *g); /* ends a run; NULL is fine */
/* Has it run, unless it does or did. Nobody waits for it. */
void gate_start(struct gate *g);
void gate_on_pipe(struct gate *g); /* LOOP_SPLICE_GATE */
const struct gate_verdict *gate_verdict(const struct gate *g);
/* Removes the cgroup that a run left whose agent was killed. */
void gate_sweep(const char *cgroup);

#endif
