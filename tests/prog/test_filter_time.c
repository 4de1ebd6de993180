// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules that hold at times: what is asked for by explain, and by what the machine's clock shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <sys/timex.h>
#include <time.h>

#include "rules/rule.h"
#include "tests/lib/filter.h"

#define PACKET "udp 10.0.0.1:1 > 10.0.0.2:2"
/* Rules behind the first, for bit vectors. */
#define OTHERS                                                                               \
	"  - {src: 172.16.0.0/16, dst: 172.17.0.0/16, sport: 1-5, dport: 7, action: drop}\n" \
	"  - {mac: '02:00:00:00:00:09', length: 100-, ttl: 3, action: drop}\n"

/* Whether the rule `at` decides in that minute. */
static bool holds(int minute)
{
	const struct xdp_assumed as = {.state = AX_STATE_UNASKED, .minute = (uint16_t)minute};
	struct xdp_explanation r;
	struct frame_bytes f;
	struct error e = {0};
	bool ret;

	assert_true(minute >= 0);
	read_frame(PACKET, &f);
	if (xdp_explain_as(filter.x, f.b, f.len, &as, &r, &e))
		fail_msg("%s", e.text);
	ret = strcmp(r.rule, "at") == 0;
	xdp_explanation_free(&r);
	return ret;
}

static void assert_hours(void)
{
	assert_false(holds(time_parse("mon 07:59")));
	assert_true(holds(time_parse("mon 08:00")));
	assert_true(holds(time_parse("fri 17:59")));
	assert_false(holds(time_parse("fri 18:00")));
	assert_false(holds(time_parse("sat 12:00")));
	assert_true(holds(time_parse("sat 22:00")));
	assert_true(holds(time_parse("sun 00:00")));
	assert_true(holds(time_parse("sun 23:59")));
	assert_false(holds(time_parse("mon 00:00")));
}

#define HOURS "{name: at, time: [mon-fri/08:00-18:00, sat/22:00-06:00, sun], action: drop}\n"

static void a_rule_holds_at_its_times(void **state)
{
	(void)state;
	filter_load("rules:\n  - " HOURS);
	assert_hours();
	filter_load("rules:\n  - {src: 10.9.0.0/16, action: pass}\n  - " HOURS);
	assert_hours();
	filter_load("rules:\n  - " HOURS OTHERS);
	assert_hours();
}

/* The minute of the week, as the C library has it. */
static int local_minute(void)
{
	time_t now = time(NULL);
	struct tm tm;

	assert_non_null(localtime_r(&now, &tm));
	return (tm.tm_wday + 6) % 7 * 1440 + tm.tm_hour * 60 + tm.tm_min;
}

static void put_time(FILE *f, int minute)
{
	static const char *const days[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

	/* from that minute on, for three: the clock goes on meanwhile */
	fprintf(f, "%s/%02d:%02d-%02d:%02d", days[minute / 1440], minute % 1440 / 60, minute % 60,
		(minute + 3) % 1440 / 60, (minute + 3) % 60);
}

static void load_at(int minute)
{
	char list[256];
	FILE *f = fmemopen(list, sizeof(list), "w");

	assert_non_null(f);
	fputs("rules:\n  - {name: at, time: ", f);
	put_time(f, (minute + 10080) % 10080);
	fputs(", action: drop}\n", f);
	assert_int_equal(fclose(f), 0);
	filter_load(list);
}

static void now_is_what_clocks_here_show(void **state)
{
	/* (east of Greenwich is negative there) */
	static const char *const zones[] = {"UTC0",
					    "NPT-5:45",
					    "HST10",
					    "CET-1CEST,M3.5.0,M10.5.0/3",
					    "XXX-3YYY,J1/0,J365/25",
					    "LINT-14"};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		setenv("TZ", zones[i], 1);
		tzset();
		load_at(local_minute());
		if (filter_run(PACKET) != XDP_DROP)
			fail_msg("%s: it is not now", zones[i]);
		load_at(local_minute() + 60);
		if (filter_run(PACKET) != XDP_PASS)
			fail_msg("%s: it is an hour from now", zones[i]);
		load_at(local_minute() - 60);
		if (filter_run(PACKET) != XDP_PASS)
			fail_msg("%s: it was an hour ago", zones[i]);
	}
	unsetenv("TZ");
	tzset();
}

/* What the layout says of a moment of CLOCK_TAI: by how many seconds local time is ahead of it. */
static int64_t ahead_at(const struct ax_layout *l, uint64_t t)
{
	uint64_t ahead = l->clocks[0].ahead_s;

	for (uint32_t i = 1; i < l->clocks_n; i++)
		if (t >= l->clocks[i].from_s)
			ahead = l->clocks[i].ahead_s;
	return (int64_t)ahead - 3 * 86400;
}

static void clocks_are_put_forward_and_back(void **state)
{
	const struct ax_layout *l = &filter.g.layout;
	time_t now = time(NULL);
	struct timex x = {0};

	(void)state;
	assert_true(adjtimex(&x) >= 0);
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	load_at(0);
	/* now, and two a year: none was left out */
	assert_in_range(l->clocks_n, 1 + 2 * 8, AX_CLOCKS);
	for (time_t t = now; t < now + 8L * 365 * 86400; t += 1800) {
		struct tm tm;

		localtime_r(&t, &tm);
		assert_int_equal(ahead_at(l, (uint64_t)(t + x.tai)) + x.tai, tm.tm_gmtoff);
	}
	unsetenv("TZ");
	tzset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_holds_at_its_times),
		cmocka_unit_test(now_is_what_clocks_here_show),
		cmocka_unit_test(clocks_are_put_forward_and_back),
	};
	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
