// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times of the week, in minutes of local time from Monday 00:00 on:
 *
 *   [DAYS/]FROM-TO     08:00-18:00, mon-fri/08:00-18:00, fri/22:00-06:00 (it ends on Saturday)
 *   DAYS               sat-sun
 *
 * TO does not belong to it; 24:00 is a day's end.
 */
#include <ctype.h>

#include "rules/field.h"
#include "rules/priv.h"

#define DAYS	  7
#define DAY	  (24 * 60)
#define ALL_DAYS  ((1u << DAYS) - 1)
#define PARTS_MAX (DAY / 2) /* of a day, with something between each and the next */

_Static_assert(AX_TIME_MINUTES == DAYS * DAY, "a week");

static const char *const day_names[DAYS] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

/* --- reading --- */

/* "08:00"; behind it *end. Minutes of the day, -EINVAL. */
static int read_clock(const char *s, const char **end)
{
	int n[2];

	for (int i = 0; i < 2; i++) {
		if (!isdigit((unsigned char)s[0]) || !isdigit((unsigned char)s[1]))
			return -EINVAL;
		n[i] = (s[0] - '0') * 10 + s[1] - '0';
		s += 2;
		if (i == 0 && *s++ != ':')
			return -EINVAL;
	}
	*end = s;
	if (n[1] > 59 || n[0] * 60 + n[1] > DAY)
		return -EINVAL;
	return n[0] * 60 + n[1];
}

static int read_day(const char **s)
{
	for (int i = 0; i < DAYS; i++)
		if (strncmp(*s, day_names[i], 3) == 0) {
			*s += 3;
			return i;
		}
	return -EINVAL;
}

/* "mon", "mon-fri" or "sat-mon", as bits. */
static int read_days(const char **s)
{
	int first = read_day(s), last = first, bits = 0;

	if (first >= 0 && **s == '-') {
		++*s;
		last = read_day(s);
	}
	if (first < 0 || last < 0)
		return -EINVAL;
	for (int i = first;; i = (i + 1) % DAYS) {
		bits |= 1 << i;
		if (i == last)
			return bits;
	}
}

int time_parse(const char *s)
{
	int day = read_day(&s), minute;

	if (day < 0 || *s++ != ' ')
		return -EINVAL;
	minute = read_clock(s, &s);
	return minute < 0 || minute == DAY || *s ? -EINVAL : day * DAY + minute;
}

/* Minutes from..to-1 of the week; what is behind its end is at its beginning. */
static int add_minutes(struct condition *c, uint32_t from, uint32_t to)
{
	const struct range over = {0, to - AX_TIME_MINUTES - 1};
	struct range range = {from, to - 1};
	int r;

	if (to > AX_TIME_MINUTES)
		range.hi = AX_TIME_MINUTES - 1;
	r = field_add_range(c, &range);
	return r || to <= AX_TIME_MINUTES ? r : field_add_range(c, &over);
}

int time_add(const struct rule_field *row, struct condition *c, const char *item,
	     struct rule_fault *f)
{
	int days = ALL_DAYS, from = 0, to = DAY, r = 0;

	(void)row;
	if (!isdigit((unsigned char)*item)) {
		days = read_days(&item);
		if (days < 0 || (*item && *item != '/'))
			return -EINVAL;
	}
	if (*item) {
		item += *item == '/';
		from = read_clock(item, &item);
		if (from < 0 || *item != '-')
			return -EINVAL;
		to = read_clock(item + 1, &item);
		if (to < 0 || *item)
			return -EINVAL;
	}
	if (from == to || from == DAY)
		return fault_set(f, NULL, "a time that lasts: to 24:00 is to the day's end");
	if (to < from)
		to += DAY;
	for (uint32_t i = 0; i < DAYS && !r; i++)
		if (days & 1 << i)
			r = add_minutes(c, i * DAY + (uint32_t)from, i * DAY + (uint32_t)to);
	return r;
}

/* --- writing --- */

struct day {
	struct range parts[PARTS_MAX]; /* minutes of the day */
	size_t n;
};

/* Of sorted ranges that do not touch. */
static void cut_day(const struct condition *c, uint32_t day, struct day *ret)
{
	uint32_t first = day * DAY, last = first + DAY - 1;

	ret->n = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct range r = c->ranges[i];

		if (r.hi < first || r.lo > last)
			continue;
		ret->parts[ret->n].lo = r.lo < first ? 0 : r.lo - first;
		ret->parts[ret->n++].hi = r.hi > last ? DAY - 1 : r.hi - first;
	}
}

static bool same_day(const struct day *a, const struct day *b)
{
	return a->n == b->n && memcmp(a->parts, b->parts, a->n * sizeof(a->parts[0])) == 0;
}

static void put_days(FILE *f, unsigned days)
{
	int first = __builtin_ctz(days), last = 31 - __builtin_clz(days);

	fputs(day_names[first], f);
	if (last != first)
		fprintf(f, "-%s", day_names[last]);
}

/* The parts of days (bits) that are neighbours. */
static void put_parts(struct field_text *to, unsigned days, const struct day *day)
{
	for (size_t i = 0; i < day->n; i++) {
		const struct range *r = &day->parts[i];
		bool whole = r->hi - r->lo == DAY - 1;

		field_separate(to);
		if (days != ALL_DAYS || whole)
			put_days(to->f, days);
		if (whole)
			continue;
		fprintf(to->f, "%s%02u:%02u-%02u:%02u", days != ALL_DAYS ? "/" : "", r->lo / 60,
			r->lo % 60, (r->hi + 1) / 60, (r->hi + 1) % 60);
	}
}

void time_write(struct field_text *to, const struct condition *c)
{
	struct day day[2]; /* like those before it; this one */
	unsigned days = 0;

	for (uint32_t i = 0; i < DAYS; i++) {
		cut_day(c, i, &day[1]);
		if (days && !same_day(&day[0], &day[1])) {
			put_parts(to, days, &day[0]);
			days = 0;
		}
		days |= 1u << i;
		day[0] = day[1];
	}
	put_parts(to, days, &day[0]);
}
