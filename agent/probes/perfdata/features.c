// SPDX-License-Identifier: GPL-2.0-or-later
/* Features: what perf says about the machine and the recording, at the end of a file or as events
 * of a pipe. */
#include "probes/perfdata/priv.h"

struct list {
	struct cursor *c;
	const struct perfdata_sink *to;
};

static void put_named(const struct list *l, const char *name)
{
	uint32_t len = take_u32(l->c);

	put_text(l->to, name, take(l->c, len), len);
}

static void text(const struct list *l)
{
	put_named(l, "value");
}

static void nothing(const struct list *l)
{
	(void)l;
}

static void size_only(const struct list *l)
{
	put_number(l->to, "size", left(l->c));
}

static void count_only(const struct list *l)
{
	put_number(l->to, "count", take_u32(l->c));
}

static void number(const struct list *l)
{
	put_number(l->to, "value", take_u64(l->c));
}

/* Calls `one` for as many as a number of 32 bits says. */
static void each(const struct list *l, const char *name, void (*one)(const struct list *l))
{
	uint32_t n = take_u32(l->c);

	put_begin(l->to, name, PERFDATA_LIST);
	for (uint32_t i = 0; i < n && !l->c->bad && left(l->c); i++)
		one(l);
	put_end(l->to);
}

static void one_text(const struct list *l)
{
	put_named(l, NULL);
}

static void texts(const struct list *l)
{
	each(l, "values", one_text);
}

static void cpus(const struct list *l)
{
	put_number(l->to, "available", take_u32(l->c));
	put_number(l->to, "online", take_u32(l->c));
}

static void topology(const struct list *l)
{
	each(l, "sibling_cores", one_text);
	each(l, "sibling_threads", one_text);
}

static void one_node(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_number(l->to, "node", take_u32(l->c));
	put_number(l->to, "mem_total", take_u64(l->c));
	put_number(l->to, "mem_free", take_u64(l->c));
	put_named(l, "cpus");
	put_end(l->to);
}

static void nodes(const struct list *l)
{
	each(l, "nodes", one_node);
}

static void one_pmu(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_number(l->to, "type", take_u32(l->c));
	put_named(l, "name");
	put_end(l->to);
}

static void pmus(const struct list *l)
{
	each(l, "pmus", one_pmu);
}

static void one_group(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_named(l, "name");
	put_number(l->to, "leader", take_u32(l->c));
	put_number(l->to, "members", take_u32(l->c));
	put_end(l->to);
}

static void groups(const struct list *l)
{
	each(l, "groups", one_group);
}

static void one_cache(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_number(l->to, "level", take_u32(l->c));
	put_number(l->to, "line_size", take_u32(l->c));
	put_number(l->to, "sets", take_u32(l->c));
	put_number(l->to, "ways", take_u32(l->c));
	put_named(l, "type");
	put_named(l, "size");
	put_named(l, "cpus");
	put_end(l->to);
}

static void caches(const struct list *l)
{
	take_u32(l->c); /* version */
	each(l, "caches", one_cache);
}

static void one_pair(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_named(l, "name");
	put_named(l, "value");
	put_end(l->to);
}

static void pairs(const struct list *l)
{
	each(l, "values", one_pair);
}

static void one_pmu_caps(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	each(l, "values", one_pair);
	put_named(l, "pmu");
	put_end(l->to);
}

static void pmu_caps(const struct list *l)
{
	each(l, "pmus", one_pmu_caps);
}

static void aux_index(const struct list *l)
{
	uint64_t n = take_u64(l->c);

	put_begin(l->to, "traces", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !l->c->bad && left(l->c); i++) {
		put_begin(l->to, NULL, PERFDATA_OBJECT);
		put_hex(l->to, "offset", take_u64(l->c));
		put_number(l->to, "size", take_u64(l->c));
		put_end(l->to);
	}
	put_end(l->to);
}

static void sample_time(const struct list *l)
{
	put_time(l->to, "first", take_u64(l->c));
	put_time(l->to, "last", take_u64(l->c));
}

static void compression(const struct list *l)
{
	take_u32(l->c); /* version */
	put_string(l->to, "type", take_u32(l->c) == 1 ? "zstd" : "unknown");
	put_number(l->to, "level", take_u32(l->c));
	put_number(l->to, "ratio", take_u32(l->c));
	put_number(l->to, "mmap_len", take_u32(l->c));
}

static void clock_data(const struct list *l)
{
	take_u32(l->c); /* version */
	put_number(l->to, "clockid", take_u32(l->c));
	put_time(l->to, "wall_clock", take_u64(l->c));
	put_time(l->to, "clock", take_u64(l->c));
}

static void build_ids(const struct list *l)
{
	enum { ID_SIZE = 20 };

	put_begin(l->to, "files", PERFDATA_LIST);
	while (left(l->c) >= HEADER_SIZE && !l->c->bad) {
		struct cursor own = *l->c;
		uint16_t size, misc;
		const uint8_t *id;

		take_u32(&own);
		misc = take_u16(&own);
		size = take_u16(&own);
		if (size < HEADER_SIZE || !take(l->c, size)) {
			l->c->bad = true;
			break;
		}
		own.end = l->c->p;
		put_begin(l->to, NULL, PERFDATA_OBJECT);
		put_signed(l->to, "pid", (int32_t)take_u32(&own));
		id = take(&own, ID_SIZE + 4);
		put_bytes(l->to, "build_id", id,
			  id && misc >> 15 && id[ID_SIZE] < ID_SIZE ? id[ID_SIZE] : ID_SIZE);
		put_text(l->to, "filename", own.p, left(&own));
		put_end(l->to);
	}
	put_end(l->to);
}

static void one_event(const struct list *l, uint32_t size)
{
	struct cursor attr;
	const uint8_t *at = take(l->c, size);
	uint32_t n = take_u32(l->c);

	if (!at)
		return;
	attr = (struct cursor){.p = at, .end = at + size, .swap = l->c->swap};
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_named(l, "name");
	put_number(l->to, "type", take_u32(&attr));
	take_u32(&attr);
	put_hex(l->to, "config", take_u64(&attr));
	put_begin(l->to, "ids", PERFDATA_LIST);
	for (uint32_t i = 0; i < n && left(l->c) >= 8; i++)
		put_number(l->to, NULL, take_u64(l->c));
	put_end(l->to);
	put_end(l->to);
}

static void events(const struct list *l)
{
	uint32_t n = take_u32(l->c), size = take_u32(l->c);

	put_begin(l->to, "events", PERFDATA_LIST);
	for (uint32_t i = 0; i < n && !l->c->bad && left(l->c); i++)
		one_event(l, size);
	put_end(l->to);
}

static void memory(const struct list *l)
{
	uint64_t n;

	take_u64(l->c); /* version */
	put_number(l->to, "block_size", take_u64(l->c));
	n = take_u64(l->c);
	put_begin(l->to, "nodes", PERFDATA_LIST);
	for (uint64_t i = 0; i < n && !l->c->bad && left(l->c); i++) {
		uint64_t bits;

		put_begin(l->to, NULL, PERFDATA_OBJECT);
		put_number(l->to, "node", take_u64(l->c));
		take_u64(l->c); /* how many blocks could be */
		bits = take_u64(l->c);
		for (uint64_t b = 0; b < bits && !l->c->bad; b += 64)
			take_u64(l->c);
		put_number(l->to, "blocks", bits);
		put_end(l->to);
	}
	put_end(l->to);
}

static void one_hybrid(const struct list *l)
{
	put_begin(l->to, NULL, PERFDATA_OBJECT);
	put_named(l, "pmu");
	put_named(l, "cpus");
	put_end(l->to);
}

static void hybrid(const struct list *l)
{
	each(l, "pmus", one_hybrid);
}

/* By its bit. */
static const struct {
	const char *name;
	void (*put)(const struct list *l);
} features[] = {
	{"RESERVED", nothing},
	{"TRACING_DATA", size_only},
	{"BUILD_ID", build_ids},
	{"HOSTNAME", text},
	{"OSRELEASE", text},
	{"VERSION", text},
	{"ARCH", text},
	{"NRCPUS", cpus},
	{"CPUDESC", text},
	{"CPUID", text},
	{"TOTAL_MEM", number}, /* in KiB */
	{"CMDLINE", texts},
	{"EVENT_DESC", events},
	{"CPU_TOPOLOGY", topology},
	{"NUMA_TOPOLOGY", nodes},
	{"BRANCH_STACK", nothing},
	{"PMU_MAPPINGS", pmus},
	{"GROUP_DESC", groups},
	{"AUXTRACE", aux_index},
	{"STAT", nothing},
	{"CACHE", caches},
	{"SAMPLE_TIME", sample_time},
	{"MEM_TOPOLOGY", memory},
	{"CLOCKID", number},
	{"DIR_FORMAT", number},
	{"BPF_PROG_INFO", count_only},
	{"BPF_BTF", count_only},
	{"COMPRESSED", compression},
	{"CPU_PMU_CAPS", pairs},
	{"CLOCK_DATA", clock_data},
	{"HYBRID_TOPOLOGY", hybrid},
	{"PMU_CAPS", pmu_caps},
	{"CPU_DOMAIN_INFO", size_only},
};

void describe_feature(struct cursor *c, unsigned bit, const struct perfdata_sink *to)
{
	const struct list l = {.c = c, .to = to};
	char name[24];

	snprintf(name, sizeof(name), "feature%u", bit);
	put_begin(to, bit < ARRAY_SIZE(features) ? features[bit].name : name, PERFDATA_OBJECT);
	if (bit < ARRAY_SIZE(features))
		features[bit].put(&l);
	else
		put_number(to, "size", left(c));
	put_end(to);
}
