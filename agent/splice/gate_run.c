// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate's own process. All behaviours of a part run side by side, each variant in a process:
 * they mostly wait.
 */
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "splice/gate.h"
#include "datapath/splice.h"
#include "machine/cgroup.h"
#include "splice/gate_tries.h"

#define PATIENCE_MS 10000 /* by TCP nothing hangs, but the machine may be busy */
#define HANG_MIN_MS 350	  /* times slowness: what takes longer hangs, unless TCP took long too */
#define HANG_TIMES  4	  /* so many times as long as TCP */

static const struct behaviour *const tables[] = {gate_blocked, gate_ends,    gate_ring,
						 gate_reading, gate_writing, gate_splice};

size_t gate_behaviours(void)
{
	size_t n = 0;

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct behaviour *b = tables[t]; b->name; b++)
			n++;
	return n;
}

const struct behaviour *gate_behaviour(size_t i)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct behaviour *b = tables[t]; b->name; b++)
			if (i-- == 0)
				return b;
	return NULL;
}

/* --- one run --- */

/* Of a variant, shared with its process. */
struct shared {
	char text[GATE_WORDS_MAX];
	int64_t ended_ms; /* 0: it did not end by itself */
};

struct gate_run {
	int cgroup_fd;
	struct splice_gate *splicing; /* NULL until TCP is being tried */
	int64_t part_ms;	      /* when its part began */
	int first_ms;		      /* what TCP took for all behaviours */
	int tcp_ms;		      /* and for those of this time */
	struct shared *shared;	      /* of each variant */
	pid_t *pids;		      /* 0: it is not wanted; negative: there is none */
	struct error *e;
};

__attribute__((noreturn)) static void try_child(const struct gate_tried *t, struct shared *s)
{
	struct run r = {.family = t->family,
			.nonblock = t->nonblock,
			.client = -1,
			.server = -1,
			.text = s->text,
			.room = GATE_WORDS_MAX};
	int e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	r.listener = listener_open(r.family);
	e = r.listener < 0 ? r.listener : pair_open(&r, &r.client, &r.server);
	if (e < 0)
		said(&r, "no pair: %s", strerrorname_np(-e));
	else
		t->behaviour->run(&r);
	s->ended_ms = clock_ms();
	_exit(0);
}

static pid_t try_begin(const struct gate_tried *t, struct shared *s)
{
	pid_t pid;

	*s = (struct shared){0};
	pid = fork();
	if (pid == 0)
		try_child(t, s);
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

/* Ends it with all the processes that it left behind. */
static void try_end(pid_t pid, int64_t until_ms, const char *text, char ret[GATE_WORDS_MAX])
{
	struct pollfd p = {.fd = -1, .events = POLLIN};
	int64_t left = until_ms - clock_ms();
	const char *how = "";
	int status = 0;
	bool hangs;

	if (pid < 0) {
		snprintf(ret, GATE_WORDS_MAX, "no process");
		return;
	}
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	hangs = poll(&p, 1, left > 0 ? (int)left : 0) == 0;
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (p.fd >= 0)
		close(p.fd);
	if (hangs)
		how = "hangs";
	else if (WIFSIGNALED(status))
		how = "crashes";
	snprintf(ret, GATE_WORDS_MAX, "%.*s%s%s", GATE_WORDS_MAX - 10, text,
		 *how && *text ? " " : "", how);
}

/* How long a part may take, in ms. */
static int limit_of(const struct gate_run *g, enum gate_part part)
{
	int least = HANG_MIN_MS * (int)slowness, limit = HANG_TIMES * g->tcp_ms;

	if (part == PART_TCP || limit > PATIENCE_MS)
		return PATIENCE_MS;
	return limit > least ? limit : least;
}

static void part_begin(struct gate_run *g, const struct gate_tries *t, enum gate_part part)
{
	g->part_ms = clock_ms();
	for (size_t i = 0; i < t->n; i++)
		g->pids[i] = gate_tried_wanted(&t->of[i], part)
				     ? try_begin(&t->of[i], &g->shared[i])
				     : 0;
}

/* Which may be called later than they have ended. */
static void part_end(struct gate_run *g, struct gate_tries *t, enum gate_part part)
{
	int64_t until = g->part_ms + limit_of(g, part), last = g->part_ms;

	for (size_t i = 0; i < t->n; i++) {
		int64_t ended;

		if (!g->pids[i])
			continue;
		try_end(g->pids[i], until, g->shared[i].text, t->of[i].words[part]);
		ended = g->shared[i].ended_ms;
		ended = ended ? ended : clock_ms();
		last = ended > last ? ended : last;
	}
	if (part == PART_TCP)
		g->tcp_ms = (int)(last - g->part_ms);
}

/* --- a place of its own --- */

static int loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	autoclose int fd = -1;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

/* The kernel stamps what comes while somebody wants that, and takes a moment to begin. Open until
 * the process ends. */
static void want_stamps(void)
{
	int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on));
}

static int enter_place(const char *cgroup, int *cgroup_fd, struct error *e)
{
	int r = loopback_up();

	if (r)
		return error_set(e, r, "cannot make a network namespace: %s", strerror(-r));
	r = mkdir(cgroup, 0755) < 0 && errno != EEXIST ? -errno : cgroup_move(cgroup, 0);
	*cgroup_fd = r ? -1 : open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!r && *cgroup_fd < 0)
		r = -errno;
	return r ? error_set(e, r, "cannot enter %s: %s", cgroup, strerror(-r)) : 0;
}

/* --- all of them --- */

static bool was_spliced(struct splice_gate *s, bool redirected)
{
	struct ax_splice_counted n[AX_SPLICE_COUNTS];

	return datapath_splice_gate_counted(s, n) == 0 && n[AX_SPLICE_JOINED].messages &&
	       n[redirected ? AX_SPLICE_REDIRECTED : AX_SPLICE_PASSED].messages;
}

static int run_tcp(struct gate_run *g, struct gate_tries *t, enum gate_part part, unsigned nth)
{
	int r = g->splicing ? datapath_splice_gate_cgroup(g->splicing, -1) : 0;

	if (r)
		return error_set(g->e, r, "splicing cannot be detached: %s", strerror(-r));
	slowness = gate_slowness(g->first_ms, nth);
	part_begin(g, t, part);
	if (!g->splicing) /* meanwhile: behaviours mostly wait. Nothing is attached yet */
		r = datapath_splice_gate_open(-1, false, &g->splicing, g->e);
	part_end(g, t, part);
	if (part == PART_TCP && nth == 0)
		g->first_ms = g->tcp_ms;
	t->slow |= gate_slowness(g->tcp_ms, 1) > 1;
	return r;
}

static int run_spliced(struct gate_run *g, struct gate_tries *t, enum gate_part part)
{
	bool redirect = part == PART_REDIRECTED;
	int r = datapath_splice_gate_redirect(g->splicing, redirect);

	r = r ? r : datapath_splice_gate_cgroup(g->splicing, g->cgroup_fd);
	if (r)
		return error_set(g->e, r, "splicing cannot be attached: %s", strerror(-r));
	part_begin(g, t, part);
	part_end(g, t, part);
	if (!was_spliced(g->splicing, redirect))
		r = error_set(g->e, -EIO,
			      redirect ? "nothing was redirected"
				       : "no connection became a member");
	return r;
}

static int run_one(void *arg, struct gate_tries *t, enum gate_part part, unsigned nth)
{
	return part == PART_TCP || part == PART_TCP_AGAIN ? run_tcp(arg, t, part, nth)
							  : run_spliced(arg, t, part);
}

/* Not on a machine without it. */
static bool has_ipv6(void)
{
	int fd = listener_open(AF_INET6);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int run_all(int cgroup_fd, struct gate_result *ret, struct error *e)
{
	static struct gate_tries tries;
	struct gate_run g = {.cgroup_fd = cgroup_fd, .e = e};
	int r;

	gate_tries_all(has_ipv6(), &tries);
	g.pids = calloc(tries.n, sizeof(*g.pids));
	g.shared = mmap(NULL, tries.n * sizeof(*g.shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!g.pids || g.shared == MAP_FAILED)
		return error_set(e, -ENOMEM, "out of memory");
	r = gate_tries_judge(&tries, run_one, &g);
	datapath_splice_gate_close(g.splicing);
	free(g.pids);
	gate_tries_result(&tries, ret);
	return r;
}

static void put_all(int out, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = write(out, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void gate_run(int out, const char *cgroup)
{
	static struct gate_result result;
	autofree char *text = NULL;
	struct error e = {0};
	struct gate_kernel k;
	int cgroup_fd = -1, r;

	setpriority(PRIO_PROCESS, 0, 5); /* what users wait for comes first */
	r = enter_place(cgroup, &cgroup_fd, &e);
	want_stamps();
	r = r ? r : run_all(cgroup_fd, &result, &e);
	r = r ? r : gate_kernel_read(&k);
	r = r ? r : gate_format(&result, &k, &text);
	if (r) {
		char line[600];

		snprintf(line, sizeof(line), "failed %s\n", e.text[0] ? e.text : strerror(-r));
		put_all(out, line);
	} else {
		put_all(out, text);
	}
	close_fd(&cgroup_fd);
}
