// SPDX-License-Identifier: GPL-2.0-or-later
/* Which threads are traced, of which processes, and seizing them. */
#include <ctype.h>
#include <dirent.h>

#include "probes/step/priv.h"

#define SEIZE_TRIES   100 /* looks at a list of threads or processes, which grows meanwhile */
#define SEIZE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)
#define FORK_OPTIONS  (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

struct step_thread *step_find(const struct step_tracees *p, int tid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].tid == tid)
			return &p->v[i];
	return NULL;
}

bool step_find_process(const struct step_tracees *p, int pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].pid == pid)
			return true;
	return false;
}

bool step_has(const struct step_tracees *p, int tid)
{
	return step_find(p, tid);
}

/* As the process has it itself, where it is in a pid namespace below ours. */
static int own_number(const struct step_tracees *p, int tid, int pid)
{
	autofree char *text = NULL;
	char path[64], *at, *end;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].pid == pid)
			return p->v[i].own;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	at = file_read(path, 1 << 16, &text) < 0 ? NULL : strstr(text, "\nNStgid:");
	if (!at)
		return pid;
	end = at + 1 + strcspn(at + 1, "\n");
	while (end > at && isdigit((unsigned char)end[-1]))
		end--;
	return atoi(end);
}

struct step_thread *step_add(struct step_tracees *p, int tid, int pid)
{
	int own = own_number(p, tid, pid);

	if (p->n == p->max) {
		size_t more = p->max ? p->max * 2 : 16;
		struct step_thread *v = reallocarray(p->v, more, sizeof(*v));

		if (!v)
			return NULL;
		p->v = v;
		p->max = more;
	}
	p->v[p->n] = (struct step_thread){.tid = tid, .pid = pid, .own = own};
	return &p->v[p->n++];
}

void step_remove(struct step_tracees *p, struct step_thread *t)
{
	*t = p->v[--p->n];
}

/* --- one process --- */

long step_status_number(int pid, int tid, const char *word)
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
	long tracer = step_status_number(pid, tid, "\nTracerPid:");
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
static int seize_thread(struct step_tracees *p, int pid, int tid, struct error *e)
{
	unsigned options = SEIZE_OPTIONS | (p->children ? FORK_OPTIONS : 0);
	int err;

	if (step_find(p, tid))
		return 0;
	if (ptrace(PTRACE_SEIZE, tid, 0, options)) {
		err = errno;
		/* a thread that a seized one just started is ours already */
		if (err == ESRCH || has_ended(pid, tid) ||
		    step_status_number(pid, tid, "\nTracerPid:") == getpid())
			return 0;
		return refused(pid, tid, err, e);
	}
	return step_add(p, tid, pid) ? 1 : error_set(e, -ENOMEM, "out of memory");
}

static int seize_threads(struct step_tracees *p, int pid, struct error *e)
{
	struct dirent *d;
	char path[64];
	int r = 0, n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return error_set(e, -ESRCH, "there is no process %d", pid);
	while (r >= 0 && (d = readdir(dir)))
		if (atoi(d->d_name) > 0) {
			r = seize_thread(p, pid, atoi(d->d_name), e);
			n += r > 0;
		}
	closedir(dir);
	return r < 0 ? r : n;
}

static int seize_process(struct step_tracees *p, int pid, struct error *e)
{
	size_t before = p->n;
	int r = 1;

	for (int i = 0; r > 0 && i < SEIZE_TRIES; i++)
		r = seize_threads(p, pid, e);
	if (r >= 0 && p->n == before && !step_find_process(p, pid))
		r = error_set(e, -ESRCH, "process %d has ended", pid);
	return r < 0 ? r : 0;
}

bool step_seize_child(struct step_tracees *p, int pid)
{
	struct error e = {0};

	/* what is read about it here, and what is written, would be steps of its own */
	return pid != getpid() && pid != getppid() && seize_process(p, pid, &e) == 0;
}

/* --- all of them --- */

/* 1: there was one that is new. */
static int seize_if_child(struct step_tracees *p, int pid, struct error *e)
{
	int r;

	if (pid <= 0 || pid == getpid() || pid == getppid() || step_find_process(p, pid) ||
	    !step_find_process(p, (int)step_status_number(pid, pid, "\nPPid:")) ||
	    has_ended(pid, pid))
		return 0;
	r = seize_process(p, pid, e);
	return r == -ESRCH ? 0 : r < 0 ? r : 1;
}

static int seize_children(struct step_tracees *p, struct error *e)
{
	struct dirent *d;
	int r = 0, n = 0;
	DIR *dir = opendir("/proc");

	if (!dir)
		return error_set(e, -errno, "/proc, which tells of children, cannot be read: %s",
				 strerror(errno));
	while (r >= 0 && (d = readdir(dir))) {
		r = seize_if_child(p, atoi(d->d_name), e);
		n += r > 0;
	}
	closedir(dir);
	return r < 0 ? r : n;
}

static int seize_all(struct step_tracees *p, const uint32_t *pids, size_t n, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		r = seize_process(p, (int)pids[i], e);
		if (r < 0 && r != -ESRCH)
			return r;
	}
	if (!p->n)
		return r < 0 ? r : -ESRCH;
	r = p->children;
	for (int i = 0; r > 0 && i < SEIZE_TRIES; i++)
		r = seize_children(p, e);
	return r < 0 ? r : 0;
}

int step_seize(const uint32_t *pids, size_t n, bool children, struct step_tracees **ret,
	       struct error *e)
{
	struct step_tracees *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	p->children = children;
	r = seize_all(p, pids, n, e);
	if (r < 0) {
		step_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void step_free(struct step_tracees *p)
{
	free(p->v);
	free(p);
}
