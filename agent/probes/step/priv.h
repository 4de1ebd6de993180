/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the room share. */
#ifndef AX_PROBES_STEP_PRIV_H
#define AX_PROBES_STEP_PRIV_H

#include <signal.h>
#include <sys/ptrace.h>

#include "probes/step/step.h"

/* A system call is stepped over by its beginning and its end, without a trap. */
enum step_call { CALL_NONE, CALL_BEGINS, CALL_ENDS };
struct step_thread {
	int tid, pid;	      /* its process's */
	int own;	      /* the process's number in its own pid namespace */
	bool stepping;	      /* an instruction is being executed, or was, and the thread waits */
	bool waits;	      /* was reported, and nobody has told it to go on */
	bool done;	      /* its instruction is executed already, and it waits still */
	bool interrupted;     /* its stop for step_let_go() is still to come */
	uint8_t pushes_flags; /* it executes PUSHF: so many bytes */
	bool unblocked;	      /* SIGTRAP is not in its mask, where the program has it */
	enum step_call in_call;
};
struct step_tracees {
	bool children; /* they are traced, too */
	struct step_thread *v;
	size_t n, max;
	bool letting_go;
	bool gone;
};

/* seize.c */
struct step_thread *step_find(const struct step_tracees *p, int tid);
bool step_find_process(const struct step_tracees *p, int pid);
struct step_thread *step_add(struct step_tracees *p, int tid, int pid);
void step_remove(struct step_tracees *p, struct step_thread *t);
/* A number in the thread's status file; -1: it has ended. */
long step_status_number(int pid, int tid, const char *word);

/* tracee.c */
/* What waitpid() told. */
struct step_report step_take(struct step_tracees *p, int tid, int status);
/* Whether a line of the thread's status file has the signal's bit. */
bool step_status_bit(int pid, int tid, const char *line, int signal);
/* On as it was; `signal` is delivered first, 0: none. */
void step_resume(struct step_thread *t, const struct step_tracees *p, int signal);

/* instruction.c: before and behind the trap of one instruction. */
enum step_prepared { STEP_IS_READY, STEP_IS_DONE, STEP_CANNOT };
enum step_prepared step_prepare(struct step_thread *t);
void step_complete(struct step_thread *t);
void step_mask_back(struct step_thread *t);

#endif
