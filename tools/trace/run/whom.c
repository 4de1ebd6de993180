/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes that -p names: their numbers, and when they have ended. */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include "tools/lib/text.h"
#include "tools/trace/run/run.h"

static bool has(const struct trace_whom *w, uint32_t pid)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i] == pid)
			return true;
	return false;
}

static int add(struct trace_whom *w, const char *text, size_t len, struct error *e)
{
	unsigned long long pid = 0;
	uint32_t *v;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return error_set(e, -EINVAL,
					 "-p cannot be '%.60s': give a whole number, or several "
					 "with commas",
					 text);
		pid = pid * 10 + (unsigned long long)(text[i] - '0');
		if (pid > INT32_MAX)
			return error_set(e, -EINVAL, "%.*s is no number of a process", (int)len,
					 text);
	}
	if (!pid)
		return error_set(e, -EINVAL, "-p cannot be '%.60s': there is a number missing",
				 text);
	if (has(w, (uint32_t)pid))
		return 0;
	if (w->n == TRACE_PIDS_MAX)
		return error_set(e, -E2BIG, "-p names more than %d processes", TRACE_PIDS_MAX);
	v = realloc(w->v, (w->n + 1) * sizeof(*v));
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	w->v = v;
	w->v[w->n++] = (uint32_t)pid;
	return 0;
}

int trace_whom_read(struct trace_whom *w, const struct strv *texts, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < texts->n; i++)
		for (const char *p = texts->v[i]; r == 0 && p;) {
			size_t len = strcspn(p, ",");

			r = add(w, p, len, e);
			p = p[len] ? p + len + 1 : NULL;
		}
	return r;
}

/* A thread's number, which the kernel takes in many places, too, would be that of no process. */
static uint32_t process_of(uint32_t tid)
{
	autofree char *text = NULL;
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	if (file_read(path, 1 << 16, &text) < 0)
		return tid;
	at = strstr(text, "\nTgid:");
	return at ? (uint32_t)strtoul(at + 6, NULL, 10) : tid;
}

int trace_whom_check(const struct trace_whom *w, struct error *e)
{
	for (size_t i = 0; i < w->n; i++) {
		uint32_t pid = w->v[i], process;

		if (kill((pid_t)pid, 0) && errno == ESRCH)
			return error_set(e, -ESRCH, "there is no process %u", pid);
		process = process_of(pid);
		if (process != pid)
			return error_set(e, -ESRCH,
					 "%u is a thread of process %u: expected the process", pid,
					 process);
	}
	return 0;
}

void trace_whom_free(struct trace_whom *w)
{
	free(w->v);
	*w = (struct trace_whom){0};
}

/* --- their ends --- */

int trace_ends_open(struct trace_ends *ends, const uint32_t *pids, size_t n)
{
	ends->v = calloc(n + 1, sizeof(*ends->v));
	if (!ends->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);

		if (fd >= 0)
			ends->v[ends->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	ends->ended = n && !ends->n;
	return 0;
}

void trace_ends_close(struct trace_ends *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		close(ends->v[i].fd);
	free(ends->v);
	*ends = (struct trace_ends){0};
}

bool trace_ends_wait(struct trace_ends *ends, int also, uint64_t ns, const sigset_t *mask)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};
	size_t n = ends->n, left = 0;

	ends->v[n] = (struct pollfd){.fd = also, .events = POLLIN};
	if (ends->ended || ppoll(ends->v, n + 1, &ts, mask) <= 0)
		return ends->ended;
	for (size_t i = 0; i < n; i++)
		if (ends->v[i].revents)
			close(ends->v[i].fd);
		else
			ends->v[left++] = ends->v[i];
	ends->ended = n && !left;
	ends->n = left;
	return ends->ended;
}

/* --- what they come to --- */

static void say_later(void *arg, const struct session_later *l)
{
	const struct trace *t = arg;

	fprintf(stderr, "ax %s: ", t->c->name);
	if (l->failed)
		fprintf(stderr, "no probes in ");
	else
		fprintf(stderr, "%zu place%s more, in ", l->n_places, l->n_places == 1 ? "" : "s");
	text_put(l->path, stderr);
	fprintf(stderr, " of process %d%s", l->pid, l->failed ? ": " : "");
	text_put(l->failed ? l->failed : "", stderr);
	putc('\n', stderr);
}

int trace_take_child(struct trace *t, int pid, struct error *e)
{
	t->whom.v = calloc(1, sizeof(*t->whom.v));
	if (!t->whom.v)
		return error_set(e, -ENOMEM, "out of memory");
	t->whom.v[0] = (uint32_t)pid;
	t->whom.n = 1;
	return 0;
}

void trace_take_whom(struct trace *t)
{
	t->options.pid = t->whom.n ? (int)t->whom.v[0] : 0;
	t->options.pids = t->whom.v;
	t->options.n_pids = t->whom.n;
	t->options.on_later = say_later;
	t->options.later_arg = t;
}
