// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/types/given.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/strv.h"
#include "probes/types/btf.h"
#include "probes/types/c_names.h"
#include "probes/types/dwarf_priv.h"

#define SOURCE_MAX (4u << 20) /* bytes of a header */

/* What a header calls the parameters of a function that is only declared. */
struct named_parameters {
	char *function;
	struct strv names; /* "": it has none; of none: that is not known */
};

struct given_types {
	char *path;
	struct named_parameters *named;
	size_t n_named;
	struct dwarf *dwarf;   /* NULL: it has BTF */
	struct btf_types *btf; /* NULL: it has DWARF */
};

const char *given_types_path(const struct given_types *g)
{
	return g->path;
}

void given_types_free(struct given_types *g)
{
	if (g->dwarf)
		dwarf_free(g->dwarf);
	if (g->btf)
		btf_types_free(g->btf);
	for (size_t i = 0; i < g->n_named; i++) {
		free(g->named[i].function);
		strv_free(&g->named[i].names);
	}
	free(g->named);
	free(g->path);
	free(g);
}

/* --- opening --- */

/* What it begins with. */
static size_t read_head(const char *path, char *buf, size_t size)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size);

	return n > 0 ? (size_t)n : 0;
}

/* Text has no zeroes. */
static bool is_text(const char *path)
{
	char buf[4096];
	size_t n = read_head(path, buf, sizeof(buf));

	return n && !memchr(buf, 0, n);
}

/* As this machine writes it: libbpf says aloud what it dislikes of other files. */
static bool has_btf(const char *path)
{
	static const uint16_t magic = 0xeb9f;
	char buf[sizeof(magic)];

	return (read_head(path, buf, sizeof(buf)) == sizeof(buf) &&
		!memcmp(buf, &magic, sizeof(magic))) ||
	       dwarf_file_has(path, ".BTF");
}

static int refuse(const char *path, int code, struct error *e)
{
	if (code == -ENOENT || code == -EACCES)
		return error_set(e, code, "%.200s cannot be read: %s", path, strerror(-code));
	if (is_text(path))
		return error_set(e, -EINVAL,
				 "%.200s is source text, of which only a compiler knows what it "
				 "means: expected what one makes of it with -g, see --types in "
				 "ax-trace(8)",
				 path);
	return error_set(e, -ENODATA,
			 "%.200s has no types: expected an ELF file with DWARF, as gcc -g makes "
			 "it, or BTF",
			 path);
}

static int open_dwarf(struct given_types *g)
{
	struct error ignored = {0};
	int r = dwarf_new(g->path, &g->dwarf);

	if (r == 0)
		r = dwarf_load_given(g->dwarf, &ignored);
	if (r < 0 && g->dwarf) {
		dwarf_free(g->dwarf);
		g->dwarf = NULL;
	}
	return r;
}

int given_types_open(const char *path, struct given_types **ret, struct error *e)
{
	CLEANUP(given_types_freep) struct given_types *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return error_set(e, -ENOMEM, "out of memory");
	g->path = strdup(path);
	if (!g->path)
		return error_set(e, -ENOMEM, "out of memory");
	if (access(path, R_OK))
		return refuse(path, -errno, e);
	r = open_dwarf(g);
	if (r == -ENODATA && has_btf(path))
		r = btf_types_open(path, &g->btf);
	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	if (r < 0)
		return refuse(path, r, e);
	*ret = take_ptr(&g);
	return 0;
}

/* --- names of parameters --- */

/* malloc'ed; NULL: there is no such file, or it is none of text. */
static char *read_source(const char *path, size_t *len)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	autofree char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0)
		return NULL;
	*len = (size_t)n;
	return take_ptr(&text);
}

/* They count only if the text has as many as the types. -ENOMEM. */
static int read_names(const struct prototype *p, const char *function, struct strv *ret)
{
	struct c_name v[PROTOTYPE_PARAMETERS];
	autofree char *text = NULL;
	size_t len = 0;
	int n;

	text = p->source && p->line ? read_source(p->source, &len) : NULL;
	n = text ? c_parameter_names(text, len, p->line, function, v, ARRAY_SIZE(v)) : -ENOENT;
	if (n < 0 || (size_t)n != p->n)
		return 0;
	for (int i = 0; i < n; i++) {
		autofree char *name = strndup(v[i].len ? v[i].s : "", v[i].len);

		if (!name || strv_add(ret, name) < 0)
			return -ENOMEM;
	}
	return 0;
}

static const struct named_parameters *find_names(struct given_types *g, const struct prototype *p)
{
	struct named_parameters *bigger, *x;

	for (size_t i = g->n_named; i-- > 0;)
		if (streq(g->named[i].function, p->name))
			return &g->named[i];
	bigger = realloc(g->named, (g->n_named + 1) * sizeof(*bigger));
	if (!bigger)
		return NULL;
	g->named = bigger;
	x = &g->named[g->n_named];
	*x = (struct named_parameters){.function = strdup(p->name)};
	if (!x->function)
		return NULL;
	g->n_named++;
	read_names(p, p->name, &x->names);
	return x;
}

/* Where debug data only declares it, there are types but no names. */
static void add_names(struct given_types *g, struct prototype *p)
{
	const struct named_parameters *x = NULL;

	if (!p->n || !p->name || p->go)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (p->parameters[i].name)
			return;
	x = find_names(g, p);
	for (size_t i = 0; x && i < p->n && i < x->names.n; i++)
		if (*x->names.v[i])
			p->parameters[i].name = x->names.v[i];
}

/* --- functions --- */

int given_types_prototype(struct given_types *g, const char *name, struct prototype *ret,
			  struct error *e)
{
	struct error ignored = {0};
	int r = g->dwarf ? dwarf_prototype_named(g->dwarf, name, ret)
			 : btf_types_prototype(g->btf, NULL, name, ret, &ignored);

	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	if (r < 0)
		return error_set(e, r, "%.200s has no function %.100s", g->path, name);
	add_names(g, ret);
	return 0;
}

static const char *numbered(size_t i)
{
	static const char *const names[] = {"arg0", "arg1", "arg2", "arg3", "arg4",
					    "arg5", "arg6", "arg7", "arg8", "arg9"};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

static const char *own_or_number(const struct prototype *p, size_t i)
{
	return p->parameters[i].name ? p->parameters[i].name : numbered(i);
}

/* One without a name may be called by its number as another one calls itself. */
static bool are_distinct(const struct prototype *p)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t j = 0; j < i; j++) {
			const char *a = own_or_number(p, i), *b = own_or_number(p, j);

			if (a && b && streq(a, b))
				return false;
		}
	return true;
}

int given_types_parameters(struct given_types *g, uint16_t machine, const char *function,
			   int (*f)(void *arg, const struct dwarf_variable *v), void *arg,
			   struct error *e)
{
	struct dwarf_abi abi;
	struct prototype p;
	bool distinct;
	int r = given_types_prototype(g, function, &p, e);

	if (r < 0)
		return r;
	distinct = are_distinct(&p);
	dwarf_abi_start(&abi, machine, p.go, &p.returns);
	for (size_t i = 0; r == 0 && i < p.n; i++) {
		const struct prototype_parameter *in = &p.parameters[i];
		struct dwarf_variable v = {.name = distinct ? own_or_number(&p, i) : numbered(i),
					   .type = in->type,
					   .is_parameter = true};

		if (in->is_result)
			continue;
		dwarf_abi_next(&abi, &v.type, &v.where);
		r = f(arg, &v);
	}
	return r;
}

int given_types_return(struct given_types *g, uint16_t machine, const char *function,
		       struct dwarf_variable *ret, struct error *e)
{
	struct prototype p;
	int r = given_types_prototype(g, function, &p, e);

	if (r < 0)
		return r;
	*ret = (struct dwarf_variable){.name = "retval", .type = p.returns};
	if (p.go)
		where_nowhere(&ret->where, "where Go returns it is known only with debug data");
	else
		dwarf_abi_return(machine, &p.returns, &ret->where);
	return 0;
}
