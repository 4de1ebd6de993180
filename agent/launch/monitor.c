/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leader of the session on the app's own terminal, and the command's parent: a process group
 * whose parent is in another session is an orphaned one, and the suspend key does nothing to it.
 * Like `ax run` itself it is not in the app's cgroup.
 */
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "launch/parts.h"

int launch_word_send(int fd, const struct launch_word *w)
{
	return send(fd, w, sizeof(*w), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int launch_word_recv(int fd, struct launch_word *w)
{
	ssize_t n;

	do {
		n = recv(fd, w, sizeof(*w), 0);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*w);
}

struct monitor {
	const struct launch_session *session;
	int tty, channel;
	pid_t group; /* which the terminal is for, when it is the app's */
	bool stopped;
};

/* Signals of the terminal must not stop us, so they are blocked when this is called. */
static void give_terminal(struct monitor *m, bool to_app)
{
	pid_t now = tcgetpgrp(m->tty);

	if (to_app && now == getpgrp()) {
		/* a group of an inner shell may have ended */
		if (tcsetpgrp(m->tty, m->group) < 0)
			tcsetpgrp(m->tty, m->session->child.pid);
	} else if (!to_app && now != getpgrp()) {
		if (now > 0)
			m->group = now;
		tcsetpgrp(m->tty, getpgrp());
	}
}

static void go_on(struct monitor *m)
{
	m->stopped = false;
	kill(-m->session->child.pid, SIGCONT);
}

/* False: who asked for us is gone. */
static bool obey(struct monitor *m)
{
	struct launch_word w;

	if (!launch_word_recv(m->channel, &w)) {
		if (m->stopped) { /* nobody could continue it any more */
			kill(-m->session->child.pid, SIGHUP);
			go_on(m);
		}
		return false;
	}
	if (w.what == WORD_SIGNAL) {
		pid_t now = tcgetpgrp(m->tty);

		kill(-(now > 0 && now != getpgrp() ? now : m->group), w.value);
	} else if (w.what == WORD_GO) {
		give_terminal(m, w.value);
		go_on(m);
	}
	return true;
}

static int watch(struct monitor *m, int signals, const sigset_t *all)
{
	const struct timespec at_once = {0};
	struct pollfd p[] = {{.fd = signals, .events = POLLIN},
			     {.fd = m->channel, .events = POLLIN}};
	siginfo_t si;

	for (;;) {
		struct launch_word w = {.what = WORD_STOPPED};
		int status = launch_child_look(&m->session->child, &w.value);

		if (status >= 0)
			return status;
		if (w.value) {
			m->stopped = true;
			launch_word_send(m->channel, &w);
		}
		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		while (sigtimedwait(all, &si, &at_once) > 0) {
			if (si.si_signo != SIGCHLD)
				launch_pass_on(&si, &m->session->child, m->session->cgroup);
		}
		if (p[1].revents && !obey(m))
			p[1].fd = -1;
	}
}

static int start(struct launch_session *s, struct launch_pty *t, bool foreground, struct error *e)
{
	int r;

	if (setsid() < 0 || ioctl(t->slave, TIOCSCTTY, 0) < 0)
		return error_set(e, -errno, "cannot make a session for the app (%s)",
				 strerror(errno));
	s->terminal_fd = t->slave;
	r = launch_session_start(s, e);
	if (r)
		return r;
	setpgid(s->child.pid, s->child.pid);
	if (foreground)
		tcsetpgrp(t->slave, s->child.pid);
	return launch_child_go(&s->child, e);
}

/* The other side reads what is left before the terminal is gone with us. */
static __attribute__((noreturn)) void end(int channel, const struct launch_word *w)
{
	struct launch_word last;

	launch_word_send(channel, w);
	while (launch_word_recv(channel, &last))
		;
	_exit(0);
}

void launch_monitor(struct launch_session *s, struct launch_pty *t, bool foreground, int channel)
{
	struct monitor m = {.session = s, .tty = t->slave, .channel = channel};
	struct launch_word w = {.what = WORD_ENDED, .value = LAUNCH_FAILED};
	struct launch_note note;
	sigset_t all;
	int signals;

	close_fd(&t->master);
	close_fd(&t->tty);
	prctl(PR_SET_NAME, "ax-session");
	if (start(s, t, foreground, &w.error)) {
		launch_session_close(s);
		end(channel, &w);
	}
	m.group = s->child.pid;
	sigprocmask(SIG_SETMASK, NULL, &all); /* launch_child_go() blocked them */
	signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	w.value = signals < 0 ? LAUNCH_FAILED : watch(&m, signals, &all);
	if (launch_note_recv(s->child.gate, false, &note)) {
		w.value = note.status;
		w.error = note.error;
	}
	/* what the command leaves running is not told that the terminal is gone */
	give_terminal(&m, false);
	end(channel, &w);
}
