/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is done with what a probe fetches. */
#ifndef AX_PROBES_TEXT_ACTION_H
#define AX_PROBES_TEXT_ACTION_H

#include "base/util.h"

#define TRACE_BUCKETS_MAX 1000 /* of a linear histogram */

enum trace_action {
	TRACE_WATCH,
	TRACE_COUNT,
	TRACE_HIST,
	TRACE_STATS,
	TRACE_LATENCY,
	TRACE_ARM, /* a state that other probes test */
	TRACE_DISARM,
	TRACE_START, /* of the time that a TRACE_LATENCY of the session measures */
	TRACE_PRINT, /* as TRACE_WATCH, but nothing that was not asked for */
	TRACE_SET,   /* a variable; or nothing: only whether what follows happens */
};

/* Where the buckets of a linear histogram are; a step of 0: powers of two. */
struct trace_buckets {
	int64_t least;
	uint64_t step;
	uint32_t n;
	bool fine; /* each power of two has AX_BUCKETS_FINE, for quantiles */
};
/* LEAST,GREATEST,STEP */
int trace_buckets_parse(const char *text, struct trace_buckets *ret, struct error *e);

#endif
