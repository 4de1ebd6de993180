// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's events, field by field; perf's own ones are in own_records.c, samples in sample.c.
 */
#include "probes/perfdata/priv.h"

/* What newer kernels have. */
enum { RECORD_CALLCHAIN_DEFERRED = 22, MISC_MMAP_BUILD_ID = 1 << 14, MISC_SWITCH_OUT = 1 << 13 };

enum form { U16, U32, S32, U64, HEX32, HEX, TIME, TEXT, TAG };
struct part {
	const char *name; /* NULL: the end */
	enum form form;
};
struct record {
	uint32_t type;
	const char *name;
	const struct part *parts;	       /* or */
	void (*describe)(struct describer *d); /* NULL: it has nothing but its sample_id */
};

static void put_part(struct describer *d, const struct part *p)
{
	enum { TAG_SIZE = 8 };
	struct cursor *c = &d->c;

	switch (p->form) {
	case U16:
		put_number(d->to, p->name, take_u16(c));
		break;
	case U32:
		put_number(d->to, p->name, take_u32(c));
		break;
	case S32:
		put_signed(d->to, p->name, (int32_t)take_u32(c));
		break;
	case U64:
		put_number(d->to, p->name, take_u64(c));
		break;
	case HEX32:
		put_hex(d->to, p->name, take_u32(c));
		break;
	case HEX:
		put_hex(d->to, p->name, take_u64(c));
		break;
	case TIME:
		put_time(d->to, p->name, take_u64(c));
		break;
	case TEXT:
		put_text(d->to, p->name, c->p, left(c));
		c->p = c->end;
		break;
	case TAG:
		put_bytes(d->to, p->name, take(c, TAG_SIZE), TAG_SIZE);
		break;
	}
}

/* --- those of one form --- */

static const struct part mmap_parts[] = {{"pid", S32}, {"tid", S32},   {"addr", HEX},
					 {"len", HEX}, {"pgoff", HEX}, {"filename", TEXT},
					 {NULL, U16}};
static const struct part lost_parts[] = {{"id", U64}, {"lost", U64}, {NULL, U16}};
static const struct part comm_parts[] = {{"pid", S32}, {"tid", S32}, {"comm", TEXT}, {NULL, U16}};
static const struct part task_parts[] = {{"pid", S32},	{"ppid", S32},	{"tid", S32},
					 {"ptid", S32}, {"time", TIME}, {NULL, U16}};
static const struct part throttle_parts[] = {
	{"time", TIME}, {"id", U64}, {"stream_id", U64}, {NULL, U16}};
static const struct part aux_parts[] = {
	{"aux_offset", HEX}, {"aux_size", HEX}, {"flags", HEX}, {NULL, U16}};
static const struct part itrace_start_parts[] = {{"pid", S32}, {"tid", S32}, {NULL, U16}};
static const struct part lost_samples_parts[] = {{"lost", U64}, {NULL, U16}};
static const struct part ksymbol_parts[] = {{"addr", HEX},  {"len", U32},   {"ksym_type", U16},
					    {"flags", U16}, {"name", TEXT}, {NULL, U16}};
static const struct part bpf_event_parts[] = {
	{"type", U16}, {"flags", U16}, {"id", U32}, {"tag", TAG}, {NULL, U16}};
static const struct part cgroup_parts[] = {{"id", U64}, {"path", TEXT}, {NULL, U16}};
static const struct part hw_id_parts[] = {{"hw_id", HEX}, {NULL, U16}};

/* --- the others --- */

static void describe_mmap2(struct describer *d)
{
	static const struct part first[] = {
		{"pid", S32}, {"tid", S32}, {"addr", HEX}, {"len", HEX}, {"pgoff", HEX}};
	static const struct part inode[] = {
		{"maj", U32}, {"min", U32}, {"ino", U64}, {"ino_generation", U64}};
	static const struct part last[] = {{"prot", HEX32}, {"flags", HEX32}, {"filename", TEXT}};

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		put_part(d, &first[i]);
	if (d->ev->misc & MISC_MMAP_BUILD_ID) {
		size_t size = take_u8(&d->c);
		const uint8_t *id;

		take(&d->c, 3);
		id = take(&d->c, 20);
		put_bytes(d->to, "build_id", id, size < 20 ? size : 20);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(inode); i++)
			put_part(d, &inode[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(last); i++)
		put_part(d, &last[i]);
}

static void put_direction(struct describer *d)
{
	put_string(d->to, "switch", d->ev->misc & MISC_SWITCH_OUT ? "out" : "in");
}

static void describe_switch_cpu_wide(struct describer *d)
{
	bool out = d->ev->misc & MISC_SWITCH_OUT;

	put_direction(d);
	put_signed(d->to, out ? "next_pid" : "prev_pid", (int32_t)take_u32(&d->c));
	put_signed(d->to, out ? "next_tid" : "prev_tid", (int32_t)take_u32(&d->c));
}

static void describe_namespaces(struct describer *d)
{
	static const char *const names[] = {"net",  "uts", "ipc",    "pid",
					    "user", "mnt", "cgroup", "time"};
	uint64_t n;

	put_signed(d->to, "pid", (int32_t)take_u32(&d->c));
	put_signed(d->to, "tid", (int32_t)take_u32(&d->c));
	n = take_u64(&d->c);
	put_begin(d->to, "namespaces", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++) {
		put_begin(d->to, NULL, PERFDATA_OBJECT);
		if (i < ARRAY_SIZE(names))
			put_string(d->to, "name", names[i]);
		put_number(d->to, "dev", take_u64(&d->c));
		put_number(d->to, "inode", take_u64(&d->c));
		put_end(d->to);
	}
	put_end(d->to);
}

static void describe_text_poke(struct describer *d)
{
	uint16_t old, new;

	put_hex(d->to, "addr", take_u64(&d->c));
	old = take_u16(&d->c);
	new = take_u16(&d->c);
	put_bytes(d->to, "old", take(&d->c, old), old);
	put_bytes(d->to, "new", take(&d->c, new), new);
}

static void describe_deferred(struct describer *d)
{
	uint64_t n;

	put_number(d->to, "cookie", take_u64(&d->c));
	n = take_u64(&d->c);
	put_begin(d->to, "callchain", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !d->c.bad; i++)
		put_hex(d->to, NULL, take_u64(&d->c));
	put_end(d->to);
}

static const struct record records[] = {
	{PERF_RECORD_MMAP, "MMAP", mmap_parts, NULL},
	{PERF_RECORD_LOST, "LOST", lost_parts, NULL},
	{PERF_RECORD_COMM, "COMM", comm_parts, NULL},
	{PERF_RECORD_EXIT, "EXIT", task_parts, NULL},
	{PERF_RECORD_THROTTLE, "THROTTLE", throttle_parts, NULL},
	{PERF_RECORD_UNTHROTTLE, "UNTHROTTLE", throttle_parts, NULL},
	{PERF_RECORD_FORK, "FORK", task_parts, NULL},
	{PERF_RECORD_READ, "READ", NULL, describe_read},
	{PERF_RECORD_SAMPLE, "SAMPLE", NULL, describe_sample},
	{PERF_RECORD_MMAP2, "MMAP2", NULL, describe_mmap2},
	{PERF_RECORD_AUX, "AUX", aux_parts, NULL},
	{PERF_RECORD_ITRACE_START, "ITRACE_START", itrace_start_parts, NULL},
	{PERF_RECORD_LOST_SAMPLES, "LOST_SAMPLES", lost_samples_parts, NULL},
	{PERF_RECORD_SWITCH, "SWITCH", NULL, put_direction},
	{PERF_RECORD_SWITCH_CPU_WIDE, "SWITCH_CPU_WIDE", NULL, describe_switch_cpu_wide},
	{PERF_RECORD_NAMESPACES, "NAMESPACES", NULL, describe_namespaces},
	{PERF_RECORD_KSYMBOL, "KSYMBOL", ksymbol_parts, NULL},
	{PERF_RECORD_BPF_EVENT, "BPF_EVENT", bpf_event_parts, NULL},
	{PERF_RECORD_CGROUP, "CGROUP", cgroup_parts, NULL},
	{PERF_RECORD_TEXT_POKE, "TEXT_POKE", NULL, describe_text_poke},
	{PERF_RECORD_AUX_OUTPUT_HW_ID, "AUX_OUTPUT_HW_ID", hw_id_parts, NULL},
	{RECORD_CALLCHAIN_DEFERRED, "CALLCHAIN_DEFERRED", NULL, describe_deferred},
	{PERFDATA_HEADER_ATTR, "HEADER_ATTR", NULL, NULL},
	{PERFDATA_HEADER_EVENT_TYPE, "HEADER_EVENT_TYPE", NULL, NULL},
	{PERFDATA_TRACING_DATA, "TRACING_DATA", NULL, NULL},
	{PERFDATA_BUILD_ID, "BUILD_ID", NULL, NULL},
	{PERFDATA_FINISHED_ROUND, "FINISHED_ROUND", NULL, NULL},
	{PERFDATA_ID_INDEX, "ID_INDEX", NULL, NULL},
	{PERFDATA_AUXTRACE_INFO, "AUXTRACE_INFO", NULL, NULL},
	{PERFDATA_AUXTRACE, "AUXTRACE", NULL, NULL},
	{PERFDATA_AUXTRACE_ERROR, "AUXTRACE_ERROR", NULL, NULL},
	{PERFDATA_THREAD_MAP, "THREAD_MAP", NULL, NULL},
	{PERFDATA_CPU_MAP, "CPU_MAP", NULL, NULL},
	{PERFDATA_STAT_CONFIG, "STAT_CONFIG", NULL, NULL},
	{PERFDATA_STAT, "STAT", NULL, NULL},
	{PERFDATA_STAT_ROUND, "STAT_ROUND", NULL, NULL},
	{PERFDATA_EVENT_UPDATE, "EVENT_UPDATE", NULL, NULL},
	{PERFDATA_TIME_CONV, "TIME_CONV", NULL, NULL},
	{PERFDATA_HEADER_FEATURE, "HEADER_FEATURE", NULL, NULL},
	{PERFDATA_COMPRESSED, "COMPRESSED", NULL, NULL},
	{PERFDATA_FINISHED_INIT, "FINISHED_INIT", NULL, NULL},
	{PERFDATA_COMPRESSED2, "COMPRESSED2", NULL, NULL},
	{PERFDATA_BPF_METADATA, "BPF_METADATA", NULL, NULL},
};

static const struct record *record_of(uint32_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		if (records[i].type == type)
			return &records[i];
	return NULL;
}

const char *perfdata_type_name(uint32_t type)
{
	const struct record *r = record_of(type);

	return r ? r->name : NULL;
}

const char *perfdata_type_nth(size_t i)
{
	return i < ARRAY_SIZE(records) ? records[i].name : NULL;
}

int perfdata_type_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		if (strcasecmp(records[i].name, name) == 0)
			return (int)records[i].type;
	return -1;
}

/* --- the whole --- */

static void describe_kernel(struct describer *d)
{
	const struct record *r = record_of(d->ev->type);
	bool sample = d->ev->type == PERF_RECORD_SAMPLE;
	size_t id = !sample && d->attr ? sample_id_size(d->attr) : 0;

	if (id > left(&d->c)) {
		d->c.bad = true;
		return;
	}
	d->c.end -= id;
	if (!r)
		put_bytes(d->to, "bytes", d->c.p, left(&d->c));
	else if (r->describe)
		r->describe(d);
	for (const struct part *p = r ? r->parts : NULL; p && p->name; p++)
		put_part(d, p);
	if (id)
		describe_sample_id(d, id);
}

int perfdata_describe(const struct perfdata *p, const struct perfdata_event *ev,
		      const struct perfdata_sink *to)
{
	struct describer d = {.p = p, .ev = ev, .to = to};

	d.c = cursor_of(p, ev->data + HEADER_SIZE, ev->size - HEADER_SIZE);
	if (ev->type < PERFDATA_HEADER_ATTR) {
		d.attr = attr_of_event(p, ev);
		describe_kernel(&d);
	} else if (!describe_own(&d)) {
		put_bytes(to, "bytes", d.c.p, left(&d.c));
	}
	return d.c.bad ? -EBADMSG : 0;
}
