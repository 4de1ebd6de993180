// SPDX-License-Identifier: GPL-2.0-or-later
/* Variables of a place by the program's debug data; where that knows nothing of a function, by the
 * types that were given. */
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
