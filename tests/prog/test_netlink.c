/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links, routes and namespaces against the kernel, in namespaces of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "tests/lib/netns.h"

#define METRIC	 0x123456
#define N_ROUTES 10000

static const uint8_t mac[6] = {0x02, 0x61, 0x78, 0x00, 0x00, 0x07};

/* A host and an app, as the agent builds them; every test has its own. */
struct fixture {
	int host, app;
	struct nl *nl; /* in host */
	struct ax_addr host4, host6, vip4, vip6;
	unsigned ifindex;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	*state = f;
	f->host = ns_new();
	f->app = ns_new();
	if (f->host < 0 || f->app < 0 || ns_open_nl(f->host, &f->nl))
		return -1;
	f->host4 = ns_addr("10.99.0.1");
	f->host6 = ns_addr("fd00:99::1");
	f->vip4 = ns_addr("1.2.3.4");
	f->vip6 = ns_addr("fd00:99::1234");
	return nl_link_set_up(f->nl, 1);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->nl)
		nl_close(f->nl);
	close(f->host);
	close(f->app);
	free(f);
	return 0;
}

static struct prefix whole(const struct ax_addr *a)
{
	return (struct prefix){.addr = *a, .len = 128};
}

static void add_veth(struct fixture *f)
{
	assert_int_equal(nl_link_add_veth(f->nl, "axt-1", "eth0", f->app, mac, 1400, &f->ifindex),
			 0);
}

static void add_host_route(struct fixture *f, const struct ax_addr *vip)
{
	struct nl_route r = {.dst = whole(vip), .ifindex = f->ifindex, .metric = METRIC};

	assert_int_equal(nl_route_add(f->nl, &r), 0);
}

/* The app's namespace complete, the host with its two addresses on lo. */
static void connect_app(struct fixture *f)
{
	add_veth(f);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host4, 32), 0);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host6, 128), 0);
	add_host_route(f, &f->vip4);
	add_host_route(f, &f->vip6);
	assert_int_equal(netns_configure(f->app, "eth0", &f->vip4, &f->vip6), 0);
	assert_int_equal(nl_link_wait_up(f->nl, f->ifindex, 1000), 0);
}

/* The app's end can send at once, but before 6.8 it does not say so (IFF_RUNNING) at once. */
static void wait_app_up(struct fixture *f)
{
	CLEANUP(nl_closep) struct nl *nl = NULL;
	unsigned ifindex;

	assert_int_equal(ns_open_nl(f->app, &nl), 0);
	assert_int_equal(nl_link_index(nl, "eth0", &ifindex), 0);
	assert_int_equal(nl_link_wait_up(nl, ifindex, 1000), 0);
}

struct if_query {
	const char *name;
	short flags;
	uint8_t mac[6];
	int mtu;
	uint32_t tso, gso;
	bool link_local;
};

static int query_interface(void *arg)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	autofree char *addrs = NULL;
	struct ethtool_value tso = {.cmd = ETHTOOL_GTSO}, gso = {.cmd = ETHTOOL_GGSO};
	struct if_query *q = arg;
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", q->name);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		return -errno;
	q->flags = ifr.ifr_flags;
	if (ioctl(fd, SIOCGIFHWADDR, &ifr) < 0)
		return -errno;
	memcpy(q->mac, ifr.ifr_hwaddr.sa_data, 6);
	if (ioctl(fd, SIOCGIFMTU, &ifr) < 0)
		return -errno;
	q->mtu = ifr.ifr_mtu;
	ifr.ifr_data = (void *)&tso;
	if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		return -errno;
	ifr.ifr_data = (void *)&gso;
	if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		return -errno;
	q->tso = tso.data;
	q->gso = gso.data;
	/* of the reading thread's namespace */
	if (file_read("/proc/thread-self/net/if_inet6", 1 << 16, &addrs) == 0)
		q->link_local = strstr(addrs, "fe80");
	return 0;
}

static void test_veth(void **state)
{
	struct fixture *f = *state;
	struct if_query host = {.name = "axt-1"}, app = {.name = "eth0"};
	unsigned ifindex;

	connect_app(f);
	wait_app_up(f);
	assert_int_equal(netns_call(f->host, query_interface, &host), 0);
	assert_int_equal(netns_call(f->app, query_interface, &app), 0);
	assert_memory_equal(host.mac, mac, 6);
	assert_memory_equal(app.mac, mac, 6);
	assert_int_equal(host.flags & (IFF_UP | IFF_NOARP | IFF_RUNNING),
			 IFF_UP | IFF_NOARP | IFF_RUNNING);
	assert_int_equal(app.flags & (IFF_UP | IFF_NOARP | IFF_RUNNING),
			 IFF_UP | IFF_NOARP | IFF_RUNNING);
	assert_int_equal(host.mtu, 1400);
	assert_int_equal(app.mtu, 1400);
	assert_true(host.tso && host.gso && app.tso && app.gso);
	assert_false(host.link_local || app.link_local);

	assert_int_equal(nl_link_index(f->nl, "axt-1", &ifindex), 0);
	assert_int_equal(ifindex, f->ifindex);
	assert_int_equal(nl_link_add_veth(f->nl, "axt-1", "eth1", f->app, mac, 0, &ifindex),
			 -EEXIST);
	assert_int_equal(nl_link_del(f->nl, f->ifindex), 0);
	assert_int_equal(nl_link_del(f->nl, f->ifindex), -ENODEV);
	assert_int_equal(nl_link_index(f->nl, "axt-1", &ifindex), -ENODEV);
	assert_int_equal(netns_configure(f->app, "eth0", &f->vip4, &f->vip6), -ENODEV);
}

static void test_veth_errors(void **state)
{
	struct fixture *f = *state;
	autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned ifindex;

	assert_true(nl_link_add_veth(f->nl, "axt-1", "eth0", null, mac, 0, &ifindex) < 0);
	assert_int_equal(
		nl_link_add_veth(f->nl, "much-too-long-name", "eth0", f->app, mac, 0, &ifindex),
		-ENAMETOOLONG);
	assert_int_equal(nl_link_index(f->nl, "axt-1", &ifindex), -ENODEV);
	assert_int_equal(nl_link_index(f->nl, "", &ifindex), -ENODEV);
	assert_int_equal(nl_link_index(f->nl, "much-too-long-name", &ifindex), -ENODEV);
	assert_int_equal(nl_link_set_up(f->nl, 4711), -ENODEV);
	assert_int_equal(nl_link_wait_up(f->nl, 4711, 10), -ENODEV);
	add_veth(f);
	assert_int_equal(nl_link_wait_up(f->nl, f->ifindex, 5), -ETIMEDOUT);
	assert_true(netns_call(null, query_interface, NULL) < 0);
}

struct seen {
	struct nl *nl;
	unsigned n;
	bool both;
};

static int see_link(void *arg, const char *name, unsigned ifindex)
{
	struct seen *s = arg;
	unsigned check;

	/* the socket is free for other requests */
	assert_int_equal(nl_link_index(s->nl, name, &check), 0);
	assert_int_equal(check, ifindex);
	s->n++;
	return s->both ? 0 : 42;
}

static void test_link_each(void **state)
{
	struct fixture *f = *state;
	struct seen s = {.nl = f->nl, .both = true};
	unsigned ifindex;

	add_veth(f);
	assert_int_equal(nl_link_add_veth(f->nl, "axt-2", "eth1", f->app, mac, 0, &ifindex), 0);
	assert_int_equal(nl_link_add_veth(f->nl, "other-1", "eth2", f->app, mac, 0, &ifindex), 0);
	assert_int_equal(nl_link_each(f->nl, "axt-", see_link, &s), 0);
	assert_int_equal(s.n, 2);
	s = (struct seen){.nl = f->nl};
	assert_int_equal(nl_link_each(f->nl, "axt-", see_link, &s), 42);
	assert_int_equal(s.n, 1);
	assert_int_equal(nl_link_each(f->nl, "none-", see_link, &s), 0);
	assert_int_equal(s.n, 1);
}

#define check_traffic(server, client, to, from) check_traffic_at(server, client, to, from, __LINE__)
static void check_traffic_at(int server, int client, const struct ax_addr *to,
			     const struct ax_addr *from, int line)
{
	struct ax_addr seen_tcp, seen_udp;
	int tcp = ns_tcp(server, client, to, &seen_tcp),
	    udp = ns_udp(server, client, to, &seen_udp);
	int ping = ns_ping(client, to);

	if (tcp || udp || ping)
		fail_msg("line %d: TCP %s, UDP %s, ICMP %s", line, strerror(-tcp), strerror(-udp),
			 strerror(-ping));
	assert_true(addr_eq(&seen_tcp, from));
	assert_true(addr_eq(&seen_udp, from));
}

/* At once: without neighbour entries there is nothing to resolve, nothing to wait for. */
static void test_traffic(void **state)
{
	const struct ax_addr lo4 = ns_addr("127.0.0.1"), lo6 = ns_addr("::1");
	struct fixture *f = *state;

	connect_app(f);
	check_traffic(f->host, f->app, &f->host6, &f->vip6);
	check_traffic(f->host, f->app, &f->host4, &f->vip4);
	check_traffic(f->app, f->host, &f->vip4, &f->host4);
	check_traffic(f->app, f->host, &f->vip6, &f->host6);
	/* and the app with itself, by its address and by lo */
	check_traffic(f->app, f->app, &f->vip4, &f->vip4);
	check_traffic(f->app, f->app, &f->vip6, &f->vip6);
	check_traffic(f->app, f->app, &lo4, &lo4);
	check_traffic(f->app, f->app, &lo6, &lo6);
}

/* Without an IPv6 address the app has no IPv6 route either, and the other way round. */
static void test_one_family(void **state)
{
	const struct ax_addr none = {0};
	struct fixture *f = *state;
	struct ax_addr seen;

	add_veth(f);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host4, 32), 0);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host6, 128), 0);
	add_host_route(f, &f->vip6);
	assert_int_equal(netns_configure(f->app, "eth0", &none, &f->vip6), 0);
	assert_int_equal(nl_link_wait_up(f->nl, f->ifindex, 1000), 0);
	assert_int_equal(ns_tcp(f->host, f->app, &f->host4, &seen), -ENETUNREACH);
	check_traffic(f->host, f->app, &f->host6, &f->vip6);
	/* twice is once */
	assert_int_equal(netns_configure(f->app, "eth0", &f->vip4, &f->vip6), 0);
	add_host_route(f, &f->vip4);
	check_traffic(f->host, f->app, &f->host4, &f->vip4);
	assert_int_equal(netns_configure(f->app, "eth0", &f->vip6, &f->vip4), -EINVAL);
}

static int disable_ipv6(void *arg)
{
	(void)arg;
	/* of the namespace that the thread is in */
	return file_write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1\n");
}

static void test_ipv6_disabled(void **state)
{
	const struct ax_addr none = {0};
	struct fixture *f = *state;

	if (access("/proc/sys/net/ipv6", F_OK) < 0) {
		add_veth(f);
		assert_int_equal(netns_configure(f->app, "eth0", &f->vip4, &f->vip6),
				 -EAFNOSUPPORT);
	} else {
		assert_int_equal(netns_call(f->app, disable_ipv6, NULL), 0);
		add_veth(f);
		assert_int_equal(netns_configure(f->app, "eth0", &f->vip4, &f->vip6), -EACCES);
	}
	assert_int_equal(netns_configure(f->app, "eth0", &f->vip4, &none), 0);
	assert_int_equal(nl_link_wait_up(f->nl, f->ifindex, 1000), 0);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host4, 32), 0);
	add_host_route(f, &f->vip4);
	check_traffic(f->host, f->app, &f->host4, &f->vip4);
}

static struct nl_route local_route(const char *dst, unsigned len, const struct ax_addr *prefsrc)
{
	struct nl_route r = {.dst = {.addr = ns_addr(dst), .len = len},
			     .local = true,
			     .ifindex = 1,
			     .metric = METRIC};

	if (prefsrc)
		r.prefsrc = *prefsrc;
	return r;
}

/* A VIP that is only a local route: served, and a client that does not choose a source has the
 * preferred one. */
static void test_anyip(void **state)
{
	struct fixture *f = *state;
	struct nl_route host4 = local_route("10.99.0.1", 128, NULL);
	struct nl_route vip4 = local_route("1.2.3.4", 128, &f->host4);
	struct nl_route vip6 = local_route("fd00:99::1234", 128, &f->host6);

	/* for IPv4 the preferred source may be a local route as well */
	assert_int_equal(nl_route_add(f->nl, &host4), 0);
	assert_int_equal(nl_route_add(f->nl, &vip4), 0);
	check_traffic(f->host, f->host, &f->vip4, &f->host4);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host6, 128), 0);
	assert_int_equal(nl_route_add(f->nl, &vip6), 0);
	check_traffic(f->host, f->host, &f->vip6, &f->host6);
}

/* An address answers as soon as it was added, and no more once it was deleted. */
static void test_addresses(void **state)
{
	struct fixture *f = *state;
	const struct ax_addr *a[] = {&f->host4, &f->host6};

	for (int i = 0; i < 2; i++) {
		struct ax_addr seen;

		assert_int_equal(nl_addr_add(f->nl, 1, a[i], 128), 0);
		check_traffic(f->host, f->host, a[i], a[i]);
		assert_int_equal(nl_addr_add(f->nl, 1, a[i], 128), 0);
		assert_int_equal(nl_addr_del(f->nl, 1, a[i], 128), 0);
		assert_int_equal(nl_addr_del(f->nl, 1, a[i], 128), -EADDRNOTAVAIL);
		assert_int_equal(ns_tcp(f->host, f->host, a[i], &seen), -ENETUNREACH);
	}
	assert_int_equal(nl_addr_add(f->nl, 4711, &f->host4, 32), -ENODEV);
}

static int see_prefsrc(void *arg, const struct nl_route *r)
{
	if (!addr_is_v4(&r->dst.addr))
		*(struct ax_addr *)arg = r->prefsrc;
	return 0;
}

/* The kernel refuses an IPv6 source that no interface has: the route is made all the same. */
static void test_anyip6_without_source(void **state)
{
	struct fixture *f = *state;
	struct nl_route vip6 = local_route("fd00:99::1234", 128, &f->host6);
	struct ax_addr prefsrc = f->vip4, seen;

	assert_int_equal(nl_route_add(f->nl, &vip6), 0);
	assert_int_equal(nl_route_each(f->nl, METRIC, see_prefsrc, &prefsrc), 0);
	assert_true(addr_is_zero(&prefsrc));
	assert_int_equal(ns_tcp(f->host, f->host, &f->vip6, &seen), 0);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host6, 128), 0);
	/* adding again gives it the source that was not there before */
	assert_int_equal(nl_route_add(f->nl, &vip6), 0);
	assert_int_equal(nl_route_each(f->nl, METRIC, see_prefsrc, &prefsrc), 0);
	assert_true(addr_eq(&prefsrc, &f->host6));
	assert_int_equal(nl_route_del(f->nl, &vip6), 0);
	assert_int_equal(nl_route_del(f->nl, &vip6), -ESRCH);
}

static void test_local_prefix(void **state)
{
	struct fixture *f = *state;
	struct nl_route anchor = local_route("fd00:aa::", 96, NULL);
	struct nl_route net4 = local_route("10.200.0.0", 96 + 16, NULL);
	const struct ax_addr in6 = ns_addr("fd00:aa::1:2"), out6 = ns_addr("fd00:aa::1:0:0");
	const struct ax_addr in4 = ns_addr("10.200.7.7"), out4 = ns_addr("10.201.0.1");
	struct ax_addr seen;

	assert_int_equal(nl_route_add(f->nl, &anchor), 0);
	assert_int_equal(nl_route_add(f->nl, &net4), 0);
	assert_int_equal(ns_tcp(f->host, f->host, &in6, &seen), 0);
	assert_int_equal(ns_tcp(f->host, f->host, &in4, &seen), 0);
	assert_int_equal(ns_connect(f->host, SOCK_STREAM, &out6, htons(1)), -ENETUNREACH);
	assert_int_equal(ns_connect(f->host, SOCK_STREAM, &out4, htons(1)), -ENETUNREACH);
	anchor.dst.len = 129;
	assert_int_equal(nl_route_add(f->nl, &anchor), -EINVAL);
	net4.dst.len = 95;
	assert_int_equal(nl_route_add(f->nl, &net4), -EINVAL);
}

struct found {
	const struct nl_route *want;
	bool *seen;
	size_t n, strangers;
};

static bool same_route(const struct nl_route *a, const struct nl_route *b)
{
	return a->v4_default == b->v4_default && a->v6_default == b->v6_default &&
	       a->dst.len == b->dst.len && addr_eq(&a->dst.addr, &b->dst.addr) &&
	       a->local == b->local && a->ifindex == b->ifindex && a->metric == b->metric &&
	       addr_eq(&a->prefsrc, &b->prefsrc);
}

static int find_route(void *arg, const struct nl_route *r)
{
	struct found *f = arg;

	for (size_t i = 0; i < f->n; i++)
		if (!f->seen[i] && same_route(&f->want[i], r)) {
			f->seen[i] = true;
			return 0;
		}
	f->strangers++;
	return 0;
}

/* A route that is not ours although it has our metric. */
static int add_foreign_route(void *arg)
{
	(void)arg;
	return system("ip route add local 9.9.9.9/32 dev lo table local proto static metric "
		      "1193046 "
		      "&& ip -6 route add local fd00:9::9/128 dev lo table local proto static "
		      "metric 1193046")
		       ? -EIO
		       : 0;
}

static void test_route_each(void **state)
{
	struct fixture *f = *state;
	struct nl_route other = local_route("7.7.7.7", 128, NULL);
	bool seen[6] = {0};
	struct found found = {.seen = seen, .n = 6};

	connect_app(f);
	const struct nl_route want[6] = {
		{.dst = whole(&f->vip4), .ifindex = f->ifindex, .metric = METRIC},
		{.dst = whole(&f->vip6), .ifindex = f->ifindex, .metric = METRIC},
		local_route("10.200.0.0", 96 + 16, &f->host4),
		local_route("fd00:aa::", 96, &f->host6),
		{.v4_default = true, .ifindex = f->ifindex, .metric = METRIC},
		{.v6_default = true, .ifindex = f->ifindex, .metric = METRIC},
	};

	found.want = want;
	for (int i = 0; i < 6; i++)
		assert_int_equal(nl_route_add(f->nl, &want[i]), 0);
	/* again: not an error, and nothing doubled */
	for (int i = 0; i < 6; i++)
		assert_int_equal(nl_route_add(f->nl, &want[i]), 0);
	other.metric = METRIC + 1;
	assert_int_equal(nl_route_add(f->nl, &other), 0);
	assert_int_equal(netns_call(f->host, add_foreign_route, NULL), 0);
	assert_int_equal(nl_route_each(f->nl, METRIC, find_route, &found), 0);
	for (int i = 0; i < 6; i++)
		assert_true(seen[i]);
	assert_int_equal(found.strangers, 0);

	for (int i = 0; i < 6; i++) {
		assert_int_equal(nl_route_del(f->nl, &want[i]), 0);
		assert_int_equal(nl_route_del(f->nl, &want[i]), -ESRCH);
	}
	found = (struct found){.want = want, .seen = seen};
	assert_int_equal(nl_route_each(f->nl, METRIC, find_route, &found), 0);
	assert_int_equal(found.strangers, 0);
}

static int delete_route(void *arg, const struct nl_route *r)
{
	return nl_route_del(arg, r);
}

/* A route that changes its device or source is replaced, not doubled. */
static void test_route_replace(void **state)
{
	struct fixture *f = *state;
	bool seen[1] = {0};
	struct nl_route r = local_route("1.2.3.4", 128, NULL), no_metric = r;
	struct found found = {.want = &r, .seen = seen, .n = 1};

	add_veth(f);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host4, 32), 0);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host4, 128), 0);
	assert_int_equal(nl_route_add(f->nl, &r), 0);
	r.prefsrc = f->host4;
	assert_int_equal(nl_route_add(f->nl, &r), 0);
	assert_int_equal(nl_route_each(f->nl, METRIC, find_route, &found), 0);
	assert_true(seen[0]);
	assert_int_equal(found.strangers, 0);
	no_metric.metric = 0;
	assert_int_equal(nl_route_add(f->nl, &no_metric), 0);
	assert_int_equal(nl_route_add(f->nl, &no_metric), 0);
	/* deleting while they are listed */
	assert_int_equal(nl_route_each(f->nl, METRIC, delete_route, f->nl), 0);
	assert_int_equal(nl_route_del(f->nl, &r), -ESRCH);
	assert_int_equal(nl_route_del(f->nl, &no_metric), 0);
}

static int count_route(void *arg, const struct nl_route *r)
{
	(void)r;
	++*(size_t *)arg;
	return 0;
}

static size_t count_routes(struct fixture *f)
{
	size_t n = 0;

	assert_int_equal(nl_route_each(f->nl, METRIC, count_route, &n), 0);
	return n;
}

static double us_since(uint64_t start, size_t n)
{
	return (double)(time_mono_ns() - start) / 1000 / (double)n;
}

static void many_routes(struct fixture *f, struct nl_route *r, const char *what)
{
	autofree int *errs = calloc(N_ROUTES, sizeof(*errs));
	uint64_t t = time_mono_ns();

	assert_non_null(errs);
	for (size_t i = 0; i < N_ROUTES; i++)
		assert_int_equal(nl_route_add(f->nl, &r[i]), 0);
	print_message("# %s: %.1f us per route added alone\n", what, us_since(t, N_ROUTES));
	t = time_mono_ns();
	assert_int_equal(count_routes(f), N_ROUTES);
	print_message("# %s: %.2f us per route listed\n", what, us_since(t, N_ROUTES));
	t = time_mono_ns();
	assert_int_equal(nl_route_del_many(f->nl, r, N_ROUTES, errs), 0);
	print_message("# %s: %.1f us per route deleted together\n", what, us_since(t, N_ROUTES));
	assert_int_equal(count_routes(f), 0);
	t = time_mono_ns();
	assert_int_equal(nl_route_add_many(f->nl, r, N_ROUTES, errs), 0);
	print_message("# %s: %.1f us per route added together\n", what, us_since(t, N_ROUTES));
	assert_int_equal(count_routes(f), N_ROUTES);

	/* One that is wrong is told, and no other suffers. */
	assert_int_equal(nl_route_del(f->nl, &r[777]), 0);
	assert_int_equal(nl_route_del_many(f->nl, r, N_ROUTES, errs), -ESRCH);
	for (size_t i = 0; i < N_ROUTES; i++)
		assert_int_equal(errs[i], i == 777 ? -ESRCH : 0);
	assert_int_equal(count_routes(f), 0);
}

static void test_many_routes(void **state)
{
	struct fixture *f = *state;
	autofree struct nl_route *r = calloc(N_ROUTES, sizeof(*r));

	assert_non_null(r);
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host4, 32), 0);
	for (uint32_t i = 0; i < N_ROUTES; i++) {
		r[i] = local_route("10.200.0.0", 128, &f->host4);
		r[i].dst.addr.w[3] = htonl(0x0ac80000 + i);
	}
	many_routes(f, r, "IPv4");
	/* host6 is no address yet: every one takes the second attempt */
	for (uint32_t i = 0; i < N_ROUTES; i++) {
		r[i] = local_route("fd00:aa::", 128, &f->host6);
		r[i].dst.addr.w[3] = htonl(i);
	}
	many_routes(f, r, "IPv6 with a source that is refused");
	assert_int_equal(nl_addr_add(f->nl, 1, &f->host6, 128), 0);
	many_routes(f, r, "IPv6");
}

static int own_cookie(void *arg)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(uint64_t);

	/* SO_NETNS_COOKIE, which the C library's headers may lack */
	return fd < 0 || getsockopt(fd, SOL_SOCKET, 71, arg, &len) < 0 ? -errno : 17;
}

static void test_netns(void **state)
{
	struct fixture *f = *state;
	uint64_t here, host, app, inside, back;
	autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC), self = -1, other = ns_new();

	assert_int_equal(own_cookie(&here), 17);
	assert_int_equal(netns_cookie(f->host, &host), 0);
	assert_int_equal(netns_cookie(f->app, &app), 0);
	assert_true(host != app && host != here && app != here);
	assert_int_equal(netns_call(f->app, own_cookie, &inside), 17);
	assert_true(inside == app);
	assert_int_equal(own_cookie(&back), 17);
	assert_true(back == here);
	assert_true(netns_cookie(null, &back) < 0);
	assert_int_equal(netns_cookie(-1, &back), -EBADF);

	/* A thread that moves comes back to where it was last. */
	self = ns_current();
	assert_return_code(setns(other, CLONE_NEWNET), errno);
	assert_int_equal(netns_call(f->app, own_cookie, &inside), 17);
	assert_int_equal(own_cookie(&back), 17);
	assert_true(back != here && back != app);
	assert_return_code(setns(self, CLONE_NEWNET), errno);
}

static int by_value(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

/* For the record: what a launch spends here. */
static void test_time(void **state)
{
	enum { ROUNDS = 31 };
	double add[ROUNDS], configure[ROUNDS], wait[ROUNDS];
	struct fixture *f = *state;

	for (int i = 0; i < ROUNDS; i++) {
		autoclose int app = ns_new();
		uint64_t t = time_mono_ns();

		assert_int_equal(nl_link_add_veth(f->nl, "axt-9", "eth0", app, mac, 0, &f->ifindex),
				 0);
		add[i] = us_since(t, 1);
		t = time_mono_ns();
		assert_int_equal(netns_configure(app, "eth0", &f->vip4, &f->vip6), 0);
		configure[i] = us_since(t, 1);
		t = time_mono_ns();
		assert_int_equal(nl_link_wait_up(f->nl, f->ifindex, 1000), 0);
		wait[i] = us_since(t, 1);
		assert_int_equal(nl_link_del(f->nl, f->ifindex), 0);
	}
	qsort(add, ROUNDS, sizeof(*add), by_value);
	qsort(configure, ROUNDS, sizeof(*add), by_value);
	qsort(wait, ROUNDS, sizeof(*add), by_value);
	print_message("# median of %d: nl_link_add_veth %.0f us, netns_configure %.0f us, "
		      "nl_link_wait_up %.0f us\n",
		      ROUNDS, add[ROUNDS / 2], configure[ROUNDS / 2], wait[ROUNDS / 2]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_veth),	 TEST(test_veth_errors), TEST(test_link_each),
		TEST(test_traffic),	 TEST(test_one_family),	 TEST(test_ipv6_disabled),
		TEST(test_addresses),	 TEST(test_anyip),	 TEST(test_anyip6_without_source),
		TEST(test_local_prefix), TEST(test_route_each),	 TEST(test_route_replace),
		TEST(test_many_routes),	 TEST(test_netns),	 TEST(test_time),
	};

	/* Nothing here is meant for the namespace that the test was started in. */
	if (unshare(CLONE_NEWNET) < 0) {
		perror("unshare(CLONE_NEWNET); the test needs root");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
