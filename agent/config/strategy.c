/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/strategy.h"
#include "service.h"

static const char *const names[] = {
	[AX_STRATEGY_RANDOM] = "random",
	[AX_STRATEGY_ROUND_ROBIN] = "round-robin",
	[AX_STRATEGY_LEAST_CONNECTIONS] = "least-connections",
	[AX_STRATEGY_MAGLEV] = "maglev",
};
_Static_assert(ARRAY_SIZE(names) == AX_STRATEGIES, "every strategy has a name");

const char *strategy_name(uint32_t strategy)
{
	return strategy < AX_STRATEGIES ? names[strategy] : "?";
}

const char *strategy_nth(size_t i)
{
	return i < AX_STRATEGIES ? names[i] : NULL;
}

bool strategy_parse(const char *s, uint32_t *ret)
{
	for (uint32_t i = 0; i < AX_STRATEGIES; i++) {
		if (!streq(s, names[i]))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

void strategy_list(char *buf, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < AX_STRATEGIES && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s",
					 !i			 ? ""
					 : i < AX_STRATEGIES - 1 ? ", "
								 : " or ",
					 names[i]);
}
