/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that answers for an app's splice(2), and sendfile(2). It serves one app, and never
 * waits for one call while others may be asked about. An app cannot have it do what it could not do
 * itself: the descriptors are its own open files, which are used as they were opened.
 *
 * A task that is asked about is woken by fatal signals only (WAIT_KILLABLE_RECV), so that no call
 * is begun again of which bytes were moved already; so answers come at once, or soon.
 *
 * Whoever answers may be killed at any moment. Then the process that stands by (standby.c) goes on
 * where it was: each call has a place in memory that both have, from before it was read to after it
 * was answered, and a place changes by one store at a time. Where both are killed at once a thread
 * of the launcher's, which has that memory and the listener too, starts a process that goes on
 * (keep()).
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/emulate.h"

/* Linux 6.9 and 6.6; older headers lack them */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS	   SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* Descriptors. ALIVE is the end of a pipe that is closed when nobody has it any more. */
enum { LISTENER = 3, PIPE_OUT, PIPE_IN, ALIVE, SELF, STANDBY, OTHERS };

#define WAITING_MAX 64
#define WAIT_MS	    100 /* for room in a pipe; who may wait asks again then */
#define PAUSE_MS    50	/* before the next process is started, where the last one has not lasted */
#define LASTS_MS    1000
#define TRIES	    100 /* to start one */

enum place_state {
	PLACE_FREE,
	PLACE_ASKED,  /* its descriptors are to be fetched */
	PLACE_OPEN,   /* they are there, and bytes to be moved */
	PLACE_ANSWER, /* what is to be answered is known */
};

/* A call. */
struct place {
	uint64_t id;
	enum place_state state;
	pid_t tid;
	struct seccomp_data asked;
	struct splice_call call;
	uint64_t cookie;  /* of the connection, once the place is open */
	int64_t until_ms; /* so long it may wait for room */
	enum splice_answer what;
	ssize_t result;
};

/* Shared by the two processes and the launcher. */
struct server {
	bool over;    /* nobody has the filter any more */
	bool fetched; /* the places' descriptors are those of who answers now */
	struct seccomp_notif_sizes sizes;
	struct place places[WAITING_MAX + 1];
	struct place *moving; /* of which the mover knows; NULL: of none */
	struct mover *mover;
	struct seccomp_notif *asked;	  /* id 0: nothing */
	struct seccomp_notif_resp *reply; /* behind this structure, like the former */
};

static const struct launch_options *options;

static int64_t now_ms(void)
{
	return (int64_t)(time_mono_ns() / 1000000);
}

static void enter(struct place *p, enum place_state state)
{
	__atomic_store_n(&p->state, state, __ATOMIC_RELEASE);
}

/* --- answers --- */

static void call_close(struct splice_call *c)
{
	close_fd(&c->in);
	close_fd(&c->out);
}

/* Our descriptors go first: what the app closes next is to be closed then, and told to the other
 * end, and to be in no epoll set any more. */
static void answer(struct server *s, struct place *p)
{
	struct seccomp_notif_resp *a = s->reply;

	call_close(&p->call);
	memset(a, 0, s->sizes.seccomp_notif_resp);
	a->id = p->id;
	if (p->what == SPLICE_KERNEL)
		a->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (p->result < 0)
		a->error = (int)p->result;
	else
		a->val = p->result;
	ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_SEND, a); /* (ENOENT: it was killed) */
	enter(p, PLACE_FREE);
}

static void is_decided(struct place *p, enum splice_answer what, ssize_t result)
{
	p->what = what;
	p->result = result;
	enter(p, PLACE_ANSWER);
}

/* Moves bytes, if it can be done now or is not to be waited for. */
static void serve(struct server *s, struct place *p, bool last)
{
	enum splice_answer what;
	ssize_t result = 0;

	__atomic_store_n(&s->moving, NULL, __ATOMIC_RELEASE);
	splice_call_begin(s->mover);
	__atomic_store_n(&s->moving, p, __ATOMIC_RELEASE);
	what = splice_call_move(&p->call, s->mover, &result);
	if (what == SPLICE_WHEN_ROOM && !last)
		return;
	is_decided(p, what, result);
	answer(s, p);
}

/* --- the app's descriptors --- */

/* It still waits for an answer, and the task with that number is it. */
static bool is_asked(const struct place *p)
{
	uint64_t id = p->id;

	return ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* A thread's files are its process's, but for those that have left them. */
static int open_task(pid_t tid)
{
	int fd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
	autofree char *status = NULL;
	const char *line;
	char path[64];
	int tgid;

	if (fd >= 0 || errno != EINVAL)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (file_read(path, 65536, &status) || !(line = strstr(status, "\nTgid:")))
		return -1;
	tgid = atoi(line + strlen("\nTgid:"));
	if (tgid != tid && syscall(SYS_kcmp, tid, tgid, KCMP_FILES, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, tgid, 0);
}

/* 0: it has none, as whatever is no socket. */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0 ? 0 : cookie;
}

/* 0; 1: the app has no such descriptor, and the kernel is to say so; or a negative errno. */
static int get_files(struct place *p)
{
	autoclose int task = open_task(p->tid);
	bool sendfile = emulate_is_sendfile(&p->asked);
	const __u64 *args = p->asked.args;
	struct splice_call *c = &p->call;

	if (task < 0)
		return -ESRCH;
	c->in = (int)syscall(SYS_pidfd_getfd, task, (int)args[sendfile ? 1 : 0], 0);
	if (c->in >= 0)
		c->out = (int)syscall(SYS_pidfd_getfd, task, (int)args[sendfile ? 0 : 2], 0);
	if (c->in < 0 || c->out < 0)
		return errno == EBADF ? 1 : -errno;
	/* it lives, so the task was no other one */
	return is_asked(p) ? 0 : -ENOENT;
}

/* --- questions --- */

/* False: what is asked for is the kernel's to do, or to refuse. */
static bool read_call(const struct seccomp_data *d, struct splice_call *c)
{
	*c = (struct splice_call){.in = -1, .out = -1, .len = d->args[4]};
	if (emulate_is_sendfile(d)) {
		*c = (struct splice_call){.in = -1, .out = -1, .len = d->args[3]};
		return !d->args[2] && c->len;
	}
	c->flags = (unsigned)d->args[5];
	/* Offsets are for files. */
	return !d->args[1] && !d->args[3] && c->len &&
	       !(c->flags & ~(SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT));
}

static void decide(struct server *s, struct place *p, bool last)
{
	int r = read_call(&p->asked, &p->call) ? get_files(p) : 1;

	if (r < 0) /* programs take this for files that cannot be spliced */
		is_decided(p, SPLICE_DONE, -EINVAL);
	else if (r || !splice_call_concerns(&p->call, options))
		is_decided(p, SPLICE_KERNEL, 0);
	if (p->state == PLACE_ANSWER) {
		answer(s, p);
		return;
	}
	p->until_ms = last ? 0 : now_ms() + WAIT_MS;
	p->cookie = cookie_of(p->call.in);
	__atomic_store_n(&s->moving, NULL, __ATOMIC_RELEASE); /* (another's, who had this place) */
	enter(p, PLACE_OPEN);
	serve(s, p, last);
}

static struct place *place_of(struct server *s, uint64_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++)
		if (s->places[i].state != PLACE_FREE && s->places[i].id == id)
			return &s->places[i];
	return NULL;
}

/* There is one: who would have the last is not made to wait. */
static struct place *place_free(struct server *s, bool *last)
{
	struct place *first = NULL;

	*last = true;
	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++) {
		if (s->places[i].state != PLACE_FREE)
			continue;
		*last = first == NULL;
		if (first)
			break;
		first = &s->places[i];
	}
	return first;
}

/* What was read has its place. */
static void take_place(struct server *s)
{
	const struct seccomp_notif *n = s->asked;
	struct place *p;
	bool last;

	if (!n->id || place_of(s, n->id)) {
		s->asked->id = 0;
		return;
	}
	p = place_free(s, &last);
	*p = (struct place){
		.id = n->id, .tid = (pid_t)n->pid, .asked = n->data, .call = {.in = -1, .out = -1}};
	enter(p, PLACE_ASKED);
	__atomic_store_n(&s->asked->id, 0, __ATOMIC_RELEASE);
	decide(s, p, last);
}

/* False: nobody has the filter any more. */
static bool take_question(struct server *s, short events)
{
	if (events & POLLIN) {
		memset(s->asked, 0, s->sizes.seccomp_notif);
		if (ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_RECV, s->asked) == 0)
			take_place(s);
		return true; /* (ENOENT: killed before it was read) */
	}
	return !(events & (POLLHUP | POLLERR | POLLNVAL));
}

/* Those for which there is room now, or that have waited for long enough. */
static void look_at_waiting(struct server *s)
{
	int64_t now = now_ms();

	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++)
		if (s->places[i].state == PLACE_OPEN)
			serve(s, &s->places[i], now >= s->places[i].until_ms);
}

/* --- after the end of who answered --- */

static bool is_known(const struct server *s, int fd)
{
	if (fd < OTHERS)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++) {
		const struct place *p = &s->places[i];

		if (p->state == PLACE_OPEN && (p->call.in == fd || p->call.out == fd))
			return true;
	}
	return false;
}

/* Descriptors of apps that it had fetched, and that nobody has written down. (What else it had
 * opened, may_be_spliced() opens anew.) */
static void close_unknown(const struct server *s)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		int fd = atoi(d->d_name);

		if (d->d_name[0] != '.' && fd != dirfd(dir) && !is_known(s, fd))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void resume(struct server *s, struct place *p)
{
	bool moving = s->moving == p;
	ssize_t result;

	switch (p->state) {
	case PLACE_FREE:
		break;
	case PLACE_ASKED:
		decide(s, p, true);
		break;
	case PLACE_OPEN:
		if (moving && splice_call_resume(&p->call, s->mover, &result)) {
			is_decided(p, SPLICE_DONE, result);
			answer(s, p);
		}
		break; /* (it is looked at when all are) */
	case PLACE_ANSWER:
		p->call.in = p->call.out = -1; /* closed by now */
		answer(s, p);
		break;
	}
}

/* Nobody has what had been fetched for the calls any more: it is fetched anew. An app that has
 * another connection by that number now, or none, has taken it from under its own call. */
static void fetch_again(struct server *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++) {
		struct place *p = &s->places[i];

		if (p->state != PLACE_OPEN)
			continue;
		p->call.in = p->call.out = -1;
		if (get_files(p) || cookie_of(p->call.in) != p->cookie) {
			is_decided(p, SPLICE_DONE, -EINVAL);
			call_close(&p->call);
		}
	}
}

/* Of who was answered nobody wants to know any more. First of all goes what was begun: whatever is
 * moved next needs the mover, without what is left there of a call that nobody asks about. */
static void recover(struct server *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++)
		if (s->places[i].state != PLACE_FREE && !is_asked(&s->places[i]))
			enter(&s->places[i], PLACE_FREE);
	if (!s->fetched)
		fetch_again(s);
	__atomic_store_n(&s->fetched, true, __ATOMIC_RELEASE);
	close_unknown(s);
	if (s->moving && s->moving->state == PLACE_OPEN)
		resume(s, s->moving);
	else
		splice_call_forget(s->mover);
	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++)
		if (s->places[i].state != PLACE_OPEN)
			resume(s, &s->places[i]);
	take_place(s);
	look_at_waiting(s);
}

/* --- the loop --- */

/* Until the first one that waits for room may not do so any more; -1: none waits. */
static int time_left(const struct server *s)
{
	int64_t now = now_ms(), least = -1;

	for (size_t i = 0; i < ARRAY_SIZE(s->places); i++) {
		int64_t left = s->places[i].until_ms - now;

		if (s->places[i].state != PLACE_OPEN)
			continue;
		left = left < 0 ? 0 : left;
		least = least < 0 || left < least ? left : least;
	}
	return (int)least;
}

/* Somebody to stand by, and what there is to be done if it is him who returns. False: nobody. */
static bool cover(struct server *s)
{
	const int pidfds[2] = {SELF, STANDBY};
	bool covered = standby_start(&s->over, pidfds) == 0;

	recover(s);
	return covered;
}

static void serve_all(struct server *s)
{
	bool covered = cover(s);

	for (;;) {
		struct pollfd p[2 + WAITING_MAX + 1] = {
			{.fd = LISTENER, .events = POLLIN},
			{.fd = covered ? STANDBY : -1, .events = POLLIN}};
		nfds_t n = 2;

		for (size_t i = 0; i < ARRAY_SIZE(s->places); i++)
			if (s->places[i].state == PLACE_OPEN)
				p[n++] = (struct pollfd){.fd = s->places[i].call.out,
							 .events = POLLOUT};
		if (poll(p, n, time_left(s)) < 0 && errno != EINTR)
			return;
		/* Whoever stands by from here on, and goes on from here one day, has our p: what it
		 * says of questions is not true any more then, and who reads one that is not there
		 * waits for it. */
		if (p[1].revents) {
			covered = cover(s);
			continue;
		}
		look_at_waiting(s);
		if (!take_question(s, p[0].revents))
			return;
	}
}

/* --- the process --- */

/* What the launcher keeps, with which a process can be started at any time. */
struct emulation {
	const struct launch_session *session;
	struct server *server;
	int listener, ends[2]; /* of the mover's pipe */
	int alive;	       /* POLLHUP: nobody answers, nor stands by */
	int over;	       /* an eventfd: keep() is to return */
	pthread_t keeper;
	bool kept;
};

static int server_open(struct emulation *m)
{
	struct seccomp_notif_sizes sizes;
	struct server *s;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	s = mmap(NULL, sizeof(*s) + sizes.seccomp_notif + sizes.seccomp_notif_resp + 16,
		 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s == MAP_FAILED)
		return -errno;
	s->sizes = sizes;
	s->reply = (void *)(s + 1);
	s->asked = (void *)((char *)s->reply + ((sizes.seccomp_notif_resp + 15u) & ~15u));
	m->server = s;
	return mover_open(&s->mover, m->ends);
}

/* Nothing of the caller's but these, from LISTENER on. What is below is only kept free. */
static int keep_only(const int fds[], int n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[OTHERS];

	if (null < 0)
		return -errno;
	for (int fd = 0; fd < OTHERS; fd++) {
		bool ours = fd >= LISTENER && fd < LISTENER + n;

		high[fd] = fcntl(ours ? fds[fd - LISTENER] : null, F_DUPFD_CLOEXEC, OTHERS);
		if (high[fd] < 0)
			return -errno;
	}
	for (int fd = 0; fd < OTHERS; fd++)
		if (dup3(high[fd], fd, O_CLOEXEC) < 0)
			return -errno;
	return syscall(SYS_close_range, (unsigned)OTHERS, ~0u, 0u) < 0 ? -errno : 0;
}

static int leave_caller(const struct emulation *m, int alive)
{
	const int fds[] = {m->listener, m->ends[0], m->ends[1], alive};
	const int ends[] = {PIPE_OUT, PIPE_IN};
	uint64_t flags = SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP;
	struct error ignored = {0};
	int r;

	launch_block_signals();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* nobody need wait for who stood by */
	setsid();
	launch_leave_cgroup(m->session, &ignored); /* only whoever ends the session would matter */
	if (chdir("/") < 0)
		return -errno;
	r = keep_only(fds, ARRAY_SIZE(fds));
	mover_place(m->server->mover, ends);
	/* each waits for the other: they need no two processors (Linux 6.6) */
	ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
	prctl(PR_SET_NAME, "ax-splice");
	return r;
}

static __attribute__((noreturn)) void run(const struct emulation *m, int alive)
{
	options = m->session->options;
	__atomic_store_n(&m->server->fetched, false, __ATOMIC_RELEASE);
	if (leave_caller(m, alive) == 0)
		serve_all(m->server);
	__atomic_store_n(&m->server->over, true, __ATOMIC_RELEASE);
	_exit(0);
}

/* Its parent is none of ours, so that nobody has to wait for its end. */
static int start(struct emulation *m)
{
	int alive[2], status = 0, r;
	pid_t pid;

	if (pipe2(alive, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			run(m, alive[1]);
		_exit(pid < 0);
	}
	r = pid < 0 ? -errno : 0;
	close_fd(&m->alive);
	m->alive = alive[0];
	close(alive[1]);
	while (!r && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r || !status ? r : -EAGAIN;
}

/* False: the launcher goes meanwhile. */
static bool rest(const struct emulation *m)
{
	struct pollfd p = {.fd = m->over, .events = POLLIN};

	return poll(&p, 1, PAUSE_MS) == 0;
}

/* When it cannot go on, whoever waits for an answer that nobody gives is not to wait any longer.
 * But what a process lacks to be started may be there in a moment. */
static void *keep(void *arg)
{
	struct emulation *m = arg;
	int64_t started = now_ms();

	for (int failed = 0; failed < TRIES;) {
		struct pollfd p[] = {{.fd = m->alive}, {.fd = m->over, .events = POLLIN}};

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			return NULL;
		if (!p[0].revents)
			continue;
		if (__atomic_load_n(&m->server->over, __ATOMIC_ACQUIRE))
			break;
		if (now_ms() - started < LASTS_MS && !rest(m))
			return NULL;
		started = now_ms();
		failed = start(m) ? failed + 1 : 0;
	}
	close_fd(&m->listener);
	return NULL;
}

/* It takes no signal: those are for who waits for the command. */
static int start_keeper(struct emulation *m)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&m->keeper, NULL, keep, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->kept = r == 0;
	return -r;
}

void emulate_leave(struct emulation *m)
{
	if (!m)
		return;
	if (m->kept) {
		eventfd_write(m->over, 1);
		pthread_join(m->keeper, NULL);
	}
	close_fd(&m->listener);
	close_fd(&m->ends[0]);
	close_fd(&m->ends[1]);
	close_fd(&m->alive);
	close_fd(&m->over);
	free(m); /* (the memory that they share goes with the caller) */
}

int emulate_start(const struct launch_session *s, int listener, struct emulation **ret,
		  struct error *e)
{
	struct emulation *m = calloc(1, sizeof(*m));
	int r;

	if (!m) {
		close(listener);
		return error_set(e, -ENOMEM, "out of memory");
	}
	*m = (struct emulation){
		.session = s, .listener = listener, .ends = {-1, -1}, .alive = -1, .over = -1};
	m->over = eventfd(0, EFD_CLOEXEC);
	r = m->over < 0 ? -errno : server_open(m);
	r = r ? r : start(m);
	r = r ? r : start_keeper(m);
	if (r) {
		emulate_leave(m);
		return error_set(e, r, "cannot start a process for the app's splice(): %s",
				 strerror(-r));
	}
	*ret = m;
	return 0;
}
