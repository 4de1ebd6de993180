/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
// timeout: 300
/* Loading, pinning, taking over and removing the dataplane, and its tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/address.h"
#include "machine/cgroup.h"
#include "datapath/datapath.h"
#include "tests/lib/dataplane.h"
#include "tests/lib/instance.h"

/* --- pins --- */

static int count_pins(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	int n = 0;

	if (!d)
		return -errno;
	while ((de = readdir(d)))
		n += starts_with(de->d_name, prefix);
	closedir(d);
	return n;
}

static uint32_t count_attached(enum bpf_attach_type type)
{
	autoclose int fd = open(own.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t n = 0;

	assert_true(fd >= 0);
	assert_int_equal(bpf_prog_query(fd, type, 0, NULL, NULL, &n), 0);
	return n;
}

/* The kernel detaches a link some time after its last pin was removed. */
static void assert_attached(enum bpf_attach_type type, uint32_t n)
{
	for (int tries = 0; tries < 1000 && count_attached(type) != n; tries++)
		usleep(2000);
	assert_int_equal(count_attached(type), n);
}

static size_t programs_that_are_off(void)
{
	const struct feature_report *r;
	size_t n = datapath_features(own.dp, &r), off = 0;

	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(*r[i].name && *r[i].cost && *r[i].needs);
		if (r[i].on)
			continue;
		print_message("# %s is off: %s\n", r[i].name, r[i].why);
		off++;
	}
	return off;
}

static void test_fresh(void **state)
{
	(void)state;
	dataplane_open(true);
	assert_true(count_pins(own.pins, "map_") >= 13);
	assert_true(count_pins(own.pins, "link_ax_") >= 17);
	assert_int_equal(count_pins(own.staging, ""), -ENOENT);
	assert_int_equal(programs_that_are_off(), 0);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 1);
	assert_attached(BPF_CGROUP_SOCK_OPS, 1);
	assert_true(datapath_program_fd(own.dp, "ax_connect4") >= 0);
	assert_true(datapath_program_fd(own.dp, "no_such") < 0);
}

static uint32_t attached_program(void)
{
	autoclose int fd = open(own.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t id = 0, n = 1;

	assert_true(fd >= 0);
	assert_int_equal(bpf_prog_query(fd, BPF_CGROUP_INET4_CONNECT, 0, NULL, &id, &n), 0);
	assert_int_equal(n, 1);
	return id;
}

static uint32_t own_program(void)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	assert_int_equal(
		bpf_obj_get_info_by_fd(datapath_program_fd(own.dp, "ax_connect4"), &info, &len), 0);
	return info.id;
}

static void test_takeover(void **state)
{
	const struct ax_addr addr = {.b = {0xfd, [15] = 7}};
	struct ax_vip v = {.kind = AX_VIP_APP, .id = 7, .party = 3}, got;
	int links, maps;
	uint32_t before;

	(void)state;
	dataplane_open(true);
	links = count_pins(own.pins, "link_");
	maps = count_pins(own.pins, "map_");
	before = attached_program();
	assert_int_equal(before, own_program());
	assert_int_equal(datapath_vip_set(own.dp, &addr, &v), 0);
	for (int i = 0; i < 2; i++) {
		dataplane_reopen();
		assert_int_equal(datapath_vip_get(own.dp, &addr, &got), 0);
		assert_memory_equal(&got, &v, sizeof(v));
		assert_int_equal(count_pins(own.pins, "link_"), links);
		assert_int_equal(count_pins(own.pins, "map_"), maps);
		/* the new program is under the old link, not beside the old program */
		assert_attached(BPF_CGROUP_INET4_CONNECT, 1);
		assert_int_not_equal(attached_program(), before);
		assert_int_equal(attached_program(), own_program());
		before = attached_program();
	}
	/* without an agent it stays attached */
	datapath_close(own.dp);
	own.dp = NULL;
	assert_int_equal(attached_program(), before);
	assert_int_equal(datapath_remove(&own.inst, NULL), 0);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 0);
}

/* A link that lost its pin is made anew. */
static void test_link_is_replaced(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/link_ax_connect4", own.pins);
	assert_int_equal(unlink(path), 0);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 0);
	dataplane_reopen();
	assert_attached(BPF_CGROUP_INET4_CONNECT, 1);
	assert_int_equal(access(path, F_OK), 0);
}

/* The agent that made the pins is of a version that did not have this map. */
static void test_younger_map(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/map_open_conns", own.pins);
	assert_int_equal(unlink(path), 0);
	dataplane_reopen();
	assert_int_equal(access(path, F_OK), 0);
	dataplane_reopen();
}

/* An agent died while it was pinning. */
static void test_dead_staging(void **state)
{
	autoclose int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "left", sizeof(uint32_t),
					   sizeof(uint32_t), 1, NULL);
	char path[128];

	(void)state;
	assert_true(map >= 0);
	assert_int_equal(mkdir(own.staging, 0700), 0);
	snprintf(path, sizeof(path), "%s/map_apps", own.staging);
	assert_int_equal(bpf_obj_pin(map, path), 0);
	dataplane_open(true);
	assert_int_equal(count_pins(own.staging, ""), -ENOENT);
	assert_true(count_pins(own.pins, "map_") >= 13);
}

static void test_remove(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(datapath_hold(own.dp, true), 0);
	assert_int_equal(mkdir(own.staging, 0700), 0);
	datapath_close(own.dp);
	own.dp = NULL;
	assert_int_equal(datapath_remove(&own.inst, &e), 0);
	assert_int_equal(access(own.pins, F_OK), -1);
	assert_int_equal(access(own.staging, F_OK), -1);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 0);
	assert_attached(BPF_CGROUP_INET_EGRESS, 0);
	/* when there is nothing, that is no error */
	assert_int_equal(datapath_remove(&own.inst, &e), 0);
}

static void assert_open_fails(int code, const char *says)
{
	struct error e = {0};
	bool fresh;
	int r = datapath_open(&own.inst, own.cgroup, &own.dp, &fresh, &e);

	assert_int_equal(r, code);
	assert_int_equal(e.code, code);
	assert_null(own.dp);
	if (!strstr(e.text, says) || !strstr(e.text, own.pins))
		fail_msg("%s", e.text);
}

/* What is not ours is never removed, and the sentence names it. */
static void test_foreign_in_the_way(void **state)
{
	autoclose int map =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "foreign", sizeof(uint32_t), 4, 1, NULL);
	char path[128];
	struct error e = {0};

	(void)state;
	assert_true(map >= 0);
	/* a file where the directory of the pins has to be */
	assert_int_equal(bpf_obj_pin(map, own.pins), 0);
	assert_open_fails(-ENOTDIR, "ax agent --flush");
	assert_int_equal(datapath_remove(&own.inst, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, own.pins));
	assert_int_equal(unlink(own.pins), 0);

	/* a directory without pins */
	assert_int_equal(mkdir(own.pins, 0700), 0);
	assert_open_fails(-ENOENT, "ax agent --flush");

	/* another version's map */
	snprintf(path, sizeof(path), "%s/map_apps", own.pins);
	assert_int_equal(bpf_obj_pin(map, path), 0);
	assert_open_fails(-EPROTO, "another version's layout");
	assert_int_equal(datapath_remove(&own.inst, &e), 0);

	/* a directory among the pins */
	dataplane_open(true);
	snprintf(path, sizeof(path), "%s/foreign", own.pins);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(datapath_remove(&own.inst, &e) < 0);
	assert_non_null(strstr(e.text, own.pins));
	assert_int_equal(rmdir(path), 0);
}

static void test_hold(void **state)
{
	(void)state;
	assert_attached(BPF_CGROUP_INET_EGRESS, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_hold(own.dp, true), 0);
		assert_attached(BPF_CGROUP_INET_EGRESS, 1);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_hold(own.dp, false), 0);
		assert_attached(BPF_CGROUP_INET_EGRESS, 0);
	}
}

static int on_report(void *arg, const struct feature_report *r)
{
	size_t *n = arg;

	if (!r->on)
		fail_msg("%s is off: %s", r->name, r->why);
	assert_true(*r->name && *r->cost && *r->needs && !*r->why);
	(*n)++;
	return 0;
}

static int on_first_report(void *arg, const struct feature_report *r)
{
	(void)r;
	(*(size_t *)arg)++;
	return 42;
}

static void test_doctor(void **state)
{
	const struct feature_report *r;
	size_t n = 0, first = 0;
	struct error e = {0};

	(void)state;
	assert_int_equal(datapath_doctor(on_report, &n, &e), 0);
	assert_int_equal(n, datapath_features(own.dp, &r));
	assert_int_equal(datapath_doctor(on_first_report, &first, &e), 42);
	assert_int_equal(first, 1);
}

/* --- services --- */

static const struct ax_endpoint web = {
	.addr.b = {[10] = 0xff, 0xff, 1, 2, 3, 4}, .port_be = 0x5000, .proto = IPPROTO_TCP};

/* --- sweeping --- */

static bool keep_app(void *arg, uint32_t id)
{
	(void)arg;
	return id == 1;
}

static bool keep_cgroup(void *arg, uint64_t cgroup)
{
	(void)arg;
	return cgroup == 100;
}

static bool keep_vip(void *arg, const struct ax_addr *addr)
{
	(void)arg;
	return addr->b[15] == 1;
}

static bool keep_service(void *arg, const struct ax_endpoint *ep)
{
	(void)arg;
	return memcmp(ep, &web, sizeof(web)) == 0;
}

static bool keep_none(void *arg, const struct ax_endpoint *ep)
{
	(void)arg;
	(void)ep;
	return false;
}

/* Ten of everything, of which the first of each is kept. */
static void fill_tables(void)
{
	autoclose int servers = dataplane_map("servers"), open_conns = dataplane_map("open_conns");
	const uint32_t none = 0, some = 3;

	for (uint32_t i = 1; i <= 10; i++) {
		struct ax_addr addr = {.b = {0xfd, [15] = (uint8_t)i}};
		struct ax_endpoint ep = {.addr = addr, .port_be = (__be16)i, .proto = IPPROTO_TCP};
		struct ax_server server = {.app = i, .sockets = 1};
		struct ax_netns_app ns = {.id = i};
		struct datapath_backend b[2] = {dataplane_backend(i, 1),
						dataplane_backend(i + 1, 2)};
		struct ax_vip vip = {.kind = AX_VIP_APP, .id = i};
		struct ax_app app = {.id = i};

		assert_int_equal(datapath_app_set(own.dp, i * 100, &app), 0);
		assert_int_equal(datapath_netns_set(own.dp, i + 5000, &ns), 0);
		assert_int_equal(datapath_vip_set(own.dp, &addr, &vip), 0);
		assert_int_equal(bpf_map_update_elem(servers, &ep, &server, BPF_ANY), 0);
		ep.addr = addr;
		/* connections to the fifth's address are open although nobody has it any more */
		assert_int_equal(
			bpf_map_update_elem(open_conns, &ep, i == 5 ? &some : &none, BPF_ANY), 0);
		ep = web;
		ep.addr.b[15] += (uint8_t)(i - 1);
		dataplane_set(&ep, b, 2);
	}
}

static void put_chunk(const char *name, uint32_t list, uint32_t generation, uint32_t chunk)
{
	const struct ax_list_key key = {list, generation, chunk};
	static const char value[1024];
	autoclose int map = dataplane_map(name);

	assert_int_equal(bpf_map_update_elem(map, &key, value, BPF_ANY), 0);
}

static void test_sweep(void **state)
{
	struct datapath_keep keep = {
		.app = keep_app, .cgroup = keep_cgroup, .vip = keep_vip, .service = keep_service};
	struct ax_service s;

	(void)state;
	fill_tables();
	s = dataplane_service(&web);
	/* an agent died between writing a generation and naming it; and of a list that is gone */
	put_chunk("backends", s.id, s.generation + 1, 0);
	put_chunk("rings", s.id, s.generation + 1, 1);
	put_chunk("backends", 77, 0, 0);
	assert_int_equal(dataplane_count_chunks(), 10 * 2 + 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_sweep(own.dp, &keep), 0);
		assert_int_equal(dataplane_count("apps", sizeof(uint64_t)), 1);
		assert_int_equal(dataplane_count("netns_apps", sizeof(uint64_t)),
				 2); /* the host's */
		assert_int_equal(dataplane_count("app_servers", sizeof(uint32_t)),
				 2); /* all of all */
		assert_int_equal(dataplane_count("vips", sizeof(struct ax_addr)), 1);
		assert_int_equal(dataplane_count("servers", sizeof(struct ax_endpoint)), 1);
		assert_int_equal(dataplane_count("open_conns", sizeof(struct ax_endpoint)), 2);
		assert_int_equal(dataplane_count("services", sizeof(struct ax_endpoint)), 1);
		assert_int_equal(dataplane_count_chunks(), 2);
		assert_int_equal(dataplane_app_at(&s, 0), 1);
		dataplane_reopen();
	}
	keep.service = keep_none;
	assert_int_equal(datapath_sweep(own.dp, &keep), 0);
	assert_int_equal(dataplane_count_chunks(), 0);
}

static void test_deleting_nothing(void **state)
{
	const struct ax_addr addr = {.b = {1}};
	struct ax_vip v;

	(void)state;
	assert_int_equal(datapath_app_del(own.dp, 1), 0);
	assert_int_equal(datapath_netns_del(own.dp, 1), 0);
	assert_int_equal(datapath_vip_del(own.dp, &addr), 0);
	assert_int_equal(datapath_service_del(own.dp, &web), 0);
	assert_int_equal(datapath_vip_get(own.dp, &addr, &v), -ENOENT);
}

static int on_server(void *arg, const struct ax_endpoint *ep, const struct ax_server *s)
{
	uint32_t *seen = arg;

	assert_int_equal(ep->port_be, s->app);
	*seen |= 1u << s->app;
	return 0;
}

static void test_dropping_servers(void **state)
{
	autoclose int counts = dataplane_map("app_servers"),
		      loopback = dataplane_map("loopback_servers");
	struct ax_app_endpoint of_two = {.app = 2, .ep = web}, of_three = {.app = 3, .ep = web};
	const uint32_t two = 2, one = 1;

	(void)state;
	fill_tables();
	assert_int_equal(bpf_map_update_elem(loopback, &of_two, &one, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(loopback, &of_three, &one, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(counts, &two, &two, BPF_ANY), 0);
	assert_int_equal(datapath_servers_drop(own.dp, 2, true), 0);
	assert_int_equal(dataplane_count("servers", sizeof(struct ax_endpoint)), 9);
	assert_int_equal(dataplane_count("loopback_servers", sizeof(of_two)), 1);
	assert_int_equal(dataplane_count("app_servers", sizeof(uint32_t)), 10);
	/* nothing is looked for where nothing was counted */
	assert_int_equal(datapath_servers_drop(own.dp, 3, true), 0);
	assert_int_equal(datapath_servers_drop(own.dp, 3, true), 0);
	assert_int_equal(dataplane_count("servers", sizeof(struct ax_endpoint)), 9);
}

static void test_reserving(void **state)
{
	const struct ax_prefix a = {104, web.addr}, b = {64, {.b = {0xfd}}},
			       c = {96, {.b = {0xfe}}};

	(void)state;
	assert_int_equal(datapath_reserve(own.dp, (struct ax_prefix[]){a, b}, 2), 0);
	assert_int_equal(dataplane_count("reserved", sizeof(a)), 2);
	dataplane_reopen();
	assert_int_equal(datapath_reserve(own.dp, (struct ax_prefix[]){c}, 1), 0);
	assert_int_equal(dataplane_count("reserved", sizeof(a)), 1);
	assert_int_equal(datapath_reserve(own.dp, NULL, 0), 0);
	assert_int_equal(dataplane_count("reserved", sizeof(a)), 0);
}

#define VANISHING 5000

struct vanishing {
	int map;
	unsigned char seen[VANISHING];
	uint32_t calls;
};

/* Somebody else takes the key that comes next. */
static int vanish(void *arg, const struct ax_endpoint *ep, const struct ax_server *s)
{
	struct vanishing *v = arg;
	struct ax_endpoint next;

	assert_int_equal(v->seen[s->app], 0);
	v->seen[s->app] = 1;
	v->calls++;
	if (bpf_map_get_next_key(v->map, ep, &next) == 0)
		bpf_map_delete_elem(v->map, &next);
	return 0;
}

static void test_walking_while_keys_vanish(void **state)
{
	autoclose int servers = dataplane_map("servers");
	struct vanishing v = {.map = servers};

	(void)state;
	for (uint32_t i = 0; i < VANISHING; i++) {
		struct ax_endpoint ep = {.port_be = (__be16)i, .proto = IPPROTO_TCP};
		struct ax_server server = {.app = i, .sockets = 1};

		assert_int_equal(bpf_map_update_elem(servers, &ep, &server, BPF_ANY), 0);
	}
	assert_int_equal(datapath_servers_each(own.dp, vanish, &v), 0);
	assert_in_range(v.calls, VANISHING / 2, VANISHING);
}

static int stop_at_once(void *arg, const struct ax_endpoint *ep, const struct ax_server *s)
{
	(void)ep;
	(void)s;
	(*(uint32_t *)arg)++;
	return 1;
}

static void test_reading(void **state)
{
	uint64_t counters[AX_COUNTERS];
	uint32_t seen = 0, calls = 0;

	(void)state;
	fill_tables();
	assert_int_equal(datapath_servers_each(own.dp, on_server, &seen), 0);
	assert_int_equal(seen, 0x7fe);
	assert_int_equal(datapath_servers_each(own.dp, stop_at_once, &calls), -ECANCELED);
	assert_int_equal(calls, 1);
	assert_int_equal(datapath_counters(own.dp, counters), 0);
	for (unsigned i = 0; i < AX_COUNTERS; i++) {
		assert_int_equal(counters[i], 0);
		assert_string_not_equal(datapath_counter_name(i), "?");
	}
	assert_string_equal(datapath_counter_name(AX_COUNTERS), "?");
}

#define PLAIN(t) cmocka_unit_test_setup_teardown(t, dataplane_setup, dataplane_teardown)
#define TEST(t)	 cmocka_unit_test_setup_teardown(t, dataplane_setup_open, dataplane_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAIN(test_fresh),
		PLAIN(test_takeover),
		TEST(test_link_is_replaced),
		TEST(test_younger_map),
		PLAIN(test_dead_staging),
		TEST(test_remove),
		PLAIN(test_foreign_in_the_way),
		TEST(test_hold),
		TEST(test_doctor),
		TEST(test_sweep),
		TEST(test_deleting_nothing),
		TEST(test_reading),
		TEST(test_dropping_servers),
		TEST(test_reserving),
		TEST(test_walking_while_keys_vanish),
	};

	return own_namespaces() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
