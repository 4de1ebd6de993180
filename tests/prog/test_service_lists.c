// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* Services' lists of backends in the dataplane's maps: order, rings, and how many there is room
 * for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <netinet/in.h>
#include <time.h>

#include "tests/lib/dataplane.h"
#include "tests/lib/instance.h"
#include "tests/lib/quick.h"

static const struct ax_endpoint web = {
	.addr.b = {[10] = 0xff, 0xff, 1, 2, 3, 4}, .port_be = 0x5000, .proto = IPPROTO_TCP};
static const struct ax_endpoint dns = {
	.addr.b = {[10] = 0xff, 0xff, 1, 2, 3, 5}, .port_be = 0x3500, .proto = IPPROTO_UDP};

/* All of a ring, or of the backends where there is none. The caller frees it. */
static uint16_t *read_ring(const struct ax_service *s, uint32_t *n)
{
	autoclose int map = dataplane_map("rings");
	uint16_t *ring;

	*n = s->ring ? s->ring : s->backends;
	ring = calloc(*n + AX_RING_CHUNK, sizeof(*ring));
	assert_non_null(ring);
	for (uint32_t i = 0; i < *n; i++)
		ring[i] = (uint16_t)i;
	for (uint32_t i = 0; i < s->ring; i += AX_RING_CHUNK) {
		const struct ax_list_key key = {s->id, s->generation, i / AX_RING_CHUNK};

		assert_int_equal(bpf_map_lookup_elem(map, &key, ring + i), 0);
	}
	return ring;
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
		autofree uint16_t *ring = NULL;
		struct datapath_backend b[3];
		struct ax_service s;
		uint32_t slots;
		size_t n = 0;

		for (; n < 3 && cases[c].weight[n]; n++)
			b[n] = dataplane_backend((uint32_t)n + 1, cases[c].weight[n]);
		dataplane_set(&web, b, n);
		s = dataplane_service(&web);
		ring = read_ring(&s, &slots);
		assert_int_equal(slots, strlen(cases[c].order));
		assert_int_equal(s.backends, n);
		assert_int_equal(s.strategy, AX_STRATEGY_ROUND_ROBIN);
		assert_int_equal(s.wait_ms, 1500);
		assert_int_equal(s.generation, c);
		for (uint32_t i = 0; i < slots; i++)
			assert_int_equal(dataplane_app_at(&s, ring[i]), cases[c].order[i] - '0');
		for (uint32_t i = 0; i < n; i++) {
			struct ax_backend be = dataplane_backend_at(&s, i);

			assert_int_equal(be.app, i + 1);
			assert_int_equal(be.weight, cases[c].weight[i]);
		}
		/* those of the generation before are gone */
		assert_int_equal(dataplane_count_chunks(), s.ring ? 2 : 1);
	}
}

static void test_two_services(void **state)
{
	struct datapath_backend b[2] = {dataplane_backend(1, 1), dataplane_backend(2, 1)};
	uint32_t id;

	(void)state;
	dataplane_set(&web, b, 2);
	dataplane_set(&dns, b, 1);
	assert_int_not_equal(dataplane_service(&web).id, dataplane_service(&dns).id);
	assert_int_equal(dataplane_count_chunks(), 2);
	id = dataplane_service(&web).id;
	dataplane_set(&web, NULL, 0);
	assert_int_equal(dataplane_service(&web).id, id);
	assert_int_equal(dataplane_service(&web).backends, 0);
	assert_int_equal(dataplane_count_chunks(), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(datapath_service_del(own.dp, &dns), 0);
		assert_int_equal(dataplane_count_chunks(), 0);
		assert_int_equal(dataplane_count("services", sizeof(struct ax_endpoint)), 1);
	}
}

/* A list's id is never given twice, also not by the next agent. */
static void test_lists_of_the_next_agent(void **state)
{
	struct datapath_backend a = dataplane_backend(1, 1), b = dataplane_backend(2, 1);
	struct ax_service s;

	(void)state;
	dataplane_set(&web, &a, 1);
	dataplane_reopen();
	dataplane_set(&dns, &b, 1);
	assert_int_not_equal(dataplane_service(&web).id, dataplane_service(&dns).id);
	s = dataplane_service(&web);
	assert_int_equal(dataplane_app_at(&s, 0), 1);
	s = dataplane_service(&dns);
	assert_int_equal(dataplane_app_at(&s, 0), 2);
}

#define RING_MAX 1024

static void test_weights_in_rings(void **state)
{
	static const uint32_t weights[][3] = {
		{1000, 999, 1}, {1000, 997, 991}, {999, 2, 1}, {1000, 1, 1}};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(weights); c++) {
		uint32_t got[4] = {0}, sum = weights[c][0] + weights[c][1] + weights[c][2];
		uint32_t all = sum < RING_MAX ? sum : RING_MAX;
		autofree uint16_t *ring = NULL;
		struct datapath_backend b[3];
		struct ax_service s;
		uint32_t slots;

		for (uint32_t i = 0; i < 3; i++)
			b[i] = dataplane_backend(i + 1, weights[c][i]);
		dataplane_set(&web, b, 3);
		s = dataplane_service(&web);
		ring = read_ring(&s, &slots);
		assert_in_range(slots, all - 3, all);
		for (uint32_t i = 0; i < slots; i++)
			got[dataplane_app_at(&s, ring[i])]++;
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t fair = (uint32_t)((uint64_t)weights[c][i] * slots / sum);

			assert_in_range(got[i + 1], fair > 2 ? fair - 2 : 1, fair + 2);
		}
	}
}

/* However many backends a service has, each is in its list, and weights count. */
static void test_many_backends(void **state)
{
	static const size_t ns[] = {65, 1024, 1025, 5000, AX_SERVICE_BACKENDS_MAX};
	autofree struct datapath_backend *many = calloc(AX_SERVICE_BACKENDS_MAX + 1, sizeof(*many));
	const struct datapath_service conf = {.strategy = AX_STRATEGY_RANDOM};
	struct ax_service s;

	(void)state;
	assert_non_null(many);
	for (size_t c = 0; c < ARRAY_SIZE(ns); c++) {
		autofree uint16_t *ring = NULL;
		autofree uint32_t *got = calloc(ns[c], sizeof(*got));
		uint32_t slots;

		assert_non_null(got);
		for (uint32_t i = 0; i <= AX_SERVICE_BACKENDS_MAX; i++)
			many[i] = dataplane_backend(i + 1, i % 2 ? 1 : 3);
		dataplane_set(&web, many, ns[c]);
		s = dataplane_service(&web);
		assert_int_equal(s.backends, ns[c]);
		ring = read_ring(&s, &slots);
		for (uint32_t i = 0; i < slots; i++)
			got[ring[i]]++;
		for (size_t i = 0; i < ns[c]; i++)
			assert_in_range(got[i], 1, 3);
		if (ns[c] <= 5000) /* the odd ones have a third of what their neighbours have */
			assert_true(got[0] == 3 && got[1] == 1 && got[ns[c] - 1 - ns[c] % 2] == 1);
		assert_int_equal(dataplane_app_at(&s, s.backends - 1), ns[c]);
	}
	/* too many: what was there stays, whole */
	assert_int_equal(
		datapath_service_set(own.dp, &web, &conf, many, AX_SERVICE_BACKENDS_MAX + 1),
		-E2BIG);
	assert_memory_equal(&(struct ax_service[]){dataplane_service(&web)}, &s, sizeof(s));
	for (uint32_t i = 0; i < 20; i++)
		many[i] = dataplane_backend(i + 1, 7);
	dataplane_set(&web, many, 20); /* equal weights need no ring */
	assert_int_equal(dataplane_service(&web).ring, 0);
	assert_int_equal(dataplane_count_chunks(), 2);
}

/* The map of backends is full: a clear errno, and nothing half of it. */
static void test_no_room(void **state)
{
	autofree struct datapath_backend *many = calloc(AX_SERVICE_BACKENDS_MAX, sizeof(*many));
	const struct datapath_service conf = {.strategy = AX_STRATEGY_RANDOM};
	struct ax_endpoint ep = web;
	size_t chunks;
	int r = 0;

	(void)state;
	assert_non_null(many);
	for (uint32_t i = 0; i < AX_SERVICE_BACKENDS_MAX; i++)
		many[i] = dataplane_backend(i + 1, 1);
	dataplane_set(&dns, many, 3);
	for (uint16_t i = 0; !r && i < 1000; i++) {
		ep.port_be = htobe16(1000 + i);
		chunks = dataplane_count("backends", sizeof(struct ax_list_key));
		r = datapath_service_set(own.dp, &ep, &conf, many, AX_SERVICE_BACKENDS_MAX);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(dataplane_count("backends", sizeof(struct ax_list_key)), chunks);
	/* one that was there keeps what it had, and may still be deleted */
	assert_int_equal(datapath_service_set(own.dp, &dns, &conf, many, AX_SERVICE_BACKENDS_MAX),
			 -ENOSPC);
	assert_int_equal(dataplane_service(&dns).backends, 3);
	assert_int_equal(dataplane_app_at(&(struct ax_service[]){dataplane_service(&dns)}[0], 2),
			 3);
	assert_int_equal(datapath_service_del(own.dp, &dns), 0);
}

static double ms_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) * 1e3 +
	       (double)(now.tv_nsec - from->tv_nsec) / 1e6;
}

/* There is room for 10,000 services of 100 backends, and one that changes touches no other. */
static void test_many_services(void **state)
{
	struct datapath_backend b[100];
	struct ax_endpoint ep = web;
	struct timespec start;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		b[i] = dataplane_backend(i + 1, 1);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (uint16_t i = 0; i < 10000; i++) {
		ep.port_be = htobe16(1000 + i);
		dataplane_set(&ep, b, 100);
	}
	print_message("# 10,000 services of 100 backends: %.0f ms\n", ms_since(&start));
	assert_int_equal(dataplane_count("backends", sizeof(struct ax_list_key)), 70000);
	for (int i = 0; i < 2; i++) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		dataplane_set_by(&ep, i ? AX_STRATEGY_MAGLEV : AX_STRATEGY_RANDOM, b, 99);
		print_message("# one change%s: %.3f ms\n", i ? ", with a ring for Maglev" : "",
			      ms_since(&start));
	}
	assert_int_equal(dataplane_count("backends", sizeof(struct ax_list_key)), 70000);
}

/* How many slots of a ring lead to each app. */
static uint32_t *apps_of_ring(uint32_t *slots)
{
	struct ax_service s = dataplane_service(&web);
	uint16_t *ring = read_ring(&s, slots);
	uint32_t *apps = calloc(*slots, sizeof(*apps));

	assert_non_null(apps);
	for (uint32_t i = 0; i < *slots; i++)
		apps[i] = dataplane_app_at(&s, ring[i]);
	free(ring);
	return apps;
}

/* When a backend goes, hardly anybody but its own clients goes elsewhere. */
static void test_maglev(void **state)
{
	autofree uint32_t *before = NULL, *after = NULL;
	uint32_t slots, same, moved = 0, gone = 0;
	struct datapath_backend b[20];

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		b[i] = dataplane_backend(i + 1, 1);
	dataplane_set_by(&web, AX_STRATEGY_MAGLEV, b, 20);
	before = apps_of_ring(&slots);
	b[7] = b[19];
	dataplane_set_by(&web, AX_STRATEGY_MAGLEV, b, 19);
	after = apps_of_ring(&same);
	assert_int_equal(same, slots);
	for (uint32_t i = 0; i < slots; i++) {
		gone += before[i] == 8;
		moved += before[i] != 8 && before[i] != after[i];
	}
	assert_in_range(gone, slots / 20, slots / 20 + 1);
	assert_in_range(moved, 0, slots / 20);
}

/* A service that comes and goes over a ring's limit does not send all its clients elsewhere. */
static void test_maglev_sizes(void **state)
{
	static const struct {
		uint32_t backends, ring;
	} steps[] = {{64, 4093},   {65, 16381},	  {64, 16381},	 {33, 16381},
		     {32, 4093},   {33, 4093},	  {1025, 65537}, {600, 65537},
		     {512, 16381}, {2000, 65537}, {1, 4093}};
	autofree struct datapath_backend *b = calloc(2000, sizeof(*b));

	(void)state;
	assert_non_null(b);
	for (uint32_t i = 0; i < 2000; i++)
		b[i] = dataplane_backend(i + 1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		dataplane_set_by(&web, AX_STRATEGY_MAGLEV, b, steps[i].backends);
		assert_int_equal(dataplane_service(&web).ring, steps[i].ring);
	}
}

/* --- clients that keep their backend --- */

static void put_client(int map, uint32_t n, uint32_t list, uint32_t app, uint64_t seen_ns)
{
	const struct ax_affinity_key key = {.list = list, .client.w = {[3] = n}};
	const struct ax_affinity value = {.backend = 256, .seen_ns = seen_ns, .app = app};

	assert_int_equal(bpf_map_update_elem(map, &key, &value, BPF_ANY), 0);
}

static bool has_client(int map, uint32_t n, uint32_t list)
{
	const struct ax_affinity_key key = {.list = list, .client.w = {[3] = n}};
	struct ax_affinity value;

	return bpf_map_lookup_elem(map, &key, &value) == 0;
}

static bool runs(void *arg, uint32_t id)
{
	(void)arg;
	return id != 7;
}

static uint32_t count_of(int counts, uint64_t owner)
{
	uint32_t n = 0;

	return bpf_map_lookup_elem(counts, &owner, &n) ? 0 : n;
}

static void set_count(int counts, uint64_t owner, uint32_t n)
{
	assert_int_equal(bpf_map_update_elem(counts, &owner, &n, BPF_ANY), 0);
}

/* Entries of apps that have ended go when their half is a quarter full, not before; those that are
 * over, at once; what is newer than the sweep stays. */
static void test_affinity_sweep(void **state)
{
	const uint64_t all = AX_AFFINITY_OWNER(AX_AFFINITY_APP, 0ull);
	const uint64_t ended = AX_AFFINITY_OWNER(AX_AFFINITY_APP, 7ull);
	const uint64_t second = 1000000000ull, now = time_mono_ns(); /* it may just have started */
	autoclose int map = dataplane_map("affinity"), counts = dataplane_map("affinity_counts");
	const struct datapath_service set = {.flags = AX_SERVICE_BY_APP, .affinity_ms = 30000};
	const struct datapath_backend b = dataplane_backend(1, 1);
	uint32_t list;

	(void)state;
	assert_int_equal(datapath_service_set(own.dp, &web, &set, &b, 1), 0);
	list = (uint32_t)datapath_service_list(own.dp, &web);
	put_client(map, 1, list, 7, now - 1);
	put_client(map, 2, list, 8, now - 1);
	put_client(map, 3, list, 8, now - 60 * second);
	put_client(map, 4, list, 7, now + 600 * second);
	put_client(map, 5, list + 9, 8, now - 1);
	put_client(map, 6, list + 9, 8, now + 600 * second);
	set_count(counts, ended, 2);
	set_count(counts, all, 6);
	assert_int_equal(datapath_affinity_sweep(own.dp, runs, NULL), 4);
	assert_true(has_client(map, 1, list));
	assert_false(has_client(map, 3, list));
	assert_false(has_client(map, 5, list + 9));
	assert_true(has_client(map, 6, list + 9));
	assert_int_equal(count_of(counts, all), 4);
	assert_int_equal(count_of(counts, ended), 2);
	set_count(counts, all, AX_AFFINITY_HALF / 4 + 1);
	assert_int_equal(datapath_affinity_sweep(own.dp, runs, NULL), 3);
	assert_false(has_client(map, 1, list));
	assert_true(has_client(map, 2, list));
	assert_true(has_client(map, 4, list));
	assert_int_equal(count_of(counts, ended), 1);
	assert_int_equal(count_of(counts, all), 3);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, dataplane_setup_open, dataplane_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slots),
		TEST(test_two_services),
		TEST(test_lists_of_the_next_agent),
		TEST(test_weights_in_rings),
		TEST(test_many_backends),
		TEST(test_many_services),
		TEST(test_maglev),
		TEST(test_maglev_sizes),
		TEST(test_affinity_sweep),
		TEST(test_no_room), /* the longest: not in `make check-quick` */
	};

	if (own_namespaces())
		return 1;
	return _cmocka_run_group_tests("tests", tests, ARRAY_SIZE(tests) - quick_or(1, 0), NULL,
				       NULL);
}
