/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that answers for an app's splice(2), and sendfile(2). It serves one app, and never
 * waits for one call while others may be asked about. An app cannot have it do what it could not do
 * itself: the descriptors are its own open files, which are used as they were opened.
 *
 * A task that is asked about is woken by fatal signals only (WAIT_KILLABLE_RECV), so that no call
 * is begun again of which bytes were moved already; so answers come at once, or soon.
 */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
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

#define LISTENER    3
#define WAITING_MAX 64
#define WAIT_MS	    100 /* for room in a pipe; who may wait asks again then */

/* A call for which there is no room. */
struct waiting {
	uint64_t id;
	struct splice_call call;
	int64_t until_ms;
};

struct server {
	const struct launch_options *options;
	struct mover *mover;
	struct seccomp_notif *asked;
	struct seccomp_notif_resp *answer;
	struct seccomp_notif_sizes sizes;
	struct waiting waiting[WAITING_MAX];
	size_t n_waiting;
};

static int64_t now_ms(void)
{
	return (int64_t)(time_mono_ns() / 1000000);
}

/* --- answers --- */

static void call_close(struct splice_call *c)
{
	close_fd(&c->in);
	close_fd(&c->out);
}

/* Our descriptors go first: what the app closes next is to be closed then, and told to the other
 * end, and to be in no epoll set any more. */
static void answer(struct server *s, uint64_t id, struct splice_call *c, enum splice_answer what,
		   ssize_t result)
{
	struct seccomp_notif_resp *a = s->answer;

	call_close(c);
	memset(a, 0, s->sizes.seccomp_notif_resp);
	a->id = id;
	if (what == SPLICE_KERNEL)
		a->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		a->error = (int)result;
	else
		a->val = result;
	ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_SEND, a); /* (ENOENT: it was killed) */
}

/* True: it was answered. */
static bool serve(struct server *s, uint64_t id, struct splice_call *c, bool last)
{
	ssize_t result = 0;
	enum splice_answer what = splice_call_move(c, s->mover, &result);

	if (what == SPLICE_WHEN_ROOM && !last)
		return false;
	answer(s, id, c, what, result);
	return true;
}

/* --- the app's descriptors --- */

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

/* 0; 1: the app has no such descriptor, and the kernel is to say so; or a negative errno. */
static int get_files(const struct seccomp_notif *n, struct splice_call *c)
{
	autoclose int task = open_task((pid_t)n->pid);
	bool sendfile = emulate_is_sendfile(&n->data);
	uint64_t id = n->id;

	if (task < 0)
		return -ESRCH;
	c->in = (int)syscall(SYS_pidfd_getfd, task, (int)n->data.args[sendfile ? 1 : 0], 0);
	if (c->in >= 0)
		c->out =
			(int)syscall(SYS_pidfd_getfd, task, (int)n->data.args[sendfile ? 0 : 2], 0);
	if (c->in < 0 || c->out < 0)
		return errno == EBADF ? 1 : -errno;
	/* it lives, so the task was no other one */
	return ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0 ? -errno : 0;
}

/* --- questions --- */

static void wait_for_room(struct server *s, uint64_t id, const struct splice_call *c)
{
	s->waiting[s->n_waiting++] =
		(struct waiting){.id = id, .call = *c, .until_ms = now_ms() + WAIT_MS};
}

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

static void decide(struct server *s)
{
	const struct seccomp_notif *n = s->asked;
	struct splice_call c;
	int r = read_call(&n->data, &c) ? get_files(n, &c) : 1;

	if (r < 0) /* programs take this for files that cannot be spliced */
		answer(s, n->id, &c, SPLICE_DONE, -EINVAL);
	else if (r || !splice_call_concerns(&c, s->options))
		answer(s, n->id, &c, SPLICE_KERNEL, 0);
	else if (!serve(s, n->id, &c, s->n_waiting == WAITING_MAX))
		wait_for_room(s, n->id, &c);
}

/* False: nobody has the filter any more. */
static bool take_question(struct server *s, short events)
{
	if (events & POLLIN) {
		memset(s->asked, 0, s->sizes.seccomp_notif);
		if (ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_RECV, s->asked) == 0)
			decide(s);
		return true; /* (ENOENT: killed before it was read) */
	}
	return !(events & (POLLHUP | POLLERR | POLLNVAL));
}

/* Those for which there is room now, or that have waited for long enough. */
static void look_at_waiting(struct server *s)
{
	int64_t now = now_ms();
	size_t left = 0;

	for (size_t i = 0; i < s->n_waiting; i++) {
		struct waiting *w = &s->waiting[i];

		if (!serve(s, w->id, &w->call, now >= w->until_ms))
			s->waiting[left++] = *w;
	}
	s->n_waiting = left;
}

static int time_left(const struct server *s)
{
	int64_t left = s->n_waiting ? s->waiting[0].until_ms - now_ms() : -1;

	return !s->n_waiting ? -1 : left > 0 ? (int)left : 0;
}

static void serve_all(struct server *s)
{
	struct pollfd p[1 + WAITING_MAX] = {{.fd = LISTENER, .events = POLLIN}};

	for (;;) {
		for (size_t i = 0; i < s->n_waiting; i++)
			p[1 + i] = (struct pollfd){.fd = s->waiting[i].call.out, .events = POLLOUT};
		if (poll(p, 1 + s->n_waiting, time_left(s)) < 0 && errno != EINTR)
			return;
		look_at_waiting(s);
		if (!take_question(s, p[0].revents))
			return;
	}
}

/* --- the process --- */

static int server_open(struct server *s)
{
	uint64_t flags = SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &s->sizes) < 0)
		return -errno;
	s->asked = calloc(1, s->sizes.seccomp_notif);
	s->answer = calloc(1, s->sizes.seccomp_notif_resp);
	/* each waits for the other: they need no two processors (Linux 6.6) */
	ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
	return s->asked && s->answer ? mover_open(&s->mover) : -ENOMEM;
}

/* Nothing of the caller's but the listener. */
static int leave_caller(const struct launch_session *session, int listener)
{
	struct error ignored = {0};
	int null;

	launch_block_signals();
	signal(SIGPIPE, SIG_IGN);
	setsid();
	launch_leave_cgroup(session, &ignored); /* only whoever ends the session would matter */
	if (chdir("/") < 0)
		return -errno;
	if (dup3(listener, LISTENER, O_CLOEXEC) < 0 && errno != EINVAL)
		return -errno;
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < LISTENER; fd++)
		dup2(null, fd);
	prctl(PR_SET_NAME, "ax-splice");
	return syscall(SYS_close_range, LISTENER + 1u, ~0u, 0u) < 0 || null < 0 ? -errno : 0;
}

static __attribute__((noreturn)) void run(const struct launch_session *session, int listener)
{
	static struct server s;

	s.options = session->options;
	if (leave_caller(session, listener) == 0 && server_open(&s) == 0)
		serve_all(&s);
	_exit(0);
}

/* Its parent is none of ours, so that nobody has to wait for its end. */
int emulate_start(const struct launch_session *s, int listener, struct error *e)
{
	pid_t pid = fork();

	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			run(s, listener);
		_exit(pid < 0);
	}
	if (pid < 0)
		return error_set(e, -errno, "cannot start a process for the app's splice(): %s",
				 strerror(errno));
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
