/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of processes that are traced by ptrace, seized and not stopped: they run as they do
 * without it, but for those that a probe stopped (AX_PROBE_STOPS), each alone. The thread that
 * seized has to do all else, too, and to look after signals: step_wait() again and again.
 *
 * Whoever is seized is let go when the tracer's process ends. But one that was told to execute an
 * instruction is ended by the trap behind it if nobody takes that: step_let_go() before.
 */
#ifndef AX_PROBES_STEP_STEP_H
#define AX_PROBES_STEP_STEP_H

#include "base/util.h"

struct step_tracees;
/* Every thread of the processes, and those that they will start; `children`: also the processes
 * that they have started and will start, but for this one and its parent. -EPERM: another tracer
 * has one (the sentence names that), or it may not be traced; -ESRCH: none of them is there. */
int step_seize(const uint32_t *pids, size_t n, bool children, struct step_tracees **ret,
	       struct error *e);
void step_free(struct step_tracees *p);
bool step_has(const struct step_tracees *p, int tid);
/* One that a tracee has started before it was one, or so that the kernel did not tell of it. False:
 * it cannot be traced. */
bool step_seize_child(struct step_tracees *p, int pid);

enum step_event {
	STEP_NOTHING, /* a signal for the tracer came, or something that needs nobody */
	STEP_PROBE,   /* a thread stands behind a probe, and waits */
	STEP_DONE,    /* a thread has executed an instruction, and waits */
	STEP_HANDLER, /* a thread stands at the beginning of a signal's handler, and waits */
	STEP_SIGNAL,  /* a thread that is stepped gets a signal of the process's own */
	STEP_FORK,    /* another process was started, which may wait: step_on() */
	STEP_EXEC, /* the process runs another program: none of its threads is stepped any more */
	STEP_EXIT, /* a thread ended */
	STEP_END,  /* the process ended */
	STEP_GONE, /* all of them ended */
};
struct step_report {
	enum step_event event;
	int tid, pid;
	int signal; /* STEP_SIGNAL */
	int parent; /* STEP_FORK: the process that has started it, as far as it is known */
};
/* Waits until something happens or a signal comes. */
struct step_report step_wait(struct step_tracees *p);
/* A thread that waits: on as before; or one instruction. False: that cannot be so that the program
 * does not notice, since it ignores SIGTRAP, or has one waiting that it blocks: it still waits. */
void step_on(struct step_tracees *p, int tid);
bool step_one(struct step_tracees *p, int tid);
/* What the end asks, and tells. */
struct step_end {
	/* Whether a thread that a probe told to stop has not been seen to. */
	bool (*waits)(void *arg);
	/* What happens meanwhile, as step_wait() tells it: who waits goes on by itself behind it.
	 */
	void (*told)(void *arg, const struct step_report *r);
	void *arg;
};
/*
 * Ends all stepping, when probes tell nobody to stop any more. Threads that are inside a system
 * call are called back from it: most of these begin anew. False: not all of them could be brought
 * to an end within a second or two.
 */
bool step_let_go(struct step_tracees *p, const struct step_end *end);

/* --- memory.c: of a thread that waits --- */

/* As the kernel's struct pt_regs begins: where probes' programs find registers, too. Behind those
 * the lower 128 bits of each vector register, two words each. */
#define STEP_VECTORS_AT 40
#if defined(__aarch64__)
#define STEP_VECTORS 32
#else
#define STEP_VECTORS 16
#endif
#define STEP_WORDS (STEP_VECTORS_AT + 2 * STEP_VECTORS)
struct step_registers {
	uint64_t v[STEP_WORDS];
	size_t bytes; /* of those that are no vectors */
};
/* -ENOTSUP: of a 32-bit program. */
int step_get_registers(int tid, struct step_registers *ret);
/* Those that are no vectors. */
int step_set_registers(int tid, const struct step_registers *r);
uint64_t step_ip(const struct step_registers *r);

/* All of it or nothing: 0, -EFAULT or -ESRCH. Only what the process itself may write is written. */
int step_read(int tid, uint64_t address, void *to, size_t len);
int step_write(int tid, uint64_t address, const void *from, size_t len);

/*
 * The memory that a process has now, as a file: whoever becomes another program, maybe of another
 * user, takes new memory, which is never meant by this. A file descriptor, or -errno.
 */
int step_memory(int tid);
int step_read_memory(int memory, uint64_t address, void *to, size_t len);
int step_write_memory(int memory, int pid, uint64_t address, const void *from, size_t len);

/* What is mapped at an address. */
struct step_mapping {
	uint64_t from, to, offset;
	bool writable, executable;
	char path[256]; /* "[uprobes]", "", or of a file, whose name may be cut off */
};
/* -ENOENT. */
int step_mapping(int pid, uint64_t address, struct step_mapping *ret);
/* Each of them, until f returns non-zero, which is returned; else 0. */
int step_mappings(int pid, int (*f)(void *arg, const struct step_mapping *m), void *arg);

#endif
