/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* Members of splicing: how connections join, what is handed from socket to socket, what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/lib/netns.h"
#include "tests/lib/splice_members.h"

/* --- joining --- */

static void test_redirected(void **state)
{
	struct tcp_stream to, back;
	struct ax_splice_conn c;

	(void)state;
	open_pair(&f.pair);
	to = forward(&f.pair);
	back = backward(&f.pair);
	assert_goes(&to, 1000);
	c = conn_of(f.ns, f.pair.client);
	assert_int_equal(c.flags, AX_SPLICE_NONBLOCK);
	assert_int_equal(c.app, 1);
	assert_int_equal(c.data_segs_out, 1);
	assert_int_equal(c.bytes_sent, 1000);
	assert_int_equal(c.write_seq, conn_of(f.ns, f.pair.server).copied_seq);
	join_in(&f.pair, f.ns, f.ns);
	assert_counted(AX_SPLICE_JOINED, 2, 0);
	for (int i = 0; i < 100; i++) {
		assert_goes(&to, 64);
		assert_goes(&back, 5000);
	}
	assert_counted(AX_SPLICE_REDIRECTED, 200, 100 * 5064);
	assert_counted(AX_SPLICE_PASSED, 0, 0);
	c = conn_of(f.ns, f.pair.client);
	assert_int_equal(c.flags, AX_SPLICE_NONBLOCK | AX_SPLICE_MEMBER);
	assert_int_equal(c.redirected, 100);
	assert_int_equal(c.redirected_bytes, 6400);
	assert_int_equal(c.bytes_sent, 1000); /* TCP has not seen them */
	join_in(&f.pair, f.ns, f.ns);	      /* changes nothing */
	assert_counted(AX_SPLICE_JOINED, 0, 0);
	assert_goes(&to, 64);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 64);
}

static void add_veth(int ns[2])
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	unsigned index, up;
	struct nl *nl;

	for (int i = 0; i < 2; i++) {
		ns[i] = ns_new();
		assert_true(ns[i] >= 0);
	}
	assert_int_equal(ns_open_nl(ns[0], &nl), 0);
	assert_int_equal(nl_link_add_veth(nl, "veth0", "veth1", ns[1], mac, 1500, &index), 0);
	assert_int_equal(netns_configure(ns[1], "veth1", &f.b, &(struct ax_addr){0}), 0);
	assert_int_equal(netns_configure(ns[0], "veth0", &f.a, &(struct ax_addr){0}), 0);
	assert_int_equal(nl_link_index(nl, "veth0", &up), 0);
	assert_int_equal(nl_link_wait_up(nl, up, 1000), 0);
	nl_close(nl);
}

static void test_two_namespaces(void **state)
{
	struct tcp_stream to, back;
	int ns[2];

	(void)state;
	add_veth(ns);
	assert_int_equal(tcp_pair_open(&f.pair, ns[0], &f.a, ns[1], &f.b), 0);
	assert_true(conn_of(ns[0], f.pair.client).netns != conn_of(ns[1], f.pair.server).netns);
	join_in(&f.pair, ns[0], ns[1]);
	to = forward(&f.pair);
	back = backward(&f.pair);
	for (int i = 0; i < 50; i++) {
		assert_goes(&to, 100);
		assert_goes(&back, 20000);
	}
	assert_counted(AX_SPLICE_REDIRECTED, 100, 50 * 20100);
	close(ns[0]);
	close(ns[1]);
}

/* What is unread when they join is read first. */
static void test_joined_in_the_middle(void **state)
{
	struct tcp_stream to;

	(void)state;
	open_pair(&f.pair);
	to = forward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 3000, 0), 3000);
	join_in(&f.pair, f.ns, f.ns);
	assert_int_equal(tcp_stream_put(&to, 500, 0), 500);
	assert_counted(AX_SPLICE_UNREAD, 1, 500);
	assert_int_equal(tcp_stream_get(&to, 1000), 1000);
	assert_int_equal(tcp_stream_put(&to, 500, 0), 500);
	assert_counted(AX_SPLICE_UNREAD, 1, 500);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	assert_goes(&to, 500);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 500);
	assert_int_equal(tcp_stream_get(&to, 1), -EAGAIN);
}

/* Sizes, reads and pauses at random, with splicing switched on and off. */
static void test_order(void **state)
{
	struct tcp_stream way[2];

	(void)state;
	open_joined();
	way[0] = forward(&f.pair);
	way[1] = backward(&f.pair);
	srandom(1);
	for (int i = 0; i < 20000; i++) {
		struct tcp_stream *s = &way[random() % 2];
		size_t n = (size_t)random() % (random() % 50 ? 3000 : 300000) + 1;
		ssize_t r;

		if (random() % 200 == 0) {
			assert_int_equal(datapath_splice_redirect(f.s, random() % 2), 0);
			assert_int_equal(tcp_stream_get_all(&way[random() % 2]), 0);
		}
		r = random() % 2 ? tcp_stream_put(s, n, 0) : tcp_stream_get(s, n);
		assert_true(r > 0 || r == -EAGAIN);
	}
	assert_int_equal(tcp_stream_get_all(&way[0]), 0);
	assert_int_equal(tcp_stream_get_all(&way[1]), 0);
	assert_true(counted(AX_SPLICE_REDIRECTED).messages > 100);
	assert_true(counted(AX_SPLICE_OFF).messages > 10);
	assert_true(counted(AX_SPLICE_UNREAD).messages > 10);
}

/* --- many --- */

#define MANY 1500

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct listed {
	struct tcp_pair p[MANY];
	struct splice_pair s[MANY];
	size_t n;
};

static int on_listed(void *arg, const struct ax_splice_conn *c)
{
	struct listed *l = arg;

	for (size_t i = 0; i < MANY; i++) {
		if (c->cookie == l->s[i].a.cookie)
			l->s[i].a.sk = c->sk;
		if (c->cookie == l->s[i].b.cookie)
			l->s[i].b.sk = c->sk;
	}
	l->n++;
	return 0;
}

static void test_many(void **state)
{
	autofree struct listed *l = calloc(1, sizeof(*l));
	double begin;

	(void)state;
	assert_non_null(l);
	for (size_t i = 0; i < MANY; i++) {
		open_pair(&l->p[i]);
		l->s[i].a.cookie = tcp_cookie(l->p[i].client);
		l->s[i].b.cookie = tcp_cookie(l->p[i].server);
		l->s[i].a.netns_fd = l->s[i].b.netns_fd = f.ns;
	}
	begin = seconds();
	assert_int_equal(datapath_splice_conns_each(f.s, f.ns, on_listed, l), 0);
	assert_int_equal(l->n, 2 * MANY);
	print_message("# %d sockets described in %.1f ms\n", 2 * MANY, 1e3 * (seconds() - begin));
	begin = seconds();
	assert_int_equal(datapath_splice_join(f.s, l->s, MANY), 0);
	print_message("# and joined in %.1f ms\n", 1e3 * (seconds() - begin));
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(l->s[i].a.result | l->s[i].b.result, 0);
		for (int k = 0; k < 2; k++) {
			struct tcp_stream s = k ? backward(&l->p[i]) : forward(&l->p[i]);

			assert_goes(&s, 100 + i);
		}
	}
	assert_int_equal(counted(AX_SPLICE_REDIRECTED).messages, 2 * MANY);
	for (size_t i = 0; i < MANY; i++)
		tcp_pair_close(&l->p[i]);
}

/* --- back-pressure --- */

static uint32_t held_by(int fd, uint32_t *limit)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len), 0);
	*limit = info[SK_MEMINFO_RCVBUF];
	return info[SK_MEMINFO_RMEM_ALLOC];
}

/* Until the sender is told to wait, and goes on being told so. */
static void fill(struct tcp_stream *s, size_t n)
{
	for (int waits = 0; waits < 20;) {
		ssize_t r = tcp_stream_put(s, n, 0);

		assert_true(r > 0 || r == -EAGAIN);
		assert_true(s->sent < 64 << 20);
		waits = r > 0 ? 0 : waits + 1;
		if (r < 0)
			usleep(10000);
	}
}

static void test_stalled_reader(void **state)
{
	static const size_t sizes[] = {1, 64, 4096, 65536, 1 << 20};
	uint32_t held, limit, messages;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct tcp_stream to;

		open_joined();
		to = forward(&f.pair);
		fill(&to, sizes[i]);
		held = held_by(f.pair.server, &limit);
		if (held > 2 * limit)
			fail_msg("%u of %u held with %zu bytes a message", held, limit, sizes[i]);
		/* each takes about 1 KiB besides */
		messages = (uint32_t)counted(AX_SPLICE_REDIRECTED).messages;
		if (messages * 1024 > limit)
			fail_msg("%u messages of %zu bytes wait", messages, sizes[i]);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		assert_goes(&to, 64); /* after one that TCP refused the program is not asked */
		counted(AX_SPLICE_REDIRECTED);
		assert_goes(&to, 64);
		assert_counted(AX_SPLICE_REDIRECTED, 1, 64);
		tcp_pair_close(&f.pair);
	}
	assert_true(counted(AX_SPLICE_NO_ROOM).messages > 0);
}

/* --- who is not handed anything --- */

static void test_full_map(void **state)
{
	struct tcp_pair p[3];

	(void)state;
	open_splice(2);
	assert_int_equal(datapath_splice_redirect(f.s, true), 0);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		struct splice_pair s;

		open_pair(&p[i]);
		s = (struct splice_pair){end_of(f.ns, p[i].client), end_of(f.ns, p[i].server)};
		assert_int_equal(datapath_splice_join(f.s, &s, 1), 0);
		assert_int_equal(s.a.result, i ? -E2BIG : 0);
		assert_int_equal(s.b.result, i ? -E2BIG : 0);
	}
	assert_counted(AX_SPLICE_FULL, 4, 0);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		struct tcp_stream to = forward(&p[i]);

		assert_goes(&to, 2000);
		assert_goes(&to, 2000);
		tcp_pair_close(&p[i]);
	}
	assert_counted(AX_SPLICE_REDIRECTED, 2, 4000);
}

/* A member whose other end is none. */
static void test_lone_member(void **state)
{
	struct splice_pair s;
	struct tcp_stream to;

	(void)state;
	open_pair(&f.pair);
	s = (struct splice_pair){end_of(f.ns, f.pair.client), end_of(f.ns, f.pair.server)};
	s.b.cookie = 1ULL << 60; /* nobody's */
	assert_int_equal(datapath_splice_join(f.s, &s, 1), 0);
	assert_int_equal(s.a.result, 0);
	assert_int_equal(s.b.result, -ENOENT);
	to = forward(&f.pair);
	assert_goes(&to, 100);
	assert_counted(AX_SPLICE_GONE, 1, 100);
	assert_counted(AX_SPLICE_REDIRECTED, 0, 0);
}

static void test_other_end_closed(void **state)
{
	struct tcp_stream to;
	uint64_t cookie;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	assert_goes(&to, 100);
	cookie = tcp_cookie(f.pair.server);
	close_fd(&f.pair.server);
	f.pair.server = -1;
	counted(AX_SPLICE_REDIRECTED);
	/* as TCP: one is taken, which is answered by RST, then there is an error */
	assert_int_equal(tcp_stream_put(&to, 10, 0), 10);
	assert_counted(AX_SPLICE_REDIRECTED, 0, 0);
	assert_counted(AX_SPLICE_PASSED, 1, 10);
	assert_true(tcp_stream_put(&to, 10, 0) < 0);
	assert_true(tcp_cookie(f.pair.client) != cookie);
}

static int nobody(void *arg, const struct ax_splice_conn *c)
{
	(void)c;
	(*(unsigned *)arg)++;
	return 0;
}

/* A half-closed connection goes on by TCP, the end after what was handed on. */
static void test_half_closed(void **state)
{
	struct tcp_stream to, back;
	unsigned n = 0;

	(void)state;
	open_joined();
	to = forward(&f.pair);
	back = backward(&f.pair);
	assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
	assert_int_equal(shutdown(f.pair.client, SHUT_WR), 0);
	assert_int_equal(tcp_stream_put(&to, 1, 0), -EPIPE);
	assert_int_equal(tcp_stream_get(&to, 1000), 100);
	assert_int_equal(ns_wait(f.pair.server, POLLIN), 0);
	assert_int_equal(tcp_stream_get(&to, 1000), 0);
	assert_goes(&back, 200);
	assert_counted(AX_SPLICE_STATE, 2, 201); /* the refused one too */
	tcp_pair_close(&f.pair);
	assert_int_equal(datapath_splice_conns_each(f.s, f.ns, nobody, &n), 0);
	assert_int_equal(n, 0);
}

/* Another socket's address in the place of the other end's: nobody gets what is not his, and nobody
 * is asked whether he may. */
static void test_wrong_socket(void **state)
{
	struct tcp_pair third;
	struct splice_pair s;
	struct tcp_stream to, of_third;

	(void)state;
	open_pair(&f.pair);
	open_pair(&third);
	s = (struct splice_pair){end_of(f.ns, f.pair.client), end_of(f.ns, f.pair.server)};
	s.b.sk = end_of(f.ns, third.server).sk;
	assert_int_equal(datapath_splice_join(f.s, &s, 1), 0);
	join_in(&third, f.ns, f.ns);
	to = forward(&f.pair);
	of_third = forward(&third);
	assert_goes(&to, 100);
	assert_counted(AX_SPLICE_GONE, 1, 100);
	assert_int_equal(tcp_stream_get(&of_third, 1000), -EAGAIN);
	assert_goes(&of_third, 100);
	assert_counted(AX_SPLICE_REDIRECTED, 1, 100);
	tcp_pair_close(&third);
}

/* Its cookie in the place of the other end's: the sequence numbers are not its. */
static void test_wrong_pair(void **state)
{
	struct tcp_pair third;
	struct splice_pair s;
	struct tcp_stream to, of_third;

	(void)state;
	open_pair(&f.pair);
	open_pair(&third);
	s = (struct splice_pair){end_of(f.ns, f.pair.client), end_of(f.ns, third.server)};
	assert_int_equal(datapath_splice_join(f.s, &s, 1), 0);
	to = forward(&f.pair);
	of_third = forward(&third);
	assert_goes(&to, 100);
	assert_counted(AX_SPLICE_UNREAD, 1, 100);
	assert_counted(AX_SPLICE_REDIRECTED, 0, 0);
	assert_int_equal(tcp_stream_get(&of_third, 1000), -EAGAIN);
	tcp_pair_close(&third);
}

/* Sockets with the same addresses and ports, in a namespace of their own. */
static void test_same_addresses_elsewhere(void **state)
{
	struct tcp_pair twin;
	struct tcp_stream to, of_twin;
	struct sockaddr_storage client, server;
	socklen_t len = sizeof(client);
	autoclose int ns = ns_new(), listener = -1;

	(void)state;
	open_joined();
	assert_int_equal(getsockname(f.pair.client, (struct sockaddr *)&client, &len), 0);
	assert_int_equal(getpeername(f.pair.client, (struct sockaddr *)&server, &len), 0);
	assert_int_equal(add_addresses(ns), 0);
	listener = ns_socket(ns, AF_INET, SOCK_STREAM, 0);
	twin.client = ns_socket(ns, AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&server, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(bind(twin.client, (struct sockaddr *)&client, len), 0);
	(void)connect(twin.client, (struct sockaddr *)&server, len); /* it is under way */
	assert_int_equal(ns_wait(listener, POLLIN), 0);
	twin.server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	join_in(&twin, ns, ns);
	to = forward(&f.pair);
	of_twin = forward(&twin);
	assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
	assert_int_equal(tcp_stream_get(&of_twin, 100), -EAGAIN);
	assert_goes(&of_twin, 300);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	assert_int_equal(tcp_stream_get(&to, 100), -EAGAIN);
	assert_counted(AX_SPLICE_REDIRECTED, 2, 400);
	tcp_pair_close(&twin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_redirected, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_two_namespaces, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_joined_in_the_middle, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_order, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_many, splice_setup_open, splice_teardown),
		cmocka_unit_test_setup_teardown(test_stalled_reader, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_full_map, splice_setup, splice_teardown),
		cmocka_unit_test_setup_teardown(test_lone_member, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_other_end_closed, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_half_closed, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_wrong_socket, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_wrong_pair, splice_setup_open,
						splice_teardown),
		cmocka_unit_test_setup_teardown(test_same_addresses_elsewhere, splice_setup_open,
						splice_teardown),
	};

	const struct rlimit files = {.rlim_cur = 2 * MANY + 400, .rlim_max = 2 * MANY + 400};

	if (own_namespaces() || setrlimit(RLIMIT_NOFILE, &files))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
