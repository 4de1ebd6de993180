// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as perf.data: events lie in it one behind the other, fields inside of their events, and
 * the packets of its traces in their order. */
#include "probes/perfdata/perfdata.h"
#include "probes/pt/pt.h"
#include "tests/lib/perf_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNPACKED_MAX (8u << 20) /* a small file may be many events */

static void check(bool good)
{
	if (!good)
		abort();
}

struct depth {
	unsigned n;
	uint64_t sum;
};

static void on_field(void *arg, const struct perfdata_field *f)
{
	struct depth *d = arg;

	if (f->kind == PERFDATA_LIST || f->kind == PERFDATA_OBJECT)
		d->n++;
	check(f->kind != PERFDATA_END || d->n-- > 0);
	for (size_t i = 0; i < f->len; i++)
		d->sum += (uint8_t)f->data[i];
}

static void decode(struct pt_packets *pt, const uint8_t *bytes, size_t n, uint64_t *end)
{
	struct error e = {0};
	struct pt_one one;

	check(pt_packets_give(pt, bytes, n, &e) == 0);
	while (pt_packets_next(pt, &one)) {
		check(one.offset == *end && one.size > 0);
		*end += one.size;
		check(pt_kind_name(one.kind) && one.n_bits <= 64);
	}
}

static void see_trace(struct perfdata *p)
{
	static uint8_t bytes[1 << 12];
	struct pt_packets *pt = NULL;
	struct error e = {0};
	struct pt_one one;
	uint64_t end = 64;
	size_t n;

	check(pt_packets_new(&pt, &e) == 0);
	pt_packets_begin(pt, end);
	while (perfdata_payload(p, bytes, sizeof(bytes), &n, &e) == 0 && n)
		decode(pt, bytes, n, &end);
	while (pt_packets_last(pt, &one)) {
		check(one.offset == end && one.size > 0);
		end += one.size;
	}
	pt_packets_free(pt);
}

static void see_events(struct perfdata *p, size_t size)
{
	struct depth d = {0};
	struct perfdata_sink sink = {on_field, &d};
	struct perfdata_event ev;
	struct perfdata_when when;
	struct perfdata_aux aux;
	struct error e = {0};
	uint64_t end = 0, unpacked = 0;
	int r;

	while ((r = perfdata_next(p, &ev, &e)) > 0) {
		check(ev.size >= 8 && ev.offset + (ev.unpacked ? 8 : ev.size) <= size);
		check(ev.unpacked || ev.offset >= end);
		end = ev.unpacked ? end : ev.offset + ev.size;
		unpacked += ev.unpacked ? ev.size : 0;
		if (unpacked > UNPACKED_MAX)
			return;
		perfdata_describe(p, &ev, &sink);
		check(d.n == 0);
		perfdata_when(p, &ev, &when);
		if (perfdata_aux(p, &ev, &aux))
			see_trace(p);
	}
	check(r == 0 || *e.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct depth d = {0};
	struct perfdata_sink sink = {on_field, &d};
	struct perfdata *p = NULL;
	struct error e = {0};
	unsigned bit = 0;

	if (perfdata_open(perf_memory_file(data, size), "x", &p, &e) < 0) {
		check(*e.text);
		return 0;
	}
	for (size_t i = 0; perfdata_attr(p, i); i++)
		perfdata_describe_attr(perfdata_attr(p, i), &sink);
	while (perfdata_feature(p, &bit, &sink, &e))
		;
	see_events(p, size);
	check(d.n == 0);
	perfdata_close(p);
	return 0;
}
