// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/text/action.h"

int trace_buckets_parse(const char *text, struct trace_buckets *ret, struct error *e)
{
	long long least, most, step;
	int end = 0;

	if (sscanf(text, "%lld,%lld,%lld%n", &least, &most, &step, &end) != 3 || text[end] ||
	    least >= most || step <= 0 ||
	    ((unsigned long long)most - (unsigned long long)least) / (unsigned long long)step >
		    TRACE_BUCKETS_MAX)
		return error_set(e, -EINVAL,
				 "'%.60s' are no linear buckets: expected LEAST,GREATEST,STEP with "
				 "at most %d steps, as in 0,100,10",
				 text, TRACE_BUCKETS_MAX);
	*ret = (struct trace_buckets){
		.least = least,
		.step = (uint64_t)step,
		.n = (uint32_t)(((uint64_t)most - (uint64_t)least + (uint64_t)step - 1) /
				(uint64_t)step),
	};
	return 0;
}
