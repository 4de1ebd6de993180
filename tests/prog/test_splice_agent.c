/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* What the agent says of members, and is told: switching off, parting, its death, and another one
 * that takes over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "machine/cgroup.h"
#include "tests/lib/netns.h"
#include "tests/lib/splice_members.h"

/* It waits behind 300 bytes that were handed on, goes the same way, and is the last that does. */
static void assert_ends(struct tcp_stream *to, unsigned why)
{
	assert_int_equal(tcp_stream_put(to, 400, 0), 400);
	assert_counted(AX_SPLICE_REDIRECTED, 2, 700);
	assert_int_equal(conn_of(f.ns, f.pair.client).since_empty, 2);
	assert_true(conn_of(f.ns, f.pair.server).held > 0);
	assert_int_equal(tcp_stream_get_all(to), 0);
	for (int i = 0; i < 3; i++)
		assert_goes(to, 100);
	assert_counted(AX_SPLICE_REDIRECTED, 0, 0);
	assert_counted(AX_SPLICE_PASSED, 3, 300);
	assert_counted(why, 3, 300);
	assert_int_equal(conn_of(f.ns, f.pair.client).why, why);
	assert_int_equal(conn_of(f.ns, f.pair.client).since_empty, 0);
}

static void test_switched_off(void **state)
{
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 300, 0), 300);
	assert_int_equal(datapath_splice_redirect(f.s, false), 0);
	assert_ends(&to, AX_SPLICE_OFF);
	assert_int_equal(datapath_splice_redirect(f.s, true), 0);
	assert_goes(&to, 500);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 500);
}

static void test_parted(void **state)
{
	struct splice_pair s;
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 300, 0), 300);
	s = (struct splice_pair){end_of(f.ns, f.pair.client), end_of(f.ns, f.pair.server)};
	assert_int_equal(datapath_splice_part(f.s, &s, 1), 0);
	assert_int_equal(s.a.result | s.b.result, 0);
	assert_ends(&to, AX_SPLICE_OFF);
	assert_int_equal(conn_of(f.ns, f.pair.client).flags,
			 AX_SPLICE_NONBLOCK | AX_SPLICE_MEMBER | AX_SPLICE_PARTED);
	join_in(&f.pair, f.ns, f.ns);
	assert_int_equal(conn_of(f.ns, f.pair.client).flags, AX_SPLICE_NONBLOCK | AX_SPLICE_MEMBER);
	assert_goes(&to, 500);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 500);
}

/* --- the agent's death --- */

static void test_agent_killed(void **state)
{
	struct tcp_stream to;
	struct tcp_pair later;
	int status;
	pid_t pid;

	(void)state;
	open_pair(&f.pair);
	to = forward(&f.pair);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		open_splice(0);
		join_in(&f.pair, f.ns, f.ns);
		datapath_splice_redirect(f.s, true);
		tcp_stream_put(&to, 300, 0);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	to.sent = 300; /* by the child */
	open_splice(0);
	assert_ends(&to, AX_SPLICE_ALONE); /* nobody would wake who sleeps before what is behind */
	assert_int_equal(datapath_splice_redirect(f.s, true), 0);
	assert_goes(&to, 500);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 500);
	assert_int_equal(conn_of(f.ns, f.pair.client).redirected, 3);
	open_pair(&later);
	join_in(&later, f.ns, f.ns);
	to = forward(&later);
	assert_goes(&to, 10);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 10);
	tcp_pair_close(&later);
}

/* --- readers that wait for edges --- */

/* Reads as epoll(7) allows it: who gets less than he asked for waits for the next edge. Returns
 * when none comes. */
static void read_by_edges(int ep, struct tcp_stream *s)
{
	const ssize_t most = 10000;
	struct epoll_event e;

	while (epoll_wait(ep, &e, 1, 100) > 0) {
		ssize_t r;

		do {
			r = tcp_stream_get(s, (size_t)most);
			assert_true(r > 0 || r == -EAGAIN);
		} while (r == most);
	}
}

static int wait_for_edges(int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
	return ep;
}

/* Until one goes by TCP, or 1000 did not. */
static void fill(struct tcp_stream *s)
{
	for (int i = 0; i < 1000 && !counted(AX_SPLICE_PASSED).messages; i++)
		assert_int_equal(tcp_stream_put(s, 3000, 0), 3000);
}

static int nothing(void *arg, const struct ax_splice_conn *c)
{
	(void)arg, (void)c;
	return 0;
}

static void test_sleeper_is_woken(void **state)
{
	autoclose int ep = -1;
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	ep = wait_for_edges(f.pair.server);
	assert_true(datapath_splice_events_fd(f.s) >= 0);
	fill(&to);
	assert_counted(AX_SPLICE_NO_ROOM, 1, 3000);
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_UNREAD);
	read_by_edges(ep, &to);
	assert_int_equal(to.got, to.sent - 3000); /* it sleeps before what is there */
	assert_int_equal(datapath_splice_conns_each(f.s, f.ns, nothing, NULL), 0);
	read_by_edges(ep, &to);
	assert_int_equal(to.got, to.sent);
}

/* Members go on with the program that they joined with, when that agent is gone. */
static void test_next_agent_is_told(void **state)
{
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	datapath_splice_close(f.s);
	open_splice(0);
	assert_true(datapath_splice_events_fd(f.s) >= 0);
	assert_int_equal(datapath_splice_redirect(f.s, true), 0);
	fill(&to);
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_UNREAD);
}

static void test_no_sleeper_without_agent(void **state)
{
	autoclose int ep = -1;
	struct tcp_stream to;
	pid_t pid;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(datapath_splice_redirect(f.s, true) ? 1 : 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ep = wait_for_edges(f.pair.server);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(tcp_stream_put(&to, 3000, 0), 3000);
		if (i % 3 == 0)
			read_by_edges(ep, &to);
	}
	read_by_edges(ep, &to);
	assert_int_equal(to.got, to.sent);
	assert_true(counted(AX_SPLICE_ALONE).messages > 0);
	assert_counted(AX_SPLICE_REDIRECTED, 0, 0);
}

static void test_stopped(void **state)
{
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 300, 0), 300);
	assert_int_equal(datapath_splice_stop(f.dp), 0);
	assert_int_equal(datapath_splice_stop(f.dp), 0);
	assert_ends(&to, AX_SPLICE_OFF);
}

/* --- what the agent is told --- */

/* A connection by a process in the instance's cgroup. */
static void connect_in_cgroup(void)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct tcp_pair p;

		if (cgroup_move(f.cgroup, getpid()))
			_exit(1);
		_exit(tcp_pair_open(&p, f.ns, &f.a, f.ns, &f.b) ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_told(void **state)
{
	int fd;

	(void)state;
	fd = datapath_splice_events_fd(f.s);
	assert_true(fd >= 0);
	connect_in_cgroup();
	assert_int_equal(ns_wait(fd, POLLIN), -ETIMEDOUT); /* no app is watched */
	assert_int_equal(datapath_splice_app_set(f.s, 3, true), 0);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), 0);
	assert_int_equal(datapath_splice_app_set(f.s, 2, true), 0);
	connect_in_cgroup();
	connect_in_cgroup();
	assert_int_equal(ns_wait(fd, POLLIN), 0);
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_NEW);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), 0); /* until it listens again */
	assert_int_equal(datapath_splice_listen(f.s), 0);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_NEW);
	assert_int_equal(datapath_splice_listen(f.s), 0);
	assert_int_equal(datapath_splice_apps_clear(f.s), 0);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), 0);
	assert_int_equal(datapath_splice_app_set(f.s, 0, true), 0);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_NEW);
	assert_int_equal(datapath_splice_listen(f.s), 0);
	assert_int_equal(datapath_splice_rest(f.s), 0);
	assert_int_equal(datapath_splice_rest(f.s), 0);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), 0);
	assert_int_equal(datapath_splice_listen(f.s), 0);
	connect_in_cgroup();
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_NEW);
}

/* --- how large messages are --- */

static void assert_size(uint64_t cookie, uint64_t messages, uint64_t bytes)
{
	struct ax_splice_size size = datapath_splice_size(f.s, cookie);

	assert_int_equal(size.messages, messages);
	assert_int_equal(size.bytes, bytes);
}

static void test_sizes(void **state)
{
	uint64_t client, server;
	struct tcp_stream to;
	char some[10] = {0};

	(void)state;
	open_pair(&f.pair);
	client = end_of(f.ns, f.pair.client).cookie;
	server = end_of(f.ns, f.pair.server).cookie;
	to = forward(&f.pair);
	assert_goes(&to, 100);
	assert_size(client, 0, 0);
	assert_int_equal(datapath_splice_sizes_begin(f.s, &client, 1), 0);
	assert_goes(&to, 300);
	assert_goes(&to, 500);
	assert_int_equal(write(f.pair.client, some, 10), 10);
	assert_size(client, 3, 810);
	assert_size(server, 0, 0);
	datapath_splice_sizes_end(f.s);
	assert_int_equal(write(f.pair.client, some, 10), 10);
	assert_size(client, 3, 810); /* and stays */
	assert_int_equal(datapath_splice_sizes_begin(f.s, &server, 1), 0);
	assert_int_equal(write(f.pair.server, some, 5), 5);
	assert_int_equal(write(f.pair.client, some, 5), 5);
	assert_size(server, 1, 5);
	assert_size(client, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_switched_off, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_parted, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_agent_killed, splice_setup, splice_teardown),
		cmocka_unit_test_setup_teardown(test_sleeper_is_woken, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_next_agent_is_told, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_no_sleeper_without_agent, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_stopped, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_told, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_sizes, splice_setup_open, splice_teardown),
	};

	return own_namespaces() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
