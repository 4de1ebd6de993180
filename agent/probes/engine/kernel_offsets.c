// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the kernel has what a session's program reads of it. Not by CO-RE: for that libbpf would
 * read the kernel's types, megabytes of them, at the start of every session.
 */
#include <bpf/btf.h>

#include "probes/engine/priv.h"

/* Bytes from the start of a struct; -1: it has no such member. */
static int64_t member_offset(const struct btf *btf, const char *type, const char *member)
{
	int32_t id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (uint32_t i = 0; t && i < btf_vlen(t); i++)
		if (streq(btf__name_by_offset(btf, btf_members(t)[i].name_off), member))
			return btf_member_bit_offset(t, i) / 8;
	return -1;
}

void engine_find_offsets(struct ax_probe_config *config)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t utask, depth, flags, ptrace;

	if (!btf)
		return;
	utask = member_offset(btf, "task_struct", "utask");
	depth = member_offset(btf, "uprobe_task", "depth");
	flags = member_offset(btf, "task_struct", "flags");
	ptrace = member_offset(btf, "task_struct", "ptrace");
	if (utask > 0 && depth >= 0) {
		config->utask_offset = (uint32_t)utask;
		config->utask_depth_offset = (uint32_t)depth;
	}
	if (flags > 0)
		config->flags_offset = (uint32_t)flags;
	if (ptrace > 0)
		config->ptrace_offset = (uint32_t)ptrace;
	btf__free(btf);
}
