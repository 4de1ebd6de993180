/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a histogram of times says in one line. */
#include "tools/trace/show/show.h"

const char *trace_duration_text(uint64_t ns, char buf[TRACE_DURATION_MAX])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double v = (double)ns;
	size_t unit = 0;

	while (v >= 999.5 && unit < ARRAY_SIZE(units) - 1) {
		v /= 1000;
		unit++;
	}
	snprintf(buf, TRACE_DURATION_MAX, "%.*f%s",
		 !unit || v >= 100 ? 0
		 : v >= 10	   ? 1
				   : 2,
		 v, units[unit]);
	return buf;
}

static uint64_t least_of(const struct ax_probe_cell *c)
{
	return ~c->least;
}

/* Within a bucket, times are taken to be spread evenly from its least to its greatest. */
static uint64_t quantile(const struct session_row *rows, size_t n, uint64_t count, double q)
{
	double left = q * (double)count;

	for (size_t i = 0; i < n; i++) {
		const struct ax_probe_cell *c = &rows[i].cell;

		if (left <= (double)c->count)
			return least_of(c) + (uint64_t)(left / (double)c->count *
							(double)(c->most - least_of(c)));
		left -= (double)c->count;
	}
	return n ? rows[n - 1].cell.most : 0;
}

static int compare_keys(const void *a, const void *b, void *arg)
{
	const struct session_row *x = a, *y = b;
	const uint32_t *words = arg;

	for (uint32_t i = 0; i < *words; i++)
		if (x->key[i] != y->key[i])
			return x->key[i] < y->key[i] ? -1 : 1;
	return 0;
}

int trace_times_merge(const struct session_table *fine, uint32_t words, struct session_table *ret)
{
	size_t n = 0;

	*ret = (struct session_table){.v = calloc(fine->n + 1, sizeof(*ret->v)),
				      .words = fine->words};
	if (!ret->v)
		return -ENOMEM;
	for (size_t i = 0; i < fine->n; i++) {
		uint64_t *bucket = &ret->v[i].key[words];

		ret->v[i] = fine->v[i];
		if (*bucket >= AX_BUCKET_FINE)
			*bucket = (*bucket - AX_BUCKET_FINE) >> AX_BUCKETS_FINE_BITS;
	}
	words++;
	qsort_r(ret->v, fine->n, sizeof(*ret->v), compare_keys, &words);
	for (size_t i = 0; i < fine->n; i++)
		if (n && !compare_keys(&ret->v[n - 1], &ret->v[i], &words))
			ret->v[n - 1].cell.count += ret->v[i].cell.count;
		else
			ret->v[n++] = ret->v[i];
	ret->n = n;
	return 0;
}

bool trace_times_of(const struct session_row *rows, size_t n, struct trace_times *ret)
{
	uint64_t sum = 0;

	*ret = (struct trace_times){.least = UINT64_MAX};
	for (size_t i = 0; i < n; i++) {
		const struct ax_probe_cell *c = &rows[i].cell;

		if (least_of(c) > c->most) /* pinned by an ax that did not keep them */
			return false;
		ret->count += c->count;
		sum += c->sum;
		if (c->most > ret->greatest)
			ret->greatest = c->most;
		if (least_of(c) < ret->least)
			ret->least = least_of(c);
	}
	if (!ret->count)
		return false;
	ret->mean = (double)sum / (double)ret->count;
	ret->p50 = quantile(rows, n, ret->count, 0.5);
	ret->p90 = quantile(rows, n, ret->count, 0.9);
	ret->p99 = quantile(rows, n, ret->count, 0.99);
	return true;
}

void trace_put_times(struct trace_out *o, const struct trace_times *t)
{
	char a[6][TRACE_DURATION_MAX], count[TRACE_THOUSANDS_MAX];

	trace_out_printf(o,
			 "%s time%s: mean %s, 50%% up to %s, 90%% %s, 99%% %s, least %s, "
			 "greatest %s\n",
			 trace_thousands(t->count, count), t->count == 1 ? "" : "s",
			 trace_duration_text((uint64_t)t->mean, a[0]),
			 trace_duration_text(t->p50, a[1]), trace_duration_text(t->p90, a[2]),
			 trace_duration_text(t->p99, a[3]), trace_duration_text(t->least, a[4]),
			 trace_duration_text(t->greatest, a[5]));
}

void trace_put_json_times(struct trace_out *o, const struct trace_times *t)
{
	trace_out_printf(o,
			 ",\"unit\":\"ns\",\"mean\":%.1f,\"p50\":%llu,\"p90\":%llu,"
			 "\"p99\":%llu,\"least\":%llu,\"greatest\":%llu",
			 t->mean, (unsigned long long)t->p50, (unsigned long long)t->p90,
			 (unsigned long long)t->p99, (unsigned long long)t->least,
			 (unsigned long long)t->greatest);
}
