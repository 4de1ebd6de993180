// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples, and what other events have of one: who, when, where. */
#include "probes/perfdata/priv.h"

enum { FLAG_SAMPLE_ID_ALL = 18, FORMAT_LOST = 1 << 4 };

/* --- sample_id --- */

#define AT_END                                                                         \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

size_t sample_id_size(const struct perfdata_attr *a)
{
	if (!(a->flags >> FLAG_SAMPLE_ID_ALL & 1))
		return 0;
	return 8 * (size_t)__builtin_popcountll(a->attr.sample_type & AT_END);
}

static void read_sample_id(struct cursor *c, uint64_t type, struct perfdata_when *w)
{
	if (type & PERF_SAMPLE_TID) {
		w->pid = take_u32(c);
		w->tid = take_u32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		w->time = take_u64(c);
	if (type & PERF_SAMPLE_ID)
		w->id = take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_CPU) {
		w->cpu = take_u32(c);
		take_u32(c);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		w->id = take_u64(c);
}

static void read_sample(struct cursor *c, uint64_t type, struct perfdata_when *w)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		w->id = take_u64(c);
	if (type & PERF_SAMPLE_IP)
		take_u64(c);
	if (type & PERF_SAMPLE_TID) {
		w->pid = take_u32(c);
		w->tid = take_u32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		w->time = take_u64(c);
	if (type & PERF_SAMPLE_ADDR)
		take_u64(c);
	if (type & PERF_SAMPLE_ID)
		w->id = take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_CPU)
		w->cpu = take_u32(c);
}

bool perfdata_when(const struct perfdata *p, const struct perfdata_event *ev,
		   struct perfdata_when *ret)
{
	const struct perfdata_attr *a =
		ev->type < PERFDATA_HEADER_ATTR ? attr_of_event(p, ev) : NULL;
	size_t body = ev->size - HEADER_SIZE, size;
	struct cursor c;

	*ret = (struct perfdata_when){UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX};
	if (!a)
		return false;
	if (ev->type == PERF_RECORD_SAMPLE) {
		c = cursor_of(p, ev->data + HEADER_SIZE, body);
		read_sample(&c, a->attr.sample_type, ret);
		return !c.bad;
	}
	size = sample_id_size(a);
	if (!size || size > body)
		return false;
	c = cursor_of(p, ev->data + ev->size - size, size);
	read_sample_id(&c, a->attr.sample_type, ret);
	return true;
}

static void put_attr_name(struct describer *d)
{
	if (d->attr && d->attr->name)
		put_string(d->to, "event", d->attr->name);
}

void describe_sample_id(struct describer *d, size_t size)
{
	uint64_t type = d->attr->attr.sample_type;
	struct perfdata_when w;
	struct cursor c = cursor_of(d->p, d->c.end, size);

	read_sample_id(&c, type, &w);
	put_begin(d->to, "sample_id", PERFDATA_OBJECT);
	if (type & PERF_SAMPLE_TID) {
		put_signed(d->to, "pid", (int32_t)w.pid);
		put_signed(d->to, "tid", (int32_t)w.tid);
	}
	if (type & PERF_SAMPLE_TIME)
		put_time(d->to, "time", w.time);
	if (type & PERF_SAMPLE_CPU)
		put_signed(d->to, "cpu", (int32_t)w.cpu);
	if (type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER))
		put_number(d->to, "id", w.id);
	put_end(d->to);
}

/* --- counters --- */

static void put_value(struct describer *d, uint64_t format)
{
	put_begin(d->to, NULL, PERFDATA_OBJECT);
	put_number(d->to, "value", take_u64(&d->c));
	if (format & PERF_FORMAT_ID)
		put_number(d->to, "id", take_u64(&d->c));
	if (format & FORMAT_LOST)
		put_number(d->to, "lost", take_u64(&d->c));
	put_end(d->to);
}

static void put_times(struct describer *d, uint64_t format)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		put_number(d->to, "time_enabled", take_u64(&d->c));
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		put_number(d->to, "time_running", take_u64(&d->c));
}

static void describe_values(struct describer *d)
{
	uint64_t format = d->attr ? d->attr->attr.read_format : 0, n;

	put_begin(d->to, "read", PERFDATA_OBJECT);
	if (format & PERF_FORMAT_GROUP) {
		n = take_u64(&d->c);
		put_times(d, format);
		put_begin(d->to, "values", PERFDATA_LIST);
		for (uint64_t i = 0; i < n && !d->c.bad; i++)
			put_value(d, format);
		put_end(d->to);
	} else {
		put_number(d->to, "value", take_u64(&d->c));
		put_times(d, format);
		if (format & PERF_FORMAT_ID)
			put_number(d->to, "id", take_u64(&d->c));
		if (format & FORMAT_LOST)
			put_number(d->to, "lost", take_u64(&d->c));
	}
	put_end(d->to);
}

void describe_read(struct describer *d)
{
	put_attr_name(d);
	put_signed(d->to, "pid", (int32_t)take_u32(&d->c));
	put_signed(d->to, "tid", (int32_t)take_u32(&d->c));
	describe_values(d);
}

/* --- the parts of samples --- */

static void put_who(struct describer *d, uint64_t type)
{
	struct cursor *c = &d->c;
	bool identifier = type & PERF_SAMPLE_IDENTIFIER;

	put_attr_name(d);
	if (identifier)
		put_number(d->to, "id", take_u64(c));
	if (type & PERF_SAMPLE_IP)
		put_hex(d->to, "ip", take_u64(c));
	if (type & PERF_SAMPLE_TID) {
		put_signed(d->to, "pid", (int32_t)take_u32(c));
		put_signed(d->to, "tid", (int32_t)take_u32(c));
	}
	if (type & PERF_SAMPLE_TIME)
		put_time(d->to, "time", take_u64(c));
	if (type & PERF_SAMPLE_ADDR)
		put_hex(d->to, "addr", take_u64(c));
	if (type & PERF_SAMPLE_ID) {
		uint64_t id = take_u64(c);

		if (!identifier)
			put_number(d->to, "id", id);
	}
	if (type & PERF_SAMPLE_STREAM_ID)
		put_number(d->to, "stream_id", take_u64(c));
	if (type & PERF_SAMPLE_CPU) {
		put_number(d->to, "cpu", take_u32(c));
		take_u32(c);
	}
	if (type & PERF_SAMPLE_PERIOD)
		put_number(d->to, "period", take_u64(c));
	if (type & PERF_SAMPLE_READ)
		describe_values(d);
}

/* Between the addresses stand words that say whose they are. */
static void put_callchain(struct describer *d)
{
	static const struct {
		int64_t word;
		const char *name;
	} contexts[] = {{-32, "hypervisor"},	 {-128, "kernel"}, {-512, "user"},
			{-640, "user_deferred"}, {-2048, "guest"}, {-2176, "guest_kernel"},
			{-2560, "guest_user"}};
	uint64_t n = take_u64(&d->c);

	put_begin(d->to, "callchain", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		uint64_t ip = take_u64(&d->c);
		const char *name = NULL;

		for (size_t k = 0; k < ARRAY_SIZE(contexts); k++)
			if ((int64_t)ip == contexts[k].word)
				name = contexts[k].name;
		if (d->c.bad)
			break;
		if (name)
			put_string(d->to, NULL, name);
		else
			put_hex(d->to, NULL, ip);
	}
	put_end(d->to);
}

static void put_branches(struct describer *d)
{
	static const char *const names[] = {"mispredicted", "predicted", "in_tx", "abort"};
	uint64_t n = take_u64(&d->c);

	if (d->attr->attr.branch_sample_type & 1ull << 17) /* HW_INDEX */
		put_number(d->to, "hw_index", take_u64(&d->c));
	put_begin(d->to, "branches", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		uint64_t flags;

		put_begin(d->to, NULL, PERFDATA_OBJECT);
		put_hex(d->to, "from", take_u64(&d->c));
		put_hex(d->to, "to", take_u64(&d->c));
		flags = take_bits64(&d->c);
		put_bits(d->to, "flags", flags & 15, names, ARRAY_SIZE(names));
		put_number(d->to, "cycles", flags >> 4 & 0xffff);
		put_number(d->to, "type", flags >> 20 & 15);
		put_end(d->to);
	}
	put_end(d->to);
	if (d->attr->attr.branch_sample_type & 1ull << 19) { /* COUNTERS */
		put_begin(d->to, "branch_counters", PERFDATA_LIST);
		for (uint64_t i = 0; i < n && !d->c.bad; i++)
			put_hex(d->to, NULL, take_u64(&d->c));
		put_end(d->to);
	}
}

static void put_registers(struct describer *d, const char *name, uint64_t mask)
{
	uint64_t abi = take_u64(&d->c);

	put_begin(d->to, name, PERFDATA_OBJECT);
	put_number(d->to, "abi", abi);
	put_hex(d->to, "mask", mask);
	put_begin(d->to, "values", PERFDATA_LIST);
	for (unsigned i = 0; abi && i < 64; i++)
		if (mask >> i & 1)
			put_hex(d->to, NULL, take_u64(&d->c));
	put_end(d->to);
	put_end(d->to);
}

static void put_stack(struct describer *d)
{
	uint64_t size = take_u64(&d->c), used = 0;
	const uint8_t *at = size ? take(&d->c, size) : NULL;

	if (size)
		used = take_u64(&d->c);
	if (used > size)
		d->c.bad = true;
	put_bytes(d->to, "stack", at, d->c.bad ? 0 : used);
}

static void put_weight(struct describer *d, uint64_t type)
{
	uint64_t v = take_u64(&d->c);

	if (type & PERF_SAMPLE_WEIGHT) {
		put_number(d->to, "weight", v);
		return;
	}
	put_number(d->to, "weight", v & UINT32_MAX);
	put_number(d->to, "weight2", v >> 32 & 0xffff);
	put_number(d->to, "weight3", v >> 48);
}

static void put_rest(struct describer *d, uint64_t type)
{
	struct cursor *c = &d->c;

	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		put_weight(d, type);
	if (type & PERF_SAMPLE_DATA_SRC)
		put_hex(d->to, "data_src", take_u64(c));
	if (type & PERF_SAMPLE_TRANSACTION)
		put_hex(d->to, "transaction", take_u64(c));
	if (type & PERF_SAMPLE_REGS_INTR)
		put_registers(d, "regs_intr", d->attr->attr.sample_regs_intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		put_hex(d->to, "phys_addr", take_u64(c));
	if (type & PERF_SAMPLE_CGROUP)
		put_number(d->to, "cgroup", take_u64(c));
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		put_number(d->to, "data_page_size", take_u64(c));
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		put_number(d->to, "code_page_size", take_u64(c));
	if (type & PERF_SAMPLE_AUX) {
		uint64_t size = take_u64(c);

		put_bytes(d->to, "aux", take(c, size), size);
	}
}

void describe_sample(struct describer *d)
{
	uint64_t type;

	if (!d->attr) {
		put_bytes(d->to, "bytes", d->c.p, left(&d->c));
		return;
	}
	type = d->attr->attr.sample_type;
	put_who(d, type);
	if (type & PERF_SAMPLE_CALLCHAIN)
		put_callchain(d);
	if (type & PERF_SAMPLE_RAW) {
		uint32_t size = take_u32(&d->c);

		put_bytes(d->to, "raw", take(&d->c, size), size);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		put_branches(d);
	if (type & PERF_SAMPLE_REGS_USER)
		put_registers(d, "regs_user", d->attr->attr.sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		put_stack(d);
	put_rest(d, type);
}
