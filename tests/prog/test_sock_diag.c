// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* Ending sockets from outside: the one that was seen, and no other that its ends lead to by then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>

#include "net/sock_diag.h"
#include "tests/lib/netns.h"

#define PEER_PORT 7000

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	assert_return_code(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), errno);
	return cookie;
}

static int failed(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	assert_return_code(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), errno);
	return error;
}

/* A socket at an address of loopback. */
static int bound(const char *addr, struct sock_conn *conn)
{
	struct ax_addr local = ns_addr(addr);
	__be16 port_be;
	autoclose int ns = ns_current();
	int fd = ns_bound(ns, SOCK_DGRAM, &local, &port_be);

	assert_return_code(fd, -fd);
	conn->local = (struct ax_endpoint){local, port_be, IPPROTO_UDP, 0};
	conn->remote = (struct ax_endpoint){local, htons(PEER_PORT), IPPROTO_UDP, 0};
	return fd;
}

static void connect_to(int fd, const struct ax_endpoint *to)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(&to->addr, to->port_be, &ss);

	assert_return_code(connect(fd, (struct sockaddr *)&ss, len), errno);
}

static void check(const char *addr)
{
	autoclose int fd = -1;
	struct sock_conn conn;

	fd = bound(addr, &conn);
	conn.cookie = cookie_of(fd) + 1;
	/* another one has the port meanwhile, and is connected to nobody, or to the same */
	assert_int_equal(socks_end_conns(-1, &conn, 1), 0);
	assert_int_equal(failed(fd), 0);
	connect_to(fd, &conn.remote);
	assert_int_equal(socks_end_conns(-1, &conn, 1), 0);
	assert_int_equal(failed(fd), 0);
	conn.cookie--;
	assert_int_equal(socks_end_conns(-1, &conn, 1), 1);
	assert_int_equal(failed(fd), ECONNABORTED);
}

static void test_the_one_that_was_seen(void **state)
{
	(void)state;
	check("127.0.0.1");
	check("::1");
}

int main(void)
{
	struct nl *nl = NULL;
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_one_that_was_seen)};

	if (unshare(CLONE_NEWNET) < 0 || nl_open(&nl) || nl_link_set_up(nl, 1)) {
		perror("a network namespace of its own; the test needs root");
		return 1;
	}
	nl_close(nl);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
