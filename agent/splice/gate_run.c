// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate's own process. All behaviours of a mode run side by side, each variant in a process:
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
#include "splice/behaviour.h"

#define VARIANTS       2 /* blocking, non-blocking */
#define BEHAVIOURS_MAX 64
#define RUNS_MAX       (2 * BEHAVIOURS_MAX * VARIANTS)
#define PATIENCE_MS    3000 /* by TCP nothing hangs, but the machine may be busy */
#define HANG_MIN_MS    350  /* what takes longer hangs, unless TCP took long too */
#define RETRIED_MAX    6    /* so few lines that differ may be a busy machine's: once more */

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

struct
try {
	const struct behaviour *behaviour;
	int family;
	bool nonblock;
	bool wanted; /* in this mode */
	pid_t pid;
	char words[GATE_MODES][GATE_WORDS_MAX];
};

struct gate_run {
	struct try tries[RUNS_MAX];
	size_t n;
	int tcp_ms;		       /* how long TCP took */
	char (*texts)[GATE_WORDS_MAX]; /* of each try, shared with its process */
};

static int64_t now_ms(void)
{
	return (int64_t)(time_mono_ns() / 1000000);
}

__attribute__((noreturn)) static void try_child(const struct try *t, char *text)
{
	struct run r = {.family = t->family,
			.nonblock = t->nonblock,
			.client = -1,
			.server = -1,
			.text = text,
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
	_exit(0);
}

static void try_begin(struct try *t, char *text)
{
	memset(text, 0, GATE_WORDS_MAX);
	t->pid = fork();
	if (t->pid == 0)
		try_child(t, text);
	if (t->pid > 0)
		setpgid(t->pid, t->pid);
}

/* Ends it with all the processes that it left behind. */
static void try_end(struct try *t, int64_t until_ms, const char *text, char ret[GATE_WORDS_MAX])
{
	struct pollfd p = {.fd = -1, .events = POLLIN};
	int64_t left = until_ms - now_ms();
	const char *how = "";
	int status = 0;
	bool hangs;

	if (t->pid < 0) {
		snprintf(ret, GATE_WORDS_MAX, "no process");
		return;
	}
	p.fd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	hangs = poll(&p, 1, left > 0 ? (int)left : 0) == 0;
	kill(-t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	if (p.fd >= 0)
		close(p.fd);
	if (hangs)
		how = "hangs";
	else if (WIFSIGNALED(status))
		how = "crashes";
	snprintf(ret, GATE_WORDS_MAX, "%.*s%s%s", GATE_WORDS_MAX - 10, text,
		 *how && *text ? " " : "", how);
}

static void run_mode(struct gate_run *g, enum gate_mode mode)
{
	int64_t began = now_ms();
	int limit = PATIENCE_MS;

	if (mode != GATE_TCP)
		limit = 2 * g->tcp_ms > HANG_MIN_MS ? 2 * g->tcp_ms : HANG_MIN_MS;
	for (size_t i = 0; i < g->n; i++)
		if (g->tries[i].wanted)
			try_begin(&g->tries[i], g->texts[i]);
	for (size_t i = 0; i < g->n; i++)
		if (g->tries[i].wanted)
			try_end(&g->tries[i], began + limit, g->texts[i], g->tries[i].words[mode]);
	if (mode == GATE_TCP)
		g->tcp_ms = (int)(now_ms() - began);
}

/* --- what differs --- */

/* What hangs by TCP has shown nothing. */
static bool differs(const struct try *t, enum gate_mode mode)
{
	const char *tcp = t->words[GATE_TCP];

	return !streq(tcp, t->words[mode]) || strstr(tcp, "hangs") || strstr(tcp, "no p");
}

/* Those of which it is wanted; how many. */
static size_t want_differing(struct gate_run *g, enum gate_mode mode)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		g->tries[i].wanted = differs(&g->tries[i], mode);
		n += g->tries[i].wanted;
	}
	return n;
}

static void want_all(struct gate_run *g)
{
	for (size_t i = 0; i < g->n; i++)
		g->tries[i].wanted = true;
}

static void run_spliced(struct gate_run *g, enum gate_mode mode)
{
	size_t n;

	want_all(g);
	run_mode(g, mode);
	n = want_differing(g, mode);
	if (n && n <= RETRIED_MAX)
		run_mode(g, mode);
}

static void add_lines(const struct gate_run *g, enum gate_mode mode, struct gate_result *ret)
{
	for (size_t i = 0; i < g->n && ret->n < GATE_LINES_MAX; i++) {
		const struct try *t = &g->tries[i];
		struct gate_line *l = &ret->lines[ret->n];

		if (!differs(t, mode))
			continue;
		*l = (struct gate_line){.behaviour = t->behaviour,
					.mode = mode,
					.nonblock = t->nonblock,
					.ipv6 = t->family == AF_INET6};
		memcpy(l->tcp, t->words[GATE_TCP], sizeof(l->tcp));
		memcpy(l->seen, t->words[mode], sizeof(l->seen));
		ret->n++;
	}
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

static bool was_spliced(struct splice_gate *s, bool redirected)
{
	struct ax_splice_counted n[AX_SPLICE_COUNTS];

	return datapath_splice_gate_counted(s, n) == 0 && n[AX_SPLICE_JOINED].messages &&
	       n[redirected ? AX_SPLICE_REDIRECTED : AX_SPLICE_PASSED].messages;
}

static int run_all(struct gate_run *g, int cgroup_fd, struct gate_result *ret, struct error *e)
{
	struct splice_gate *s;
	int r;

	want_all(g);
	run_mode(g, GATE_TCP);
	r = datapath_splice_gate_open(cgroup_fd, false, &s, e);
	if (r)
		return r;
	run_spliced(g, GATE_MEMBER);
	if (!was_spliced(s, false))
		r = error_set(e, -EIO, "no connection became a member");
	r = r ? r : datapath_splice_gate_redirect(s, true);
	if (!r) {
		run_spliced(g, GATE_REDIRECTED);
		if (!was_spliced(s, true))
			r = error_set(e, -EIO, "nothing was redirected");
	}
	datapath_splice_gate_close(s);
	add_lines(g, GATE_MEMBER, ret);
	add_lines(g, GATE_REDIRECTED, ret);
	return r;
}

/* Not on a machine without it. */
static bool has_ipv6(void)
{
	int fd = listener_open(AF_INET6);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void add_try(struct gate_run *g, const struct behaviour *b, bool nonblock, int family)
{
	if (g->n < RUNS_MAX && !(nonblock && b->flags & BLOCKING_ONLY))
		g->tries[g->n++] =
			(struct try){.behaviour = b, .nonblock = nonblock, .family = family};
}

/* Half of them over IPv6, whose members have functions of their own in the kernel, made of the same
 * parts; but both of what splicing cannot do without. */
static void add_tries(struct gate_run *g)
{
	bool ipv6 = has_ipv6();

	for (size_t i = 0; i < gate_behaviours(); i++)
		for (unsigned v = 0; v < VARIANTS; v++) {
			const struct behaviour *b = gate_behaviour(i);
			bool first6 = ipv6 && (i + v) % 2;

			add_try(g, b, v, first6 ? AF_INET6 : AF_INET);
			if (ipv6 && b->flags & (NEEDED | IS_FIONREAD))
				add_try(g, b, v, first6 ? AF_INET : AF_INET6);
		}
}

static int prepare(struct gate_run *g, struct error *e)
{
	add_tries(g);
	g->texts = mmap(NULL, g->n * sizeof(*g->texts), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return g->texts == MAP_FAILED ? error_set(e, -ENOMEM, "out of memory") : 0;
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
	static struct gate_run g;
	autofree char *text = NULL;
	struct error e = {0};
	struct gate_kernel k;
	int cgroup_fd = -1, r;

	setpriority(PRIO_PROCESS, 0, 5); /* what users wait for comes first */
	r = enter_place(cgroup, &cgroup_fd, &e);
	r = r ? r : prepare(&g, &e);
	r = r ? r : run_all(&g, cgroup_fd, &result, &e);
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
