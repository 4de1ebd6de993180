// SPDX-License-Identifier: GPL-2.0-or-later
/* Attributes by the names of their fields. */
#include "probes/perfdata/priv.h"

static const char *const types[] = {"hardware", "software", "tracepoint",
				    "hw-cache", "raw",	    "breakpoint"};

static const char *const flags[] = {
	"disabled",
	"inherit",
	"pinned",
	"exclusive",
	"exclude_user",
	"exclude_kernel",
	"exclude_hv",
	"exclude_idle",
	"mmap",
	"comm",
	"freq",
	"inherit_stat",
	"enable_on_exec",
	"task",
	"watermark",
	"precise_ip=1",
	"precise_ip=2",
	"mmap_data",
	"sample_id_all",
	"exclude_host",
	"exclude_guest",
	"exclude_callchain_kernel",
	"exclude_callchain_user",
	"mmap2",
	"comm_exec",
	"use_clockid",
	"context_switch",
	"write_backward",
	"namespaces",
	"ksymbol",
	"bpf_event",
	"aux_output",
	"cgroup",
	"text_poke",
	"build_id",
	"inherit_thread",
	"remove_on_exec",
	"sigtrap",
	"defer_callchain",
	"defer_output",
};

static const char *const samples[] = {
	"IP",
	"TID",
	"TIME",
	"ADDR",
	"READ",
	"CALLCHAIN",
	"ID",
	"CPU",
	"PERIOD",
	"STREAM_ID",
	"RAW",
	"BRANCH_STACK",
	"REGS_USER",
	"STACK_USER",
	"WEIGHT",
	"DATA_SRC",
	"IDENTIFIER",
	"TRANSACTION",
	"REGS_INTR",
	"PHYS_ADDR",
	"AUX",
	"CGROUP",
	"DATA_PAGE_SIZE",
	"CODE_PAGE_SIZE",
	"WEIGHT_STRUCT",
};

static const char *const reads[] = {"TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP",
				    "LOST"};

/* What is most often 0 is said only when it is not. */
static void put_seldom(const struct perf_event_attr *a, const struct perfdata_sink *to)
{
	const struct {
		const char *name;
		uint64_t v;
	} more[] = {
		{"bp_type", a->bp_type},
		{"config1", a->config1},
		{"config2", a->config2},
		{"branch_sample_type", a->branch_sample_type},
		{"sample_regs_user", a->sample_regs_user},
		{"sample_stack_user", a->sample_stack_user},
		{"sample_regs_intr", a->sample_regs_intr},
		{"aux_watermark", a->aux_watermark},
		{"sample_max_stack", a->sample_max_stack},
		{"aux_sample_size", a->aux_sample_size},
		{"sig_data", a->sig_data},
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].v)
			put_hex(to, more[i].name, more[i].v);
}

void perfdata_describe_attr(const struct perfdata_attr *attr, const struct perfdata_sink *to)
{
	const struct perf_event_attr *a = &attr->attr;

	if (attr->name)
		put_string(to, "name", attr->name);
	if (a->type < ARRAY_SIZE(types))
		put_string(to, "type", types[a->type]);
	else
		put_number(to, "type", a->type);
	put_number(to, "size", a->size);
	put_hex(to, "config", a->config);
	put_number(to, attr->flags >> 10 & 1 ? "sample_freq" : "sample_period", a->sample_period);
	put_bits(to, "sample_type", a->sample_type, samples, ARRAY_SIZE(samples));
	put_bits(to, "read_format", a->read_format, reads, ARRAY_SIZE(reads));
	put_bits(to, "flags", attr->flags, flags, ARRAY_SIZE(flags));
	if (attr->flags >> 25 & 1)
		put_signed(to, "clockid", a->clockid);
	put_seldom(a, to);
}
