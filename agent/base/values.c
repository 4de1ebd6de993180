// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/values.h"

#include <ctype.h>

#define NAME_MAX_LEN	63
#define DURATION_MAX_MS (24u * 60 * 60 * 1000)
#define PARTS_MAX	1000000

const char *want_name(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > NAME_MAX_LEN || s[0] == '-' || s[len - 1] == '-' ||
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return "a name of 1 to 63 lower-case letters, digits and hyphens (none at its "
		       "ends)";
	return NULL;
}

const char *want_app_name(const char *s)
{
	const char *dot = strchr(s, '.');
	char name[NAME_MAX_LEN + 1];

	if (!dot)
		return want_name(s);
	snprintf(name, sizeof(name), "%.*s", (int)(dot - s), s);
	if (strlen(s) > NAME_MAX_LEN || want_name(name) || want_name(dot + 1))
		return "a name, or NAME.CLUSTER of another cluster's app, of 1 to 63 lower-case "
		       "letters, digits and hyphens";
	return NULL;
}

const char *want_duration_ms(const char *s, uint32_t *ret)
{
	static const struct {
		const char *suffix;
		uint32_t ms;
	} units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}};
	uint64_t value = 0, parts = 1; /* that a unit is divided into */
	const char *p = s;

	for (; isdigit((unsigned char)*p) && value <= DURATION_MAX_MS; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	if (p != s && *p == '.' && isdigit((unsigned char)p[1]))
		for (p++; isdigit((unsigned char)*p) && parts < PARTS_MAX; p++, parts *= 10)
			value = value * 10 + (uint64_t)(*p - '0');
	for (size_t i = 0; p != s && i < ARRAY_SIZE(units); i++) {
		uint64_t ms = value * units[i].ms / parts;

		if (!streq(p, units[i].suffix))
			continue;
		if (ms > DURATION_MAX_MS || ms * parts != value * units[i].ms)
			break;
		*ret = (uint32_t)ms;
		return NULL;
	}
	return "a duration such as 5s, 300ms or 2m, at most 24 hours (1440m)";
}
