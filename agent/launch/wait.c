/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/parts.h"

/* --- who is who --- */

/*
 * `cgroup` is a path below the mount and /proc shows the path below the cgroup namespace's root, so
 * the last two parts are compared: instance and app, which name the app on this machine.
 */
bool launch_in_app(const char *cgroup, pid_t pid)
{
	autofree char *text = NULL;
	const char *tail, *line, *end;
	size_t len;
	char path[32];

	if (!cgroup)
		return false;
	tail = strrchr(cgroup, '/');
	while (tail && tail > cgroup && *--tail != '/')
		;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (!tail || file_read(path, 65536, &text))
		return false;
	line = strstr(text, "0::");
	while (line && line > text && line[-1] != '\n')
		line = strstr(line + 1, "0::");
	if (!line)
		return false;
	end = strchrnul(line, '\n');
	len = strlen(tail);
	for (const char *p = line; (p = strstr(p, tail)) && p < end; p++) {
		if (p[len] == '\n' || p[len] == '/' || p[len] == 0)
			return true;
	}
	return false;
}

static int open_terminal(void)
{
	return open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* The terminal's foreground process group, if that is the app's and not ours; else 0. */
static pid_t foreground_of_app(int tty, const struct launch_child *c, const char *cgroup)
{
	pid_t fg = tcgetpgrp(tty);

	if (fg <= 1 || fg == getpgrp())
		return 0;
	return fg == c->pid || launch_in_app(cgroup, fg) ? fg : 0;
}

/*
 * A shell makes itself a process group and takes the terminal. One that was killed gives nothing
 * back: then whatever comes after us in a script would be stopped when it reads. A group that has
 * no process any more was the app's too, because shells take the terminal from theirs at once.
 */
static void take_terminal_back(const struct launch_child *c, const char *cgroup)
{
	autoclose int tty = open_terminal();
	pid_t fg;

	if (tty < 0)
		return;
	fg = tcgetpgrp(tty);
	if (fg <= 1 || fg == getpgrp())
		return;
	if (foreground_of_app(tty, c, cgroup) || (kill(-fg, 0) < 0 && errno == ESRCH))
		tcsetpgrp(tty, getpgrp()); /* SIGTTOU is blocked */
}

/* --- stopping and going on --- */

void launch_stop_self(int sig)
{
	struct sigaction old, dfl = {.sa_handler = SIG_DFL};
	sigset_t set;

	if (sig == SIGSTOP) {
		raise(sig);
		return;
	}
	/* Raised while still blocked, so that it becomes one with the terminal's, which may be
	 * pending: two would stop us twice. */
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigaction(sig, &dfl, &old);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(sig, &old, NULL);
}

/*
 * The command stopped: we stop the same way, so that the shell above sees it. What continues us
 * is a SIGCONT, which is passed on like any other signal.
 */
static void stop_too(const struct launch_child *c, const char *cgroup, int sig)
{
	autoclose int tty = open_terminal();
	pid_t fg = 0;

	/* without a terminal there is no job control, and nobody who would continue us after
	 * kill -STOP and kill -CONT of the command alone */
	if (tty < 0)
		return;
	fg = foreground_of_app(tty, c, cgroup);
	launch_stop_self(sig);
	if (fg && tcgetpgrp(tty) == getpgrp())
		tcsetpgrp(tty, fg);
}

/* --- signals --- */

void launch_block_signals(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		sigdelset(&set, faults[i]);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

/* Whether the command got this signal without us. */
static bool has_it_already(const siginfo_t *si, const struct launch_child *c, const char *cgroup)
{
	if (si->si_code == SI_KERNEL) {
		switch (si->si_signo) {
		case SIGINT:
		case SIGQUIT:
		case SIGTSTP:
		case SIGTTIN:
		case SIGTTOU:
		case SIGWINCH:
			return true; /* the terminal sends them to the whole process group */
		case SIGHUP:
			/* when the terminal goes away its session's leader alone is told at
			 * first, the foreground group once the leader has ended */
			return getsid(0) != getpid();
		default:
			return false;
		}
	}
	/* kill(0, ...) by the command, or its word to its parent: not meant for itself */
	return si->si_code <= 0 && si->si_pid > 0 &&
	       (si->si_pid == c->pid || launch_in_app(cgroup, si->si_pid));
}

void launch_pass_on(siginfo_t *si, const struct launch_child *c, const char *cgroup)
{
	if (has_it_already(si, c, cgroup))
		return;
	/* the kernel lets a process repeat what sigqueue() sent, with its value, and nothing else
	 */
	syscall(SYS_pidfd_send_signal, c->pidfd, si->si_signo, si->si_code == SI_QUEUE ? si : NULL,
		0);
}

int launch_child_look(const struct launch_child *c, int *stopped)
{
	siginfo_t si = {0};

	*stopped = 0;
	if (waitid(P_PIDFD, (id_t)c->pidfd, &si, WEXITED | WSTOPPED | WNOHANG) < 0)
		return errno == EINTR ? -1 : LAUNCH_FAILED;
	if (si.si_pid == 0)
		return -1;
	switch (si.si_code) {
	case CLD_EXITED:
		return si.si_status;
	case CLD_KILLED:
	case CLD_DUMPED:
		return 128 + si.si_status;
	case CLD_STOPPED:
		*stopped = si.si_status;
		return -1;
	default:
		return -1;
	}
}

int launch_wait(struct launch_child *c, const char *cgroup, bool foreground)
{
	sigset_t all;
	int status, stopped;

	launch_block_signals();
	sigprocmask(SIG_SETMASK, NULL, &all);
	while ((status = launch_child_look(c, &stopped)) < 0) {
		siginfo_t si;

		if (stopped && foreground)
			stop_too(c, cgroup, stopped);
		if (sigwaitinfo(&all, &si) < 0)
			continue; /* EINTR: stopped and continued */
		if (si.si_signo != SIGCHLD)
			launch_pass_on(&si, c, cgroup);
	}
	if (foreground)
		take_terminal_back(c, cgroup);
	return status;
}
