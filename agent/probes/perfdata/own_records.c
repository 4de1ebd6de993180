// SPDX-License-Identifier: GPL-2.0-or-later
/* Events that perf itself writes between those of the kernel. */
#include "probes/perfdata/priv.h"

static void put_pid(struct describer *d, const char *name)
{
	put_signed(d->to, name, (int32_t)take_u32(&d->c));
}

static void describe_attr(struct describer *d)
{
	struct cursor size_at = d->c;
	struct perfdata_attr a = {0};
	struct cursor own;
	const uint8_t *at;
	uint32_t size;

	take_u32(&size_at);
	size = take_u32(&size_at);
	if (!size)
		size = ATTR_MIN;
	at = take(&d->c, size);
	if (!at)
		return;
	own = cursor_of(d->p, at, size);
	attr_read(&own, &a);
	perfdata_describe_attr(&a, d->to);
	put_begin(d->to, "ids", PERFDATA_LIST);
	while (left(&d->c) >= 8)
		put_number(d->to, NULL, take_u64(&d->c));
	put_end(d->to);
}

static void describe_event_type(struct describer *d)
{
	put_number(d->to, "event_id", take_u64(&d->c));
	put_text(d->to, "name", d->c.p, left(&d->c));
}

static void describe_tracing_data(struct describer *d)
{
	put_number(d->to, "size", take_u32(&d->c));
}

static void describe_id_index(struct describer *d)
{
	uint64_t n = take_u64(&d->c);

	put_begin(d->to, "entries", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		put_begin(d->to, NULL, PERFDATA_OBJECT);
		put_number(d->to, "id", take_u64(&d->c));
		put_number(d->to, "idx", take_u64(&d->c));
		put_signed(d->to, "cpu", (int64_t)take_u64(&d->c));
		put_signed(d->to, "tid", (int64_t)take_u64(&d->c));
		put_end(d->to);
	}
	put_end(d->to);
}

static void describe_auxtrace_info(struct describer *d)
{
	static const char *const pt[] = {
		"pmu_type",	"time_shift",	 "time_mult",	 "time_zero",	  "cap_time_zero",
		"tsc_bit",	"noretcomp_bit", "sched_switch", "snapshot_mode", "per_cpu_maps",
		"mtc_bit",	"mtc_freq_bits", "tsc_ctc_num",	 "tsc_ctc_den",	  "cyc_bit",
		"max_nonturbo", "filter_len"};
	uint32_t type = take_u32(&d->c);

	put_string(d->to, "kind", perfdata_aux_name(type));
	take_u32(&d->c);
	if (type == PERFDATA_AUX_INTEL_PT) {
		for (size_t i = 0; i < ARRAY_SIZE(pt) && left(&d->c) >= 8; i++)
			put_hex(d->to, pt[i], take_u64(&d->c));
	} else {
		put_begin(d->to, "values", PERFDATA_LIST);
		while (left(&d->c) >= 8)
			put_hex(d->to, NULL, take_u64(&d->c));
		put_end(d->to);
	}
	put_bytes(d->to, "more", d->c.p, left(&d->c));
}

static void describe_auxtrace(struct describer *d)
{
	put_number(d->to, "size", take_u64(&d->c));
	put_hex(d->to, "aux_offset", take_u64(&d->c));
	put_hex(d->to, "reference", take_u64(&d->c));
	put_number(d->to, "idx", take_u32(&d->c));
	put_pid(d, "tid");
	put_pid(d, "cpu");
}

static void describe_auxtrace_error(struct describer *d)
{
	uint32_t fmt;

	put_number(d->to, "error_type", take_u32(&d->c));
	put_number(d->to, "code", take_u32(&d->c));
	put_pid(d, "cpu");
	put_pid(d, "pid");
	put_pid(d, "tid");
	fmt = take_u32(&d->c);
	put_hex(d->to, "ip", take_u64(&d->c));
	if (fmt)
		put_time(d->to, "time", take_u64(&d->c));
	put_text(d->to, "msg", d->c.p, left(&d->c) < 64 ? left(&d->c) : 64);
}

static void describe_build_id(struct describer *d)
{
	enum { MISC_BUILD_ID_SIZE = 1 << 15, SIZE = 20 };
	const uint8_t *id;

	put_pid(d, "pid");
	id = take(&d->c, SIZE + 4);
	put_bytes(d->to, "build_id", id,
		  id && d->ev->misc & MISC_BUILD_ID_SIZE && id[SIZE] < SIZE ? id[SIZE] : SIZE);
	put_text(d->to, "filename", d->c.p, left(&d->c));
}

static void describe_thread_map(struct describer *d)
{
	uint64_t n = take_u64(&d->c);

	put_begin(d->to, "threads", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		put_begin(d->to, NULL, PERFDATA_OBJECT);
		put_signed(d->to, "pid", (int64_t)take_u64(&d->c));
		put_text(d->to, "comm", take(&d->c, 16), 16);
		put_end(d->to);
	}
	put_end(d->to);
}

static void put_mask(struct describer *d, uint16_t n, uint16_t word)
{
	if (word == 8)
		take(&d->c, 4);
	for (unsigned i = 0; i < n && !d->c.bad; i++) {
		uint64_t v = word == 8 ? take_u64(&d->c) : take_u32(&d->c);

		for (unsigned b = 0; b < word * 8u; b++)
			if (v >> b & 1)
				put_number(d->to, NULL, i * word * 8u + b);
	}
}

static void describe_cpu_map(struct describer *d)
{
	enum { CPUS, MASK, RANGE };
	uint16_t type = take_u16(&d->c), n, word;

	put_begin(d->to, "cpus", PERFDATA_LIST);
	if (type == CPUS) {
		n = take_u16(&d->c);
		for (unsigned i = 0; i < n && !d->c.bad; i++)
			put_signed(d->to, NULL, (int16_t)take_u16(&d->c));
	} else if (type == MASK) {
		n = take_u16(&d->c);
		word = take_u16(&d->c);
		if (word == 4 || word == 8)
			put_mask(d, n, word);
		else
			d->c.bad = true;
	} else if (type == RANGE) {
		uint8_t any = take_u8(&d->c);

		take_u8(&d->c);
		n = take_u16(&d->c);
		word = take_u16(&d->c);
		if (any)
			put_signed(d->to, NULL, -1);
		for (unsigned i = n; i <= word && !d->c.bad; i++)
			put_number(d->to, NULL, i);
	}
	put_end(d->to);
}

static void describe_stat_config(struct describer *d)
{
	static const char *const tags[] = {"aggr_mode", "interval", "scale", "aggr_level"};
	uint64_t n = take_u64(&d->c);

	put_begin(d->to, "config", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		uint64_t tag = take_u64(&d->c), v = take_u64(&d->c);

		put_begin(d->to, NULL, PERFDATA_OBJECT);
		if (tag < ARRAY_SIZE(tags))
			put_string(d->to, "tag", tags[tag]);
		else
			put_number(d->to, "tag", tag);
		put_number(d->to, "value", v);
		put_end(d->to);
	}
	put_end(d->to);
}

static void describe_stat(struct describer *d)
{
	put_number(d->to, "id", take_u64(&d->c));
	put_pid(d, "cpu");
	put_pid(d, "thread");
	put_number(d->to, "value", take_u64(&d->c));
	put_number(d->to, "time_enabled", take_u64(&d->c));
	put_number(d->to, "time_running", take_u64(&d->c));
}

static void describe_stat_round(struct describer *d)
{
	put_string(d->to, "round", take_u64(&d->c) ? "final" : "interval");
	put_time(d->to, "time", take_u64(&d->c));
}

static void describe_update(struct describer *d)
{
	enum { UNIT, SCALE, NAME, CPUS };
	uint64_t type = take_u64(&d->c);
	char text[32];
	double scale;
	uint64_t v;

	put_number(d->to, "id", take_u64(&d->c));
	switch (type) {
	case UNIT:
	case NAME:
		put_text(d->to, type == UNIT ? "unit" : "name", d->c.p, left(&d->c));
		break;
	case SCALE:
		v = take_u64(&d->c);
		memcpy(&scale, &v, sizeof(scale));
		snprintf(text, sizeof(text), "%g", scale);
		put_string(d->to, "scale", text);
		break;
	case CPUS:
		describe_cpu_map(d);
		break;
	default:
		put_bytes(d->to, "bytes", d->c.p, left(&d->c));
	}
}

static void describe_time_conv(struct describer *d)
{
	put_number(d->to, "time_shift", take_u64(&d->c));
	put_number(d->to, "time_mult", take_u64(&d->c));
	put_number(d->to, "time_zero", take_u64(&d->c));
	if (left(&d->c) < 16)
		return;
	put_hex(d->to, "time_cycles", take_u64(&d->c));
	put_hex(d->to, "time_mask", take_u64(&d->c));
}

static void describe_header_feature(struct describer *d)
{
	uint64_t bit = take_u64(&d->c);

	describe_feature(&d->c, bit < 256 ? (unsigned)bit : 255, d->to);
}

static void describe_compressed(struct describer *d)
{
	put_number(d->to, "packed_size",
		   d->ev->type == PERFDATA_COMPRESSED ? left(&d->c) : take_u64(&d->c));
}

static void describe_metadata(struct describer *d)
{
	uint64_t n;

	put_text(d->to, "program", take(&d->c, 16), 16);
	n = take_u64(&d->c);
	put_begin(d->to, "entries", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		put_begin(d->to, NULL, PERFDATA_OBJECT);
		put_text(d->to, "key", take(&d->c, 64), 64);
		put_text(d->to, "value", take(&d->c, 256), 256);
		put_end(d->to);
	}
	put_end(d->to);
}

static void describe_nothing(struct describer *d)
{
	(void)d;
}

bool describe_own(struct describer *d)
{
	static void (*const by_type[])(struct describer *) = {
		describe_attr,		describe_event_type,	 describe_tracing_data,
		describe_build_id,	describe_nothing,	 describe_id_index,
		describe_auxtrace_info, describe_auxtrace,	 describe_auxtrace_error,
		describe_thread_map,	describe_cpu_map,	 describe_stat_config,
		describe_stat,		describe_stat_round,	 describe_update,
		describe_time_conv,	describe_header_feature, describe_compressed,
		describe_nothing,	describe_compressed,	 describe_metadata,
	};
	uint32_t i = d->ev->type - PERFDATA_HEADER_ATTR;

	if (i >= ARRAY_SIZE(by_type))
		return false;
	by_type[i](d);
	return true;
}
