// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "probes/btf/types_file.h"

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

void types_file_close(struct types_file *t)
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
static bool open_file(struct types_file *t)
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

bool types_file_open(struct types_file *t)
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

const char *types_file_name(const struct types_file *t, uint32_t offset)
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

static const struct btf_type *type_at(const struct types_file *t, const char *at)
{
	const struct btf_type *b = (const void *)at;
	long more;

	if ((size_t)(t->end - at) < sizeof(*b))
		return NULL;
	more = bytes_behind(b);
	return more < 0 || more > t->end - at - (long)sizeof(*b) ? NULL : b;
}

const struct btf_type *types_file_first(const struct types_file *t)
{
	return type_at(t, t->first);
}

const struct btf_type *types_file_next(const struct types_file *t, const struct btf_type *b)
{
	return type_at(t, (const char *)(b + 1) + bytes_behind(b));
}
