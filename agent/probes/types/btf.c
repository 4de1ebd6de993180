// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/types/btf.h"

#include <bpf/btf.h>
#include <dirent.h>

#define BTF_DIR	    "/sys/kernel/btf"
#define DEPTH_MAX   32
#define MODULES_MAX 512
#define FEW	    8 /* functions are looked for one by one; more in a sorted list */

struct named {
	const char *name;
	uint32_t id;
};
struct module {
	char *name;
	struct btf *btf;
};
struct btf_types {
	struct type_source types; /* first: what types point to is this */
	bool tried;
	bool file;	    /* these are a file's, and no kernel's */
	struct btf *kernel; /* NULL: it has none */
	/* its functions, sorted by name, once many are looked for */
	struct named *functions;
	size_t n_functions, n_looks;
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
	uint32_t written = id;
	const struct btf *from = btf;
	const struct btf_type *t = peel(btf, &id);
	long long size;

	if (t && btf_kind(t) == BTF_KIND_FWD)
		t = definition(b, &btf, t, &id);

	*ret = (struct ctype){.kind = CTYPE_VOID,
			      .source = &b->types,
			      .unit = (void *)btf,
			      .written_id = written,
			      .written_unit = (void *)from};
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

/* --- as they are written --- */

static int give_name(const struct btf *btf, const struct btf_type *t, const char *prefix,
		     struct written *w)
{
	const char *name = btf__name_by_offset(btf, t->name_off);

	w->kind = WRITTEN_NAME;
	w->prefix = prefix;
	w->name = name && *name ? name : *prefix ? "{...}" : "?";
	return 0;
}

static int go_on(enum written_kind kind, uint32_t next, struct written *w)
{
	w->kind = kind;
	w->id = next;
	return 0;
}

static int source_written(struct type_source *s, struct written *w)
{
	const struct btf *btf = w->unit;
	const struct btf_type *t = btf__type_by_id(btf, (uint32_t)w->id);

	(void)s;
	if (!t)
		return -EINVAL;
	w->prefix = "";
	w->name = NULL;
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
		return go_on(WRITTEN_POINTER, t->type, w);
	case BTF_KIND_CONST:
		return go_on(WRITTEN_CONST, t->type, w);
	case BTF_KIND_VOLATILE:
		return go_on(WRITTEN_VOLATILE, t->type, w);
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return go_on(WRITTEN_NOTHING, t->type, w);
	case BTF_KIND_ARRAY:
		w->count = btf_array(t)->nelems;
		return go_on(WRITTEN_ARRAY, btf_array(t)->type, w);
	case BTF_KIND_FUNC_PROTO:
		return go_on(WRITTEN_FUNCTION, t->type, w);
	case BTF_KIND_STRUCT:
		return give_name(btf, t, "struct ", w);
	case BTF_KIND_UNION:
		return give_name(btf, t, "union ", w);
	case BTF_KIND_FWD:
		return give_name(btf, t, btf_kflag(t) ? "union " : "struct ", w);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return give_name(btf, t, "enum ", w);
	default:
		return give_name(btf, t, "", w);
	}
}

static int source_parameter(struct type_source *s, const struct ctype *t, size_t which,
			    struct ctype *ret)
{
	const struct btf *btf = t->written_unit;
	const struct btf_type *f = btf__type_by_id(btf, (uint32_t)t->written_id);

	if (!f || btf_kind(f) != BTF_KIND_FUNC_PROTO || which >= btf_vlen(f) ||
	    !btf_params(f)[which].type)
		return -ENOENT;
	type_of((struct btf_types *)s, btf, btf_params(f)[which].type, ret);
	return 0;
}

static int source_enumerators(struct type_source *s, const struct ctype *t,
			      int (*f)(void *arg, const char *name, int64_t value), void *arg)
{
	const struct btf *btf = t->unit;
	const struct btf_type *bt = btf__type_by_id(btf, (uint32_t)t->id);
	bool wide = bt && btf_kind(bt) == BTF_KIND_ENUM64;
	int r = 0;

	(void)s;
	if (!bt || (!wide && btf_kind(bt) != BTF_KIND_ENUM))
		return -ENOENT;
	for (uint32_t i = 0; r == 0 && i < btf_vlen(bt); i++) {
		uint32_t name = wide ? btf_enum64(bt)[i].name_off : btf_enum(bt)[i].name_off;
		const char *text = btf__name_by_offset(btf, name);
		int64_t value = btf_enum(bt)[i].val;

		if (wide)
			value = (int64_t)btf_enum64_value(&btf_enum64(bt)[i]);
		else if (!btf_kflag(bt))
			value = (uint32_t)value;
		if (text && *text)
			r = f(arg, text, value);
	}
	return r;
}

/* --- sources --- */

int btf_types_new(struct btf_types **ret)
{
	struct btf_types *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->types = (struct type_source){.target = source_target,
					.members = source_members,
					.name = source_name,
					.enumerators = source_enumerators,
					.written = source_written,
					.parameter = source_parameter};
	*ret = b;
	return 0;
}

static bool names_are_there_of(const struct btf *btf, const struct btf_type *t)
{
	const struct btf_enum64 *enums64 = btf_enum64(t);
	const struct btf_member *members = btf_members(t);
	const struct btf_param *params = btf_params(t);
	const struct btf_enum *enums = btf_enum(t);
	uint16_t kind = btf_kind(t);
	bool there = btf__name_by_offset(btf, t->name_off) != NULL;

	for (uint16_t i = 0; there && i < btf_vlen(t); i++) {
		uint32_t name = 0;

		if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION)
			name = members[i].name_off;
		else if (kind == BTF_KIND_ENUM)
			name = enums[i].name_off;
		else if (kind == BTF_KIND_ENUM64)
			name = enums64[i].name_off;
		else if (kind == BTF_KIND_FUNC_PROTO)
			name = params[i].name_off;
		there = btf__name_by_offset(btf, name) != NULL;
	}
	return there;
}

/* libbpf before 1.3 does not look whether names are within the text of a file, and falls over those
 * that are not when it looks for one. */
static bool names_are_there(const struct btf *btf)
{
	uint32_t end = btf__type_cnt(btf);

	for (uint32_t id = 1; id < end; id++)
		if (!names_are_there_of(btf, btf__type_by_id(btf, id)))
			return false;
	return true;
}

int btf_types_open(const char *path, struct btf_types **ret)
{
	struct btf *btf = btf__parse(path, NULL);
	int r;

	if (!btf)
		return errno == ENOMEM ? -ENOMEM : -ENODATA;
	if (!names_are_there(btf)) {
		btf__free(btf);
		return -ENODATA;
	}
	r = btf_types_new(ret);
	if (r < 0) {
		btf__free(btf);
		return r;
	}
	(*ret)->tried = (*ret)->file = true;
	(*ret)->kernel = btf;
	return 0;
}

void btf_types_free(struct btf_types *b)
{
	for (size_t i = 0; i < b->n_modules; i++) {
		btf__free(b->modules[i].btf);
		free(b->modules[i].name);
	}
	btf__free(b->kernel);
	free(b->functions);
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

static int compare_named(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int sort_functions(struct btf_types *b)
{
	uint32_t end = btf__type_cnt(b->kernel);

	b->functions = calloc(end ? end : 1, sizeof(*b->functions));
	if (!b->functions)
		return -ENOMEM;
	for (uint32_t id = 1; id < end; id++) {
		const struct btf_type *t = btf__type_by_id(b->kernel, id);
		const char *name =
			btf_is_func(t) ? btf__name_by_offset(b->kernel, t->name_off) : NULL;

		if (name)
			b->functions[b->n_functions++] = (struct named){name, id};
	}
	qsort(b->functions, b->n_functions, sizeof(*b->functions), compare_named);
	return 0;
}

static int find_function(struct btf_types *b, const struct btf *btf, const char *name)
{
	struct named key = {.name = name}, *found;
	int id;

	if (btf == b->kernel && (b->functions || (++b->n_looks > FEW && !sort_functions(b)))) {
		found = bsearch(&key, b->functions, b->n_functions, sizeof(key), compare_named);
		return found ? (int)found->id : -ENOENT;
	}
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
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
			id = find_function(b, *btf, name);
	}
	if (dir)
		closedir(dir);
	return id;
}

/* Of a function its type, and the BTF that has it. */
static int find_type(struct btf_types *b, const char *module, const char *name,
		     const struct btf **btf, const struct btf_type **ret, struct error *e)
{
	const struct btf_type *t;
	int id, r = load(b, e);

	if (r < 0)
		return r;
	if (module && streq(module, "vmlinux"))
		*btf = b->kernel;
	else
		*btf = module ? module_btf(b, module) : b->kernel;
	id = *btf ? find_function(b, *btf, name) : -ENOENT;
	if (id < 0 && !module && !b->file)
		id = find_in_modules(b, name, btf);
	t = id > 0 ? btf__type_by_id(*btf, (uint32_t)id) : NULL;
	*ret = t ? btf__type_by_id(*btf, t->type) : NULL;
	if (!*ret || btf_kind(*ret) != BTF_KIND_FUNC_PROTO)
		return error_set(e, -ENOENT,
				 "the kernel's types (BTF) do not tell of a function %.100s: "
				 "expected arg0 and so on instead of names",
				 name);
	return 0;
}

int btf_types_function(struct btf_types *b, const char *module, const char *name,
		       struct btf_function *ret, struct error *e)
{
	const struct btf *btf;
	const struct btf_type *t;
	const struct btf_param *p;
	int r = find_type(b, module, name, &btf, &t, e);

	if (r < 0)
		return r;
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

int btf_types_prototype(struct btf_types *b, const char *module, const char *name,
			struct prototype *ret, struct error *e)
{
	const struct btf *btf = NULL;
	const struct btf_type *t = NULL;
	struct btf_function f = {0};
	int r = find_type(b, module, name, &btf, &t, e);

	if (r == 0)
		r = btf_types_function(b, module, name, &f, e);
	if (r < 0)
		return r;
	*ret = (struct prototype){.name = name, .returns = f.returns, .n = f.n_parameters};
	ret->variadic = t && f.n_parameters < btf_vlen(t);
	for (size_t i = 0; i < f.n_parameters; i++)
		ret->parameters[i] = (struct prototype_parameter){.name = f.parameters[i].name,
								  .type = f.parameters[i].type};
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

int btf_types_enum(struct btf_types *b, const char *name, struct ctype *ret, struct error *e)
{
	int id, r = load(b, e);

	if (r < 0)
		return r;
	id = btf__find_by_name_kind(b->kernel, name, BTF_KIND_ENUM);
	if (id <= 0)
		return error_set(e, -ENOENT, "the kernel has no enum %.100s", name);
	type_of(b, b->kernel, (uint32_t)id, ret);
	return 0;
}
