// SPDX-License-Identifier: GPL-2.0-or-later
/* Values of what an app may use: sizes, processors, processes, volumes. */
#include "config/limits.h"

#include <ctype.h>

uint64_t size_parse(const char *s, uint64_t max)
{
	static const char units[] = "KMG";
	uint64_t value = 0;
	const char *p = s, *unit;

	for (; isdigit((unsigned char)*p) && value <= max; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	unit = *p ? strchr(units, toupper((unsigned char)*p)) : NULL;
	if (p == s || (*p && (!unit || p[1])))
		return 0;
	for (ptrdiff_t i = unit ? unit - units + 1 : 0; i > 0 && value <= max; i--)
		value *= 1024;
	return value > max ? 0 : value;
}

const char *want_memory(const char *s, uint64_t *ret)
{
	uint64_t size = size_parse(s, CONFIG_MEMORY_MAX);

	if (size < CONFIG_MEMORY_MIN)
		return "a size of 1M to 1024G, such as 512M";
	*ret = size;
	return NULL;
}

/* "1.5" is 1500. */
const char *want_cpus(const char *s, uint32_t *ret)
{
	uint32_t value = 0, unit = 1000;
	const char *p = s;

	for (; isdigit((unsigned char)*p) && value <= CONFIG_CPUS_MAX; p++)
		value = value * 10 + (uint32_t)(*p - '0');
	value *= 1000;
	if (p != s && *p == '.' && isdigit((unsigned char)p[1]))
		for (p++; isdigit((unsigned char)*p) && unit > 1; p++)
			value += (uint32_t)(*p - '0') * (unit /= 10);
	if (p == s || *p || value < CONFIG_CPUS_MIN || value > CONFIG_CPUS_MAX * 1000)
		return "a number of processors of 0.01 to 4096, such as 1.5";
	*ret = value;
	return NULL;
}

const char *want_pids(const char *s, uint32_t *ret)
{
	uint32_t value = 0;
	const char *p = s;

	for (; isdigit((unsigned char)*p) && value <= CONFIG_PIDS_MAX; p++)
		value = value * 10 + (uint32_t)(*p - '0');
	if (p == s || *p || value < 1 || value > CONFIG_PIDS_MAX)
		return "a number of processes of 1 to 4194304";
	*ret = value;
	return NULL;
}

static bool is_path(const char *s, size_t len)
{
	return len > 0 && len < VOLUME_PATH_MAX && s[0] == '/';
}

const char *want_volume(const char *s, struct volume *ret)
{
	static const char what[] = "SOURCE:TARGET or SOURCE:TARGET:ro, with absolute paths";
	size_t source = strcspn(s, ":"), target;
	const char *to, *mode;

	if (!is_path(s, source) || !s[source])
		return what;
	to = s + source + 1;
	target = strcspn(to, ":");
	mode = to + target;
	if (!is_path(to, target) || (*mode && !streq(mode, ":ro") && !streq(mode, ":rw")))
		return what;
	if (strspn(to, "/") == target)
		return "a TARGET other than /";
	memcpy(ret->source, s, source);
	ret->source[source] = 0;
	memcpy(ret->target, to, target);
	ret->target[target] = 0;
	ret->read_only = streq(mode, ":ro");
	return NULL;
}
