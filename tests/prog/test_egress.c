/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Egress through a namespace that stands for the host: app - host - outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>

#include "net/egress.h"
#include "tests/lib/netns.h"

#define METRIC	77
#define MANY	5000
#define FORWARD "/proc/sys/net/ipv4/ip_forward"
#define CONF6	"/proc/sys/net/ipv6/conf/"

static const uint8_t app_mac[6] = {0x02, 0x61, 0x78, 0x00, 0x00, 0x01};
static const uint8_t out_mac[6] = {0x02, 0x61, 0x78, 0x00, 0x00, 0x02};

struct fixture {
	struct instance inst, other;
	char dir[32]; /* of the instances' run_dirs */
	int host, app, outside;
	struct nl *nl, *out_nl;
	unsigned app_if, out_if;
	struct ax_addr vip[2], host_addr[2], out[2]; /* IPv4, IPv6 */
};

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->nl)
		nl_close(f->nl);
	if (f->out_nl)
		nl_close(f->out_nl);
	close(f->host);
	close(f->app);
	close(f->outside);
	if (*f->dir)
		nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static int add_route(struct nl *nl, const struct ax_addr *to, unsigned ifindex)
{
	struct nl_route r = {
		.dst = {.addr = *to, .len = 128}, .ifindex = ifindex, .metric = METRIC};

	return nl_route_add(nl, &r);
}

static int addresses(struct fixture *f)
{
	f->vip[0] = ns_addr("1.2.3.4");
	f->vip[1] = ns_addr("fd00:99::1234");
	f->host_addr[0] = ns_addr("10.99.0.1");
	f->host_addr[1] = ns_addr("fd00:99::1");
	f->out[0] = ns_addr("192.0.2.80");
	f->out[1] = ns_addr("2001:db8::80");
	return 0;
}

static int ungroup(void *name)
{
	char command[64];

	snprintf(command, sizeof(command), "ip link set %s group default", (const char *)name);
	return system(command) == 0 ? 0 : -EIO;
}

/* Outside knows the way to the host, not to the app. */
static int connect_namespaces(struct fixture *f)
{
	unsigned far;
	int r = nl_link_set_up(f->nl, 1);

	r = r ? r : nl_link_add_veth(f->nl, "axt-1", "eth0", f->app, app_mac, 0, &f->app_if);
	r = r ? r : nl_link_add_veth(f->nl, "wan0", "eth0", f->outside, out_mac, 0, &f->out_if);
	/* that one is nothing of ax's */
	r = r ? r : netns_call(f->host, ungroup, "wan0");
	r = r ? r : netns_configure(f->app, "eth0", &f->vip[0], &f->vip[1]);
	r = r ? r : netns_configure(f->outside, "eth0", &f->out[0], &f->out[1]);
	r = r ? r : ns_open_nl(f->outside, &f->out_nl);
	r = r ? r : nl_link_index(f->out_nl, "eth0", &far);
	for (int i = 0; i < 2 && !r; i++) {
		struct nl_route all = {.v4_default = i == 0, .v6_default = i == 1, .ifindex = far};

		r = nl_route_del(f->out_nl, &all);
		r = r ? r : add_route(f->out_nl, &f->host_addr[i], far);
		r = r ? r : nl_addr_add(f->nl, f->out_if, &f->host_addr[i], i ? 128 : 32);
		r = r ? r : add_route(f->nl, &f->vip[i], f->app_if);
		r = r ? r : add_route(f->nl, &f->out[i], f->out_if);
	}
	r = r ? r : nl_link_wait_up(f->nl, f->app_if, 1000);
	r = r ? r : nl_link_wait_up(f->nl, f->out_if, 1000);
	return r;
}

static int instance_at(struct instance *inst, const char *name, const char *dir)
{
	int r = instance_init(inst, name, NULL);

	snprintf(inst->run_dir, sizeof(inst->run_dir), "%s/%s", dir, name);
	return r;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	*state = f;
	snprintf(f->dir, sizeof(f->dir), "/tmp/ax-egress-XXXXXX");
	if (!mkdtemp(f->dir)) {
		*f->dir = '\0';
		return -1;
	}
	f->host = ns_new();
	f->app = ns_new();
	f->outside = ns_new();
	if (f->host < 0 || f->app < 0 || f->outside < 0 || ns_open_nl(f->host, &f->nl))
		return -1;
	if (instance_at(&f->inst, "axt", f->dir) || instance_at(&f->other, "bxt", f->dir))
		return -1;
	return addresses(f) || connect_namespaces(f) ? -1 : 0;
}

struct egress_args {
	const struct instance *inst;
	const struct ax_addr *addrs;
	size_t n;
	struct error e;
	const struct prefix *nodes;
	size_t n_nodes;
};
static int egress_call(void *arg)
{
	struct egress_args *a = arg;

	autofree struct egress_addr *list = calloc(a->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < a->n; i++)
		list[i].addr = a->addrs[i];
	return egress_set(a->inst, list, a->n, a->nodes, a->n_nodes, NULL, &a->e);
}
static void set_egress(struct fixture *f, const struct instance *inst, const struct ax_addr *addrs,
		       size_t n)
{
	struct egress_args a = {.inst = inst, .addrs = addrs, .n = n};

	if (netns_call(f->host, egress_call, &a))
		fail_msg("%s", a.e.text);
	assert_int_equal(a.e.code, 0);
}

struct sysctl {
	const char *path, *set;
	int value;
};
static int sysctl_call(void *arg)
{
	struct sysctl *s = arg;
	autofree char *text = NULL;

	if (s->set)
		return file_write(s->path, s->set);
	s->value = file_read(s->path, 64, &text) ? -1 : atoi(text);
	return 0;
}
static int host_sysctl(struct fixture *f, const char *path)
{
	struct sysctl s = {.path = path};

	assert_int_equal(netns_call(f->host, sysctl_call, &s), 0);
	return s.value;
}
static void set_host_sysctl(struct fixture *f, const char *path, const char *value)
{
	struct sysctl s = {.path = path, .set = value};

	assert_int_equal(netns_call(f->host, sysctl_call, &s), 0);
}

static int count_tables(void *arg)
{
	FILE *p = popen("nft list tables", "r");
	char line[128];
	int n = 0;

	while (p && fgets(line, sizeof(line), p))
		n += strncmp(line, arg, strlen(arg)) == 0;
	return p && pclose(p) == 0 ? n : -EIO;
}
static int tables(struct fixture *f, const char *which)
{
	char line[64];

	snprintf(line, sizeof(line), "table inet %s\n", which);
	return netns_call(f->host, count_tables, line);
}

static bool file_exists(const struct instance *inst)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/forwarding", inst->run_dir);
	return access(path, F_OK) == 0;
}

static void assert_reaches(struct fixture *f, int i)
{
	struct ax_addr seen;

	assert_int_equal(ns_tcp(f->outside, f->app, &f->out[i], &seen), 0);
	assert_true(addr_eq(&seen, &f->host_addr[i]));
	assert_int_equal(ns_udp(f->outside, f->app, &f->out[i], &seen), 0);
	assert_true(addr_eq(&seen, &f->host_addr[i]));
	assert_int_equal(ns_ping(f->app, &f->out[i]), 0);
}

static void assert_no_way_out(struct fixture *f, int i)
{
	struct ax_addr seen;

	assert_true(ns_tcp(f->outside, f->app, &f->out[i], &seen) < 0);
	assert_true(ns_udp(f->outside, f->app, &f->out[i], &seen) < 0);
}

static void test_both_families(void **state)
{
	struct fixture *f = *state;

	assert_no_way_out(f, 0);
	assert_no_way_out(f, 1);
	set_egress(f, &f->inst, f->vip, 2);
	assert_reaches(f, 0);
	assert_reaches(f, 1);
	/* the same again, and the host reaches both as before */
	set_egress(f, &f->inst, f->vip, 2);
	assert_reaches(f, 0);
	assert_reaches(f, 1);
	assert_int_equal(tables(f, "ax_axt"), 1);
	assert_int_equal(host_sysctl(f, FORWARD), 1);
	assert_int_equal(host_sysctl(f, CONF6 "all/forwarding"), 1);
	assert_true(file_exists(&f->inst));

	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(tables(f, "ax_axt"), 0);
	assert_int_equal(host_sysctl(f, FORWARD), 0);
	assert_int_equal(host_sysctl(f, CONF6 "all/forwarding"), 0);
	assert_false(file_exists(&f->inst));
	assert_no_way_out(f, 0);
	assert_no_way_out(f, 1);
	set_egress(f, &f->inst, NULL, 0);
}

/* An address that leaves the set loses its way at once, the other family keeps its own. */
static void test_replace(void **state)
{
	const struct ax_addr stranger = ns_addr("1.2.3.5");
	struct fixture *f = *state;
	struct ax_addr set[2] = {stranger, f->vip[1]};

	set_egress(f, &f->inst, f->vip, 2);
	assert_reaches(f, 0);
	set_egress(f, &f->inst, set, 2);
	/* forwarded, but with a source that outside cannot answer */
	assert_no_way_out(f, 0);
	assert_reaches(f, 1);
	set_egress(f, &f->inst, f->vip, 1);
	assert_reaches(f, 0);
	assert_no_way_out(f, 1);
}

/* Between the instance's own interfaces nothing is translated. */
static void test_not_between_apps(void **state)
{
	struct fixture *f = *state;
	autoclose int app2 = ns_new();
	const struct ax_addr vip2 = ns_addr("1.2.3.9"), none = {0};
	struct ax_addr seen;
	unsigned ifindex;

	assert_int_equal(nl_link_add_veth(f->nl, "axt-2", "eth0", app2, app_mac, 0, &ifindex), 0);
	assert_int_equal(netns_configure(app2, "eth0", &vip2, &none), 0);
	assert_int_equal(nl_link_wait_up(f->nl, ifindex, 1000), 0);
	assert_int_equal(add_route(f->nl, &vip2, ifindex), 0);
	set_egress(f, &f->inst, f->vip, 2);
	assert_int_equal(ns_tcp(app2, f->app, &vip2, &seen), 0);
	assert_true(addr_eq(&seen, &f->vip[0]));
	/* nor towards the host itself, nor what the host sends by lo */
	assert_int_equal(ns_tcp(f->host, f->app, &f->host_addr[0], &seen), 0);
	assert_true(addr_eq(&seen, &f->vip[0]));
	set_egress(f, &f->inst, f->host_addr, 2);
	assert_int_equal(ns_tcp(f->host, f->host, &f->host_addr[0], &seen), 0);
	assert_true(addr_eq(&seen, &f->host_addr[0]));
}

/* Apps of other nodes: what goes there is not masqueraded, and what comes from there is forwarded,
 * of the families of which they are. */
static void test_nodes(void **state)
{
	struct fixture *f = *state;
	const struct prefix nodes[] = {{.addr = ns_addr("192.0.2.0"), .len = 96 + 24},
				       {.addr = ns_addr("2001:db8::"), .len = 48}};
	struct egress_args a = {
		.inst = &f->inst, .addrs = f->vip, .n = 2, .nodes = nodes, .n_nodes = 2};
	struct ax_addr seen;
	unsigned far;

	assert_int_equal(nl_link_index(f->out_nl, "eth0", &far), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(add_route(f->out_nl, &f->vip[i], far), 0);
	assert_int_equal(netns_call(f->host, egress_call, &a), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ns_tcp(f->outside, f->app, &f->out[i], &seen), 0);
		assert_true(addr_eq(&seen, &f->vip[i]));
		assert_int_equal(ns_tcp(f->app, f->outside, &f->vip[i], &seen), 0);
		assert_true(addr_eq(&seen, &f->out[i]));
	}
	/* nodes of one family alone, and no app that leaves: the other is not forwarded */
	set_egress(f, &f->inst, NULL, 0);
	a.n = 0;
	a.n_nodes = 1;
	a.nodes = &nodes[1];
	assert_int_equal(netns_call(f->host, egress_call, &a), 0);
	assert_int_equal(host_sysctl(f, FORWARD), 0);
	assert_int_equal(ns_tcp(f->app, f->outside, &f->vip[1], &seen), 0);
	assert_true(ns_tcp(f->app, f->outside, &f->vip[0], &seen) < 0);
}

static void test_forwarding_was_on(void **state)
{
	struct fixture *f = *state;

	set_host_sysctl(f, FORWARD, "1\n");
	set_egress(f, &f->inst, f->vip, 2);
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(host_sysctl(f, FORWARD), 1);
	assert_int_equal(host_sysctl(f, CONF6 "all/forwarding"), 0);
	/* and what somebody else changed meanwhile is left alone */
	set_host_sysctl(f, FORWARD, "0\n");
	set_egress(f, &f->inst, f->vip, 1);
	set_host_sysctl(f, FORWARD, "0\n");
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(host_sysctl(f, FORWARD), 0);
}

static void test_router_advertisements(void **state)
{
	struct fixture *f = *state;

	set_host_sysctl(f, CONF6 "wan0/accept_ra", "1\n");
	set_host_sysctl(f, CONF6 "axt-1/accept_ra", "1\n");
	set_egress(f, &f->inst, f->vip, 1);
	assert_int_equal(host_sysctl(f, CONF6 "wan0/accept_ra"), 1);
	set_egress(f, &f->inst, f->vip, 2);
	assert_int_equal(host_sysctl(f, CONF6 "wan0/accept_ra"), 2);
	assert_int_equal(host_sysctl(f, CONF6 "axt-1/accept_ra"), 1);
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(host_sysctl(f, CONF6 "wan0/accept_ra"), 1);

	/* an administrator's 0 stays, an interface that went away does not matter */
	set_host_sysctl(f, CONF6 "axt-1/accept_ra", "0\n");
	set_egress(f, &f->inst, f->vip, 2);
	assert_int_equal(nl_link_del(f->nl, f->out_if), 0);
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(host_sysctl(f, CONF6 "axt-1/accept_ra"), 0);
	assert_int_equal(host_sysctl(f, CONF6 "all/forwarding"), 0);
	assert_false(file_exists(&f->inst));
}

/* Outside finds the app, or what is behind the host's other interface, only where an administrator
 * has made the host a router. */
static void test_not_a_router(void **state)
{
	struct fixture *f = *state;
	const struct ax_addr beyond[2] = {ns_addr("203.0.113.9"), ns_addr("2001:db8:7::9")};
	autoclose int other = ns_new();
	struct ax_addr seen;
	unsigned ifindex, far;

	assert_int_equal(nl_link_add_veth(f->nl, "wan1", "eth0", other, out_mac, 0, &ifindex), 0);
	assert_int_equal(netns_call(f->host, ungroup, "wan1"), 0);
	assert_int_equal(netns_configure(other, "eth0", &beyond[0], &beyond[1]), 0);
	assert_int_equal(nl_link_wait_up(f->nl, ifindex, 1000), 0);
	assert_int_equal(nl_link_index(f->out_nl, "eth0", &far), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(add_route(f->nl, &beyond[i], ifindex), 0);
		assert_int_equal(add_route(f->out_nl, &beyond[i], far), 0);
		assert_int_equal(add_route(f->out_nl, &f->vip[i], far), 0);
	}
	set_egress(f, &f->inst, f->vip, 2);
	set_egress(f, &f->other, f->vip, 1);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			assert_reaches(f, i);
			assert_true(ns_tcp(other, f->outside, &beyond[i], &seen) < 0);
			assert_true(ns_udp(other, f->outside, &beyond[i], &seen) < 0);
			assert_true(ns_tcp(f->app, f->outside, &f->vip[i], &seen) < 0);
			assert_true(ns_udp(f->app, f->outside, &f->vip[i], &seen) < 0);
		}
		/* the one that goes leaves the guard to the other one */
		set_egress(f, &f->other, round ? NULL : f->vip, round ? 0 : 2);
	}
	assert_int_equal(tables(f, "ax-forwarding"), 1);
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(tables(f, "ax-forwarding"), 0);

	set_host_sysctl(f, FORWARD, "1\n");
	set_egress(f, &f->inst, f->vip, 2);
	assert_int_equal(ns_tcp(other, f->outside, &beyond[0], &seen), 0);
	assert_int_equal(ns_tcp(f->app, f->outside, &f->vip[0], &seen), 0);
	assert_true(ns_tcp(other, f->outside, &beyond[1], &seen) < 0);
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(ns_tcp(other, f->outside, &beyond[0], &seen), 0);
}

/* Forwarding stays on until the last instance needs it no more, and then goes back. */
static void test_two_instances(void **state)
{
	struct fixture *f = *state;
	const struct ax_addr other = ns_addr("1.2.3.5");

	set_egress(f, &f->inst, f->vip, 2);
	set_egress(f, &f->other, &other, 1);
	assert_int_equal(tables(f, "ax_axt") + tables(f, "ax_bxt"), 2);
	set_egress(f, &f->inst, NULL, 0);
	assert_int_equal(tables(f, "ax_axt"), 0);
	assert_int_equal(tables(f, "ax_bxt"), 1);
	assert_false(file_exists(&f->inst));
	assert_int_equal(host_sysctl(f, FORWARD), 1);
	assert_int_equal(host_sysctl(f, CONF6 "all/forwarding"), 1);
	set_egress(f, &f->other, NULL, 0);
	assert_int_equal(host_sysctl(f, FORWARD), 0);
	assert_int_equal(host_sysctl(f, CONF6 "all/forwarding"), 0);
	assert_int_equal(tables(f, "ax_bxt"), 0);
	assert_false(file_exists(&f->other));
}

/* More than one message of elements and more than the usual socket buffer takes. */
static void test_many_addresses(void **state)
{
	struct fixture *f = *state;
	autofree struct ax_addr *a = calloc(2 * MANY, sizeof(*a));
	uint64_t t;

	assert_non_null(a);
	for (uint32_t i = 0; i < MANY; i++) {
		a[2 * i] = addr_from_v4(htonl(0x0a000000 + i));
		a[2 * i + 1] = ns_addr("fd00:aa::");
		a[2 * i + 1].w[3] = htonl(i);
	}
	a[2 * MANY - 2] = f->vip[0];
	a[2 * MANY - 1] = f->vip[1];
	a[0] = a[2]; /* one address twice */
	t = time_mono_ns();
	set_egress(f, &f->inst, a, 2 * MANY);
	print_message("# egress_set of %d addresses: %.1f ms\n", 2 * MANY,
		      (double)(time_mono_ns() - t) / 1e6);
	assert_reaches(f, 0);
	assert_reaches(f, 1);
	set_egress(f, &f->inst, a, 2 * MANY);
	assert_reaches(f, 0);
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	struct egress_args a = {.inst = &f->other, .addrs = f->vip, .n = 1};
	char blocked[80];
	autoclose int fd = -1;

	/* Something is in the way of the instance's directory. */
	snprintf(blocked, sizeof(blocked), "%s/bxt", f->dir);
	fd = open(blocked, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(netns_call(f->host, egress_call, &a) < 0);
	assert_true(a.e.code < 0);
	assert_non_null(strstr(a.e.text, f->dir));
	assert_int_equal(host_sysctl(f, FORWARD), 0);
	assert_int_equal(unlink(blocked), 0);
	a.n = 0;
	assert_int_equal(netns_call(f->host, egress_call, &a), 0);
	assert_int_equal(tables(f, "ax_bxt"), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_families),     TEST(test_replace),
		TEST(test_not_between_apps),  TEST(test_nodes),
		TEST(test_forwarding_was_on), TEST(test_router_advertisements),
		TEST(test_two_instances),     TEST(test_not_a_router),
		TEST(test_many_addresses),    TEST(test_errors),
	};

	/* Nothing here is meant for the namespace that the test was started in. */
	if (unshare(CLONE_NEWNET) < 0) {
		perror("unshare(CLONE_NEWNET); the test needs root");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
