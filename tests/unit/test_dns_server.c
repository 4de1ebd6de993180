// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The DNS server on loopback: UDP, TCP, forwarding to a second server, and upstreams that are
 * silent, gone or forged. Servers and clients share this one thread: whoever waits for an answer
 * turns the servers' loop meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <ldns/ldns.h>
#include <poll.h>
#include <sys/resource.h>

#include "tests/lib/dns_zone.h"

#define WAIT_MS 8000 /* for what must come */

static int epoll_fd;
static struct dns_server *server;   /* ax.internal, forwards to */
static struct dns_server *upstream; /* up.test, which forwards nothing */
static uint8_t reply[65535];

static unsigned get16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

static unsigned rcode(void)
{
	return reply[3] & 15;
}

static void dispatch(void)
{
	struct loop_item *item;
	uint32_t events;

	assert_int_equal(loop_wait(epoll_fd, &item, &events), 0);
	switch (item->kind) {
	case LOOP_DNS_UDP:
		dns_on_udp(item);
		break;
	case LOOP_DNS_LISTEN:
		dns_on_listen(item);
		break;
	case LOOP_DNS_CLIENT:
		dns_on_client(item, events);
		break;
	case LOOP_DNS_UPSTREAM:
		dns_on_upstream(item, events);
		break;
	case LOOP_DNS_TIMER:
		dns_on_timer(item);
		break;
	default:
		fail_msg("an event of kind %d", item->kind);
	}
}

/* Turns the loop until fd (-1: none) is readable; false after ms milliseconds. */
static bool run(int fd, int ms)
{
	uint64_t end = time_mono_ns() + (uint64_t)ms * 1000000u;

	for (;;) {
		struct pollfd p[] = {{.fd = epoll_fd, .events = POLLIN},
				     {.fd = fd, .events = POLLIN}};
		uint64_t now = time_mono_ns();
		int n = poll(p, 2, now < end ? (int)((end - now) / 1000000u) + 1 : 0);

		assert_true(n >= 0);
		if (p[0].revents)
			dispatch();
		if (p[1].revents)
			return true;
		if (n == 0 && time_mono_ns() >= end)
			return false;
	}
}

static struct dns_server *server_new(const char *domain, __be16 port_be,
				     const struct dns_upstream *u, size_t n)
{
	struct dns_config c = {.listen4 = test_addr("127.0.0.1"),
			       .port_be = port_be,
			       .zone = test_zone(domain),
			       .upstreams = u,
			       .n_upstreams = n};
	struct dns_server *s = NULL;
	struct error e = {};

	if (dns_server_open(epoll_fd, &c, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

static struct dns_upstream upstream_at(__be16 port_be)
{
	return (struct dns_upstream){.addr = test_addr("127.0.0.1"), .port_be = port_be};
}

static void set_upstreams(const struct dns_upstream *u, size_t n)
{
	assert_int_equal(dns_server_set_upstreams(server, u, n), 0);
}

static int setup(void **state)
{
	struct dns_upstream u;

	(void)state;
	epoll_fd = loop_open();
	if (epoll_fd < 0)
		return -1;
	upstream = server_new("up.test", 0, NULL, 0);
	u = upstream_at(dns_server_port(upstream));
	server = server_new("ax.internal", 0, &u, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dns_server_close(server);
	dns_server_close(upstream);
	server = upstream = NULL;
	close_fd(&epoll_fd);
	return 0;
}

/* A socket of another asker: connected from 127.0.x.y to a port of loopback. */
static int socket_from(int type, unsigned xy, __be16 port_be)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl((127u << 24) + xy)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_port = port_be;
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

/* A socket connected to a port of loopback; with port 0 bound to one. */
static int socket_to(int type, __be16 port_be)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = port_be,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (port_be)
		assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	else
		assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

static __be16 port_of(int fd)
{
	struct sockaddr_in sin = {0};
	socklen_t len = sizeof(sin);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	return sin.sin_port;
}

static void send_query(int fd, const struct test_query *q)
{
	assert_int_equal(send(fd, q->b, q->len, 0), q->len);
}

static size_t receive(int fd, unsigned id)
{
	ssize_t n;

	assert_true(run(fd, WAIT_MS));
	n = recv(fd, reply, sizeof(reply), 0);
	assert_true(n >= 12);
	assert_int_equal(get16(reply), id);
	return (size_t)n;
}

static size_t ask_udp(const char *name, unsigned type)
{
	autoclose int fd = socket_to(SOCK_DGRAM, dns_server_port(server));
	struct test_query q = test_query(0x4321, name, type);

	send_query(fd, &q);
	return receive(fd, 0x4321);
}

static void send_framed(int fd, const struct test_query *q)
{
	uint8_t prefix[] = {(uint8_t)(q->len >> 8), (uint8_t)q->len};

	assert_int_equal(send(fd, prefix, 2, MSG_MORE), 2);
	send_query(fd, q);
}

static void read_exactly(int fd, uint8_t *to, size_t len)
{
	while (len) {
		ssize_t n;

		assert_true(run(fd, WAIT_MS));
		n = recv(fd, to, len, 0);
		assert_true(n > 0);
		to += n;
		len -= (size_t)n;
	}
}

static size_t receive_framed(int fd)
{
	uint8_t prefix[2];

	read_exactly(fd, prefix, 2);
	assert_true(get16(prefix) >= 12);
	read_exactly(fd, reply, get16(prefix));
	return get16(prefix);
}

static void assert_closed(int fd, int ms)
{
	char c;

	assert_true(run(fd, ms));
	assert_true(recv(fd, &c, 1, 0) <= 0);
}

/* Whether any timer of this process is set: nothing may wake an idle agent up. */
static bool timer_is_set(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *de;
	bool set = false;

	assert_non_null(d);
	while ((de = readdir(d))) {
		char path[300], text[1024] = "", *value;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", de->d_name);
		f = de->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		text[fread(text, 1, sizeof(text) - 1, f)] = 0;
		fclose(f);
		value = strstr(text, "it_value: ");
		set |= value && !starts_with(value, "it_value: (0, 0)");
	}
	closedir(d);
	return set;
}

static void test_udp(void **state)
{
	static const uint8_t addr[] = {10, 9, 0, 1};
	size_t len = ask_udp("web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	assert_memory_equal(reply + len - 4, addr, 4);
	assert_false(timer_is_set());
}

static void test_udp_ignores_junk(void **state)
{
	autoclose int fd = socket_to(SOCK_DGRAM, dns_server_port(server));
	struct test_query q = test_query(9, "web.ax.internal", LDNS_RR_TYPE_A);
	static const uint8_t zeros[8192];

	(void)state;
	assert_int_equal(send(fd, zeros, 0, 0), 0);
	assert_int_equal(send(fd, zeros, 5, 0), 5);
	assert_int_equal(send(fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	send_query(fd, &q);
	receive(fd, 9); /* the first thing that comes */
}

static void test_forward_udp(void **state)
{
	static const uint8_t addr[] = {10, 9, 0, 4};
	size_t len = ask_udp("fOUR.up.test", LDNS_RR_TYPE_A);

	(void)state;
	assert_int_equal(rcode(), 0);
	assert_int_equal(get16(reply + 6), 1);
	assert_memory_equal(reply + 12, "\4fOUR\2up\4test", 14);
	assert_memory_equal(reply + len - 4, addr, 4);
	assert_false(timer_is_set());
	/* truncation is passed on */
	ask_udp("_any._tcp." LONG_NAME ".up.test", LDNS_RR_TYPE_SRV);
	assert_int_equal(reply[2] & 2, 2);
}

static void test_forward_failures(void **state)
{
	(void)state;
	ask_udp("example.com", LDNS_RR_TYPE_A); /* the upstream has nobody to ask */
	assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
	ask_udp("nobody", LDNS_RR_TYPE_A);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
	set_upstreams(NULL, 0);
	ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
	assert_memory_equal(reply + 12, "\4four\2up\4test", 14);
	ask_udp("nobody", LDNS_RR_TYPE_A);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
	ask_udp("9.9.9.9.in-addr.arpa", LDNS_RR_TYPE_PTR);
	assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
}

static void test_not_its_own_upstream(void **state)
{
	struct dns_upstream u = upstream_at(dns_server_port(server));

	(void)state;
	set_upstreams(&u, 1);
	ask_udp("nobody", LDNS_RR_TYPE_A); /* round and round it would be SERVFAIL, after a while */
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
}

static void test_next_upstream_at_once(void **state)
{
	autoclose int gone = socket_to(SOCK_DGRAM, 0);
	struct dns_server *useless = server_new("other.test", 0, NULL, 0);
	struct dns_upstream u[] = {upstream_at(port_of(gone)),
				   upstream_at(dns_server_port(useless)),
				   upstream_at(dns_server_port(upstream))};
	uint64_t start = time_mono_ns();

	(void)state;
	close_fd(&gone); /* now nobody has the port */
	set_upstreams(u, ARRAY_SIZE(u));
	ask_udp("four.up.test", LDNS_RR_TYPE_A); /* ECONNREFUSED, SERVFAIL, the answer */
	assert_int_equal(rcode(), 0);
	assert_int_equal(get16(reply + 6), 1);
	assert_true(time_mono_ns() - start < 1500000000u);
	set_upstreams(u, 2);
	ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
	dns_server_close(useless);
}

static void test_silent_upstream(void **state)
{
	autoclose int silent = socket_to(SOCK_DGRAM, 0);
	struct dns_upstream u[] = {upstream_at(port_of(silent)),
				   upstream_at(dns_server_port(upstream))};
	uint64_t start = time_mono_ns();

	(void)state;
	set_upstreams(u, 2);
	ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(get16(reply + 6), 1);
	assert_true(time_mono_ns() - start >= 1900000000u);
	set_upstreams(u, 1);
	ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
	assert_false(timer_is_set());
}

static void test_forged_answers(void **state)
{
	autoclose int wire = socket_to(SOCK_DGRAM, 0);
	autoclose int forger = socket_to(SOCK_DGRAM, 0);
	autoclose int fd = socket_to(SOCK_DGRAM, dns_server_port(server));
	struct dns_upstream u = upstream_at(port_of(wire));
	struct test_query q = test_query(0x77, "four.up.test", LDNS_RR_TYPE_A);
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	uint8_t msg[512], bad[512];
	ssize_t n;

	(void)state;
	set_upstreams(&u, 1);
	send_query(fd, &q);
	assert_true(run(wire, WAIT_MS));
	n = recvfrom(wire, msg, sizeof(msg), 0, (struct sockaddr *)&from, &from_len);
	assert_int_equal(n, q.len);
	assert_memory_equal(msg + 2, q.b + 2, q.len - 2);
	assert_int_not_equal(from.sin_port, port_of(fd));
	msg[2] |= 0x80;

	memcpy(bad, msg, (size_t)n); /* another ID */
	bad[0] ^= 1;
	sendto(wire, bad, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	memcpy(bad, msg, (size_t)n); /* another question */
	bad[13] ^= 1;
	sendto(wire, bad, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	memcpy(bad, msg, (size_t)n); /* not a response */
	bad[2] &= 0x7f;
	sendto(wire, bad, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	sendto(wire, msg, 11, 0, (struct sockaddr *)&from, from_len); /* short */
	/* all right, but from another port */
	sendto(forger, msg, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	assert_false(run(fd, 300));

	msg[3] = LDNS_RCODE_NXDOMAIN;
	sendto(wire, msg, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	assert_int_equal(receive(fd, 0x77), n);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
}

/* IDs and ports of upstream queries have to be hard to guess. */
static void test_upstream_ids_differ(void **state)
{
	autoclose int wire = socket_to(SOCK_DGRAM, 0);
	autoclose int fd = socket_to(SOCK_DGRAM, dns_server_port(server));
	struct dns_upstream u = upstream_at(port_of(wire));
	struct test_query q = test_query(0x77, "four.up.test", LDNS_RR_TYPE_A);
	unsigned ids[8], same_id = 0, same_port = 0;
	__be16 ports[8];

	(void)state;
	set_upstreams(&u, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct sockaddr_in from = {0};
		socklen_t len = sizeof(from);

		send_query(fd, &q);
		assert_true(run(wire, WAIT_MS));
		assert_true(recvfrom(wire, reply, sizeof(reply), 0, (struct sockaddr *)&from,
				     &len) > 0);
		ids[i] = get16(reply);
		ports[i] = from.sin_port;
		same_id += i && ids[i] == ids[0];
		same_port += i && ports[i] == ports[0];
	}
	assert_true(same_id < 2);
	assert_int_equal(same_port, 0); /* all are open at once */
}

static void allow_descriptors(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static unsigned count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Sends from..to-1 by UDP, and turns the loop. */
static void send_many(int fd, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct test_query q = test_query((uint16_t)i, "four.up.test", LDNS_RR_TYPE_A);

		send_query(fd, &q);
		if (i % 16 == 15)
			run(-1, 1);
	}
	run(-1, 20);
}

static void test_queries_of_one_asker_are_bounded(void **state)
{
	autoclose int silent = socket_to(SOCK_DGRAM, 0);
	autoclose int fd = socket_to(SOCK_DGRAM, dns_server_port(server));
	struct dns_upstream u = upstream_at(port_of(silent));
	int size = 1 << 20; /* they all time out at once */

	(void)state;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	set_upstreams(&u, 1);
	send_many(fd, 0, DNS_QUERIES_SHARE);
	assert_false(run(fd, 100));
	send_many(fd, DNS_QUERIES_SHARE, DNS_QUERIES_SHARE + 3);
	for (unsigned i = 0; i < 3; i++) { /* at once */
		receive(fd, DNS_QUERIES_SHARE + i);
		assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
	}
	assert_false(run(fd, 100));
	for (unsigned i = 0; i < DNS_QUERIES_SHARE; i++) /* the others in their time */
		receive(fd, i);
	assert_false(timer_is_set());
}

static void test_queries_of_all_are_bounded(void **state)
{
	autoclose int silent = socket_to(SOCK_DGRAM, 0);
	struct dns_upstream u = upstream_at(port_of(silent));
	unsigned before = count_descriptors();
	int fd[DNS_QUERIES_MAX / DNS_QUERIES_SHARE + 2];

	(void)state;
	allow_descriptors();
	set_upstreams(&u, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = socket_from(SOCK_DGRAM, 256 + i, dns_server_port(server));
		send_many(fd[i], 0, DNS_QUERIES_SHARE);
		assert_true(count_descriptors() <= before + DNS_QUERIES_MAX + ARRAY_SIZE(fd));
	}
	assert_true(count_descriptors() >= before + DNS_QUERIES_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

/* What one asker takes is its own: another one's lookups are not pushed out. */
static void test_a_flood_pushes_out_nobody_else(void **state)
{
	autoclose int silent = socket_to(SOCK_DGRAM, 0);
	autoclose int fd = socket_from(SOCK_DGRAM, 257, dns_server_port(server));
	struct dns_upstream u = upstream_at(port_of(silent));
	uint64_t start;
	int flood[DNS_QUERIES_MAX / DNS_QUERIES_SHARE + 2];

	(void)state;
	allow_descriptors();
	set_upstreams(&u, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(flood); i++)
		flood[i] = socket_from(SOCK_DGRAM, 512 + i, dns_server_port(server));
	start = time_mono_ns();
	/* before the first one has waited for too long */
	for (unsigned i = 0; i < 60 && time_mono_ns() - start < DNS_UPSTREAM_NS / 2; i++) {
		send_many(fd, i, i + 1);
		send_many(flood[i % ARRAY_SIZE(flood)], 0, 2 * DNS_QUERIES_SHARE);
		assert_false(run(fd, 0));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(flood); i++)
		close(flood[i]);
}

/* Whoever is failed to make room asks the next one it had: not in the middle of that. */
static void test_pipelining_clients_keep_the_bound(void **state)
{
	autoclose int silent = socket_to(SOCK_STREAM, 0);
	struct dns_upstream u = upstream_at(port_of(silent));
	struct test_query q = test_query(7, "four.up.test", LDNS_RR_TYPE_A);
	unsigned before;
	int fd[60];

	(void)state;
	allow_descriptors();
	assert_int_equal(listen(silent, 4096), 0);
	set_upstreams(&u, 1);
	before = count_descriptors();
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = socket_from(SOCK_STREAM, 256 + i, dns_server_port(server));
	for (unsigned n = 0; n < 100; n++)
		for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
			send_framed(fd[i], &q);
	for (int i = 0; i < 100; i++) {
		run(-1, 3);
		assert_true(count_descriptors() <= before + DNS_QUERIES_MAX + 2 * ARRAY_SIZE(fd));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

/* --- names that come later --- */

static bool late_is_there;
static uint32_t late_wait_ms;

static bool late_lookup(void *arg, const char *name, struct dns_name_info *ret)
{
	if (!streq(name, "late"))
		return test_zone("").lookup(arg, name, ret);
	*ret = (struct dns_name_info){.ip4 = test_addr("10.9.0.8")};
	return late_is_there;
}

/* 127.0.0.2 waits (for a second), and may ask outside; 127.0.0.3 only waits. */
static bool late_asker(void *arg, const struct ax_addr *from, __be16 port_be, uint8_t proto,
		       struct dns_rights *ret)
{
	(void)arg;
	(void)port_be;
	(void)proto;
	*ret = (struct dns_rights){.self = *from,
				   .forward = from->b[15] != 3,
				   .wait_ms = from->b[15] > 1 ? late_wait_ms : 0};
	return true;
}

static int setup_late(void **state)
{
	struct dns_config c = {.listen4 = test_addr("127.0.0.1"), .zone = test_zone("ax.internal")};
	struct dns_upstream u;
	struct error e = {};

	(void)state;
	late_is_there = false;
	late_wait_ms = 1000;
	epoll_fd = loop_open();
	upstream = server_new("up.test", 0, NULL, 0);
	u = upstream_at(dns_server_port(upstream));
	c.zone.lookup = late_lookup;
	c.zone.asker = late_asker;
	c.upstreams = &u;
	c.n_upstreams = 1;
	return dns_server_open(epoll_fd, &c, &server, &e);
}

static void name_comes(void)
{
	late_is_there = true;
	dns_server_names_added(server);
}

static void ask_late(int fd, unsigned id, const char *name, unsigned type)
{
	struct test_query q = test_query((uint16_t)id, name, type);

	send_query(fd, &q);
	run(-1, 1);
}

static void test_a_name_is_waited_for(void **state)
{
	static const char *const names[] = {"late.ax.internal", "LATE.Ax.internal", "late"};
	static const uint8_t addr[] = {10, 9, 0, 8};

	(void)state;
	for (unsigned from = 2; from <= 3; from++) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			autoclose int fd = socket_from(SOCK_DGRAM, from, dns_server_port(server));
			size_t len;

			late_is_there = false;
			ask_late(fd, 1, names[i], LDNS_RR_TYPE_A);
			ask_late(fd, 1, names[i], LDNS_RR_TYPE_A); /* again: one answer */
			ask_late(fd, 2, names[i], LDNS_RR_TYPE_AAAA);
			assert_false(run(fd, 50));
			name_comes();
			len = receive(fd, 1);
			assert_int_equal(rcode(), 0);
			assert_memory_equal(reply + len - 4, addr, 4);
			receive(fd, 2);
			assert_int_equal(rcode(), 0);
			assert_int_equal(get16(reply + 6), 0);
			assert_false(run(fd, 20));
		}
	}
	assert_false(timer_is_set());
}

static void test_the_wait_for_a_name_is_had_once(void **state)
{
	autoclose int fd = socket_from(SOCK_DGRAM, 2, dns_server_port(server));
	uint64_t start = time_mono_ns();

	(void)state;
	ask_late(fd, 1, "late.ax.internal", LDNS_RR_TYPE_A);
	assert_false(run(fd, 500));
	ask_late(fd, 2, "late", LDNS_RR_TYPE_AAAA); /* no longer than the first one */
	receive(fd, 1);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
	assert_true(time_mono_ns() - start >= 900000000u);
	receive(fd, 2);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
	start = time_mono_ns();
	ask_late(fd, 3, "late", LDNS_RR_TYPE_A);
	receive(fd, 3);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
	assert_true(time_mono_ns() - start < 800000000u);
	assert_false(timer_is_set());
}

static void test_other_names_do_not_wait(void **state)
{
	static const char *const names[] = {
		"web",	     "four.up.test",	      "no.where.test", "a.late.ax.internal",
		"localhost", "9.9.9.10.in-addr.arpa", "ax.internal"};
	autoclose int fd = socket_from(SOCK_DGRAM, 2, dns_server_port(server));
	autoclose int other = socket_to(SOCK_DGRAM, dns_server_port(server));
	uint64_t start = time_mono_ns();

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		ask_late(fd, i, names[i], LDNS_RR_TYPE_A);
		receive(fd, i);
	}
	ask_late(other, 9, "late.ax.internal", LDNS_RR_TYPE_A); /* does not want to wait */
	receive(other, 9);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
	assert_true(time_mono_ns() - start < 900000000u);
}

static void test_waiting_by_tcp(void **state)
{
	autoclose int fd = socket_from(SOCK_STREAM, 2, dns_server_port(server));
	autoclose int gone = socket_from(SOCK_STREAM, 2, dns_server_port(server));
	struct test_query q = test_query(5, "late.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	send_framed(fd, &q);
	send_framed(gone, &q);
	assert_false(run(fd, 100));
	close_fd(&gone);
	name_comes();
	receive_framed(fd);
	assert_int_equal(rcode(), 0);
	assert_int_equal(get16(reply + 6), 1);
}

static void test_waiting_is_bounded(void **state)
{
	autoclose int fd = socket_from(SOCK_DGRAM, 2, dns_server_port(server));

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u.ax.internal", i);
		ask_late(fd, i, name, LDNS_RR_TYPE_A);
	}
	/* those that are too many, at once */
	receive(fd, DNS_HELD_SHARE);
	assert_int_equal(rcode(), LDNS_RCODE_NXDOMAIN);
}

static void test_who_waits_for_many_names_keeps_nobody_from_waiting(void **state)
{
	autoclose int fd = socket_from(SOCK_DGRAM, 2, dns_server_port(server));
	autoclose int other = socket_from(SOCK_DGRAM, 3, dns_server_port(server));

	(void)state;
	late_wait_ms = 60000;
	for (unsigned i = 0; i < 2 * DNS_HELD_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u.ax.internal", i);
		ask_late(fd, i, name, LDNS_RR_TYPE_A);
	}
	ask_late(other, 1, "late.ax.internal", LDNS_RR_TYPE_A);
	assert_false(run(other, 50));
	name_comes();
	receive(other, 1);
	assert_int_equal(rcode(), 0);
}

static void test_tcp(void **state)
{
	autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));
	struct test_query q = test_query(5, "web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	send_framed(fd, &q);
	assert_int_equal(receive_framed(fd), q.len + 16);
	assert_true(timer_is_set()); /* for the connection's time-out */
	q = test_query(6, "_any._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	send_framed(fd, &q);
	assert_true(receive_framed(fd) > 1500);
	assert_int_equal(reply[2] & 2, 0);
	assert_int_equal(get16(reply + 6), 16);
	close_fd(&fd);
	run(-1, 50);
	assert_false(timer_is_set());
}

static void test_tcp_forward(void **state)
{
	autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));
	struct test_query q = test_query(6, "_any._tcp." LONG_NAME ".up.test", LDNS_RR_TYPE_SRV);

	(void)state;
	send_framed(fd, &q);
	assert_true(receive_framed(fd) > 1500);
	assert_int_equal(get16(reply), 6);
	assert_int_equal(get16(reply + 6), 16);
}

static void test_tcp_next_upstream(void **state)
{
	autoclose int gone = socket_to(SOCK_STREAM, 0);
	autoclose int closes = socket_to(SOCK_STREAM, 0);
	autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));
	struct dns_upstream u[] = {upstream_at(port_of(gone)), upstream_at(port_of(closes)),
				   upstream_at(dns_server_port(upstream))};
	struct test_query q = test_query(6, "four.up.test", LDNS_RR_TYPE_A);
	int accepted;

	(void)state;
	close_fd(&gone);
	assert_int_equal(listen(closes, 1), 0);
	set_upstreams(u, 3);
	send_framed(fd, &q);
	assert_true(run(closes, WAIT_MS));
	accepted = accept(closes, NULL, NULL);
	assert_true(accepted >= 0);
	assert_int_equal(send(accepted, "\0", 1, 0), 1); /* half a length, and gone */
	close(accepted);
	receive_framed(fd);
	assert_int_equal(get16(reply + 6), 1);
	set_upstreams(u, 1);
	send_framed(fd, &q);
	receive_framed(fd);
	assert_int_equal(rcode(), LDNS_RCODE_SERVFAIL);
}

static void test_tcp_pipelining(void **state)
{
	static const char *const names[] = {"four.up.test", "web.ax.internal", "nobody"};
	autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));
	unsigned seen = 0;

	(void)state;
	/* more than a connection may have open at the upstreams at once */
	for (unsigned i = 0; i < 90; i++) {
		struct test_query q = test_query((uint16_t)i, names[i % 3], LDNS_RR_TYPE_A);

		send_framed(fd, &q);
	}
	assert_int_equal(shutdown(fd, SHUT_WR), 0); /* what was asked is answered still */
	for (unsigned i = 0; i < 90; i++) {
		size_t len = receive_framed(fd);
		unsigned id = get16(reply);

		assert_true(id < 90 && len > 12);
		assert_int_equal(rcode(), id % 3 == 2 ? LDNS_RCODE_NXDOMAIN : 0);
		seen += id;
	}
	assert_int_equal(seen, 89 * 90 / 2);
	assert_closed(fd, WAIT_MS);
}

static void test_tcp_in_pieces(void **state)
{
	autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));
	struct test_query q = test_query(6, "four.up.test", LDNS_RR_TYPE_A);
	uint8_t bytes[2 * sizeof(q.b)] = {0, (uint8_t)q.len};
	size_t len = 2 + q.len;

	(void)state;
	memcpy(bytes + 2, q.b, q.len);
	memcpy(bytes + len, bytes, len);
	for (size_t i = 0; i < 2 * len; i++) {
		assert_int_equal(send(fd, bytes + i, 1, 0), 1);
		run(-1, 1);
	}
	for (int i = 0; i < 2; i++) {
		receive_framed(fd);
		assert_int_equal(get16(reply + 6), 1);
	}
}

/* A client that asks and does not read is not served without end, and loses nothing. */
static void test_tcp_slow_reader(void **state)
{
	autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));
	struct test_query q =
		test_query(1, "_any._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	uint8_t bytes[2 + sizeof(q.b)] = {0, (uint8_t)q.len};
	unsigned sent = 0, received = 0;
	size_t at = 0, len = 2 + q.len;
	int size = 4096;

	(void)state;
	memcpy(bytes + 2, q.b, q.len);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	for (int quiet = 0; quiet < 20 && sent < 20000;) {
		ssize_t n = send(fd, bytes + at, len - at, MSG_DONTWAIT);

		run(-1, n < 0 ? 5 : 0);
		quiet = n < 0 ? quiet + 1 : 0;
		at += n > 0 ? (size_t)n : 0;
		sent += at == len;
		at = at == len ? 0 : at;
	}
	assert_true(sent > 16 && sent < 20000);
	shutdown(fd, SHUT_WR);
	for (; received < sent; received++)
		assert_true(receive_framed(fd) > 1500);
	assert_closed(fd, WAIT_MS);
}

static void test_tcp_junk_closes(void **state)
{
	static const uint8_t junk[][4] = {{0, 0, 1, 1}, {0, 2, 1, 1}, {0xff, 0xff, 1, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
		autoclose int fd = socket_to(SOCK_STREAM, dns_server_port(server));

		assert_int_equal(send(fd, junk[i], sizeof(junk[i]), 0), sizeof(junk[i]));
		assert_closed(fd, WAIT_MS);
	}
}

static void test_tcp_client_goes_away(void **state)
{
	autoclose int silent = socket_to(SOCK_STREAM, 0);
	struct dns_upstream u = upstream_at(port_of(silent));
	struct linger reset = {.l_onoff = 1};
	int accepted[4];

	(void)state;
	assert_int_equal(listen(silent, 16), 0);
	set_upstreams(&u, 1);
	for (int i = 0; i < 2; i++) {
		int fd = socket_to(SOCK_STREAM, dns_server_port(server));
		struct test_query q = test_query(6, "four.up.test", LDNS_RR_TYPE_A);

		for (int j = 0; j < 2; j++) {
			send_framed(fd, &q);
			assert_true(run(silent, WAIT_MS));
			accepted[i * 2 + j] = accept(silent, NULL, NULL);
			assert_true(accepted[i * 2 + j] >= 0);
		}
		if (i)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
		run(-1, 50);
	}
	/* a reset forgets the queries; after a mere end the client may still read, so they time out
	 */
	run(-1, 2200);
	assert_false(timer_is_set());
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++)
		close(accepted[i]);
}

static void test_tcp_connections_are_bounded(void **state)
{
	struct test_query q = test_query(6, "web.ax.internal", LDNS_RR_TYPE_A);
	int fd[140];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = socket_to(SOCK_STREAM, dns_server_port(server));
		send_framed(fd[i], &q);
		receive_framed(fd[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		if (i < 12) { /* they had been idle for longest */
			assert_closed(fd[i], WAIT_MS);
		} else {
			send_framed(fd[i], &q);
			receive_framed(fd[i]);
		}
		close(fd[i]);
	}
}

/* One that has all of its connections busy does not keep others from having one. */
static void test_tcp_connections_are_shared(void **state)
{
	autoclose int silent = socket_to(SOCK_STREAM, 0);
	struct test_query busy = test_query(6, "four.up.test", LDNS_RR_TYPE_A);
	struct test_query q = test_query(6, "web.ax.internal", LDNS_RR_TYPE_A);
	struct dns_upstream u = upstream_at(port_of(silent));
	autoclose int other = -1;
	int fd[140];

	(void)state;
	allow_descriptors();
	assert_int_equal(listen(silent, 4096), 0);
	set_upstreams(&u, 1);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = socket_to(SOCK_STREAM, dns_server_port(server));
		send_framed(fd[i], &busy);
		run(-1, 1);
	}
	other = socket_from(SOCK_STREAM, 257, dns_server_port(server));
	send_framed(other, &q);
	receive_framed(other);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

static void test_tcp_idle(void **state)
{
	autoclose int idle = socket_to(SOCK_STREAM, dns_server_port(server));
	autoclose int trickle = socket_to(SOCK_STREAM, dns_server_port(server));
	uint64_t start = time_mono_ns();

	(void)state;
	assert_false(run(idle, 5000));
	assert_int_equal(send(trickle, "\0", 1, 0), 1); /* a byte is not a query */
	assert_closed(idle, WAIT_MS);
	assert_true(time_mono_ns() - start > 9500000000u);
	assert_closed(trickle, 1000);
	assert_false(timer_is_set());
}

static void test_port_taken(void **state)
{
	__be16 port_be = dns_server_port(server);
	struct dns_server *other = server_new("ax.internal", port_be, NULL, 0);
	autoclose int tcp = -1, udp = -1;
	struct test_query q = test_query(6, "web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	assert_int_not_equal(dns_server_port(other), port_be);
	tcp = socket_to(SOCK_STREAM, dns_server_port(other));
	udp = socket_to(SOCK_DGRAM, dns_server_port(other));
	send_framed(tcp, &q);
	receive_framed(tcp);
	send_query(udp, &q);
	receive(udp, 6);
	dns_server_close(other);
}

/* A port that somebody has for UDP alone, and would share. */
static void test_udp_port_taken(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct dns_server *other;
	int one = 1;

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	other = server_new("ax.internal", port_of(fd), NULL, 0);
	assert_int_not_equal(dns_server_port(other), port_of(fd));
	dns_server_close(other);
}

static void test_both_families(void **state)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct dns_config c = {.listen4 = test_addr("127.0.0.1"),
			       .listen6 = test_addr("::1"),
			       .port_be = dns_server_port(server), /* taken for IPv4 */
			       .zone = test_zone("ax.internal")};
	autoclose int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct test_query q = test_query(6, "ns.dns.ax.internal", LDNS_RR_TYPE_AAAA);
	struct dns_server *s;
	struct error e;

	(void)state;
	if (fd < 0 || bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)) < 0)
		skip(); /* no IPv6 here */
	assert_int_equal(dns_server_open(epoll_fd, &c, &s, &e), 0);
	assert_int_not_equal(dns_server_port(s), dns_server_port(server));
	sin6.sin6_port = dns_server_port(s);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin6, sizeof(sin6)), 0);
	send_query(fd, &q);
	receive(fd, 6);
	assert_int_equal(get16(reply + 6), 1);
	dns_server_close(s);
}

static void test_open_fails(void **state)
{
	struct dns_config c = {.zone = test_zone("ax.internal")};
	struct dns_server *s = NULL;
	struct error e = {};

	(void)state;
	assert_int_equal(dns_server_open(epoll_fd, &c, &s, &e), -EINVAL);
	assert_true(strlen(e.text) > 0);
	c.listen4 = test_addr("192.0.2.1"); /* of no interface */
	c.port_be = htons(53535);
	assert_int_equal(dns_server_open(epoll_fd, &c, &s, &e), -EADDRNOTAVAIL);
	assert_non_null(strstr(e.text, "192.0.2.1:53535"));
	assert_null(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define LATE(f) cmocka_unit_test_setup_teardown(f, setup_late, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_udp),
		TEST(test_udp_ignores_junk),
		TEST(test_forward_udp),
		TEST(test_forward_failures),
		TEST(test_not_its_own_upstream),
		TEST(test_next_upstream_at_once),
		TEST(test_silent_upstream),
		TEST(test_forged_answers),
		TEST(test_upstream_ids_differ),
		TEST(test_queries_of_one_asker_are_bounded),
		TEST(test_queries_of_all_are_bounded),
		TEST(test_a_flood_pushes_out_nobody_else),
		TEST(test_pipelining_clients_keep_the_bound),
		LATE(test_a_name_is_waited_for),
		LATE(test_the_wait_for_a_name_is_had_once),
		LATE(test_other_names_do_not_wait),
		LATE(test_waiting_by_tcp),
		LATE(test_waiting_is_bounded),
		LATE(test_who_waits_for_many_names_keeps_nobody_from_waiting),
		TEST(test_tcp),
		TEST(test_tcp_forward),
		TEST(test_tcp_next_upstream),
		TEST(test_tcp_pipelining),
		TEST(test_tcp_in_pieces),
		TEST(test_tcp_slow_reader),
		TEST(test_tcp_junk_closes),
		TEST(test_tcp_client_goes_away),
		TEST(test_tcp_connections_are_bounded),
		TEST(test_tcp_connections_are_shared),
		TEST(test_tcp_idle),
		TEST(test_port_taken),
		TEST(test_udp_port_taken),
		TEST(test_both_families),
		TEST(test_open_fails),
	};

	return cmocka_run_group_tests_name("dns_server", tests, NULL, NULL);
}
