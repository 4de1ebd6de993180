/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* What the agent says of members, and is told: switching off, parting, its death, and another one
 * that takes over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* --- writers for whom there is no memory --- */

/* A control group of the first version, where sockets have a limit of their own. */
struct group {
	char path[4096];
	char parent[3072];
};

static void group_write(const char *dir, const char *file, const char *text)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_int_equal(file_write(path, text), 0);
}

/* No more than what its sockets have taken: they get no page more. */
static void group_is_full(const struct group *g)
{
	char path[4200];
	autofree char *taken = NULL;

	snprintf(path, sizeof(path), "%s/memory.kmem.tcp.usage_in_bytes", g->path);
	assert_int_equal(file_read(path, 64, &taken), 0);
	group_write(g->path, "memory.kmem.tcp.limit_in_bytes", taken);
}

static void group_unlimited(const struct group *g)
{
	group_write(g->path, "memory.kmem.tcp.limit_in_bytes", "-1");
}

/* Where this process is; false: such groups do not count memory here. */
static bool group_parent(struct group *g)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	autofree char *mine = NULL;
	const struct mntent *m;
	const char *path;

	assert_non_null(mounts);
	do
		m = getmntent(mounts);
	while (m && (strcmp(m->mnt_type, "cgroup") != 0 || !hasmntopt(m, "memory")));
	assert_int_equal(file_read("/proc/self/cgroup", 65536, &mine), 0);
	path = strstr(mine, ":memory:");
	if (m && path)
		snprintf(g->parent, sizeof(g->parent), "%s%.*s", m->mnt_dir,
			 (int)strcspn(path + 8, "\n"), path + 8);
	/* a container may see another tree, and a group may have been removed under who is in it */
	if (m && path && access(g->parent, F_OK) < 0)
		snprintf(g->parent, sizeof(g->parent), "%s", m->mnt_dir);
	endmntent(mounts);
	return m && path;
}

/* f.pair, joined, in a group of its own that has no limit yet; false: there are no such groups. */
static bool open_joined_in_group(struct group *g)
{
	if (!group_parent(g))
		return false;
	snprintf(g->path, sizeof(g->path), "%s/%s", g->parent, f.inst.name);
	if (mkdir(g->path, 0755) < 0 && errno == ENOENT) {
		g->path[0] = '\0'; /* who made the tree has removed its root */
		return false;
	}
	assert_int_equal(access(g->path, F_OK), 0);
	group_unlimited(g); /* from now on they are counted */
	group_write(g->path, "cgroup.procs", "0");
	open_joined();
	group_write(g->parent, "cgroup.procs", "0");
	return true;
}

static struct group group;

static int group_teardown(void **state)
{
	int r = splice_teardown(state);

	if (!group.path[0])
		return r;
	group_write(group.parent, "cgroup.procs", "0");
	return rmdir(group.path) ? -1 : r;
}

/* More than a page, which a socket may have left, and so little that it is not given above the
 * limit. */
#define REFUSED 4500

/* The kernel has nobody wake him when there is memory again. */
static void test_writer_without_memory_of_CONFIG_MEMCG_V1(void **state)
{
	struct epoll_event e = {.events = EPOLLOUT | EPOLLET};
	autoclose int ep = epoll_create1(EPOLL_CLOEXEC);
	struct tcp_stream to;

	(void)state;
	if (!open_joined_in_group(&group))
		skip();
	to = forward(&f.pair);
	assert_true(datapath_splice_events_fd(f.s) >= 0);
	assert_goes(&to, REFUSED);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, f.pair.client, &e), 0);
	assert_int_equal(epoll_wait(ep, &e, 1, 1000), 1);
	group_is_full(&group);
	assert_int_equal(tcp_stream_put(&to, REFUSED, 0), -EAGAIN);
	assert_int_equal(datapath_splice_events_read(f.s), AX_SPLICE_TOLD_UNREAD);
	group_unlimited(&group);
	assert_true(conn_of(f.ns, f.pair.client).flags & AX_SPLICE_STUCK); /* it was looked at */
	assert_int_equal(epoll_wait(ep, &e, 1, 1000), 1);
	assert_goes(&to, REFUSED);
	assert_false(conn_of(f.ns, f.pair.client).flags & AX_SPLICE_STUCK);
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

/* A process that is the agent, until it is killed. */
static pid_t agent_begin(void)
{
	int to[2], status = -1;
	pid_t pid;

	assert_int_equal(pipe(to), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* where a test fails before it ends it */
		status = datapath_splice_redirect(f.s, true);
		if (write(to[1], &status, sizeof(status)) == sizeof(status))
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(to[0], &status, sizeof(status)), sizeof(status));
	assert_int_equal(status, 0);
	close(to[0]);
	close(to[1]);
	return pid;
}

static void agent_end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What woke it returns before it runs, and it is frozen until then (cgroup_leave_frozen()). */
static void assert_redirected_soon(struct tcp_stream *to)
{
	uint64_t redirected = 0;

	for (int i = 0; i < 5000 && !redirected; i++) {
		if (i)
			usleep(1000);
		assert_goes(to, 500);
		redirected = counted(AX_SPLICE_REDIRECTED).messages;
	}
	assert_true(redirected);
}

/* As a debugger or a hand does it. */
static void test_agent_stopped(void **state)
{
	struct tcp_stream to;
	int status;
	pid_t pid;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	pid = agent_begin();
	assert_int_equal(tcp_stream_put(&to, 300, 0), 300);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_ends(&to, AX_SPLICE_ALONE);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	assert_redirected_soon(&to);
	agent_end(pid);
}

/* Whether the kernel says in cgroup.events that all there stands, or goes. */
static bool is_frozen(const char *cgroup)
{
	autofree char *events = NULL;
	char path[4200];

	snprintf(path, sizeof(path), "%s/cgroup.events", cgroup);
	assert_int_equal(file_read(path, 4096, &events), 0);
	return strstr(events, "frozen 1") != NULL;
}

static void freeze(const char *cgroup, bool frozen)
{
	group_write(cgroup, "cgroup.freeze", frozen ? "1" : "0");
	for (int i = 0; i < 1000 && is_frozen(cgroup) != frozen; i++)
		usleep(1000);
	assert_int_equal(is_frozen(cgroup), frozen);
}

/* As a container's pause does it. */
static void test_agent_frozen(void **state)
{
	struct tcp_stream to;
	pid_t pid;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	pid = agent_begin();
	assert_int_equal(cgroup_move(f.cgroup, pid), 0);
	assert_int_equal(tcp_stream_put(&to, 300, 0), 300);
	freeze(f.cgroup, true);
	assert_ends(&to, AX_SPLICE_ALONE);
	freeze(f.cgroup, false);
	assert_redirected_soon(&to);
	agent_end(pid);
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
		cmocka_unit_test_setup_teardown(test_writer_without_memory_of_CONFIG_MEMCG_V1,
						splice_setup_open, group_teardown),
		cmocka_unit_test_setup_teardown(test_next_agent_is_told, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_no_sleeper_without_agent, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_agent_stopped, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_agent_frozen, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_stopped, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_told, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_sizes, splice_setup_open, splice_teardown),
	};

	return own_namespaces() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
