/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which functions a flow is of, and how their returns can be seen. */
#include "base/search.h"
#include "probes/elf/binary.h"
#include "probes/place/place.h"
#include "probes/types/dwarf.h"
#include "tools/trace/flow/flow.h"

#define FUNCTIONS_MAX 8000

struct finder {
	struct flow_request *q;
	struct error *e;
	int r;
};

static int compare(const void *a, const void *b)
{
	const struct flow_function *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int add_function(struct finder *f, const struct symbol *s)
{
	struct flow_request *q = f->q;
	struct flow_function *v = q->functions;

	if (q->n_functions == FUNCTIONS_MAX)
		return error_set(f->e, -E2BIG, "this names more than %d functions: narrow it down",
				 FUNCTIONS_MAX);
	if (q->n_functions == q->size_functions) {
		q->size_functions = q->size_functions ? 2 * q->size_functions : 64;
		v = realloc(v, q->size_functions * sizeof(*v));
		if (!v)
			return error_set(f->e, -ENOMEM, "out of memory");
		q->functions = v;
	}
	v += q->n_functions;
	*v = (struct flow_function){.name = strdup(s->demangled ? s->demangled : s->name),
				    .offset = s->offset,
				    .size = s->size,
				    .address = s->address};
	if (!v->name)
		return error_set(f->e, -ENOMEM, "out of memory");
	q->n_functions++;
	return 0;
}

static int on_symbol(void *arg, const struct symbol *s)
{
	struct finder *f = arg;

	f->r = add_function(f, s);
	return f->r;
}

static int on_dwarf(void *arg, const struct dwarf_function *fn)
{
	struct finder *f = arg;
	struct symbol s = {0};

	/* symbols know a function's address, and C++ names with all that belongs to them */
	if (binary_symbolise(f->q->binary, fn->offset, &s) < 0 || s.offset != fn->offset)
		s = (struct symbol){.name = fn->name,
				    .offset = fn->offset,
				    .address = fn->offset,
				    .size = fn->size};
	f->r = add_function(f, &s);
	return f->r;
}

static int find_source(struct finder *f, struct dwarf *d, const char *source)
{
	size_t inlined = 0;
	int r = dwarf_functions(d, source, NULL, on_dwarf, f, &inlined, f->e);

	f->q->n_inlined += inlined;
	return f->r < 0 ? f->r : r;
}

static int find_all(struct finder *f, struct dwarf *d, char **globs, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (starts_with(globs[i], "file:")) {
			r = find_source(f, d, globs[i] + strlen("file:"));
			continue;
		}
		r = binary_functions(f->q->binary, globs[i], on_symbol, f, f->e);
		r = f->r < 0 ? f->r : r;
	}
	return r < 0 ? r : 0;
}

/* Two globs can name the same function. */
static void sort_functions(struct flow_request *q)
{
	size_t n = 0;

	if (q->n_functions)
		qsort(q->functions, q->n_functions, sizeof(*q->functions), compare);
	for (size_t i = 0; i < q->n_functions; i++) {
		if (n && q->functions[n - 1].offset == q->functions[i].offset)
			free(q->functions[i].name);
		else
			q->functions[n++] = q->functions[i];
	}
	q->n_functions = n;
}

uint32_t flow_function_at(const struct flow_request *q, uint64_t offset)
{
	size_t above = search_above(q->functions, q->n_functions, sizeof(*q->functions),
				    offsetof(struct flow_function, offset), offset);

	return above ? (uint32_t)above - 1 : FLOW_NONE;
}

/* --- under --- */

static int find_under(struct finder *f, uint64_t *offset)
{
	struct flow_request *q = f->q;
	size_t before = q->n_functions;
	int r = binary_functions(q->binary, q->under_name, on_symbol, f, f->e);

	r = f->r < 0 ? f->r : r;
	if (r < 0)
		return r;
	if (q->n_functions - before != 1)
		return error_set(f->e, -EINVAL, "'%.100s' names %zu functions: --under takes one",
				 q->under_name, q->n_functions - before);
	*offset = q->functions[before].offset;
	return 0;
}

/* --- returns --- */

static bool has_returns(struct flow_request *q, const struct flow_function *fn)
{
	struct symbol s = {
		.name = fn->name, .address = fn->address, .offset = fn->offset, .size = fn->size};
	autofree uint64_t *offsets = NULL;
	struct error e = {0};
	size_t n = 0;

	return binary_returns(q->binary, &s, &offsets, &n, &e) == 0 && n;
}

/* How each function's return is seen; and the lists of what is probed. */
static int divide(struct flow_request *q)
{
	bool at_rets = q->at_rets || binary_is_go(q->binary);
	size_t n = q->n_functions;

	q->returns = calloc(n, 1);
	q->entries = calloc(n, sizeof(*q->entries));
	q->with_return = calloc(n, sizeof(*q->with_return));
	if (!q->returns || !q->entries || !q->with_return)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct flow_function *fn = &q->functions[i];
		bool never = at_rets ? !has_returns(q, fn) : function_keeps_return(fn->name);

		q->returns[i] = never ? FLOW_NEVER : at_rets ? FLOW_AT_RET : FLOW_BY_TRAMPOLINE;
		if (i == q->under)
			continue;
		q->entries[q->n_entries++] = fn->offset;
		if (!never)
			q->with_return[q->n_with_return++] = fn->offset;
	}
	return 0;
}

int flow_find(struct flow_request *q, char **globs, size_t n, struct error *e)
{
	struct finder f = {.q = q, .e = e};
	struct error none = {0};
	CLEANUP(dwarf_freep) struct dwarf *d = NULL;
	uint64_t under = 0;
	int r = dwarf_new(binary_path(q->binary), &d);

	if (r < 0)
		return error_set(e, r, "out of memory");
	if (q->t.options.types && (dwarf_look_in(d, q->t.options.types) < 0 ||
				   binary_look_in(q->binary, q->t.options.types) < 0))
		return error_set(e, -ENOMEM, "out of memory");
	q->typed = dwarf_load(d, &none) == 0 || q->t.options.types;
	r = find_all(&f, d, globs, n);
	if (r == 0 && q->under_name)
		r = find_under(&f, &under);
	if (r < 0)
		return r;
	sort_functions(q);
	if (q->under_name)
		q->under = flow_function_at(q, under);
	q->at_rets = q->at_rets || (!binary_is_go(q->binary) && binary_throws(q->binary));
	return divide(q) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
}
