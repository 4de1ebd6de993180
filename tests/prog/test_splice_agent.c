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
#include <sys/wait.h>

#include "machine/cgroup.h"
#include "tests/lib/netns.h"
#include "tests/lib/splice_members.h"

static void test_switched_off(void **state)
{
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 300, 0), 300);
	assert_int_equal(datapath_splice_redirect(f.s, false), 0);
	assert_int_equal(tcp_stream_put(&to, 400, 0), 400);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 300);
	assert_counted(AX_SPLICE_OFF, 1, 400);
	assert_counted(AX_SPLICE_PASSED, 1, 400);
	assert_int_equal(conn_of(f.ns, f.pair.client).why, AX_SPLICE_OFF);
	assert_int_equal(tcp_stream_get_all(&to), 0);
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
	assert_int_equal(tcp_stream_put(&to, 400, 0), 400);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 300);
	assert_counted(AX_SPLICE_GONE, 1, 400);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	join_in(&f.pair, f.ns, f.ns);
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
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		open_splice(0);
		join_in(&f.pair, f.ns, f.ns);
		datapath_splice_redirect(f.s, true);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 1000, 0), 1000);
	open_splice(0);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 1000);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	assert_goes(&to, 500);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 500);
	assert_int_equal(conn_of(f.ns, f.pair.client).redirected, 2);
	open_pair(&later);
	join_in(&later, f.ns, f.ns);
	to = forward(&later);
	assert_goes(&to, 10);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 10);
	tcp_pair_close(&later);
}

static void test_stopped(void **state)
{
	struct tcp_stream to;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
	assert_int_equal(datapath_splice_stop(f.dp), 0);
	assert_int_equal(datapath_splice_stop(f.dp), 0);
	assert_int_equal(tcp_stream_put(&to, 200, 0), 200);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 100);
	assert_counted(AX_SPLICE_OFF, 1, 200);
	assert_int_equal(tcp_stream_get_all(&to), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_switched_off, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_parted, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_agent_killed, splice_setup, splice_teardown),
		cmocka_unit_test_setup_teardown(test_stopped, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_told, splice_setup_open, splice_teardown),
	};

	return own_namespaces() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
