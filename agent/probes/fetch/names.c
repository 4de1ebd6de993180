// SPDX-License-Identifier: GPL-2.0-or-later
/* Variables of a place by the program's debug data; where that knows nothing of a function, by the
 * types that were given. */
#include <elf.h>

#include "probes/fetch/priv.h"

/* Of a function's entry or return only, since it is not known what code does with parameters. */
static bool by_given(const struct maker *m)
{
	const struct fetch_place *p = m->place;
	struct error ignored = {0};
	struct prototype own;

	if (!p->given || !p->function || (!p->at_entry && m->spec->kind != PROBE_URETPROBE))
		return false;
	return dwarf_prototype(p->dwarf, p->offset, &own, &ignored) < 0;
}

int place_variables(const struct maker *m, bool parameters,
		    int (*f)(void *arg, const struct dwarf_variable *v), void *arg, struct error *e)
{
	const struct fetch_place *p = m->place;

	if (by_given(m))
		return given_types_parameters(p->given, p->machine, p->function, f, arg, e);
	return dwarf_variables(p->dwarf, p->offset, parameters, f, arg, e);
}

int place_return(const struct maker *m, struct dwarf_variable *ret, struct error *e)
{
	const struct fetch_place *p = m->place;

	if (by_given(m))
		return given_types_return(p->given, p->machine, p->function, ret, e);
	return dwarf_return_value(p->dwarf, p->offset, ret, e);
}

/* --- a result that is to be another --- */

/* All of it is in the first register for results, and nothing else is. */
static bool is_in_register(uint16_t machine, const struct where *w)
{
	const struct where_item *item = &w->items[w->pieces[0].first];

	return w->n_pieces == 1 && w->pieces[0].kind == WHERE_VALUE && w->pieces[0].n == 1 &&
	       item->op == WHERE_REGISTER && streq(item->reg, machine == EM_AARCH64 ? "x0" : "ax");
}

/* Numbers are taken with and without a sign: -1 and 0xffffffff are the same 4 bytes. */
static bool fits(const struct fetch_result *r, uint64_t size)
{
	if (size >= 8)
		return true;
	if (r->negative)
		return (int64_t)r->value >= -((int64_t)1 << (size * 8 - 1));
	return r->value >> size * 8 == 0;
}

int fetch_check_result(const struct probe_spec *spec, const struct fetch_place *place,
		       const struct fetch_result *result, struct error *e)
{
	struct maker m = {.spec = spec, .place = place, .e = e};
	const char *name = place->function ? place->function : "the function";
	struct dwarf_variable v;
	struct error ignored = {0};
	const char *why;

	if (!place->dwarf || place_return(&m, &v, &ignored) < 0)
		return 0; /* then whoever asks knows it, or nobody does */
	if (!is_in_register(place->machine, &v.where)) {
		why = v.where.n_pieces != 1			? "it is in several registers"
		      : v.where.pieces[0].kind == WHERE_NOWHERE ? v.where.pieces[0].why
								: "it is in memory";
		return error_set(e, -ENOTSUP,
				 "what %.80s returns cannot be set, which is possible for a "
				 "number or pointer in a general register only: %.160s",
				 name, why);
	}
	if (!fits(result, v.type.size))
		return error_set(
			e, -ERANGE, "%.80s cannot return %s%llu: its result has only %llu bytes",
			name, result->negative ? "-" : "",
			(unsigned long long)(result->negative ? -result->value : result->value),
			(unsigned long long)v.type.size);
	return 0;
}

/* --- by name --- */

struct by_name {
	const char *name;
	struct dwarf_variable *ret;
	char names[160];
};

static int on_named(void *arg, const struct dwarf_variable *v)
{
	struct by_name *b = arg;
	size_t len = strlen(b->names);

	if (!v->name)
		return 0;
	if (streq(v->name, b->name)) {
		*b->ret = *v;
		return 1;
	}
	snprintf(b->names + len, sizeof(b->names) - len, "%s%s", len ? ", " : "", v->name);
	return 0;
}

int place_variable(const struct maker *m, const char *name, struct dwarf_variable *ret,
		   struct error *e)
{
	struct by_name b = {.name = name, .ret = ret};
	const struct fetch_place *p = m->place;
	int r;

	if (!by_given(m))
		return dwarf_variable(p->dwarf, p->offset, name, ret, e);
	r = given_types_parameters(p->given, p->machine, p->function, on_named, &b, e);
	if (r)
		return r < 0 ? r : 0;
	return error_set(e, -ENOENT, "%.80s has no parameter %.64s in %.160s%s%s", p->function,
			 name, given_types_path(p->given), *b.names ? ": expected one of " : "",
			 b.names);
}

/* In the sentence about a variable that has no value: where it has one. */
void say_lines_with(const struct maker *m, const char *name)
{
	const struct fetch_place *p = m->place;
	size_t len = strlen(m->e->text);
	uint32_t below, above;

	/* of all lines of a function the others are named already */
	if (m->spec->kind != PROBE_LINE || !p->dwarf || !m->spec->line || !name)
		return;
	dwarf_lines_with(p->dwarf, m->spec->source, m->spec->line, name, &below, &above);
	if (below && above)
		snprintf(m->e->text + len, sizeof(m->e->text) - len,
			 "; the nearest lines where %.64s has a value are %u and %u", name, below,
			 above);
	else if (below || above)
		snprintf(m->e->text + len, sizeof(m->e->text) - len,
			 "; the nearest line where %.64s has a value is %u", name,
			 below ? below : above);
	else
		snprintf(m->e->text + len, sizeof(m->e->text) - len,
			 "; %.64s has a value at no line of this function", name);
}
