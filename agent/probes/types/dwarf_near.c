// SPDX-License-Identifier: GPL-2.0-or-later
/* Where else a variable has a value, when the compiler left none at a line. */
#include "probes/types/dwarf.h"

#define LOOKS_MAX 4000 /* places at which it is looked for */

struct near_search {
	struct dwarf *d;
	const char *name;
	char function[200];
	uint32_t line, below, above;
	unsigned looks;
};

static int on_variable(void *arg, const struct dwarf_variable *v)
{
	const char *name = arg;

	if (!v->name || !streq(v->name, name))
		return 0;
	for (size_t i = 0; i < v->where.n_pieces; i++)
		if (v->where.pieces[i].kind == WHERE_NOWHERE)
			return 2;
	return 1;
}

static bool has_value(const struct near_search *s, uint64_t offset)
{
	struct error ignored = {0};

	return dwarf_variables(s->d, offset, false, on_variable, (void *)s->name, &ignored) == 1;
}

/* They come sorted by line. */
static int on_statement(void *arg, const struct dwarf_line *l)
{
	struct near_search *s = arg;

	if (l->line == s->line || !l->function || !streq(l->function, s->function))
		return 0;
	if (++s->looks > LOOKS_MAX)
		return 1;
	if (!has_value(s, l->offset))
		return 0;
	if (l->line < s->line) {
		s->below = l->line;
		return 0;
	}
	s->above = l->line;
	return 1;
}

static int on_line(void *arg, const struct dwarf_line *l)
{
	struct near_search *s = arg;

	if (l->function)
		snprintf(s->function, sizeof(s->function), "%s", l->function);
	return *s->function != '\0';
}

void dwarf_lines_with(struct dwarf *d, const char *source, uint32_t line, const char *name,
		      uint32_t *below, uint32_t *above)
{
	struct near_search s = {.d = d, .name = name, .line = line};
	struct error ignored = {0};

	dwarf_lines(d, source, line, on_line, &s, &ignored);
	if (*s.function)
		dwarf_statements(d, source, s.function, on_statement, &s, &ignored);
	*below = s.below;
	*above = s.above;
}
