// SPDX-License-Identifier: GPL-2.0-or-later
/* How large a stream's messages are, and when they are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "splice/facts.h"
#include "splice/streams.h"

static enum stream_size size_of(uint64_t n, uint64_t bytes, uint64_t other_n, uint64_t other_bytes)
{
	const struct ax_splice_size a = {n, n * bytes}, b = {other_n, other_n * other_bytes};
	enum stream_size one = streams_size_of(&a, &b);

	assert_int_equal(streams_size_of(&b, &a), one);
	return one;
}

static void test_size(void **state)
{
	(void)state;
	assert_int_equal(size_of(0, 0, 0, 0), STREAM_UNKNOWN);
	assert_int_equal(size_of(STREAMS_MESSAGES_MIN - 1, 65536, 0, 0), STREAM_UNKNOWN);
	assert_int_equal(size_of(STREAMS_MESSAGES_MIN, 65536, 0, 0), STREAM_LARGE);
	assert_int_equal(size_of(1000, STREAMS_MESSAGE_MIN, 0, 0), STREAM_LARGE);
	assert_int_equal(size_of(1000, STREAMS_MESSAGE_MIN - 1, 0, 0), STREAM_SMALL);
	assert_int_equal(size_of(1000, 4096, 0, 0), STREAM_SMALL);
	/* small ones the other way are no stream when they are few */
	assert_int_equal(size_of(1000, 65536, 3, 8), STREAM_LARGE);
	assert_int_equal(size_of(1000, 65536, 500, 100), STREAM_SMALL);
	assert_int_equal(size_of(1000, 65536, 1000, 49152), STREAM_LARGE);
}

static bool due(enum stream_size size, unsigned ms)
{
	const struct decision d = {.stream = size, .stream_ns = 5000000000u};

	return streams_is_due(&d, d.stream_ns + ms * 1000000ull);
}

static void test_due(void **state)
{
	const struct decision fresh = {0};

	(void)state;
	assert_true(streams_is_due(&fresh, 10));
	assert_false(due(STREAM_UNKNOWN, STREAMS_AGAIN_MS - 1));
	assert_true(due(STREAM_UNKNOWN, STREAMS_AGAIN_MS));
	assert_false(due(STREAM_SMALL, STREAMS_SMALL_MS - 1));
	assert_true(due(STREAM_SMALL, STREAMS_SMALL_MS));
	assert_false(due(STREAM_LARGE, 10 * STREAMS_SMALL_MS));
	assert_false(due(STREAM_COUNTED, 10 * STREAMS_SMALL_MS));
}

/* A folder that looks like a cgroup with this process in it. */
static void test_edges(void **state)
{
	struct epoll_event level = {.events = EPOLLIN | EPOLLRDHUP};
	struct epoll_event edge = {.events = EPOLLIN | EPOLLET};
	char dir[] = "/tmp/ax-streams.XXXXXX", procs[64];
	int ends[2], level_fd = epoll_create1(EPOLL_CLOEXEC),
		     edge_fd = epoll_create1(EPOLL_CLOEXEC);
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	f = fopen(procs, "we");
	assert_non_null(f);
	fprintf(f, "%d\n", getpid());
	fclose(f);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_false(facts_wait_for_edges(dir));
	assert_int_equal(epoll_ctl(level_fd, EPOLL_CTL_ADD, ends[0], &level), 0);
	assert_false(facts_wait_for_edges(dir));
	assert_int_equal(epoll_ctl(edge_fd, EPOLL_CTL_ADD, ends[0], &level), 0);
	assert_int_equal(epoll_ctl(edge_fd, EPOLL_CTL_ADD, ends[1], &edge), 0);
	assert_true(facts_wait_for_edges(dir));
	close(edge_fd);
	assert_false(facts_wait_for_edges(dir));
	assert_int_equal(unlink(procs), 0);
	assert_int_equal(rmdir(dir), 0);
	close(level_fd);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
