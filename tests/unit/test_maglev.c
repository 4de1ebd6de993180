// SPDX-License-Identifier: GPL-2.0-or-later
/* Maglev rings, and what the balancers become in the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "balance.h"
#include "base/maglev.h"
#include "compile/compile.h"

#define SLOTS	 AX_MAGLEV_SLOTS
#define BACKENDS 1000

static struct maglev_backend backends[BACKENDS];
static uint16_t ring[SLOTS], other[SLOTS];

static void make(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t v4 = htonl(0x0a000001 + (uint32_t)i);

		backends[i] = (struct maglev_backend){
			.addr = addr_from_v4(v4),
			.port = 80,
			.weight = 1,
			.number = (uint16_t)i,
		};
	}
}

static void build(size_t n, uint16_t *to)
{
	assert_int_equal(maglev_build(backends, n, to, SLOTS), 0);
}

static unsigned count(const uint16_t *in, uint16_t number)
{
	unsigned n = 0;

	for (size_t i = 0; i < SLOTS; i++)
		n += in[i] == number;
	return n;
}

static void each_backend_has_its_share(void **state)
{
	static const size_t ns[] = {1, 2, 3, 16, 100, BACKENDS};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(ns); k++) {
		make(ns[k]);
		build(ns[k], ring);
		for (size_t i = 0; i < ns[k]; i++)
			assert_in_range(count(ring, (uint16_t)i), SLOTS / ns[k], SLOTS / ns[k] + 1);
	}
}

static void shares_are_as_the_weights(void **state)
{
	static const uint16_t weights[] = {1, 2, 5, 100, 1000};
	unsigned sum = 0;

	(void)state;
	make(ARRAY_SIZE(weights));
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		sum += backends[i].weight = weights[i];
	build(ARRAY_SIZE(weights), ring);
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
		unsigned share = SLOTS * weights[i] / sum;

		assert_in_range(count(ring, (uint16_t)i), share - 2, share + 2);
	}
}

static void the_order_does_not_matter(void **state)
{
	(void)state;
	make(50);
	backends[7].weight = 3;
	build(50, ring);
	for (size_t i = 0; i < 25; i++) {
		struct maglev_backend b = backends[i];

		backends[i] = backends[49 - i];
		backends[49 - i] = b;
	}
	build(50, other);
	assert_memory_equal(ring, other, sizeof(ring));
}

static void the_port_tells_backends_apart(void **state)
{
	unsigned same = 0;

	(void)state;
	make(2);
	build(2, ring);
	backends[0].port = 81;
	build(2, other);
	for (size_t i = 0; i < SLOTS; i++)
		same += ring[i] == other[i];
	assert_in_range(same, SLOTS / 4, SLOTS - SLOTS / 20);
}

/* When one of n comes or goes, its own share moves, and little else: under 1.2 % of the slots. */
static void little_moves_when_a_backend_comes_or_goes(void **state)
{
	static const size_t ns[] = {2, 3, 4, 8, 16, 50, 100, 300, BACKENDS};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(ns); k++) {
		size_t n = ns[k], gone[] = {0, n / 2, n - 1};

		for (size_t g = 0; g < ARRAY_SIZE(gone); g++) {
			unsigned own = 0, moved = 0;

			make(n);
			build(n, ring);
			backends[gone[g]] = backends[n - 1];
			build(n - 1, other);
			for (size_t i = 0; i < SLOTS; i++) {
				assert_int_not_equal(other[i], gone[g]);
				own += ring[i] == gone[g];
				moved += ring[i] != gone[g] && ring[i] != other[i];
			}
			assert_in_range(own, SLOTS / n, SLOTS / n + 1);
			assert_in_range(moved, 0, SLOTS * 12 / 1000);
		}
	}
}

static void a_weight_moves_little_too(void **state)
{
	unsigned moved = 0;

	(void)state;
	make(16);
	for (size_t i = 0; i < 16; i++)
		backends[i].weight = 100;
	build(16, ring);
	backends[3].weight = 50;
	build(16, other);
	for (size_t i = 0; i < SLOTS; i++)
		moved += ring[i] != other[i];
	/* it loses a half of a sixteenth */
	assert_in_range(moved, SLOTS / 33, SLOTS / 20);
}

static void what_makes_no_ring_is_refused(void **state)
{
	(void)state;
	make(2);
	assert_int_equal(maglev_build(backends, 0, ring, SLOTS), -EINVAL);
	backends[1].weight = 0;
	assert_int_equal(maglev_build(backends, 2, ring, SLOTS), -EINVAL);
}

/* Of the thread's own processor time, which others' work is no part of. */
static uint64_t own_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t fastest(size_t n)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 7; i++) {
		uint64_t start = own_ns(), took;

		build(n, ring);
		took = own_ns() - start;
		best = took < best ? took : best;
	}
	return best;
}

/* Many backends have as many slots to share as few, and take some times as long: not 62 times. */
static void many_take_little_longer_than_few(void **state)
{
	uint64_t few;

	(void)state;
	make(16);
	few = fastest(16);
	make(BACKENDS);
	assert_in_range(fastest(BACKENDS), 0, 32 * few);
}

/* --- the arena --- */

static struct balance_backend backend(const char *addr, uint16_t port)
{
	struct balance_backend b = {.port = port, .weight = 1};

	assert_int_equal(addr_parse(addr, &b.addr), 0);
	return b;
}

static void balancers_arrive_in_the_arena(void **state)
{
	struct balance_backend web[] = {backend("10.0.0.1", 80), backend("10.0.0.2", 80),
					backend("fd00::1", 80), backend("10.0.0.3", 80),
					backend("10.0.0.4", 80)},
			       dns[] = {backend("10.0.0.1", 0)};
	struct balancer balancers[] = {
		{.name = "web", .mode = BALANCE_NAT, .backends = web, .n = ARRAY_SIZE(web)},
		{.name = "dns",
		 .mode = BALANCE_GUE,
		 .affinity = BALANCE_BY_SRC,
		 .gue_port = 6081,
		 .backends = dns,
		 .n = 1}};
	struct rule_list l = {.balancers = balancers, .n_balancers = 2};
	struct real_binding reals[] = {{.slot = 4}, {.slot = 9}, {.slot = 2},
				       {.slot = 0}, {.slot = 1}, {.slot = 7}};
	struct arena a CLEANUP(arena_free) = {0};
	struct ax_layout layout = {0};
	const struct ax_balancer *b;
	const struct ax_real *r;
	const struct ax_quic *quic;
	const uint16_t *slots;
	struct error e = {0};

	(void)state;
	web[3].drain = true;
	web[4].down = true;
	web[0].has_quic_id = web[2].has_quic_id = web[3].has_quic_id = true;
	web[0].quic_id = web[2].quic_id = 5;
	for (size_t i = 0; i < ARRAY_SIZE(reals); i++)
		assert_int_equal(addr_parse(i == 2 ? "fd00::9" : "10.0.0.9", &reals[i].source), 0);
	assert_int_equal(addr_parse("10.0.0.33", &balancers[0].source4), 0);
	assert_int_equal(balancers_compile(&l, reals, &a, &layout, &e), 0);
	assert_int_equal(layout.balancers_n, 2);
	assert_int_equal(layout.backends_n, 10);
	assert_int_equal(layout.nat, 1u << 1 | 1u << 9); /* .33 is 1 of 32, ::9 is 9 */
	b = (const void *)(a.data + layout.balancers);
	r = (const void *)(a.data + layout.backends);
	assert_int_equal(b[0].mode, AX_BALANCE_NAT);
	assert_int_equal(b[1].mode, AX_BALANCE_GUE);
	assert_int_equal(b[0].affinity, AX_BALANCE_BY_FLOW);
	assert_int_equal(b[1].affinity, AX_BALANCE_BY_SRC);
	assert_int_equal(b[1].gue_port_be, htons(6081));
	assert_int_equal(b[1].ring6, 0);
	assert_int_equal(layout.quic, 1);
	assert_int_equal(b[0].quic_n, 6);
	assert_int_equal(b[1].quic_n, 0);
	quic = (const void *)(a.data + b[0].quic);
	assert_int_equal(quic[0].real, 0);
	assert_int_equal(quic[0].real6, AX_QUIC_NOBODY);
	assert_int_equal(quic[1].real, AX_QUIC_NOBODY);
	assert_int_equal(quic[5].real, 4);
	assert_int_equal(quic[5].real6, 2);
	slots = (const void *)(a.data + b[0].ring);
	assert_in_range(count(slots, 4), SLOTS / 2, SLOTS / 2 + 1);
	assert_in_range(count(slots, 9), SLOTS / 2, SLOTS / 2 + 1);
	assert_int_equal(count((const void *)(a.data + b[0].ring6), 2), SLOTS);
	assert_int_equal(count((const void *)(a.data + b[1].ring), 7), SLOTS);
	assert_int_equal(r[3].flags, 0);
	assert_int_equal(r[4].flags, AX_REAL_PRESENT);
	assert_int_equal(r[0].flags, AX_REAL_PRESENT | AX_REAL_DRAIN);
	assert_int_equal(r[1].flags, AX_REAL_PRESENT | AX_REAL_DOWN);
	assert_true(addr_eq(&r[4].source, &balancers[0].source4));
	assert_true(addr_eq(&r[2].source, &reals[2].source));
	assert_true(addr_eq(&r[7].source, &reals[5].source));
	assert_int_equal(r[4].port_be, htons(80));
	assert_int_equal(r[7].balancer, 1);
}

static void a_list_without_balancers_has_nothing(void **state)
{
	struct rule_list l = {0};
	struct arena a CLEANUP(arena_free) = {0};
	struct ax_layout layout = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(balancers_compile(&l, NULL, &a, &layout, &e), 0);
	assert_int_equal(a.size, 0);
	assert_int_equal(layout.balancers_n, 0);
}

static void wrong_numbers_are_refused(void **state)
{
	struct balance_backend web[] = {backend("10.0.0.1", 80), backend("10.0.0.2", 80)};
	struct balancer balancers[] = {
		{.name = "web", .mode = BALANCE_NAT, .backends = web, .n = 2}};
	struct rule_list l = {.balancers = balancers, .n_balancers = 1};
	struct real_binding reals[] = {{.slot = 4}, {.slot = 4}};
	struct arena a CLEANUP(arena_free) = {0};
	struct ax_layout layout = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(balancers_compile(&l, reals, &a, &layout, &e), -EINVAL);
	assert_non_null(strstr(e.text, "number 4"));
	assert_int_equal(balancers_compile(&l, NULL, &a, &layout, &e), -EINVAL);
	reals[1].slot = AX_REAL_NUMBERS;
	assert_int_equal(balancers_compile(&l, reals, &a, &layout, &e), -E2BIG);
	assert_non_null(strstr(e.text, "4096"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_backend_has_its_share),
		cmocka_unit_test(shares_are_as_the_weights),
		cmocka_unit_test(the_order_does_not_matter),
		cmocka_unit_test(the_port_tells_backends_apart),
		cmocka_unit_test(little_moves_when_a_backend_comes_or_goes),
		cmocka_unit_test(a_weight_moves_little_too),
		cmocka_unit_test(what_makes_no_ring_is_refused),
		cmocka_unit_test(many_take_little_longer_than_few),
		cmocka_unit_test(balancers_arrive_in_the_arena),
		cmocka_unit_test(a_list_without_balancers_has_nothing),
		cmocka_unit_test(wrong_numbers_are_refused),
	};

	return cmocka_run_group_tests_name("maglev", tests, NULL, NULL);
}
