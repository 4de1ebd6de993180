// SPDX-License-Identifier: GPL-2.0-or-later
/* A process's threads under ptrace: seizing them, and what they report. */
#include <dirent.h>
#include <sys/wait.h>

#include "probes/step/priv.h"

#define SEIZE_TRIES   100 /* looks at the list of threads, which grows meanwhile */
#define SEIZE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)
#define CALL_STOP     (SIGTRAP | 0x80)

struct step_thread *step_find(struct step_process *p, int tid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].tid == tid)
			return &p->v[i];
	return NULL;
}

static struct step_thread *add_thread(struct step_process *p, int tid)
{
	if (p->n == p->max) {
		size_t more = p->max ? p->max * 2 : 16;
		struct step_thread *v = reallocarray(p->v, more, sizeof(*v));

		if (!v)
			return NULL;
		p->v = v;
		p->max = more;
	}
	p->v[p->n] = (struct step_thread){.tid = tid};
	return &p->v[p->n++];
}

static void remove_thread(struct step_process *p, struct step_thread *t)
{
	*t = p->v[--p->n];
}

/* --- seizing --- */

static long status_number(int pid, int tid, const char *word)
{
	autofree char *text = NULL;
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	if (file_read(path, 1 << 16, &text) < 0)
		return -1;
	at = strstr(text, word);
	return at ? strtol(at + strlen(word), NULL, 10) : -1;
}

static int refused(int pid, int tid, int err, struct error *e)
{
	long tracer = status_number(pid, tid, "\nTracerPid:");
	autofree char *name = NULL;
	char path[64];

	if (err == ESRCH)
		return error_set(e, -err, "there is no process %d", pid);
	if (tracer <= 0)
		return error_set(e, -err,
				 "process %d cannot be traced: %s (kernel threads, ax itself and "
				 "processes that others protect cannot)",
				 pid, strerror(err));
	snprintf(path, sizeof(path), "/proc/%ld/comm", tracer);
	if (file_read(path, 64, &name) == 0)
		name[strcspn(name, "\n")] = 0;
	return error_set(e, -err,
			 "process %d is traced already by %s (process %ld), and only one can do "
			 "that: end it first",
			 pid, name ? name : "another process", tracer);
}

static bool has_ended(int pid, int tid)
{
	autofree char *text = NULL;
	const char *p;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (file_read(path, 4096, &text) < 0)
		return true;
	p = strrchr(text, ')');
	return p && (p[2] == 'Z' || p[2] == 'X');
}

/* 1: it is new; 0: it is known, or ended. */
static int seize_thread(struct step_process *p, int tid, struct error *e)
{
	int err;

	if (step_find(p, tid))
		return 0;
	if (ptrace(PTRACE_SEIZE, tid, 0, SEIZE_OPTIONS)) {
		err = errno;
		/* a thread that a seized one just started is ours already */
		if (err == ESRCH || has_ended(p->pid, tid) ||
		    status_number(p->pid, tid, "\nTracerPid:") == getpid())
			return 0;
		return refused(p->pid, tid, err, e);
	}
	return add_thread(p, tid) ? 1 : error_set(e, -ENOMEM, "out of memory");
}

static int seize_threads(struct step_process *p, struct error *e)
{
	struct dirent *d;
	char path[64];
	int r = 0, n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	dir = opendir(path);
	if (!dir)
		return error_set(e, -ESRCH, "there is no process %d", p->pid);
	while (r >= 0 && (d = readdir(dir)))
		if (atoi(d->d_name) > 0) {
			r = seize_thread(p, atoi(d->d_name), e);
			n += r > 0;
		}
	closedir(dir);
	return r < 0 ? r : n;
}

int step_seize(int pid, struct step_process **ret, struct error *e)
{
	struct step_process *p = calloc(1, sizeof(*p));
	int r = 1;

	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	p->pid = pid;
	for (int i = 0; r > 0 && i < SEIZE_TRIES; i++)
		r = seize_threads(p, e);
	if (r >= 0 && !p->n)
		r = error_set(e, -ESRCH, "process %d has ended", pid);
	if (r < 0) {
		step_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void step_free(struct step_process *p)
{
	free(p->v);
	free(p);
}

/* --- going on --- */

void step_resume(struct step_thread *t, const struct step_process *p, int signal)
{
	int how = PTRACE_CONT;

	if (t->in_call)
		how = PTRACE_SYSCALL;
	else if (t->stepping && !p->letting_go)
		how = PTRACE_SINGLESTEP;
	/* one that was killed meanwhile will tell that itself */
	ptrace(how, t->tid, 0, (long)signal);
}

bool step_one(struct step_process *p, int tid)
{
	struct step_thread *t = step_find(p, tid);
	enum step_prepared ready;

	if (!t || !t->waits)
		return false;
	/* once it is stepped, it is to be asked no more: the answer of a file takes long */
	if (!t->stepping && step_status_bit(p->pid, tid, "\nSigIgn:", SIGTRAP))
		return false;
	ready = step_prepare(p, t);
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

void step_on(struct step_process *p, int tid)
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
static bool is_of_step(const struct step_thread *t, int signal, const siginfo_t *info, int pid)
{
	if (signal != SIGTRAP || !t->stepping)
		return false;
	switch (info->si_code) {
	case TRAP_TRACE:
	case TRAP_BRKPT:
	case SIGTRAP:
		return true;
	case SI_USER:
		return info->si_pid == pid || !info->si_pid;
	default:
		return false;
	}
}

static struct step_report report(enum step_event event, int tid)
{
	return (struct step_report){.event = event, .tid = tid};
}

/* The system call that is stepped over begins, and is over: in between the thread may be in it for
 * long. */
static struct step_report take_call(struct step_process *p, struct step_thread *t)
{
	if (t->in_call == CALL_BEGINS && !p->letting_go) {
		t->in_call = CALL_ENDS;
		step_resume(t, p, 0);
		return report(STEP_NOTHING, t->tid);
	}
	t->in_call = CALL_NONE;
	t->waits = true;
	return report(STEP_DONE, t->tid);
}

static struct step_report take_signal(struct step_process *p, struct step_thread *t, int signal)
{
	struct step_report r = {.event = STEP_NOTHING, .tid = t->tid};
	siginfo_t info = {0};
	bool known = ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0;

	if (known && is_of_probe(signal, &info)) {
		p->stops++;
		t->waits = true;
		return report(STEP_PROBE, t->tid);
	}
	if (known && is_of_step(t, signal, &info, p->pid)) {
		step_complete(t);
		t->waits = true;
		return report(info.si_code == SIGTRAP ? STEP_HANDLER : STEP_DONE, t->tid);
	}
	if ((t->unblocked || t->in_call == CALL_BEGINS) &&
	    step_status_bit(p->pid, t->tid, "\nSigCgt:", signal)) {
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

/* Of all threads only the one that called exec() is left, with the process's number. */
static struct step_report take_exec(struct step_process *p, int tid)
{
	struct step_thread *t;

	p->n = 0;
	t = add_thread(p, tid);
	if (t)
		step_resume(t, p, 0);
	else
		ptrace(PTRACE_CONT, tid, 0, 0);
	return report(STEP_EXEC, tid);
}

static bool is_stop_signal(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* The process was stopped by a signal of its own, or goes on; or the thread is new; or it was
 * called for by step_let_go(). */
static struct step_report take_stop(struct step_process *p, struct step_thread *t, int signal)
{
	int tid = t->tid;

	if (is_stop_signal(signal) && p->letting_go && t->stepping) {
		/* only this takes the trap's flag from one that stays stopped */
		ptrace(PTRACE_DETACH, tid, 0, 0);
		remove_thread(p, t);
		return report(STEP_NOTHING, tid);
	}
	if (is_stop_signal(signal)) {
		ptrace(PTRACE_LISTEN, tid, 0, 0);
		return report(STEP_NOTHING, tid);
	}
	if (t->interrupted) {
		t->interrupted = false;
		t->waits = true;
		return report(STEP_NOTHING, t->tid);
	}
	step_resume(t, p, 0);
	return report(STEP_NOTHING, t->tid);
}

struct step_report step_take(struct step_process *p, int tid, int status)
{
	struct step_thread *t = step_find(p, tid);
	int event = status >> 16;

	if (!WIFSTOPPED(status)) {
		if (t)
			remove_thread(p, t);
		p->gone |= tid == p->pid;
		return report(tid == p->pid ? STEP_GONE : STEP_EXIT, tid);
	}
	if (event == PTRACE_EVENT_EXEC)
		return take_exec(p, tid);
	if (!t)
		t = add_thread(p, tid);
	if (!t) {
		ptrace(PTRACE_CONT, tid, 0, 0);
		return report(STEP_NOTHING, tid);
	}
	if (event == PTRACE_EVENT_STOP)
		return take_stop(p, t, WSTOPSIG(status));
	if (event) {
		step_resume(t, p, 0);
		return report(STEP_NOTHING, tid);
	}
	if (WSTOPSIG(status) == CALL_STOP)
		return take_call(p, t);
	return take_signal(p, t, WSTOPSIG(status));
}

struct step_report step_wait(struct step_process *p)
{
	int status, tid;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].done) {
			p->v[i].done = false;
			return report(STEP_DONE, p->v[i].tid);
		}
	tid = waitpid(-1, &status, __WALL);
	if (tid > 0)
		return step_take(p, tid, status);
	if (errno == ECHILD)
		p->gone = true;
	return report(errno == ECHILD ? STEP_GONE : STEP_NOTHING, 0);
}
