/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the caller's terminal and the app's own. With the terminal in front of it the app has the
 * keyboard, byte by byte: keys become signals in its own terminal. A background job, or one of a
 * pipeline (whose other programs may read the keyboard), leaves the terminal alone until the app
 * reads it, which stops the app; signals of keys are then passed on.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/parts.h"

#define DRAIN_MOST (1u << 18) /* more than the kernel holds of a terminal's output */

struct buffer {
	size_t start, end;
	char bytes[16384];
};

struct relay {
	struct launch_pty *pty;
	struct launch_child monitor; /* its pid and pidfd alone */
	const char *cgroup;
	int channel, signals;
	bool wanted;	  /* the app is to have the keyboard when we are in the foreground */
	bool hung_up;	  /* the caller's terminal is gone */
	bool return_held; /* a carriage return that may belong to the next new line */
	struct buffer keys, output;
	sigset_t all;
};

static void tell(struct relay *r, int what, int value)
{
	struct launch_word w = {.what = what, .value = value};

	launch_word_send(r->channel, &w);
}

/* As a terminal does whose line is cut: the kernel tells the session of it. */
static void hang_up(struct relay *r)
{
	r->hung_up = true;
	r->pty->raw = false;
	close_fd(&r->pty->master);
}

/* --- bytes --- */

/* False: nothing more comes from there. */
static bool fill(struct buffer *b, int fd)
{
	ssize_t n = read(fd, b->bytes + 1, sizeof(b->bytes) - 1);

	b->start = 1;
	b->end = n > 0 ? 1 + (size_t)n : 1;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* False: nobody takes it any more. */
static bool flush(struct buffer *b, int fd)
{
	while (b->start < b->end) {
		ssize_t n = write(fd, b->bytes + b->start, b->end - b->start);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		b->start += (size_t)n;
	}
	return true;
}

/* The app's terminal has made CR LF of LF, and the caller's is about to do so once more. */
static void undo_returns(struct relay *r)
{
	struct buffer *b = &r->output;
	size_t to = b->start;

	for (size_t i = b->start; i < b->end; i++) {
		if (b->bytes[i] == '\r' && i + 1 == b->end)
			r->return_held = true;
		else if (b->bytes[i] != '\r' || b->bytes[i + 1] != '\n')
			b->bytes[to++] = b->bytes[i];
	}
	b->end = to;
}

/* False: there is no more. */
static bool take_output(struct relay *r)
{
	const struct termios *m = &r->pty->before;

	if (!fill(&r->output, r->pty->master))
		return false;
	if (r->output.start == r->output.end)
		return true;
	if (r->return_held)
		r->output.bytes[--r->output.start] = '\r'; /* fill() leaves the place */
	r->return_held = false;
	if (!r->pty->raw && (m->c_oflag & OPOST) && (m->c_oflag & ONLCR))
		undo_returns(r);
	return true;
}

static void put_output(struct relay *r)
{
	if (!flush(&r->output, r->pty->tty)) {
		r->output.start = r->output.end;
		hang_up(r);
	}
}

static void take_keys(struct relay *r)
{
	if (fill(&r->keys, r->pty->tty))
		return;
	if (errno == EIO && !launch_pty_foreground(r->pty) && tcgetpgrp(r->pty->tty) > 0)
		r->pty->raw = false; /* we are in the background now */
	else
		hang_up(r);
}

/* All that the app has written so far; what others of it write meanwhile comes to an end. */
static void drain(struct relay *r)
{
	struct pollfd p = {.fd = r->pty->tty, .events = POLLOUT};
	size_t had = 0;

	for (;;) {
		put_output(r);
		if (r->output.start < r->output.end) {
			poll(&p, 1, -1);
			continue;
		}
		if (r->hung_up || r->pty->master < 0 || had > DRAIN_MOST || !take_output(r) ||
		    r->output.start == r->output.end)
			break;
		had += r->output.end - r->output.start;
	}
	if (r->return_held && !r->hung_up && write(r->pty->tty, "\r", 1) < 0)
		hang_up(r);
	r->return_held = false;
}

/* --- job control --- */

static void go_on(struct relay *r)
{
	bool foreground = r->wanted && !r->hung_up && launch_pty_foreground(r->pty);

	if (foreground)
		launch_pty_enter(r->pty);
	else
		r->pty->raw = false;
	launch_pty_resize(r->pty);
	tell(r, WORD_GO, foreground);
}

/* Stops as the command did. False: nobody could continue us, so the kernel does not let us stop. */
static bool stop_too(struct relay *r, int sig)
{
	const struct timespec at_once = {0};
	sigset_t cont;

	if (!r->pty->controlling)
		return false;
	launch_stop_self(sig);
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	return sigtimedwait(&cont, NULL, &at_once) == SIGCONT;
}

static void command_stopped(struct relay *r, int sig)
{
	bool asks = sig == SIGTTIN || sig == SIGTTOU;

	r->wanted |= asks;
	if (!asks || r->pty->raw || !launch_pty_foreground(r->pty)) {
		drain(r);
		launch_pty_leave(r->pty);
		if (!stop_too(r, sig)) {
			if (sig == SIGSTOP && !r->pty->controlling)
				return; /* whoever stopped it may continue it */
			/* it would stop for ever: what the kernel does to such groups */
			if (asks && !launch_pty_foreground(r->pty))
				tell(r, WORD_SIGNAL, SIGHUP);
		}
	}
	go_on(r);
}

/* --- signals --- */

static void take_signal(struct relay *r, siginfo_t *si)
{
	bool terminal = si->si_code == SI_KERNEL;

	switch (si->si_signo) {
	case SIGCHLD:
		return;
	case SIGCONT:
		go_on(r);
		return;
	case SIGWINCH:
		launch_pty_resize(r->pty);
		if (terminal && r->pty->raw)
			return; /* the resize tells the app */
		break;
	case SIGHUP:
		if (terminal)
			hang_up(r);
		break;
	}
	if (!terminal)
		launch_pass_on(si, &r->monitor, r->cgroup);
	else
		tell(r, WORD_SIGNAL, si->si_signo);
}

static void take_signals(struct relay *r)
{
	const struct timespec at_once = {0};
	siginfo_t si;

	while (sigtimedwait(&r->all, &si, &at_once) > 0)
		take_signal(r, &si);
}

/* --- ends --- */

static int monitor_status(struct relay *r)
{
	int status;

	while (waitpid(r->monitor.pid, &status, 0) < 0)
		if (errno != EINTR)
			return LAUNCH_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : LAUNCH_FAILED;
}

static int wait_for_end(struct relay *r, struct error *e)
{
	struct pollfd p[4] = {{.fd = r->signals, .events = POLLIN},
			      {.fd = r->channel, .events = POLLIN}};
	struct launch_word w;

	for (;;) {
		bool keys = r->keys.start < r->keys.end, output = r->output.start < r->output.end;

		p[2].events = (short)((output ? 0 : POLLIN) | (keys ? POLLOUT : 0));
		p[2].fd = p[2].events ? r->pty->master : -1;
		p[3].events = (short)((output ? POLLOUT : 0) | (r->pty->raw && !keys ? POLLIN : 0));
		p[3].fd = p[3].events && !r->hung_up ? r->pty->tty : -1;
		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		if (p[0].revents)
			take_signals(r);
		if (p[2].revents && !output && r->pty->master >= 0 && !take_output(r))
			close_fd(&r->pty->master);
		if (p[3].revents && r->pty->raw && !keys)
			take_keys(r);
		put_output(r);
		if (r->pty->master >= 0 && !flush(&r->keys, r->pty->master))
			r->keys.start = r->keys.end;
		if (!p[1].revents)
			continue;
		if (!launch_word_recv(r->channel, &w))
			return monitor_status(r);
		if (w.what == WORD_STOPPED)
			command_stopped(r, w.value);
		if (w.what != WORD_ENDED)
			continue;
		drain(r);
		launch_pty_leave(r->pty);
		if (w.error.code)
			*e = w.error;
		return w.value;
	}
}

/* From here on only the monitor has what the command gets. */
static void hand_over(struct launch_session *s, struct launch_pty *t)
{
	if (s->conn.fd >= 0)
		control_close(&s->conn);
	close_fd(&s->cgroup_fd);
	close_fd(&s->netns_fd);
	close_fd(&t->slave);
}

static int fork_monitor(struct relay *r, struct launch_session *s, struct error *e)
{
	bool foreground;
	int channel[2];

	r->wanted = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	foreground = r->wanted && launch_pty_foreground(r->pty);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
		return error_set(e, -errno, "cannot make a socket pair: %s", strerror(errno));
	r->monitor.pid = fork();
	if (r->monitor.pid == 0) {
		close(channel[0]);
		launch_monitor(s, r->pty, foreground, channel[1]);
	}
	close(channel[1]);
	r->channel = channel[0];
	if (r->monitor.pid < 0)
		return error_set(e, -errno, "cannot start a process (%s)", strerror(errno));
	launch_block_signals();
	sigprocmask(SIG_SETMASK, NULL, &r->all);
	r->signals = signalfd(-1, &r->all, SFD_CLOEXEC | SFD_NONBLOCK);
	r->monitor.pidfd = (int)syscall(SYS_pidfd_open, r->monitor.pid, 0);
	if (r->signals < 0 || r->monitor.pidfd < 0)
		return error_set(e, -errno, "cannot watch the app (%s)", strerror(errno));
	if (foreground)
		launch_pty_enter(r->pty);
	return 0;
}

int launch_on_pty(struct launch_session *s, struct launch_pty *t, struct error *e)
{
	struct relay r = {.pty = t,
			  .cgroup = s->cgroup,
			  .channel = -1,
			  .signals = -1,
			  .monitor = {.pid = -1, .pidfd = -1, .gate = -1}};
	int status = LAUNCH_FAILED;

	if (fork_monitor(&r, s, e)) {
		if (r.monitor.pid > 0)
			kill(r.monitor.pid, SIGKILL);
	} else {
		hand_over(s, t);
		status = wait_for_end(&r, e);
	}
	launch_pty_leave(t);
	close_fd(&r.channel); /* the monitor waits for that, and we for the monitor */
	if (r.monitor.pid > 0)
		waitpid(r.monitor.pid, NULL, 0);
	close_fd(&r.signals);
	launch_child_close(&r.monitor);
	launch_pty_close(t);
	return status;
}
