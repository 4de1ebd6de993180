// SPDX-License-Identifier: GPL-2.0-or-later
/* The rule compiler: sets as large as ax.yaml(5) says that they may be, with scattered elements. */
// timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/compiled.h"
#include "tests/lib/quick.h"

/* What ax.yaml(5), SETS, promises. */
#define MOST_V4	      16777216u
#define MOST_NETWORKS 4194304u
#define MOST_V6	      2097152u

/* Every number of 64 bits comes from one other, and neighbours from such as are far apart. */
static uint64_t scatter(uint64_t i)
{
	i = (i ^ i >> 31) * 0x7fb5d329728ea185ull;
	i = (i ^ i >> 27) * 0x81dadef4bc2dd44dull;
	return i ^ i >> 33;
}

static struct prefix address4(uint32_t i)
{
	i = (i ^ i >> 16) * 0x45d9f3bu; /* as above, of 32 bits */
	i = (i ^ i >> 16) * 0x45d9f3bu;
	return (struct prefix){.addr = addr_from_v4(htonl(i ^ i >> 16)), .len = 128};
}

static struct prefix network6(uint32_t i)
{
	uint64_t high = scatter(i) >> 3 | 1ull << 61; /* of 2000::/3 */
	struct prefix p = {.len = 64};

	for (int b = 0; b < 8; b++)
		p.addr.b[b] = (uint8_t)(high >> (56 - 8 * b));
	return p;
}

static struct prefix address6(uint32_t i)
{
	struct prefix p = network6(i);
	uint64_t low = scatter(~(uint64_t)i);

	memcpy(&p.addr.b[8], &low, sizeof(low));
	p.len = 128;
	return p;
}

/* A list that drops what comes from so many. */
static void list_of(struct rule_list *l, size_t n, struct prefix (*element)(uint32_t i))
{
	struct rule_set_def *s;

	rule_list_init(l);
	add_set(l, "big", SET_PREFIXES, "");
	add_rule(l, "src @big action drop");
	s = &l->sets[0];
	s->prefixes = malloc(n * sizeof(*s->prefixes));
	assert_non_null(s->prefixes);
	for (s->n = 0; s->n < n; s->n++)
		s->prefixes[s->n] = element((uint32_t)s->n);
	assert_int_equal(set_sort(s), 0);
	assert_int_equal(s->n, n); /* they were different ones */
}

static size_t judge(const struct compiled *c, struct prefix from)
{
	struct match_packet p = packet("192.0.2.1", "192.0.2.2", 17, 53);

	p.src = from.addr;
	p.v4 = addr_is_v4(&p.src);
	p.dst = p.v4 ? p.dst : p.src;
	return compiled_judge(c, &p);
}

/* They are found, and others are not (`make check-quick`: a part of them). */
static void check_most(size_t n, struct prefix (*element)(uint32_t i))
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	n /= quick_or(16, 1);
	list_of(&l, n, element);
	c = compile(&l);
	print_message("# %zu elements: %zu MiB\n", n, c.a.size >> 20);
	for (uint32_t i = 0; i < n; i += 997) {
		assert_int_equal(judge(&c, element(i)), 0);
		assert_int_equal(judge(&c, element((uint32_t)n + i)), 1);
	}
	arena_free(&c.a);
}

static void as_many_addresses_as_a_set_may_have(void **state)
{
	(void)state;
	check_most(MOST_V4, address4);
}

static void as_many_networks_of_ipv6(void **state)
{
	(void)state;
	check_most(MOST_NETWORKS, network6);
}

static void as_many_addresses_of_ipv6(void **state)
{
	(void)state;
	check_most(MOST_V6, address6);
}

static void one_element_more_is_refused(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct rule_set_def *s;
	struct error e = {0};
	char text[64];

	(void)state;
	list_of(&l, MOST_V4, address4);
	s = &l.sets[0];
	assert_non_null(
		inet_ntop(AF_INET, &s->prefixes[MOST_V4 / 2].addr.b[12], text, sizeof(text)));
	strcat(text, "\n2001:db8::1");
	assert_int_equal(set_parse(s, text, strlen(text), "elements", &e), -E2BIG);
	assert_non_null(strstr(e.text, "elements has too many elements: use at most 16777216"));
	assert_int_equal(s->n, MOST_V4);
}

/* Which of them are too many depends on where they are; so many always are. */
static void more_than_there_is_room_for_is_refused(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct error e = {0};
	struct compiled c;

	(void)state;
	list_of(&l, 2 * MOST_NETWORKS, network6);
	assert_int_equal(try_compile(&l, &c, &e), -E2BIG);
	assert_non_null(strstr(e.text, "bigger than 448 MiB: use smaller sets"));
	assert_null(c.a.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_addresses_as_a_set_may_have),
		cmocka_unit_test(as_many_networks_of_ipv6),
		cmocka_unit_test(as_many_addresses_of_ipv6),
		cmocka_unit_test(one_element_more_is_refused),
		cmocka_unit_test(more_than_there_is_room_for_is_refused),
	};

	/* the last two need all of them */
	return _cmocka_run_group_tests("compile_large", tests, ARRAY_SIZE(tests) - quick_or(2, 0),
				       NULL, NULL);
}
