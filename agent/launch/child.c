/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/emulate.h"
#include "launch/parts.h"

/* --- notes --- */

int launch_note_send(int fd, const struct launch_note *n)
{
	ssize_t r;

	do {
		r = send(fd, n, sizeof(*n), MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

bool launch_note_recv(int fd, bool wait, struct launch_note *ret)
{
	ssize_t r;

	/* ECONNRESET comes once, before a note that waits: the other end closed with our byte
	 * unread */
	do {
		r = recv(fd, ret, sizeof(*ret), wait ? 0 : MSG_DONTWAIT);
	} while (r < 0 && (errno == EINTR || errno == ECONNRESET));
	return r == (ssize_t)sizeof(*ret);
}

/* --- the child --- */

static __attribute__((noreturn)) void give_up(int gate, int status, const struct error *e)
{
	struct launch_note n = {.status = status, .error = *e};

	launch_note_send(gate, &n);
	_exit(status);
}

/* /proc/sys/net shows the network namespace of whoever opens the file. */
static int set_netns_sysctl(const char *path, const char *value, struct error *e)
{
	int r = file_write(path, value);

	if (r && r != -ENOENT)
		return error_set(e, r, "cannot write %s (%s)", path, strerror(-r));
	return 0;
}

static int enter_netns(const struct launch_plan *p, struct error *e)
{
	if (setns(p->netns_fd, CLONE_NEWNET) < 0)
		return error_set(e, -errno, "cannot enter the app's network namespace (%s)",
				 strerror(errno));
	return 0;
}

static int prepare_netns(const struct launch_plan *p, struct error *e)
{
	/* the namespace is the app's alone: no port in it needs protection from the app's user */
	int r = set_netns_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", e);

	if (!r)
		r = set_netns_sysctl("/proc/sys/net/ipv4/ping_group_range", "0 2147483647", e);
	/* Held-back SYNs are to be retried evenly and not ever more rarely (Linux 6.5); 127 is the
	 * most that the kernel takes. */
	if (!r && p->spec->wait_ms)
		r = set_netns_sysctl("/proc/sys/net/ipv4/tcp_syn_linear_timeouts", "127", e);
	return r;
}

static int prepare_environment(const struct launch_plan *p)
{
	const struct launch_user *u = p->user;

	if (u && (setenv("HOME", u->home, 1) < 0 || setenv("SHELL", u->shell, 1) < 0 ||
		  setenv("USER", u->name, 1) < 0 || setenv("LOGNAME", u->name, 1) < 0))
		return -errno;
	for (size_t i = 0; i < p->spec->env.n; i++) {
		if (putenv(p->spec->env.v[i]) != 0)
			return -errno;
	}
	return 0;
}

/* Without CLOSE_RANGE_CLOEXEC (Linux 5.11) the descriptors would have to be looked for. */
#define CLOSE_ON_EXEC 4u

/* Another user could type into the caller's terminal (TIOCSTI), and act by its descriptors. */
static int leave_caller(const struct launch_plan *p, struct error *e)
{
	if (p->terminal_fd >= 0)
		setpgid(0, 0);
	else
		setsid();
	for (int fd = STDIN_FILENO; p->terminal_fd >= 0 && fd <= STDERR_FILENO; fd++) {
		if (isatty(fd) && dup2(p->terminal_fd, fd) < 0)
			return error_set(e, -errno, "cannot duplicate a descriptor (%s)",
					 strerror(errno));
	}
	if (syscall(SYS_close_range, 3u, ~0u, CLOSE_ON_EXEC) < 0)
		return error_set(e, -errno,
				 "cannot close the caller's descriptors (%s): Linux 5.11 or newer "
				 "is needed",
				 strerror(errno));
	return 0;
}

/* What root keeps in its session's keyring (file systems' keys, tickets) is for root alone. As the
 * app's user, whose keyring the new one is. */
static int leave_keyring(struct error *e)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return 0;
	/* EPERM: a container's filter, which holds for the app as well */
	if (errno == ENOSYS || errno == EPERM)
		return 0;
	return error_set(e, -errno,
			 "cannot make a session keyring for the user (%s): see "
			 "/proc/sys/kernel/keys/maxkeys",
			 strerror(errno));
}

static int prepare(const struct launch_plan *p, int gate, struct error *e)
{
	bool private = p->netns_fd >= 0;
	int r = p->enter ? launch_enter(p->enter, e) : 0;

	if (!r && private)
		r = enter_netns(p, e);
	if (!r && p->new_mounts)
		r = launch_mount(p, e);
	if (!r && private)
		r = prepare_netns(p, e);
	if (r)
		return r;
	r = prepare_environment(p);
	if (r)
		return error_set(e, r, "cannot set the environment (%s)", strerror(-r));
	if (p->spec->splice_emulation) {
		r = emulate_ask(gate, e); /* as root: the user may keep its setuid programs */
		if (r)
			return r;
	}
	if (p->user) {
		r = leave_caller(p, e);
		r = r ? r : launch_user_become(p->user, e);
		r = r ? r : leave_keyring(e);
		if (r)
			return r;
	}
	/* last, so that it is the app's user who must be allowed to be there */
	if (p->spec->directory && chdir(p->spec->directory) < 0)
		return error_set(e, -errno, "cannot change to the directory %s (%s)",
				 p->spec->directory, strerror(errno));
	return 0;
}

static __attribute__((noreturn)) void child_main(const struct launch_plan *p, int gate,
						 bool ignore_sigchld)
{
	char *const *argv = p->spec->command.v;
	struct error e = {0};
	ssize_t n;
	char go;

	if (p->close_fd >= 0)
		close(p->close_fd);
	if (ignore_sigchld)
		signal(SIGCHLD, SIG_IGN);
	if (prepare(p, gate, &e))
		give_up(gate, LAUNCH_FAILED, &e);
	do {
		n = recv(gate, &go, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(LAUNCH_FAILED); /* the parent is gone, or gave up and says why */
	execvp(argv[0], argv);
	error_set(&e, -errno, "%s: %s", argv[0], strerror(errno));
	give_up(gate,
		e.code == -ENOENT || e.code == -ENOTDIR ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTED,
		&e);
}

/* --- the parent --- */

static int clone_error(int r, struct error *e)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return error_set(e, r,
				 "cannot start a process in the app's cgroup and namespaces "
				 "(%s): run as root",
				 strerror(-r));
	case -ENODEV:
		return error_set(e, r, "the app has ended: see 'ax ps'");
	case -EBUSY:
		return error_set(e, r,
				 "cannot start a process in the app's cgroup (%s): the app has "
				 "made cgroups of its own in it",
				 strerror(-r));
	case -ENOSYS:
	case -E2BIG:
	case -EINVAL:
		return error_set(e, r,
				 "cannot start a process in the app's cgroup and namespaces "
				 "(%s): Linux 5.7 or newer is needed",
				 strerror(-r));
	default:
		return error_set(e, r,
				 "cannot start a process (%s): see the limits of processes "
				 "(ulimit -u, pids.max) and of namespaces (/proc/sys/user)",
				 strerror(-r));
	}
}

int launch_child_start(const struct launch_plan *p, struct launch_child *ret, struct error *e)
{
	struct launch_child c = {.pidfd = -1, .gate = -1};
	struct clone_args args = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&c.pidfd,
		.exit_signal = SIGCHLD,
	};
	struct sigaction old;
	bool ignored;
	int gate[2];

	if (p->cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)p->cgroup_fd;
	}
	if (p->new_mounts)
		args.flags |= CLONE_NEWNS;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) < 0)
		return error_set(e, -errno, "cannot make a socket pair: %s", strerror(errno));
	/* with SIGCHLD ignored, which is inherited, the kernel would reap the child itself */
	sigaction(SIGCHLD, NULL, &old);
	ignored = old.sa_handler == SIG_IGN;
	if (ignored)
		signal(SIGCHLD, SIG_DFL);
	c.pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (c.pid == 0) {
		close(gate[0]);
		child_main(p, gate[1], ignored);
	}
	close(gate[1]);
	if (c.pid < 0) {
		int r = -errno;

		close(gate[0]);
		return clone_error(r, e);
	}
	c.gate = gate[0];
	*ret = c;
	return 0;
}

int launch_child_go(struct launch_child *c, struct error *e)
{
	launch_block_signals();
	/* EPIPE: the child ended already; the reason is at the gate or in its exit status */
	if (send(c->gate, "g", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return error_set(e, -errno, "cannot let the command go (%s)", strerror(errno));
	return 0;
}

void launch_child_close(struct launch_child *c)
{
	close_fd(&c->pidfd);
	close_fd(&c->gate);
}

void launch_child_kill(struct launch_child *c)
{
	if (c->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
		while (waitid(P_PIDFD, (id_t)c->pidfd, NULL, WEXITED) < 0 && errno == EINTR)
			;
	}
	launch_child_close(c);
}
