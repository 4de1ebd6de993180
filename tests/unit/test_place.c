// SPDX-License-Identifier: GPL-2.0-or-later
/* The word that says where a rule list is: an interface's name, with its direction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/place.h"

static void a_place_is_made_and_read(void **state)
{
	static const struct {
		const char *from;
		enum xdp_direction d;
		const char *place, *ifname;
	} rows[] = {
		{"eth0", DIRECTION_INGRESS, "eth0", "eth0"},
		{"eth0", DIRECTION_EGRESS, "eth0:egress", "eth0"},
		{"eth0:egress", DIRECTION_EGRESS, "eth0:egress", "eth0"},
		{"eth0:egress", DIRECTION_INGRESS, "eth0", "eth0"},
		/* names of interfaces as they may be */
		{"eth0.egress", DIRECTION_INGRESS, "eth0.egress", "eth0.egress"},
		{"eth0.egress", DIRECTION_EGRESS, "eth0.egress:egress", "eth0.egress"},
		{"abcdefghijklmno", DIRECTION_EGRESS, "abcdefghijklmno:egress", "abcdefghijklmno"},
		/* and of none: they must not become that of one */
		{"abcdefghijklmnop", DIRECTION_EGRESS, "abcdefghijklmnop:egress", ""},
		{":egress", DIRECTION_INGRESS, ":egress", ":egress"},
		{"", DIRECTION_INGRESS, "", ""},
		{"a-name-that-is-much-longer-than-any-place", DIRECTION_EGRESS,
		 "a-name-that-is-much-:egress", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char place[PLACE_MAX], name[IF_NAMESIZE];

		place_make(place, rows[i].from, rows[i].d);
		assert_string_equal(place, rows[i].place);
		assert_int_equal(place_direction(place), rows[i].d);
		place_ifname(place, name);
		assert_string_equal(name, rows[i].ifname);
		assert_true(place_is_at(place, rows[i].ifname));
	}
	assert_false(place_is_at("eth0:egress", "eth1"));
}

static void the_interface_is_found(void **state)
{
	(void)state;
	assert_int_equal(place_ifindex("lo"), place_ifindex("lo:egress"));
	assert_int_not_equal(place_ifindex("lo:egress"), 0);
	assert_int_equal(place_ifindex("there-is-none:egress"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_is_made_and_read),
		cmocka_unit_test(the_interface_is_found),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
