// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/btf.h>
#include <sys/mman.h>

#include "base/packed.h"
#include "probes/btf/few_types.h"
#include "probes/btf/types_file.h"

#define FLAVOR	      "___" /* what stands behind it is not part of a name */
#define NESTED_MAX    32    /* structs inside of structs */
#define INDEX_STEP    64    /* a place is kept of each so many types */
#define INDEX_AT_ONCE 1024

struct few {
	struct types_file file;
	const struct btf_type **types; /* each INDEX_STEP-th, the first of which is number 1 */
	uint32_t *as;		       /* what they are in `to`, 0: nothing yet */
	size_t n;
	const struct btf *program;
	struct btf *to;
	int pointer, number; /* void *, and what arrays are indexed by */
};

/* --- what there is --- */

static int index_types(struct few *f)
{
	size_t size = 0, n = 0;

	for (const struct btf_type *b = types_file_first(&f->file); b;
	     b = types_file_next(&f->file, b)) {
		if (f->n++ % INDEX_STEP)
			continue;
		if (n == size) {
			const struct btf_type **more;

			size += INDEX_AT_ONCE;
			more = reallocarray(f->types, size, sizeof(*more));
			if (!more)
				return -ENOMEM;
			f->types = more;
		}
		f->types[n++] = b;
	}
	f->as = calloc(f->n + 1, sizeof(*f->as));
	return f->as && f->n ? 0 : -ENOMEM;
}

/* id: 1 to f->n */
static const struct btf_type *type_by_id(const struct few *f, uint32_t id)
{
	const struct btf_type *b = f->types[(id - 1) / INDEX_STEP];

	for (uint32_t i = (id - 1) % INDEX_STEP; i; i--)
		b = types_file_next(&f->file, b);
	return b;
}

static bool is_container(const struct btf_type *b)
{
	uint32_t kind = BTF_INFO_KIND(b->info);

	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM ||
	       kind == BTF_KIND_ENUM64;
}

static size_t plain_len(const char *name)
{
	const char *flavor = strstr(name, FLAVOR);

	return flavor && flavor > name ? (size_t)(flavor - name) : strlen(name);
}

/* --- copies --- */

static int copy(struct few *f, uint32_t id, int depth);

static const char *name_of(const struct few *f, const struct btf_type *b)
{
	const char *name = types_file_name(&f->file, b->name_off);

	return *name ? name : NULL;
}

static int copy_enum(const struct few *f, const struct btf_type *b)
{
	bool wide = BTF_INFO_KIND(b->info) == BTF_KIND_ENUM64;
	const struct btf_enum64 *w = (const void *)(b + 1);
	const struct btf_enum *v = (const void *)(b + 1);
	uint32_t n = BTF_INFO_VLEN(b->info);
	int id = wide ? btf__add_enum64(f->to, name_of(f, b), b->size, BTF_INFO_KFLAG(b->info))
		      : btf__add_enum(f->to, name_of(f, b), b->size);
	int r = id < 0 ? id : 0;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = wide ? btf__add_enum64_value(f->to, types_file_name(&f->file, w[i].name_off),
						 (uint64_t)w[i].val_hi32 << 32 | w[i].val_lo32)
			 : btf__add_enum_value(f->to, types_file_name(&f->file, v[i].name_off),
					       v[i].val);
	return r < 0 ? r : id;
}

/* What is inside comes first, since members are added to the last type. */
static int copy_struct(struct few *f, const struct btf_type *b, int depth)
{
	const struct btf_member *m = (const void *)(b + 1);
	bool fields = BTF_INFO_KFLAG(b->info);
	uint32_t n = BTF_INFO_VLEN(b->info);
	autofree int *inside = calloc(n + 1, sizeof(*inside));
	int id, r = 0;

	if (!inside)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		inside[i] = copy(f, m[i].type, depth + 1);
		if (inside[i] < 0)
			return inside[i];
	}
	id = BTF_INFO_KIND(b->info) == BTF_KIND_STRUCT
		     ? btf__add_struct(f->to, name_of(f, b), b->size)
		     : btf__add_union(f->to, name_of(f, b), b->size);
	for (uint32_t i = 0; id >= 0 && r == 0 && i < n; i++) {
		const char *name = types_file_name(&f->file, m[i].name_off);
		uint32_t at = fields ? BTF_MEMBER_BIT_OFFSET(m[i].offset) : m[i].offset;

		r = btf__add_field(f->to, *name ? name : NULL, inside[i], at,
				   fields ? BTF_MEMBER_BITFIELD_SIZE(m[i].offset) : 0);
	}
	return r < 0 ? r : id;
}

static int copy_array(struct few *f, const struct btf_type *b, int depth)
{
	const struct btf_array *a = (const void *)(b + 1);
	int of = copy(f, a->type, depth + 1);

	return of < 0 ? of : btf__add_array(f->to, f->number, of, a->nelems);
}

static int copy_type(struct few *f, const struct btf_type *b, int depth)
{
	uint32_t data;

	switch (BTF_INFO_KIND(b->info)) {
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return copy(f, b->type, depth + 1);
	case BTF_KIND_PTR:
		return f->pointer;
	case BTF_KIND_INT:
		memcpy(&data, b + 1, sizeof(data));
		return btf__add_int(f->to, types_file_name(&f->file, b->name_off), b->size,
				    (int)BTF_INT_ENCODING(data));
	case BTF_KIND_FLOAT:
		return btf__add_float(f->to, types_file_name(&f->file, b->name_off), b->size);
	case BTF_KIND_ARRAY:
		return copy_array(f, b, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_struct(f, b, depth);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return copy_enum(f, b);
	default:
		return 0;
	}
}

static int copy(struct few *f, uint32_t id, int depth)
{
	int r;

	if (!id || id > f->n)
		return 0;
	if (depth > NESTED_MAX)
		return -E2BIG;
	if (f->as[id])
		return (int)f->as[id];
	r = copy_type(f, type_by_id(f, id), depth);
	if (r > 0)
		f->as[id] = (uint32_t)r;
	return r;
}

/* --- what is wanted --- */

/* The lengths are looked at first: there are some ten thousand names. */
struct wanted {
	const char *name;
	size_t len;
};

static size_t list_wanted(const struct few *f, struct wanted *v)
{
	uint32_t end = btf__type_cnt(f->program);
	size_t n = 0;

	for (uint32_t id = 1; id < end; id++) {
		const struct btf_type *b = btf__type_by_id(f->program, id);
		const char *name = btf__name_by_offset(f->program, b->name_off);

		if (is_container(b) && name && *name)
			v[n++] = (struct wanted){name, plain_len(name)};
	}
	return n;
}

static bool is_wanted(const char *name, const struct wanted *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, v[i].name, v[i].len) && plain_len(name) == v[i].len)
			return true;
	return false;
}

static int copy_wanted(struct few *f)
{
	autofree struct wanted *v = calloc(btf__type_cnt(f->program), sizeof(*v));
	size_t n = v ? list_wanted(f, v) : 0;
	int r = v ? 0 : -ENOMEM;
	uint32_t id = 1;

	for (const struct btf_type *b = types_file_first(&f->file); r >= 0 && b;
	     b = types_file_next(&f->file, b), id++)
		if (is_container(b) && is_wanted(types_file_name(&f->file, b->name_off), v, n))
			r = copy(f, id, 0);
	return r < 0 ? r : 0;
}

static int make(struct few *f)
{
	int r = index_types(f);

	if (r < 0)
		return r;
	f->to = btf__new_empty();
	if (!f->to)
		return -errno;
	f->pointer = btf__add_ptr(f->to, 0);
	f->number = btf__add_int(f->to, "int", sizeof(int), BTF_INT_SIGNED);
	if (f->pointer < 0 || f->number < 0)
		return -ENOMEM;
	return copy_wanted(f);
}

/* --- the file that libbpf takes --- */

static int write_file(const struct btf *b, struct few_types *ret)
{
	uint32_t size;
	const void *data = btf__raw_data(b, &size);
	autoclose int fd = data ? memfd_create("types", MFD_CLOEXEC) : -1;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return -EIO;
	snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%d", fd);
	ret->fd = take_fd(&fd);
	return 0;
}

int few_types_of(const struct btf *program, struct few_types *ret)
{
	struct few f = {.program = program};
	int r = -ENOENT;

	*ret = FEW_TYPES_NONE;
	if (f.program && types_file_open(&f.file))
		r = make(&f);
	if (r == 0)
		r = write_file(f.to, ret);
	btf__free(f.to);
	types_file_close(&f.file);
	free(f.types);
	free(f.as);
	return r;
}

const char *few_types_path(const void *(*elf_bytes)(size_t *size), struct few_types *ret)
{
	size_t size;
	const void *elf = elf_bytes(&size);
	struct bpf_object *object = elf ? bpf_object__open_mem(elf, size, NULL) : NULL;
	bool made;

	unpacked_free();
	made = object && few_types_of(bpf_object__btf(object), ret) == 0;
	bpf_object__close(object);
	return made ? ret->path : NULL;
}

const char *few_types_none(struct few_types *ret)
{
	struct btf *none = btf__new_empty();
	bool made;

	*ret = FEW_TYPES_NONE;
	made = none && write_file(none, ret) == 0;
	btf__free(none);
	return made ? ret->path : NULL;
}

void few_types_close(struct few_types *t)
{
	close_fd(&t->fd);
}
