// SPDX-License-Identifier: GPL-2.0-or-later
/* What one CPU or thread wrote to its AUX buffer comes in pieces. */
#include "tools/trace/perfdata/perfdata.h"

const char *perf_queue_text(const struct perfdata_aux *a, char buf[PERF_QUEUE_TEXT])
{
	if (a->cpu != UINT32_MAX)
		snprintf(buf, PERF_QUEUE_TEXT, "cpu %u", a->cpu);
	else if (a->tid != UINT32_MAX)
		snprintf(buf, PERF_QUEUE_TEXT, "tid %u", a->tid);
	else
		snprintf(buf, PERF_QUEUE_TEXT, "buffer %u", a->idx);
	return buf;
}

bool perf_same_queue(const struct perfdata_aux *a, const struct perfdata_aux *b)
{
	if (a->cpu != b->cpu)
		return false;
	return a->cpu != UINT32_MAX || (a->tid == b->tid && a->idx == b->idx);
}

void *perf_queue_at(void *list, size_t *n, size_t size, const struct perfdata_aux *a, size_t *at,
		    struct error *e)
{
	char *v = list;

	for (*at = 0; *at < *n; (*at)++)
		if (perf_same_queue((const void *)(v + *at * size), a))
			return v;
	if (*n >= PERF_QUEUES_MAX) {
		error_set(e, -E2BIG, "the file has traces of more than %d CPUs", PERF_QUEUES_MAX);
		return NULL;
	}
	v = realloc(v, (*n + 1) * size);
	if (!v) {
		error_set(e, -ENOMEM, "out of memory");
		return NULL;
	}
	memset(v + *n * size, 0, size);
	memcpy(v + *n * size, a, sizeof(*a));
	(*n)++;
	return v;
}
