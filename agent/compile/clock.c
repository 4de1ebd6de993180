// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How the machine's local time goes, for rules that hold at times only: programs have no time
 * zones, and need not have an agent that tells them when clocks are put forward or back.
 */
#include <sys/timex.h>
#include <time.h>

#include "compile/priv.h"

#define DAY_S	  86400
#define LOOK_DAYS (8 * 366) /* so far ahead it is looked for changes */

_Static_assert(2 * LOOK_DAYS / 366 + 2 <= AX_CLOCKS, "now and two changes a year have room");

/* East of Greenwich, in seconds. */
static int64_t offset_at(time_t t)
{
	struct tm tm;

	return localtime_r(&t, &tm) ? tm.tm_gmtoff : 0;
}

/* The first second of (before, after] at which it is no longer what it was before. */
static time_t find_change(time_t before, time_t after)
{
	int64_t was = offset_at(before);

	while (after - before > 1) {
		time_t mid = before + (after - before) / 2;

		if (offset_at(mid) == was)
			before = mid;
		else
			after = mid;
	}
	return after;
}

/* 1970-01-01, from which the kernel counts, was a Thursday. */
static void add_clock(struct ax_layout *layout, time_t from, int64_t tai)
{
	layout->clocks[layout->clocks_n++] = (struct ax_clock){
		.from_s = (uint64_t)(from + tai),
		.ahead_s = (uint64_t)(3 * DAY_S + offset_at(from) - tai),
	};
}

void compile_clocks(struct ax_layout *layout)
{
	struct timex x = {0};
	time_t now = time(NULL);
	int64_t tai = 0;

	if (!layout->field[AX_FIELD_TIME].used)
		return;
	/* What CLOCK_TAI is ahead of UTC: 0 where nobody has told the kernel of leap seconds. */
	if (adjtimex(&x) >= 0)
		tai = x.tai;
	tzset(); /* of a zone that has changed since, too; localtime_r() need not do that */
	add_clock(layout, now, tai);
	layout->clocks[0].from_s = 0;
	for (int day = 0; day < LOOK_DAYS && layout->clocks_n < AX_CLOCKS; day++) {
		time_t t = now + (time_t)day * DAY_S;

		if (offset_at(t) != offset_at(t + DAY_S))
			add_clock(layout, find_change(t, t + DAY_S), tai);
	}
}
