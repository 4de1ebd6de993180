// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "splice/gate.h"
#include "base/log.h"
#include "datapath/splice.h"
#include "machine/cgroup.h"
#include "splice/behaviour.h"

/* Hidden from those who look for apps. Behind the name of the instance's, beside that: its hooks do
 * not see the gate's connections, which are no app's. */
#define CGROUP	 ".gate"
#define TEXT_MAX (128u << 10)
#define LEAVE_MS 1000 /* for the kernel to let go of who was killed: its programs go first */

struct gate {
	struct loop_item pipe; /* while a run is under way */
	int epoll;
	const struct instance *inst;
	char cgroup[4096 + 32];
	void (*done)(void *arg);
	void *arg;
	pid_t pid;
	char *text; /* what came so far */
	size_t len;
	struct gate_verdict verdict;
	struct gate_result result;
	char why[512];
};

/* --- its cgroup --- */

static void remove_cgroup(const char *path)
{
	const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};

	if (access(path, F_OK))
		return;
	cgroup_signal(path, SIGKILL);
	for (int ms = 0; rmdir(path) < 0 && errno == EBUSY && ms < LEAVE_MS; ms += 5)
		nanosleep(&moment, NULL);
}

void gate_sweep(const char *cgroup)
{
	char path[4096 + 32];

	snprintf(path, sizeof(path), "%s" CGROUP, cgroup);
	remove_cgroup(path);
}

/* --- what is known --- */

static void broke(struct gate *g, enum gate_state state, const char *why)
{
	g->verdict = (struct gate_verdict){.state = state};
	snprintf(g->why, sizeof(g->why), "%.500s", why);
}

int gate_open(int epoll, const struct instance *inst, const char *cgroup, void (*done)(void *arg),
	      void *arg, struct gate **ret)
{
	struct gate *g = calloc(1, sizeof(*g));
	struct error e = {0};

	if (!g)
		return -ENOMEM;
	*g = (struct gate){.pipe.fd = -1, .epoll = epoll, .inst = inst, .done = done, .arg = arg};
	snprintf(g->cgroup, sizeof(g->cgroup), "%s" CGROUP, cgroup);
	remove_cgroup(g->cgroup);
	if (datapath_splice_supported(&e))
		broke(g, GATE_OLD, e.text);
	else if (gate_read(inst, &g->result) == 0)
		gate_judge(&g->result, &g->verdict);
	*ret = g;
	return 0;
}

static void end_run(struct gate *g)
{
	if (g->pipe.fd < 0)
		return;
	loop_del(g->epoll, &g->pipe);
	close_fd(&g->pipe.fd);
	free(g->text);
	g->text = NULL;
	g->len = 0;
}

void gate_close(struct gate *g)
{
	if (!g)
		return;
	if (g->pipe.fd >= 0)
		kill(g->pid, SIGKILL);
	end_run(g);
	remove_cgroup(g->cgroup); /* also one that was busy for too long when its run ended */
	free(g);
}

const struct gate_verdict *gate_verdict(const struct gate *g)
{
	return &g->verdict;
}

/* --- a run --- */

/* Nothing of the agent's stays open: its lock least of all. */
__attribute__((noreturn)) static void child(const struct gate *g, int out, pid_t agent)
{
	const struct rlimit files = {1024, 1024};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setrlimit(RLIMIT_NOFILE, &files);
	if (dup2(out, 3) < 0 || close_range(4, ~0u, 0) < 0)
		_exit(1);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	gate_run(3, g->cgroup);
	_exit(0);
}

static int start(struct gate *g)
{
	pid_t agent = getpid();
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	g->pid = fork();
	if (g->pid == 0)
		child(g, ends[1], agent);
	r = g->pid < 0 ? -errno : 0;
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	g->pipe = (struct loop_item){.kind = LOOP_SPLICE_GATE, .fd = ends[0]};
	r = r ? r : loop_add(g->epoll, &g->pipe, EPOLLIN);
	if (r)
		close_fd(&g->pipe.fd);
	return r;
}

void gate_start(struct gate *g)
{
	int r;

	if (g->pipe.fd >= 0 || g->verdict.state != GATE_WAITS)
		return;
	r = start(g);
	if (r)
		broke(g, GATE_BROKE, strerror(-r));
}

static void keep(const struct gate *g)
{
	char path[128];
	int r;

	gate_path(g->inst, path, sizeof(path));
	r = file_replace(path, 0600, g->text);
	if (r)
		log_warn("cannot keep %s: %s", path, strerror(-r));
}

static void finish(struct gate *g)
{
	struct gate_kernel k;

	/* before its result: who sees that one finds nothing else of the run any more */
	remove_cgroup(g->cgroup);
	if (g->text && starts_with(g->text, "failed ")) {
		g->text[strcspn(g->text, "\n")] = 0;
		broke(g, GATE_BROKE, g->text + strlen("failed "));
	} else if (!g->text || gate_kernel_read(&k) || gate_parse(g->text, &k, &g->result)) {
		broke(g, GATE_BROKE, "it ended before it had a result");
	} else {
		gate_judge(&g->result, &g->verdict);
		keep(g);
	}
	if (g->verdict.state != GATE_KNOWN)
		log_warn("splicing: what this kernel does could not be tried: %s", g->why);
	end_run(g);
	g->done(g->arg);
}

void gate_on_pipe(struct gate *g)
{
	ssize_t n;

	if (!g->text)
		g->text = calloc(1, TEXT_MAX + 1);
	n = g->text ? read(g->pipe.fd, g->text + g->len, TEXT_MAX - g->len) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		g->len += (size_t)n;
	else
		finish(g);
}
