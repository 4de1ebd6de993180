// SPDX-License-Identifier: GPL-2.0-or-later
/* Where the kernel has what a session's program reads of it: not by CO-RE, and not by libbpf. */
#include "probes/engine/priv.h"
#include "probes/btf/types_file.h"

/* What is looked for: bytes from the start of a struct, if they are not 0. */
struct wanted {
	const char *type, *member;
	uint32_t *offset;
	bool found; /* also at 0 */
};

static void look_at(const struct types_file *t, const struct btf_type *b, struct wanted *w)
{
	const struct btf_member *m = (const void *)(b + 1);
	bool fields = BTF_INFO_KFLAG(b->info);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(b->info); i++, m++) {
		if (!streq(types_file_name(t, m->name_off), w->member))
			continue;
		*w->offset = (fields ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset) / 8;
		w->found = true;
	}
}

static bool all_found(const struct wanted *v, size_t n)
{
	bool all = true;

	for (size_t i = 0; i < n; i++)
		all &= v[i].found;
	return all;
}

static void find_members(const struct types_file *t, struct wanted *v, size_t n)
{
	const struct btf_type *b = types_file_first(t);

	for (; b && !all_found(v, n); b = types_file_next(t, b)) {
		const char *name;

		if (BTF_INFO_KIND(b->info) != BTF_KIND_STRUCT)
			continue;
		name = types_file_name(t, b->name_off);
		for (size_t i = 0; i < n; i++)
			if (streq(name, v[i].type))
				look_at(t, b, &v[i]);
	}
}

void engine_find_offsets(struct ax_probe_config *config)
{
	uint32_t utask = 0, depth = 0;
	struct wanted v[] = {
		{.type = "task_struct", .member = "utask", .offset = &utask},
		{.type = "uprobe_task", .member = "depth", .offset = &depth},
		{.type = "task_struct", .member = "flags", .offset = &config->flags_offset},
		{.type = "task_struct", .member = "ptrace", .offset = &config->ptrace_offset},
	};
	struct types_file t = {0};

	if (types_file_open(&t))
		find_members(&t, v, ARRAY_SIZE(v));
	types_file_close(&t);
	if (v[0].found && v[1].found) {
		config->utask_offset = utask;
		config->utask_depth_offset = depth;
	}
}
