// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the kernel has what a session's program reads of it. Not by CO-RE, and not by libbpf: its
 * copies and tables of the kernel's types, megabytes of them, took a quarter of a session's start.
 * Here they are walked once, where they are.
 */
#include <fcntl.h>
#include <linux/btf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "probes/engine/priv.h"

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

struct types {
	char *at;
	size_t size;
	bool mapped;
	const char *first, *end; /* of the types */
	const char *names, *names_end;
};

static void close_types(struct types *t)
{
	if (t->mapped)
		munmap(t->at, t->size);
	else
		free(t->at);
}

static bool read_all(int fd, char *to, size_t size)
{
	ssize_t n = 0;

	for (size_t at = 0; at < size; at += (size_t)n) {
		n = read(fd, to + at, size - at);
		if (n <= 0)
			return false;
	}
	return true;
}

/* It can be mapped from Linux 6.16 on. */
static bool open_file(struct types *t)
{
	autoclose int fd = open(KERNEL_TYPES, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0)
		return false;
	t->size = (size_t)st.st_size;
	at = mmap(NULL, t->size, PROT_READ, MAP_PRIVATE, fd, 0);
	t->mapped = at != MAP_FAILED;
	t->at = t->mapped ? at : malloc(t->size);
	return t->mapped || (t->at && read_all(fd, t->at, t->size));
}

static bool open_types(struct types *t)
{
	const struct btf_header *h;
	size_t room;

	if (!open_file(t) || t->size < sizeof(*h))
		return false;
	h = (const void *)t->at;
	if (h->magic != BTF_MAGIC || h->hdr_len < sizeof(*h) || h->hdr_len > t->size)
		return false;
	room = t->size - h->hdr_len;
	if (h->type_off > room || h->type_len > room - h->type_off || h->str_off > room ||
	    h->str_len > room - h->str_off || h->type_off % sizeof(uint32_t))
		return false;
	t->first = t->at + h->hdr_len + h->type_off;
	t->end = t->first + h->type_len;
	t->names = t->at + h->hdr_len + h->str_off;
	t->names_end = t->names + h->str_len;
	return h->str_len && !t->names_end[-1];
}

static const char *name_at(const struct types *t, uint32_t offset)
{
	return offset < (size_t)(t->names_end - t->names) ? t->names + offset : "";
}

/* How many bytes of a kind's own follow a type; less than 0: it is not known. */
static long bytes_behind(const struct btf_type *b)
{
	long n = BTF_INFO_VLEN(b->info);

	switch (BTF_INFO_KIND(b->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * (long)sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * (long)sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * (long)sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * (long)sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * (long)sizeof(struct btf_var_secinfo);
	default:
		return -1;
	}
}

/* What is looked for: bytes from the start of a struct, if they are not 0. */
struct wanted {
	const char *type, *member;
	uint32_t *offset;
	bool found; /* also at 0 */
};

static void look_at(const struct types *t, const struct btf_type *b, struct wanted *w)
{
	const struct btf_member *m = (const void *)(b + 1);
	bool fields = BTF_INFO_KFLAG(b->info);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(b->info); i++, m++) {
		if (!streq(name_at(t, m->name_off), w->member))
			continue;
		*w->offset = (fields ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset) / 8;
		w->found = true;
	}
}

static void find_members(const struct types *t, struct wanted *v, size_t n)
{
	const char *at = t->first;

	while ((size_t)(t->end - at) >= sizeof(struct btf_type)) {
		const struct btf_type *b = (const void *)at;
		long more = bytes_behind(b);
		const char *name;

		at += sizeof(*b);
		if (more < 0 || more > t->end - at)
			return;
		at += more;
		if (BTF_INFO_KIND(b->info) != BTF_KIND_STRUCT)
			continue;
		name = name_at(t, b->name_off);
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
	struct types t = {0};

	if (open_types(&t))
		find_members(&t, v, ARRAY_SIZE(v));
	close_types(&t);
	if (v[0].found && v[1].found) {
		config->utask_offset = utask;
		config->utask_depth_offset = depth;
	}
}
