/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
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
#include "tests/lib/instance.h"

static struct fixture {
	struct instance inst;
	char cgroup[4096];
	char pins[64], staging[64];
	struct datapath *dp;
} f;

static void open_dataplane(bool fresh)
{
	struct error e = {0};
	bool was_fresh;

	if (datapath_open(&f.inst, f.cgroup, &f.dp, &was_fresh, &e))
		fail_msg("%s", e.text);
	assert_int_equal(was_fresh, fresh);
}

/* As the next agent does: the one before it has died. */
static void reopen(void)
{
	datapath_close(f.dp);
	f.dp = NULL;
	open_dataplane(false);
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	if (own_instance(&f.inst, f.cgroup))
		return -1;
	snprintf(f.pins, sizeof(f.pins), BPFFS "/%s", f.inst.name);
	snprintf(f.staging, sizeof(f.staging), BPFFS "/%s-new", f.inst.name);
	return 0;
}

static int setup_open(void **state)
{
	struct error e = {0};
	bool fresh;

	if (setup(state))
		return -1;
	if (datapath_open(&f.inst, f.cgroup, &f.dp, &fresh, &e))
		print_message("# %s\n", e.text);
	return f.dp && fresh ? 0 : -1;
}

static int teardown(void **state)
{
	struct error e;

	(void)state;
	datapath_close(f.dp);
	return datapath_remove(&f.inst, &e) || cgroup_remove(f.cgroup) ? -1 : 0;
}

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

static int pinned_map(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/map_%s", f.pins, name);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	return fd;
}

static uint32_t count_attached(enum bpf_attach_type type)
{
	autoclose int fd = open(f.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
	size_t n = datapath_features(f.dp, &r), off = 0;

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
	open_dataplane(true);
	assert_true(count_pins(f.pins, "map_") >= 13);
	assert_true(count_pins(f.pins, "link_ax_") >= 17);
	assert_int_equal(count_pins(f.staging, ""), -ENOENT);
	assert_int_equal(programs_that_are_off(), 0);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 1);
	assert_attached(BPF_CGROUP_SOCK_OPS, 1);
	assert_true(datapath_program_fd(f.dp, "ax_connect4") >= 0);
	assert_true(datapath_program_fd(f.dp, "no_such") < 0);
}

static uint32_t attached_program(void)
{
	autoclose int fd = open(f.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
		bpf_obj_get_info_by_fd(datapath_program_fd(f.dp, "ax_connect4"), &info, &len), 0);
	return info.id;
}

static void test_takeover(void **state)
{
	const struct ax_addr addr = {.b = {0xfd, [15] = 7}};
	struct ax_vip v = {.kind = AX_VIP_APP, .id = 7, .party = 3}, got;
	int links, maps;
	uint32_t before;

	(void)state;
	open_dataplane(true);
	links = count_pins(f.pins, "link_");
	maps = count_pins(f.pins, "map_");
	before = attached_program();
	assert_int_equal(before, own_program());
	assert_int_equal(datapath_vip_set(f.dp, &addr, &v), 0);
	for (int i = 0; i < 2; i++) {
		reopen();
		assert_int_equal(datapath_vip_get(f.dp, &addr, &got), 0);
		assert_memory_equal(&got, &v, sizeof(v));
		assert_int_equal(count_pins(f.pins, "link_"), links);
		assert_int_equal(count_pins(f.pins, "map_"), maps);
		/* the new program is under the old link, not beside the old program */
		assert_attached(BPF_CGROUP_INET4_CONNECT, 1);
		assert_int_not_equal(attached_program(), before);
		assert_int_equal(attached_program(), own_program());
		before = attached_program();
	}
	/* without an agent it stays attached */
	datapath_close(f.dp);
	f.dp = NULL;
	assert_int_equal(attached_program(), before);
	assert_int_equal(datapath_remove(&f.inst, NULL), 0);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 0);
}

/* A link that lost its pin is made anew. */
static void test_link_is_replaced(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/link_ax_connect4", f.pins);
	assert_int_equal(unlink(path), 0);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 0);
	reopen();
	assert_attached(BPF_CGROUP_INET4_CONNECT, 1);
	assert_int_equal(access(path, F_OK), 0);
}

/* The agent that made the pins is of a version that did not have this map. */
static void test_younger_map(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/map_open_conns", f.pins);
	assert_int_equal(unlink(path), 0);
	reopen();
	assert_int_equal(access(path, F_OK), 0);
	reopen();
}

/* An agent died while it was pinning. */
static void test_dead_staging(void **state)
{
	autoclose int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "left", sizeof(uint32_t),
					   sizeof(uint32_t), 1, NULL);
	char path[128];

	(void)state;
	assert_true(map >= 0);
	assert_int_equal(mkdir(f.staging, 0700), 0);
	snprintf(path, sizeof(path), "%s/map_apps", f.staging);
	assert_int_equal(bpf_obj_pin(map, path), 0);
	open_dataplane(true);
	assert_int_equal(count_pins(f.staging, ""), -ENOENT);
	assert_true(count_pins(f.pins, "map_") >= 13);
}

static void test_remove(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(datapath_hold(f.dp, true), 0);
	assert_int_equal(mkdir(f.staging, 0700), 0);
	datapath_close(f.dp);
	f.dp = NULL;
	assert_int_equal(datapath_remove(&f.inst, &e), 0);
	assert_int_equal(access(f.pins, F_OK), -1);
	assert_int_equal(access(f.staging, F_OK), -1);
	assert_attached(BPF_CGROUP_INET4_CONNECT, 0);
	assert_attached(BPF_CGROUP_INET_EGRESS, 0);
	/* when there is nothing, that is no error */
	assert_int_equal(datapath_remove(&f.inst, &e), 0);
}

static void assert_open_fails(int code, const char *says)
{
	struct error e = {0};
	bool fresh;
	int r = datapath_open(&f.inst, f.cgroup, &f.dp, &fresh, &e);

	assert_int_equal(r, code);
	assert_int_equal(e.code, code);
	assert_null(f.dp);
	if (!strstr(e.text, says) || !strstr(e.text, f.pins))
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
	assert_int_equal(bpf_obj_pin(map, f.pins), 0);
	assert_open_fails(-ENOTDIR, "ax agent --flush");
	assert_int_equal(datapath_remove(&f.inst, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, f.pins));
	assert_int_equal(unlink(f.pins), 0);

	/* a directory without pins */
	assert_int_equal(mkdir(f.pins, 0700), 0);
	assert_open_fails(-ENOENT, "ax agent --flush");

	/* another version's map */
	snprintf(path, sizeof(path), "%s/map_apps", f.pins);
	assert_int_equal(bpf_obj_pin(map, path), 0);
	assert_open_fails(-EPROTO, "another version's layout");
	assert_int_equal(datapath_remove(&f.inst, &e), 0);

	/* a directory among the pins */
	open_dataplane(true);
	snprintf(path, sizeof(path), "%s/foreign", f.pins);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(datapath_remove(&f.inst, &e) < 0);
	assert_non_null(strstr(e.text, f.pins));
	assert_int_equal(rmdir(path), 0);
}

static void test_hold(void **state)
{
	(void)state;
	assert_attached(BPF_CGROUP_INET_EGRESS, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_hold(f.dp, true), 0);
		assert_attached(BPF_CGROUP_INET_EGRESS, 1);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_hold(f.dp, false), 0);
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
	assert_int_equal(n, datapath_features(f.dp, &r));
	assert_int_equal(datapath_doctor(on_first_report, &first, &e), 42);
	assert_int_equal(first, 1);
}

/* --- services --- */

static const struct ax_endpoint web = {
	.addr.b = {[10] = 0xff, 0xff, 1, 2, 3, 4}, .port_be = 0x5000, .proto = IPPROTO_TCP};
static const struct ax_endpoint dns = {
	.addr.b = {[10] = 0xff, 0xff, 1, 2, 3, 5}, .port_be = 0x3500, .proto = IPPROTO_UDP};

static struct datapath_backend backend(uint32_t app, uint32_t weight)
{
	return (struct datapath_backend){
		.be = {.addr.b = {0xfd, [12] = (uint8_t)(app >> 8), (uint8_t)app}, .app = app},
		.weight = weight};
}

static struct ax_service service_of(const struct ax_endpoint *ep)
{
	autoclose int map = pinned_map("services");
	struct ax_service s;

	assert_int_equal(bpf_map_lookup_elem(map, ep, &s), 0);
	return s;
}

static size_t count_entries(const char *name, size_t key_size)
{
	autoclose int map = pinned_map(name);
	char key[64];
	size_t n = 0;

	assert_true(key_size <= sizeof(key));
	for (int r = bpf_map_get_next_key(map, NULL, key); r == 0;
	     r = bpf_map_get_next_key(map, key, key))
		n++;
	return n;
}

static size_t count_slots(void)
{
	return count_entries("backends", sizeof(struct ax_backend_key));
}

static struct ax_backend backend_in_slot(const struct ax_service *s, uint32_t slot)
{
	const struct ax_backend_key key = {s->id, s->generation, slot};
	autoclose int map = pinned_map("backends");
	struct ax_backend b;

	assert_int_equal(bpf_map_lookup_elem(map, &key, &b), 0);
	return b;
}

static uint32_t app_in_slot(const struct ax_service *s, uint32_t slot)
{
	return backend_in_slot(s, slot).app;
}

static void set_service(const struct ax_endpoint *ep, const struct datapath_backend *b, size_t n)
{
	assert_int_equal(datapath_service_set(f.dp, ep, AX_STRATEGY_ROUND_ROBIN, 1500, b, n), 0);
}

static void test_slots(void **state)
{
	static const struct {
		uint32_t weight[3];
		const char *order; /* apps 1, 2, 3, as nginx orders such upstreams */
	} cases[] = {
		{{1}, "1"},	    {{1000}, "1"},	    {{1, 1}, "12"},
		{{500, 500}, "12"}, {{5, 1, 1}, "1121311"}, {{10, 2, 2}, "1121311"},
		{{3, 2}, "12121"},  {{1, 2, 3}, "321323"},
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct datapath_backend b[3];
		struct ax_service s;
		size_t n = 0;

		for (; n < 3 && cases[c].weight[n]; n++)
			b[n] = backend((uint32_t)n + 1, cases[c].weight[n]);
		set_service(&web, b, n);
		s = service_of(&web);
		assert_int_equal(s.slots, strlen(cases[c].order));
		assert_int_equal(s.distinct, n);
		assert_int_equal(s.strategy, AX_STRATEGY_ROUND_ROBIN);
		assert_int_equal(s.wait_ms, 1500);
		assert_int_equal(s.generation, c);
		for (uint32_t i = 0; i < s.slots; i++)
			assert_int_equal(app_in_slot(&s, i), cases[c].order[i] - '0');
		for (uint32_t i = 0; i < n; i++) {
			struct ax_backend be = backend_in_slot(&s, s.slots + i);

			assert_int_equal(be.app, i + 1);
			assert_int_equal(be.weight, cases[c].weight[i]);
		}
		/* those of the generation before are gone */
		assert_int_equal(count_slots(), s.slots + s.distinct);
	}
}

static void test_two_services(void **state)
{
	struct datapath_backend b[2] = {backend(1, 1), backend(2, 1)};
	uint32_t id;

	(void)state;
	set_service(&web, b, 2);
	set_service(&dns, b, 1);
	assert_int_not_equal(service_of(&web).id, service_of(&dns).id);
	assert_int_equal(count_slots(), 4 + 2);
	id = service_of(&web).id;
	set_service(&web, NULL, 0);
	assert_int_equal(service_of(&web).id, id);
	assert_int_equal(service_of(&web).slots, 0);
	assert_int_equal(service_of(&web).distinct, 0);
	assert_int_equal(count_slots(), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_service_del(f.dp, &dns), 0);
		assert_int_equal(count_slots(), 0);
		assert_int_equal(count_entries("services", sizeof(struct ax_endpoint)), 1);
	}
}

/* A list's id is never given twice, also not by the next agent. */
static void test_lists_of_the_next_agent(void **state)
{
	struct datapath_backend a = backend(1, 1), b = backend(2, 1);
	struct ax_service s;

	(void)state;
	set_service(&web, &a, 1);
	reopen();
	set_service(&dns, &b, 1);
	assert_int_not_equal(service_of(&web).id, service_of(&dns).id);
	s = service_of(&web);
	assert_int_equal(app_in_slot(&s, 0), 1);
	s = service_of(&dns);
	assert_int_equal(app_in_slot(&s, 0), 2);
}

static void test_slots_max(void **state)
{
	static const uint32_t weights[][3] = {
		{1000, 999, 1}, {1000, 997, 991}, {999, 2, 1}, {1000, 1, 1}};
	autofree struct datapath_backend *many = calloc(AX_SLOTS_MAX + 1, sizeof(*many));
	struct ax_service s;

	(void)state;
	assert_non_null(many);
	for (size_t c = 0; c < ARRAY_SIZE(weights); c++) {
		uint32_t got[4] = {0}, sum = weights[c][0] + weights[c][1] + weights[c][2];
		uint32_t all;

		for (uint32_t i = 0; i < 3; i++)
			many[i] = backend(i + 1, weights[c][i]);
		set_service(&web, many, 3);
		s = service_of(&web);
		all = sum < AX_SLOTS_MAX ? sum : AX_SLOTS_MAX;
		assert_in_range(s.slots, all - 3, all);
		for (uint32_t i = 0; i < s.slots; i++)
			got[app_in_slot(&s, i)]++;
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t fair = (uint32_t)((uint64_t)weights[c][i] * s.slots / sum);

			assert_in_range(got[i + 1], fair > 2 ? fair - 2 : 1, fair + 2);
		}
	}
	/* as many backends as slots: one for each */
	for (uint32_t i = 0; i <= AX_SLOTS_MAX; i++)
		many[i] = backend(i + 1, i ? 1 : 1000);
	set_service(&web, many, AX_SLOTS_MAX);
	assert_int_equal(service_of(&web).slots, AX_SLOTS_MAX);
	set_service(&web, many, AX_SLOTS_MAX / 2);
	assert_in_range(service_of(&web).slots, AX_SLOTS_MAX / 2 + 1, AX_SLOTS_MAX);
	/* more of them: none is left out */
	set_service(&web, many, AX_SLOTS_MAX + 1);
	assert_int_equal(service_of(&web).slots, AX_SLOTS_MAX + 1);
	assert_int_equal(count_slots(), 2 * (AX_SLOTS_MAX + 1));
	set_service(&web, many, 1);
	assert_int_equal(count_slots(), 2);
}

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
	autoclose int servers = pinned_map("servers"), open_conns = pinned_map("open_conns");
	const uint32_t none = 0, some = 3;

	for (uint32_t i = 1; i <= 10; i++) {
		struct ax_addr addr = {.b = {0xfd, [15] = (uint8_t)i}};
		struct ax_endpoint ep = {.addr = addr, .port_be = (__be16)i, .proto = IPPROTO_TCP};
		struct ax_server server = {.app = i, .sockets = 1};
		struct ax_netns_app ns = {.id = i};
		struct datapath_backend b[2] = {backend(i, 1), backend(i + 1, 2)};
		struct ax_vip vip = {.kind = AX_VIP_APP, .id = i};
		struct ax_app app = {.id = i};

		assert_int_equal(datapath_app_set(f.dp, i * 100, &app), 0);
		assert_int_equal(datapath_netns_set(f.dp, i + 5000, &ns), 0);
		assert_int_equal(datapath_vip_set(f.dp, &addr, &vip), 0);
		assert_int_equal(bpf_map_update_elem(servers, &ep, &server, BPF_ANY), 0);
		ep.addr = addr;
		/* connections to the fifth's address are open although nobody has it any more */
		assert_int_equal(
			bpf_map_update_elem(open_conns, &ep, i == 5 ? &some : &none, BPF_ANY), 0);
		ep = web;
		ep.addr.b[15] += (uint8_t)(i - 1);
		set_service(&ep, b, 2);
	}
}

static void put_slot(uint32_t list, uint32_t generation, uint32_t slot)
{
	const struct ax_backend_key key = {list, generation, slot};
	const struct ax_backend b = {.app = 99};
	autoclose int map = pinned_map("backends");

	assert_int_equal(bpf_map_update_elem(map, &key, &b, BPF_ANY), 0);
}

static void test_sweep(void **state)
{
	struct datapath_keep keep = {
		.app = keep_app, .cgroup = keep_cgroup, .vip = keep_vip, .service = keep_service};
	struct ax_service s;

	(void)state;
	fill_tables();
	s = service_of(&web);
	/* an agent died between writing a generation and naming it; and of a list that is gone */
	put_slot(s.id, s.generation + 1, 0);
	put_slot(s.id, s.generation + 1, 1);
	put_slot(77, 0, 0);
	assert_int_equal(count_slots(), 10 * 5 + 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_sweep(f.dp, &keep), 0);
		assert_int_equal(count_entries("apps", sizeof(uint64_t)), 1);
		assert_int_equal(count_entries("netns_apps", sizeof(uint64_t)), 2); /* the host's */
		assert_int_equal(count_entries("app_servers", sizeof(uint32_t)),
				 2); /* all of all */
		assert_int_equal(count_entries("vips", sizeof(struct ax_addr)), 1);
		assert_int_equal(count_entries("servers", sizeof(struct ax_endpoint)), 1);
		assert_int_equal(count_entries("open_conns", sizeof(struct ax_endpoint)), 2);
		assert_int_equal(count_entries("services", sizeof(struct ax_endpoint)), 1);
		assert_int_equal(count_slots(), 5);
		assert_int_equal(app_in_slot(&s, 0), 2);
		reopen();
	}
	keep.service = keep_none;
	assert_int_equal(datapath_sweep(f.dp, &keep), 0);
	assert_int_equal(count_slots(), 0);
}

static void test_deleting_nothing(void **state)
{
	const struct ax_addr addr = {.b = {1}};
	struct ax_vip v;

	(void)state;
	assert_int_equal(datapath_app_del(f.dp, 1), 0);
	assert_int_equal(datapath_netns_del(f.dp, 1), 0);
	assert_int_equal(datapath_vip_del(f.dp, &addr), 0);
	assert_int_equal(datapath_service_del(f.dp, &web), 0);
	assert_int_equal(datapath_vip_get(f.dp, &addr, &v), -ENOENT);
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
	autoclose int counts = pinned_map("app_servers"), loopback = pinned_map("loopback_servers");
	struct ax_app_endpoint of_two = {.app = 2, .ep = web}, of_three = {.app = 3, .ep = web};
	const uint32_t two = 2, one = 1;

	(void)state;
	fill_tables();
	assert_int_equal(bpf_map_update_elem(loopback, &of_two, &one, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(loopback, &of_three, &one, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(counts, &two, &two, BPF_ANY), 0);
	assert_int_equal(datapath_servers_drop(f.dp, 2), 0);
	assert_int_equal(count_entries("servers", sizeof(struct ax_endpoint)), 9);
	assert_int_equal(count_entries("loopback_servers", sizeof(of_two)), 1);
	assert_int_equal(count_entries("app_servers", sizeof(uint32_t)), 10);
	/* nothing is looked for where nothing was counted */
	assert_int_equal(datapath_servers_drop(f.dp, 3), 0);
	assert_int_equal(datapath_servers_drop(f.dp, 3), 0);
	assert_int_equal(count_entries("servers", sizeof(struct ax_endpoint)), 9);
}

static void test_reserving(void **state)
{
	const struct ax_prefix a = {104, web.addr}, b = {64, {.b = {0xfd}}},
			       c = {96, {.b = {0xfe}}};

	(void)state;
	assert_int_equal(datapath_reserve(f.dp, (struct ax_prefix[]){a, b}, 2), 0);
	assert_int_equal(count_entries("reserved", sizeof(a)), 2);
	reopen();
	assert_int_equal(datapath_reserve(f.dp, (struct ax_prefix[]){c}, 1), 0);
	assert_int_equal(count_entries("reserved", sizeof(a)), 1);
	assert_int_equal(datapath_reserve(f.dp, NULL, 0), 0);
	assert_int_equal(count_entries("reserved", sizeof(a)), 0);
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
	autoclose int servers = pinned_map("servers");
	struct vanishing v = {.map = servers};

	(void)state;
	for (uint32_t i = 0; i < VANISHING; i++) {
		struct ax_endpoint ep = {.port_be = (__be16)i, .proto = IPPROTO_TCP};
		struct ax_server server = {.app = i, .sockets = 1};

		assert_int_equal(bpf_map_update_elem(servers, &ep, &server, BPF_ANY), 0);
	}
	assert_int_equal(datapath_servers_each(f.dp, vanish, &v), 0);
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
	assert_int_equal(datapath_servers_each(f.dp, on_server, &seen), 0);
	assert_int_equal(seen, 0x7fe);
	assert_int_equal(datapath_servers_each(f.dp, stop_at_once, &calls), -ECANCELED);
	assert_int_equal(calls, 1);
	assert_int_equal(datapath_counters(f.dp, counters), 0);
	for (unsigned i = 0; i < AX_COUNTERS; i++) {
		assert_int_equal(counters[i], 0);
		assert_string_not_equal(datapath_counter_name(i), "?");
	}
	assert_string_equal(datapath_counter_name(AX_COUNTERS), "?");
}

#define PLAIN(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
#define TEST(t)	 cmocka_unit_test_setup_teardown(t, setup_open, teardown)

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
		TEST(test_slots),
		TEST(test_two_services),
		TEST(test_lists_of_the_next_agent),
		TEST(test_slots_max),
		TEST(test_sweep),
		TEST(test_deleting_nothing),
		TEST(test_reading),
		TEST(test_dropping_servers),
		TEST(test_reserving),
		TEST(test_walking_while_keys_vanish),
	};

	return own_namespaces() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
