// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/types/btf.h"

#include <bpf/btf.h>
#include <dirent.h>

#define BTF_DIR	    "/sys/kernel/btf"
#define DEPTH_MAX   32
#define MODULES_MAX 512

struct module {
	char *name;
	struct btf *btf;
};
struct btf_types {
	struct type_source types; /* first: what types point to is this */
	bool tried;
	struct btf *kernel; /* NULL: it has none */
	struct module modules[MODULES_MAX];
	size_t n_modules;
	bool all_modules;
};

/* --- types --- */

static const struct btf_type *peel(const struct btf *btf, uint32_t *id)
{
	for (int i = 0; i < DEPTH_MAX; i++) {
		const struct btf_type *t = btf__type_by_id(btf, *id);

		if (!t || !*id)
			return NULL;
		switch (btf_kind(t)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_CONST:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			*id = t->type;
			break;
		default:
			return t;
		}
	}
	return NULL;
}

static void fill_int(const struct btf *btf, const struct btf_type *t, struct ctype *ret)
{
	const char *name = btf__name_by_offset(btf, t->name_off);
	uint8_t encoding = btf_int_encoding(t);

	ret->kind = CTYPE_INTEGER;
	if (encoding & BTF_INT_BOOL)
		ret->kind = CTYPE_BOOL;
	else if (name && streq(name, "char"))
		ret->kind = CTYPE_CHAR;
	ret->is_signed = (encoding & BTF_INT_SIGNED) != 0;
}

/* A struct that a module only declares is mostly the kernel's. */
static const struct btf_type *definition(const struct btf_types *b, const struct btf **btf,
					 const struct btf_type *t, uint32_t *id)
{
	const char *name = btf__name_by_offset(*btf, t->name_off);
	int found = btf__find_by_name_kind(b->kernel, name,
					   btf_kflag(t) ? BTF_KIND_UNION : BTF_KIND_STRUCT);

	if (found <= 0)
		return t;
	*btf = b->kernel;
	*id = (uint32_t)found;
	return btf__type_by_id(b->kernel, *id);
}

static void type_of(struct btf_types *b, const struct btf *btf, uint32_t id, struct ctype *ret)
{
	const struct btf_type *t = peel(btf, &id);
	long long size;

	if (t && btf_kind(t) == BTF_KIND_FWD)
		t = definition(b, &btf, t, &id);

	*ret = (struct ctype){.kind = CTYPE_VOID, .source = &b->types, .unit = (void *)btf};
	if (!t)
		return;
	size = btf__resolve_size(btf, id);
	ret->kind = CTYPE_OTHER;
	ret->id = id;
	ret->size = size > 0 ? (uint64_t)size : 0;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		fill_int(btf, t, ret);
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		ret->kind = CTYPE_ENUM;
		ret->is_signed = btf_kflag(t);
		break;
	case BTF_KIND_PTR:
		ret->kind = CTYPE_POINTER;
		ret->size = 8;
		break;
	case BTF_KIND_ARRAY:
		ret->kind = CTYPE_ARRAY;
		ret->count = btf_array(t)->nelems;
		break;
	case BTF_KIND_STRUCT:
		ret->kind = CTYPE_STRUCT;
		break;
	case BTF_KIND_UNION:
		ret->kind = CTYPE_UNION;
		break;
	case BTF_KIND_FLOAT:
		ret->kind = CTYPE_FLOAT;
		break;
	case BTF_KIND_FUNC_PROTO:
		ret->kind = CTYPE_FUNCTION;
		break;
	default:
		break;
	}
}

static int source_target(struct type_source *s, const struct ctype *t, struct ctype *ret)
{
	const struct btf *btf = t->unit;
	const struct btf_type *b = btf__type_by_id(btf, (uint32_t)t->id);

	if (!b || (t->kind != CTYPE_POINTER && t->kind != CTYPE_ARRAY))
		return -ENOENT;
	type_of((struct btf_types *)s, btf, t->kind == CTYPE_ARRAY ? btf_array(b)->type : b->type,
		ret);
	return 0;
}

static int source_members(struct type_source *s, const struct ctype *t,
			  int (*f)(void *arg, const struct ctype_member *m), void *arg)
{
	struct btf_types *b = (struct btf_types *)s;
	const struct btf *btf = t->unit;
	const struct btf_type *bt = btf__type_by_id(btf, (uint32_t)t->id);

	if (!bt || !btf_is_composite(bt))
		return -ENODATA;
	for (uint32_t i = 0; i < btf_vlen(bt); i++) {
		const struct btf_member *bm = btf_members(bt) + i;
		uint32_t at = btf_member_bit_offset(bt, i);
		struct ctype_member m = {.name = btf__name_by_offset(btf, bm->name_off)};
		int r;

		if (m.name && !*m.name)
			m.name = NULL;
		type_of(b, btf, bm->type, &m.type);
		m.offset = at / 8;
		m.bits = (uint8_t)btf_member_bitfield_size(bt, i);
		m.bit = at % 8;
		r = f(arg, &m);
		if (r)
			return r;
	}
	return 0;
}

static const char *source_name(struct type_source *s, const struct ctype *t)
{
	const struct btf_type *b = btf__type_by_id(t->unit, (uint32_t)t->id);
	const char *name = b && t->id ? btf__name_by_offset(t->unit, b->name_off) : NULL;

	(void)s;
	return name && *name ? name : NULL;
}

/* --- sources --- */

int btf_types_new(struct btf_types **ret)
{
	struct btf_types *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->types = (struct type_source){source_target, source_members, source_name};
	*ret = b;
	return 0;
}

void btf_types_free(struct btf_types *b)
{
	for (size_t i = 0; i < b->n_modules; i++) {
		btf__free(b->modules[i].btf);
		free(b->modules[i].name);
	}
	btf__free(b->kernel);
	free(b);
}

static int load(struct btf_types *b, struct error *e)
{
	if (!b->tried)
		b->kernel = btf__parse_raw(BTF_DIR "/vmlinux");
	b->tried = true;
	if (b->kernel)
		return 0;
	return error_set(e, -ENODATA,
			 "this kernel tells nothing of its types: expected one that was built with "
			 "CONFIG_DEBUG_INFO_BTF (" BTF_DIR "/vmlinux)");
}

/* NULL: there is none, or it cannot be read. */
static const struct btf *module_btf(struct btf_types *b, const char *name)
{
	char path[sizeof(BTF_DIR) + 80];
	struct module *m;

	for (size_t i = 0; i < b->n_modules; i++)
		if (streq(b->modules[i].name, name))
			return b->modules[i].btf;
	if (b->n_modules == MODULES_MAX || strchr(name, '/') ||
	    snprintf(path, sizeof(path), BTF_DIR "/%s", name) >= (int)sizeof(path))
		return NULL;
	m = &b->modules[b->n_modules];
	m->name = strdup(name);
	if (!m->name)
		return NULL;
	m->btf = btf__parse_raw_split(path, b->kernel);
	b->n_modules++;
	return m->btf;
}

static int find_function(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);

	return id > 0 ? id : -ENOENT;
}

static int find_in_modules(struct btf_types *b, const char *name, const struct btf **btf)
{
	DIR *dir = opendir(BTF_DIR);
	struct dirent *entry;
	int id = -ENOENT;

	while (dir && id < 0 && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || streq(entry->d_name, "vmlinux"))
			continue;
		*btf = module_btf(b, entry->d_name);
		if (*btf)
			id = find_function(*btf, name);
	}
	if (dir)
		closedir(dir);
	return id;
}

int btf_types_function(struct btf_types *b, const char *module, const char *name,
		       struct btf_function *ret, struct error *e)
{
	const struct btf *btf;
	const struct btf_type *t;
	const struct btf_param *p;
	int id, r = load(b, e);

	if (r < 0)
		return r;
	btf = module ? module_btf(b, module) : b->kernel;
	id = btf ? find_function(btf, name) : -ENOENT;
	if (id < 0 && !module)
		id = find_in_modules(b, name, &btf);
	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	if (!t || btf_kind(t) != BTF_KIND_FUNC_PROTO)
		return error_set(e, -ENOENT,
				 "the kernel's types (BTF) do not tell of a function %.100s: "
				 "expected arg0 and so on instead of names",
				 name);
	*ret = (struct btf_function){0};
	type_of(b, btf, t->type, &ret->returns);
	p = btf_params(t);
	for (uint32_t i = 0; i < btf_vlen(t) && i < BTF_PARAMETERS_MAX; i++) {
		const char *param = btf__name_by_offset(btf, p[i].name_off);

		if (!p[i].type) /* "..." */
			break;
		ret->parameters[i].name = param && *param ? param : NULL;
		type_of(b, btf, p[i].type, &ret->parameters[i].type);
		ret->n_parameters++;
	}
	return 0;
}

int btf_types_struct(struct btf_types *b, const char *name, struct ctype *ret, struct error *e)
{
	int id, r = load(b, e);

	if (r < 0)
		return r;
	id = btf__find_by_name_kind(b->kernel, name, BTF_KIND_STRUCT);
	if (id <= 0)
		id = btf__find_by_name_kind(b->kernel, name, BTF_KIND_UNION);
	if (id <= 0)
		return error_set(e, -ENOENT, "the kernel has no struct %.100s", name);
	type_of(b, b->kernel, (uint32_t)id, ret);
	return 0;
}
