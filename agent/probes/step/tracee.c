// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads under ptrace: going on, and what they report. */
#include <sys/wait.h>

#include "probes/step/priv.h"

#define CALL_STOP (SIGTRAP | 0x80)

/* --- going on --- */

void step_resume(struct step_thread *t, const struct step_tracees *p, int signal)
{
	int how = PTRACE_CONT;

	if (t->in_call)
		how = PTRACE_SYSCALL;
	else if (t->stepping && !p->letting_go)
		how = PTRACE_SINGLESTEP;
	/* one that was killed meanwhile will tell that itself */
	ptrace(how, t->tid, 0, (long)signal);
}

bool step_one(struct step_tracees *p, int tid)
{
	struct step_thread *t = step_find(p, tid);
	enum step_prepared ready;

	if (!t || !t->waits)
		return false;
	/* once it is stepped, it is to be asked no more: the answer of a file takes long */
	if (!t->stepping && step_status_bit(t->pid, tid, "\nSigIgn:", SIGTRAP))
		return false;
	ready = step_prepare(t);
	if (ready == STEP_CANNOT)
		return false;
	t->stepping = true;
	t->done = ready == STEP_IS_DONE;
	if (t->done)
		return true;
	t->waits = false;
	step_resume(t, p, 0);
	return true;
}

void step_on(struct step_tracees *p, int tid)
{
	struct step_thread *t = step_find(p, tid);

	if (!t || !t->waits)
		return;
	t->waits = false;
	t->done = false;
	t->stepping = false;
	step_mask_back(t);
	step_resume(t, p, 0);
}

/* --- what is reported --- */

/* The kernel's own, of a probe's program: kill() and terminals tell others. */
static bool is_of_probe(int signal, const siginfo_t *info)
{
	return signal == SIGSTOP && info->si_code == SI_KERNEL;
}

/*
 * The trap behind an instruction, or that at the beginning of a signal's handler; or one that the
 * kernel sends since the instruction had a probe and was executed elsewhere. An INT3 of the
 * program's own comes from the kernel, too, but as another one.
 */
static bool is_of_step(const struct step_thread *t, int signal, const siginfo_t *info)
{
	if (signal != SIGTRAP || !t->stepping)
		return false;
	switch (info->si_code) {
	case TRAP_TRACE:
	case TRAP_BRKPT:
	case SIGTRAP:
		return true;
	case SI_USER:
		return info->si_pid == t->own || !info->si_pid;
	default:
		return false;
	}
}

static struct step_report report(enum step_event event, const struct step_thread *t)
{
	return (struct step_report){.event = event, .tid = t->tid, .pid = t->pid};
}

/* The system call that is stepped over begins, and is over: in between the thread may be in it for
 * long. */
static struct step_report take_call(struct step_tracees *p, struct step_thread *t)
{
	if (t->in_call == CALL_BEGINS && !p->letting_go) {
		t->in_call = CALL_ENDS;
		step_resume(t, p, 0);
		return report(STEP_NOTHING, t);
	}
	t->in_call = CALL_NONE;
	t->waits = true;
	return report(STEP_DONE, t);
}

static struct step_report take_signal(struct step_tracees *p, struct step_thread *t, int signal)
{
	struct step_report r = report(STEP_NOTHING, t);
	siginfo_t info = {0};
	bool known = ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0;

	if (known && is_of_probe(signal, &info)) {
		t->waits = true;
		return report(STEP_PROBE, t);
	}
	if (known && is_of_step(t, signal, &info)) {
		step_complete(t);
		t->waits = true;
		return report(info.si_code == SIGTRAP ? STEP_HANDLER : STEP_DONE, t);
	}
	if ((t->unblocked || t->in_call == CALL_BEGINS) &&
	    step_status_bit(t->pid, t->tid, "\nSigCgt:", signal)) {
		/* what the handler's frame keeps is the mask as the program has it; and it comes
		 * before the system call */
		step_mask_back(t);
		t->in_call = CALL_NONE;
	}
	if (t->stepping) {
		r.event = STEP_SIGNAL;
		r.signal = signal;
	}
	step_resume(t, p, signal);
	return r;
}

/* --- who comes, and who goes --- */

/* Of all its threads only the one that called exec() is left, with the process's number. */
static struct step_report take_exec(struct step_tracees *p, int pid)
{
	struct step_thread *t;

	for (size_t i = p->n; i-- > 0;)
		if (p->v[i].pid == pid && p->v[i].tid != pid)
			step_remove(p, &p->v[i]);
	t = step_find(p, pid);
	if (t)
		*t = (struct step_thread){.tid = pid, .pid = pid, .own = t->own};
	else
		t = step_add(p, pid, pid);
	if (t)
		step_resume(t, p, 0);
	else
		ptrace(PTRACE_CONT, pid, 0, 0);
	return (struct step_report){.event = STEP_EXEC, .tid = pid, .pid = pid};
}

static struct step_report take_end(struct step_tracees *p, struct step_thread *t, int tid)
{
	struct step_report r = {.event = STEP_EXIT, .tid = tid};

	if (!t)
		return r;
	/* the kernel tells of the first one's end when all others have ended */
	r.pid = t->pid;
	if (t->pid == tid)
		r.event = STEP_END;
	step_remove(p, t);
	return r;
}

/* One that a tracee has started is a tracee, too, and told twice: by itself and by the other one.
 */
static struct step_report add_new(struct step_tracees *p, int tid, int parent)
{
	int pid = (int)step_status_number(tid, tid, "\nTgid:");
	struct step_report r = {.event = STEP_NOTHING, .tid = tid, .pid = pid > 0 ? pid : tid};

	if (!parent)
		parent = (int)step_status_number(tid, tid, "\nPPid:");
	if (!step_add(p, tid, r.pid) || r.pid != tid)
		return r;
	r.event = STEP_FORK;
	r.parent = step_find_process(p, parent) ? parent : 0;
	return r;
}

/* It is told by who has started it, and may have been before by itself, or have ended already. */
static struct step_report take_start(struct step_tracees *p, struct step_thread *t)
{
	struct step_report r = report(STEP_NOTHING, t);
	unsigned long started = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &started) == 0 && p->children &&
	    !step_find(p, (int)started) &&
	    step_status_number((int)started, (int)started, "\nTracerPid:") == getpid())
		r = add_new(p, (int)started, t->pid);
	return r;
}

/* It stands at its first instruction. True: *r tells all; else it is a thread like others. */
static bool take_new(struct step_tracees *p, int tid, struct step_report *r)
{
	struct step_thread *t;

	*r = add_new(p, tid, 0);
	t = step_find(p, tid);
	if (t && r->event != STEP_FORK)
		return false;
	/* clone() may make a process without the signal of fork(), which is told as a thread */
	if (t && p->children) {
		t->waits = true;
		return true;
	}
	if (t)
		step_remove(p, t);
	ptrace(PTRACE_DETACH, tid, 0, 0);
	r->event = STEP_NOTHING;
	return true;
}

/* --- stops --- */

static bool is_stop_signal(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* The process was stopped by a signal of its own, or goes on; or the thread is new; or it was
 * called for by step_let_go(). */
static struct step_report take_stop(struct step_tracees *p, struct step_thread *t, int signal)
{
	struct step_report r = report(STEP_NOTHING, t);

	if (is_stop_signal(signal) && p->letting_go && t->stepping) {
		/* only this takes the trap's flag from one that stays stopped */
		ptrace(PTRACE_DETACH, t->tid, 0, 0);
		step_remove(p, t);
		return r;
	}
	if (is_stop_signal(signal)) {
		ptrace(PTRACE_LISTEN, t->tid, 0, 0);
		return r;
	}
	if (t->interrupted) {
		t->interrupted = false;
		t->waits = true;
		return r;
	}
	step_resume(t, p, 0);
	return r;
}

/* What the kernel tells of beside signals: of exec(), of who was started, of stops. */
static struct step_report take_event(struct step_tracees *p, struct step_thread *t, int status)
{
	struct step_report r = report(STEP_NOTHING, t);
	int tid = t->tid;

	switch (status >> 16) {
	case PTRACE_EVENT_STOP:
		return take_stop(p, t, WSTOPSIG(status));
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		r = take_start(p, t);
		break;
	default:
		break;
	}
	t = step_find(p, tid);
	step_resume(t, p, 0);
	return r;
}

struct step_report step_take(struct step_tracees *p, int tid, int status)
{
	struct step_thread *t = step_find(p, tid);
	struct step_report r;

	if (!WIFSTOPPED(status))
		return take_end(p, t, tid);
	if (status >> 16 == PTRACE_EVENT_EXEC)
		return take_exec(p, tid);
	if (!t && take_new(p, tid, &r))
		return r;
	if (!t)
		t = step_find(p, tid);
	if (status >> 16)
		return take_event(p, t, status);
	if (WSTOPSIG(status) == CALL_STOP)
		return take_call(p, t);
	return take_signal(p, t, WSTOPSIG(status));
}

struct step_report step_wait(struct step_tracees *p)
{
	const struct step_report none = {.event = STEP_NOTHING};
	int status, tid;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].done) {
			p->v[i].done = false;
			return report(STEP_DONE, &p->v[i]);
		}
	tid = waitpid(-1, &status, __WALL);
	if (tid > 0)
		return step_take(p, tid, status);
	if (errno != ECHILD)
		return none;
	p->gone = true;
	return (struct step_report){.event = STEP_GONE};
}
