// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of stepping. Whoever is traced is let go when the tracer's process ends, without being
 * disturbed in what it waits for. But no trap of an instruction and no stop of a probe may be on
 * its way then: nobody would take it, and it would end or stop the program.
 */
#include <sys/wait.h>
#include <time.h>

#include "probes/step/priv.h"

#define END_NS	 UINT64_C(2000000000)
#define STOPS_NS UINT64_C(500000000) /* a thread that was killed tells no more of its stop */
#define PAUSE_NS 200000

/* What waits goes on; but one whose trap is to come yet has to be waited for again. */
static void let_on(struct step_tracees *p, struct step_thread *t)
{
	t->waits = false;
	t->done = false;
	if (!t->interrupted)
		t->stepping = t->stepping && !t->in_call &&
			      step_status_bit(t->pid, t->tid, "\nSigPnd:", SIGTRAP);
	t->in_call = CALL_NONE;
	if (!t->stepping)
		step_mask_back(t);
	step_resume(t, p, 0);
}

/* In a system call nothing is pending by which it would be disturbed. */
static void forget_calls(struct step_tracees *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].in_call && !p->v[i].waits)
			p->v[i].stepping = false;
}

static void call_back(struct step_tracees *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct step_thread *t = &p->v[i];

		if (t->waits)
			let_on(p, t);
		else if (t->stepping && !ptrace(PTRACE_INTERRUPT, t->tid, 0, 0))
			t->interrupted = true;
	}
}

static bool is_over(const struct step_tracees *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].stepping || p->v[i].interrupted || p->v[i].waits)
			return false;
	return true;
}

/* Everything that there is to take now. */
static void take_all(struct step_tracees *p, const struct step_end *end)
{
	int status, tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		struct step_report r = step_take(p, tid, status);
		struct step_thread *t = step_find(p, r.tid);

		end->told(end->arg, &r);
		if (t && t->waits)
			let_on(p, t);
	}
	if (tid < 0 && errno == ECHILD)
		p->gone = true;
}

bool step_let_go(struct step_tracees *p, const struct step_end *end)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t start = time_mono_ns(), now;

	p->letting_go = true;
	forget_calls(p);
	call_back(p);
	for (;;) {
		take_all(p, end);
		now = time_mono_ns();
		if (p->gone || (is_over(p) && (!end->waits(end->arg) || now - start > STOPS_NS)))
			return true;
		if (now - start > END_NS)
			return false;
		nanosleep(&pause, NULL);
	}
}
