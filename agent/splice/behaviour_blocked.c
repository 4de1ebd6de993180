// SPDX-License-Identifier: GPL-2.0-or-later
/* What wakes up a call that blocks, and with what. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "splice/behaviour.h"

static int handled[2];	/* a pipe: written when the signal's handler runs */
static int all_sent[2]; /* another one: when full_duplex()'s thread has sent all */
static pid_t sender;	/* that thread, once it is there */

static void on_signal(int sig)
{
	(void)sig;
	if (write(handled[1], "", 1) != 1)
		_exit(1);
}

static void send_10(struct run *r)
{
	put(r, r->client, 10, 0);
}

/* The handler runs when the wait has ended, and before the call begins anew. */
static void signal_and_send(struct run *r)
{
	char c;

	kill(getppid(), SIGUSR1);
	if (read(handled[0], &c, 1) == 1)
		send_10(r);
}

/* A signal while it waits, and then data. */
static void signalled(struct run *r, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};
	char buf[64];

	if (pipe(handled) < 0)
		return;
	sigaction(SIGUSR1, &sa, NULL);
	later(r, 10, signal_and_send);
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

	until_asleep(pid);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	kill(pid, SIGCONT);
	until_asleep(pid);
	put(r, r->client, 10, 0);
	said_reader(r, pid);
}

/* The two on one processor, where the first one woken up has read all before the other one looks.
 */
static void two_readers(struct run *r)
{
	const struct sched_param fifo = {.sched_priority = 1};
	siginfo_t ended;
	int first, second;
	cpu_set_t one;
	pid_t a, b;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	/* and where the other one does not come between its being woken up and its reading, as it
	 * may at a tick of the clock: then it waits as it should */
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	a = reader(r);
	b = reader(r);
	until_asleep(a);
	until_asleep(b);
	put(r, r->client, 10, 0);
	/* one has it; what the other makes of being woken up for nothing it has done after this */
	waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
	until_asleep(ended.si_pid == a ? b : a);
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

	__atomic_store_n(&sender, gettid(), __ATOMIC_RELEASE);
	put(r, r->server, 4 << 20, 0);
	if (write(all_sent[1], "", 1) != 1)
		_exit(1);
	return NULL;
}

static void *read_much(void *arg)
{
	struct run *r = arg;

	/* the sender waits for room, and is woken up for it, while the other one waits for data */
	until_asleep(getpid());
	while (!__atomic_load_n(&sender, __ATOMIC_ACQUIRE))
		pause_ms(1);
	until_asleep(sender);
	pause_ms(10);
	get_all(r, r->client, 4 << 20, 0);
	return NULL;
}

/* Who waits for data has waited for the socket's lock, too, whenever it was woken up. */
static void send_then(struct run *r)
{
	char c;

	if (read(all_sent[0], &c, 1) != 1)
		return;
	until_asleep(getppid());
	send_10(r);
}

/* A thread waits in recv() while another one of its process sends much on the same socket. */
static void full_duplex(struct run *r)
{
	pthread_t source, sink;
	char buf[64];

	if (pipe(all_sent) < 0)
		return;
	pthread_create(&sink, NULL, read_much, r);
	pthread_create(&source, NULL, send_much, r);
	later(r, 0, send_then);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
}

static void shut_server(struct run *r)
{
	shutdown(r->server, SHUT_RDWR);
}

static void shut_while_blocked(struct run *r)
{
	char buf[64];

	later(r, 10, shut_server);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
}

static void *reset_soon(void *arg)
{
	const struct run *r = arg;

	until_asleep(getpid());
	pause_ms(10);
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

	until_asleep(pid);
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
