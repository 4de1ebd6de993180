// SPDX-License-Identifier: GPL-2.0-or-later
/* What wakes up a call that blocks, and with what. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "splice/behaviour.h"

static void nothing(int sig)
{
	(void)sig;
}

static void send_10(struct run *r)
{
	put(r, r->client, 10, 0);
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

const struct behaviour gate_blocked[] = {
	{"recv and a signal with SA_RESTART", signal_restart, BLOCKING_ONLY},
	{"recv and a signal without", signal_interrupt, BLOCKING_ONLY},
	{"recv over SIGSTOP and SIGCONT", stop_and_continue, BLOCKING_ONLY},
	{"two readers", two_readers, BLOCKING_ONLY},
	{"recv while another thread sends much", full_duplex, BLOCKING_ONLY},
	{"recv and one's own shutdown", shut_while_blocked, BLOCKING_ONLY},
	{"recv and RST", reset_while_blocked, BLOCKING_ONLY},
	{"recv and FIN", end_while_blocked, BLOCKING_ONLY},
	{NULL, NULL, 0},
};
