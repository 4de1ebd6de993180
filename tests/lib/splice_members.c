/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/address.h"
#include "machine/cgroup.h"
#include "tests/lib/netns.h"
#include "tests/lib/splice_members.h"

#define LO 1

struct splice_fixture f;

void open_splice(uint32_t members_max)
{
	struct error e = {0};

	if (datapath_splice_open(f.dp, members_max, &f.s, &e))
		fail_msg("%s", e.text);
}

static void open_dataplane(void)
{
	struct error e = {0};
	bool fresh;

	if (datapath_open(&f.inst, f.cgroup, &f.dp, &fresh, &e))
		fail_msg("%s", e.text);
}

static int set_app(const struct ax_addr *addr, uint32_t id)
{
	struct ax_vip v = {.kind = AX_VIP_APP, .id = id};

	return datapath_vip_set(f.dp, addr, &v);
}

/* Both addresses on a namespace's lo. */
int add_addresses(int ns)
{
	struct nl *nl;
	int r = ns_open_nl(ns, &nl);

	if (r)
		return r;
	nl_link_set_up(nl, LO);
	nl_addr_add(nl, LO, &f.a, 32);
	nl_addr_add(nl, LO, &f.b, 32);
	nl_close(nl);
	return 0;
}

int splice_setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	f.pair.client = f.pair.server = -1;
	f.a = ns_addr("10.99.0.1");
	f.b = ns_addr("10.99.0.2");
	f.ns = ns_new();
	if (own_instance(&f.inst, f.cgroup) || add_addresses(f.ns))
		return -1;
	open_dataplane();
	return set_app(&f.a, 1) || set_app(&f.b, 2) ? -1 : 0;
}

int splice_setup_open(void **state)
{
	if (splice_setup(state))
		return -1;
	open_splice(0);
	return datapath_splice_redirect(f.s, true);
}

int splice_teardown(void **state)
{
	struct error e;

	(void)state;
	tcp_pair_close(&f.pair);
	datapath_splice_close(f.s);
	datapath_close(f.dp);
	close(f.ns);
	return datapath_remove(&f.inst, &e) || cgroup_remove(f.cgroup) ? -1 : 0;
}

/* A description of the socket with this cookie. */
struct wanted {
	uint64_t cookie;
	struct ax_splice_conn conn;
	unsigned n;
};

static int on_conn(void *arg, const struct ax_splice_conn *c)
{
	struct wanted *w = arg;

	if (c->cookie == w->cookie) {
		w->conn = *c;
		w->n++;
	}
	return 0;
}

struct ax_splice_conn conn_of(int netns, int fd)
{
	struct wanted w = {.cookie = tcp_cookie(fd)};

	assert_int_equal(datapath_splice_conns_each(f.s, netns, on_conn, &w), 0);
	assert_int_equal(w.n, 1);
	return w.conn;
}

struct splice_end_ref end_of(int netns, int fd)
{
	struct ax_splice_conn c = conn_of(netns, fd);

	return (struct splice_end_ref){.cookie = c.cookie, .sk = c.sk, .netns_fd = netns};
}

void join_in(const struct tcp_pair *p, int client_ns, int server_ns)
{
	struct splice_pair s = {.a = end_of(client_ns, p->client),
				.b = end_of(server_ns, p->server)};

	assert_int_equal(datapath_splice_join(f.s, &s, 1), 0);
	assert_int_equal(s.a.result, 0);
	assert_int_equal(s.b.result, 0);
}

void open_pair(struct tcp_pair *p)
{
	assert_int_equal(tcp_pair_open(p, f.ns, &f.a, f.ns, &f.b), 0);
}

void open_joined(void)
{
	open_pair(&f.pair);
	join_in(&f.pair, f.ns, f.ns);
}

struct tcp_stream forward(const struct tcp_pair *p)
{
	return (struct tcp_stream){.from = p->client, .to = p->server};
}

struct tcp_stream backward(const struct tcp_pair *p)
{
	return (struct tcp_stream){.from = p->server, .to = p->client};
}

/* What was counted since the last call. */
struct ax_splice_counted counted(unsigned what)
{
	struct ax_splice_counted all[AX_SPLICE_COUNTS], r;

	assert_int_equal(datapath_splice_counters(f.s, all), 0);
	r.messages = all[what].messages - f.before[what].messages;
	r.bytes = all[what].bytes - f.before[what].bytes;
	f.before[what] = all[what];
	return r;
}

void assert_counted(unsigned what, uint64_t messages, uint64_t bytes)
{
	struct ax_splice_counted c = counted(what);

	if (c.messages != messages || c.bytes != bytes)
		fail_msg("%s: %lu messages, %lu bytes, not %lu and %lu",
			 datapath_splice_counter_name(what), (unsigned long)c.messages,
			 (unsigned long)c.bytes, (unsigned long)messages, (unsigned long)bytes);
}

void assert_goes(struct tcp_stream *s, size_t n)
{
	assert_int_equal(tcp_stream_put(s, n, 0), n);
	assert_int_equal(tcp_stream_get_all(s), 0);
}
