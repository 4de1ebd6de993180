// SPDX-License-Identifier: GPL-2.0-or-later
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

#include "tests/lib/dns_server.h"

struct dns_world dns;

unsigned dns_get16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

unsigned dns_rcode(void)
{
	return dns.reply[3] & 15;
}

static void dispatch(void)
{
	struct loop_item *item;
	uint32_t events;

	assert_int_equal(loop_wait(dns.epoll_fd, &item, &events), 0);
	if (!dns_on_loop(item, events))
		fail_msg("an event of kind %d", item->kind);
}

bool dns_run(int fd, int ms)
{
	uint64_t end = time_mono_ns() + (uint64_t)ms * 1000000u;

	for (;;) {
		struct pollfd p[] = {{.fd = dns.epoll_fd, .events = POLLIN},
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

struct dns_server *dns_server_new(const char *domain, __be16 port_be, const struct dns_upstream *u,
				  size_t n)
{
	struct dns_config c = {.listen4 = test_addr("127.0.0.1"),
			       .port_be = port_be,
			       .zone = test_zone(domain),
			       .upstreams = u,
			       .n_upstreams = n};
	struct dns_server *s = NULL;
	struct error e = {};

	if (dns_server_open(dns.epoll_fd, &c, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

struct dns_upstream dns_upstream_at(__be16 port_be)
{
	return (struct dns_upstream){.addr = test_addr("127.0.0.1"), .port_be = port_be};
}

void dns_set_upstreams(const struct dns_upstream *u, size_t n)
{
	assert_int_equal(dns_server_set_upstreams(dns.server, u, n), 0);
}

int dns_setup(void **state)
{
	struct dns_upstream u;

	(void)state;
	dns.epoll_fd = loop_open();
	if (dns.epoll_fd < 0)
		return -1;
	dns.upstream = dns_server_new("up.test", 0, NULL, 0);
	u = dns_upstream_at(dns_server_port(dns.upstream));
	dns.server = dns_server_new("ax.internal", 0, &u, 1);
	return 0;
}

int dns_teardown(void **state)
{
	(void)state;
	dns_server_close(dns.server);
	dns_server_close(dns.upstream);
	dns.server = dns.upstream = NULL;
	close_fd(&dns.epoll_fd);
	return 0;
}

int dns_socket_from(int type, unsigned xy, __be16 port_be)
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

int dns_socket_to(int type, __be16 port_be)
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

__be16 dns_port_of(int fd)
{
	struct sockaddr_in sin = {0};
	socklen_t len = sizeof(sin);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	return sin.sin_port;
}

void dns_send_query(int fd, const struct test_query *q)
{
	assert_int_equal(send(fd, q->b, q->len, 0), q->len);
}

size_t dns_receive(int fd, unsigned id)
{
	ssize_t n;

	assert_true(dns_run(fd, WAIT_MS));
	n = recv(fd, dns.reply, sizeof(dns.reply), 0);
	assert_true(n >= 12);
	assert_int_equal(dns_get16(dns.reply), id);
	return (size_t)n;
}

size_t dns_ask_udp(const char *name, unsigned type)
{
	autoclose int fd = dns_socket_to(SOCK_DGRAM, dns_server_port(dns.server));
	struct test_query q = test_query(0x4321, name, type);

	dns_send_query(fd, &q);
	return dns_receive(fd, 0x4321);
}

void dns_send_framed(int fd, const struct test_query *q)
{
	uint8_t prefix[] = {(uint8_t)(q->len >> 8), (uint8_t)q->len};

	assert_int_equal(send(fd, prefix, 2, MSG_MORE), 2);
	dns_send_query(fd, q);
}

void dns_read_exactly(int fd, uint8_t *to, size_t len)
{
	while (len) {
		ssize_t n;

		assert_true(dns_run(fd, WAIT_MS));
		n = recv(fd, to, len, 0);
		assert_true(n > 0);
		to += n;
		len -= (size_t)n;
	}
}

size_t dns_receive_framed(int fd)
{
	uint8_t prefix[2];

	dns_read_exactly(fd, prefix, 2);
	assert_true(dns_get16(prefix) >= 12);
	dns_read_exactly(fd, dns.reply, dns_get16(prefix));
	return dns_get16(prefix);
}

void dns_assert_closed(int fd, int ms)
{
	char c;

	assert_true(dns_run(fd, ms));
	assert_true(recv(fd, &c, 1, 0) <= 0);
}

bool dns_timer_is_set(void)
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

void dns_allow_descriptors(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void dns_send_many(int fd, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct test_query q = test_query((uint16_t)i, "four.up.test", LDNS_RR_TYPE_A);

		dns_send_query(fd, &q);
		if (i % 16 == 15)
			dns_run(-1, 1);
	}
	dns_run(-1, 20);
}
