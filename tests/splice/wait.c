// SPDX-License-Identifier: GPL-2.0-or-later
/* Waiting: who wakes up, when, and with what. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviour.h"

static void send_10(struct run *r)
{
	put(r, r->client, 10, 0);
}

static void send_10_to_client(struct run *r)
{
	put(r, r->server, 10, 0);
}

static void said_events(struct run *r, const char *what, unsigned events)
{
	said(r, "%s=%s%s%s%s%s%s", what, events & EPOLLIN ? "in" : "",
	     events & EPOLLOUT ? "out" : "", events & EPOLLRDHUP ? "rdhup" : "",
	     events & EPOLLHUP ? "hup" : "", events & EPOLLERR ? "err" : "", events ? "" : "none");
}

static int epoll_of(int fd, unsigned events)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = {.events = events, .data.fd = fd};

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	return ep;
}

static void said_epoll(struct run *r, int ep, const char *what)
{
	struct epoll_event e = {0};

	said_events(r, what, epoll_wait(ep, &e, 1, 200) > 0 ? e.events : 0);
}

static void epoll_level(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN);
	char buf[64];

	later(r, 20, send_10);
	said_epoll(r, ep, "first");
	said_epoll(r, ep, "again");
	recv(r->server, buf, sizeof(buf), 0);
	said_epoll(r, ep, "empty");
}

static void epoll_edge(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLET);
	char buf[64];

	later(r, 20, send_10);
	said_epoll(r, ep, "first");
	said_epoll(r, ep, "again");
	put(r, r->client, 10, 10);
	said_epoll(r, ep, "more");
	recv(r->server, buf, sizeof(buf), 0);
	put(r, r->client, 10, 20);
	said_epoll(r, ep, "later");
}

static void epoll_hangup(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLRDHUP | EPOLLET);

	put(r, r->client, 10, 0);
	said_epoll(r, ep, "data");
	shutdown(r->client, SHUT_WR);
	said_epoll(r, ep, "fin");
	said_result(r, "good", get_all(r, r->server, 20, 0));
}

static void epoll_one_shot(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLONESHOT);
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT};

	put(r, r->client, 10, 0);
	said_epoll(r, ep, "first");
	put(r, r->client, 10, 10);
	said_epoll(r, ep, "disarmed");
	epoll_ctl(ep, EPOLL_CTL_MOD, r->server, &e);
	said_epoll(r, ep, "armed");
}

static void by_select(struct run *r)
{
	struct timeval limit = {.tv_sec = 1};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(r->server, &set);
	later(r, 20, send_10);
	said_result(r, "ready", select(r->server + 1, &set, NULL, NULL, &limit));
}

static void by_poll(struct run *r)
{
	later(r, 20, send_10);
	said_events(r, "poll", (unsigned)events_within(r->server, POLLIN, 1000));
	said_events(r, "both", (unsigned)events_within(r->server, POLLIN | POLLOUT, 1000));
	said_events(r, "client", (unsigned)events_within(r->client, POLLIN, 10));
}

static void by_signal(struct run *r)
{
	struct timespec limit = {.tv_sec = 1};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fcntl(r->server, F_SETOWN, getpid());
	fcntl(r->server, F_SETFL, fcntl(r->server, F_GETFL) | O_ASYNC);
	put(r, r->client, 10, 0);
	said_result(r, "signal", sigtimedwait(&set, NULL, &limit));
}

static void nothing(int sig)
{
	(void)sig;
}

/* A signal after 20 ms, data after 60. */
static void signalled(struct run *r, int flags)
{
	struct sigaction sa = {.sa_handler = nothing, .sa_flags = flags};
	struct itimerval timer = {.it_value.tv_usec = 20000};
	char buf[64];

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	later(r, 60, send_10);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
}

static void signal_restart(struct run *r)
{
	signalled(r, SA_RESTART);
}

static void signal_interrupt(struct run *r)
{
	signalled(r, 0);
}

/* What happens to a process that waits in recv(); it tells by its exit status: 0 to 99, errno +
 * 100. */
static pid_t reader(struct run *r)
{
	pid_t pid = fork();
	char buf[64];
	ssize_t n;

	if (pid)
		return pid;
	n = recv(r->server, buf, sizeof(buf), 0);
	_exit(n < 0 ? errno + 100 : (int)n);
}

static int status_of(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void said_status(struct run *r, int status)
{
	errno = status - 100;
	said_result(r, "n", status >= 100 ? -1 : status);
}

static void said_reader(struct run *r, pid_t pid)
{
	said_status(r, status_of(pid));
}

static void stop_and_continue(struct run *r)
{
	pid_t pid = reader(r);

	pause_ms(20);
	kill(pid, SIGSTOP);
	pause_ms(20);
	kill(pid, SIGCONT);
	pause_ms(20);
	put(r, r->client, 10, 0);
	said_reader(r, pid);
}

static void two_readers(struct run *r)
{
	pid_t a = reader(r), b = reader(r);
	int first, second;

	pause_ms(30);
	put(r, r->client, 10, 0);
	pause_ms(30);
	put(r, r->client, 10, 10);
	/* which of them was first is not the point */
	first = status_of(a);
	second = status_of(b);
	said_status(r, first < second ? first : second);
	said_status(r, first < second ? second : first);
}

static void *send_much(void *arg)
{
	struct run *r = arg;

	put(r, r->server, 4 << 20, 0);
	return NULL;
}

static void *read_much(void *arg)
{
	struct run *r = arg;

	pause_ms(60); /* the sender has to wait for room, and is woken up for it */
	get_all(r, r->client, 4 << 20, 0);
	return NULL;
}

/* A thread waits in recv() while another one of its process sends much on the same socket. */
static void full_duplex(struct run *r)
{
	pthread_t sender, sink;
	char buf[64];

	pthread_create(&sink, NULL, read_much, r);
	pthread_create(&sender, NULL, send_much, r);
	later(r, 150, send_10);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
}

static void shut_server(struct run *r)
{
	shutdown(r->server, SHUT_RDWR);
}

static void shut_while_blocked(struct run *r)
{
	char buf[64];

	later(r, 30, shut_server);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
}

static void *reset_soon(void *arg)
{
	const struct run *r = arg;

	pause_ms(30);
	close(r->client);
	return NULL;
}

static void reset_while_blocked(struct run *r)
{
	struct linger l = {.l_onoff = 1};
	char buf[64];

	setsockopt(r->client, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	pthread_create(&(pthread_t){0}, NULL, reset_soon, r);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
	said_result(r, "then", recv(r->server, buf, sizeof(buf), 0));
}

static void end_while_blocked(struct run *r)
{
	pid_t pid = reader(r);

	pause_ms(20);
	shutdown(r->client, SHUT_WR);
	said_reader(r, pid);
}

static void answered_while_blocked(struct run *r)
{
	char buf[64];

	later(r, 30, send_10_to_client);
	said_result(r, "n", recv(r->client, buf, sizeof(buf), 0));
}

static void writable_again(struct run *r)
{
	size_t sent = 0;
	ssize_t n;

	fcntl(r->client, F_SETFL, O_NONBLOCK);
	while ((n = send(r->client, (char[65536]){0}, 65536, MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	said_result(r, "full", n);
	said(r, "out=%d", !!(events_within(r->client, POLLOUT, 50) & POLLOUT));
	for (size_t got = 0; got < sent; got += (size_t)n)
		if ((n = get(r, r->server, (char[65536]){0}, 65536, 0)) <= 0)
			break;
	said(r, "out=%d", !!(events_within(r->client, POLLOUT, 500) & POLLOUT));
}

const struct behaviour behaviours_wait[] = {
	{"epoll, level", epoll_level, 0},
	{"epoll, edge", epoll_edge, 0},
	{"epoll, edge with RDHUP", epoll_hangup, 0},
	{"epoll, one shot", epoll_one_shot, 0},
	{"select", by_select, 0},
	{"poll", by_poll, 0},
	{"SIGIO", by_signal, 0},
	{"recv and a signal with SA_RESTART", signal_restart, BLOCKING_ONLY},
	{"recv and a signal without", signal_interrupt, BLOCKING_ONLY},
	{"recv over SIGSTOP and SIGCONT", stop_and_continue, BLOCKING_ONLY},
	{"two readers", two_readers, BLOCKING_ONLY},
	{"recv while another thread sends much", full_duplex, BLOCKING_ONLY},
	{"recv and one's own shutdown", shut_while_blocked, BLOCKING_ONLY},
	{"recv and RST", reset_while_blocked, BLOCKING_ONLY},
	{"recv and FIN", end_while_blocked, BLOCKING_ONLY},
	{"recv by the client", answered_while_blocked, BLOCKING_ONLY},
	{"a full queue, then room", writable_again, 0},
	{NULL, NULL, 0},
};
