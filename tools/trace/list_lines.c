/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Source files, their statements, and the variables of a line. */
#include "tools/trace/list.h"

#define PLACES_SHOWN 64 /* of one line in one function */

struct statement {
	struct dwarf_line line;
	uint64_t offsets[PLACES_SHOWN];
	size_t n;
};
struct line_list {
	struct lister *l;
	struct statement last; /* n 0: none yet */
};

/* As it was asked for, if that names one file. */
static const char *source_of(const struct lister *l, const char *source)
{
	return strpbrk(l->spec.source, "*?[") ? source : l->spec.source;
}

static void begin(struct lister *l, const struct dwarf_line *line)
{
	const char *source = source_of(l, line->source);
	char number[16];

	snprintf(number, sizeof(number), "%u", line->line);
	if (l->json)
		list_begin_json(l, source, number);
	else
		list_put_probe(l, source, number);
}

static void put_whose(struct lister *l, const struct dwarf_line *line)
{
	struct trace_out *o = &l->out;

	if (!line->function)
		return;
	trace_out_text(o, "  ");
	trace_out_safe(o, line->function, strlen(line->function));
	if (!line->inlined)
		return;
	trace_out_text(o, ", inlined into ");
	trace_out_safe(o, line->inlined, strlen(line->inlined));
}

static void put_json_whose(struct lister *l, const struct dwarf_line *line)
{
	struct trace_out *o = &l->out;

	list_put_member(o, "source", line->source);
	trace_out_printf(o, ",\"line\":%u", line->line);
	if (line->function)
		list_put_member(o, "function", line->function);
	if (line->inlined)
		list_put_member(o, "inlined_into", line->inlined);
}

/* --- statements --- */

static void put_offsets(struct lister *l, const struct statement *s)
{
	struct trace_out *o = &l->out;

	for (size_t i = 0; i < s->n && i < PLACES_SHOWN; i++)
		trace_out_printf(o, l->json ? "%s%llu" : "%s0x%llx",
				 i	   ? l->json ? "," : ", "
				 : l->json ? ",\"offsets\":["
					   : "  at ",
				 (unsigned long long)s->offsets[i]);
	if (l->json)
		trace_out_char(o, ']');
}

static void put_statement(struct line_list *x)
{
	struct lister *l = x->l;
	const struct statement *s = &x->last;

	if (!s->n)
		return;
	l->n++;
	begin(l, &s->line);
	if (l->json) {
		put_json_whose(l, &s->line);
		put_offsets(l, s);
		trace_out_text(&l->out, "}\n");
		return;
	}
	put_whose(l, &s->line);
	if (l->verbose)
		put_offsets(l, s);
	else if (s->n > 1)
		trace_out_printf(&l->out, "  (%zu places)", s->n);
	trace_out_char(&l->out, '\n');
}

static bool text_eq(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static int on_statement(void *arg, const struct dwarf_line *line)
{
	struct line_list *x = arg;
	struct statement *s = &x->last;

	if (!s->n || s->line.line != line->line || !text_eq(s->line.source, line->source) ||
	    !text_eq(s->line.function, line->function) ||
	    !text_eq(s->line.inlined, line->inlined)) {
		put_statement(x);
		*s = (struct statement){.line = *line};
	}
	if (s->n < PLACES_SHOWN)
		s->offsets[s->n] = line->offset;
	s->n++;
	return x->l->failed;
}

/* --- variables --- */

/* Where it is, for people. */
static void write_where(const struct where *w, char *buf, size_t size)
{
	const struct where_piece *p = &w->pieces[0];
	const struct where_item *first = &w->items[p->first];

	if (w->n_pieces > 1)
		snprintf(buf, size, "in %zu pieces", w->n_pieces);
	else if (p->kind == WHERE_NOWHERE)
		snprintf(buf, size, "%s", p->why);
	else if (p->kind == WHERE_VALUE && p->n == 1 && first->op == WHERE_REGISTER)
		snprintf(buf, size, "in %%%s", first->reg);
	else if (p->kind == WHERE_VALUE && p->n == 1 && first->op == WHERE_CONST)
		snprintf(buf, size, "always %lld", (long long)first->value);
	else if (p->kind == WHERE_VALUE)
		snprintf(buf, size, "computed");
	else if (p->n == 2 && first->op == WHERE_REGISTER && first[1].op == WHERE_ADD_CONST)
		snprintf(buf, size, "at %%%s%+lld", first->reg, (long long)first[1].value);
	else if (p->n == 1 && first->op == WHERE_REGISTER)
		snprintf(buf, size, "at %%%s", first->reg);
	else
		snprintf(buf, size, p->n == 1 ? "in the program's data" : "in memory");
}

static const char *kind_of(const struct dwarf_variable *v)
{
	return v->is_parameter ? "parameter" : v->is_static ? "static" : "local";
}

struct variable_list {
	struct lister *l;
	size_t n;
};

static int on_variable(void *arg, const struct dwarf_variable *v)
{
	struct variable_list *x = arg;
	struct trace_out *o = &x->l->out;
	bool none = v->where.n_pieces == 1 && v->where.pieces[0].kind == WHERE_NOWHERE;
	char text[320], where[160];

	if (!v->name || !*v->name)
		return 0;
	ctype_write(&v->type, x->l->json ? "" : v->name, text, sizeof(text));
	write_where(&v->where, where, sizeof(where));
	if (!x->l->json) {
		trace_out_text(o, "    ");
		trace_out_safe(o, text, strlen(text));
		trace_out_printf(o, "  %s, ", kind_of(v));
		trace_out_safe(o, where, strlen(where));
		trace_out_char(o, '\n');
		return 0;
	}
	trace_out_text(o, x->n++ ? ",{\"name\":" : "{\"name\":");
	trace_out_json(o, v->name, strlen(v->name));
	list_put_member(o, "type", text);
	list_put_member(o, "kind", kind_of(v));
	list_put_member(o, none ? "gone" : "where", where);
	trace_out_char(o, '}');
	return 0;
}

static int on_place(void *arg, const struct dwarf_line *line)
{
	struct lister *l = arg;
	struct variable_list x = {.l = l};
	struct error ignored = {0};

	l->n++;
	begin(l, line);
	if (l->json) {
		put_json_whose(l, line);
		trace_out_printf(&l->out, ",\"offset\":%llu,\"variables\":[",
				 (unsigned long long)line->offset);
	} else {
		put_whose(l, line);
		trace_out_printf(&l->out, "  at 0x%llx\n", (unsigned long long)line->offset);
	}
	dwarf_variables(l->dwarf, line->offset, false, on_variable, &x, &ignored);
	if (l->json)
		trace_out_text(&l->out, "]}\n");
	return l->failed;
}

/* --- files --- */

static int on_source(void *arg, const char *source)
{
	struct lister *l = arg;

	l->n++;
	if (l->json) {
		list_begin_json(l, NULL, source);
		list_put_member(&l->out, "source", source);
		trace_out_text(&l->out, "}\n");
	} else {
		list_put_probe(l, NULL, source);
		trace_out_char(&l->out, '\n');
	}
	return l->failed;
}

int list_lines(struct lister *l)
{
	const struct probe_spec *p = &l->spec;
	struct line_list x = {.l = l};
	int r;

	if (l->sources)
		return dwarf_source_files(l->dwarf, on_source, l, l->e);
	if (p->line)
		return dwarf_lines(l->dwarf, p->source, p->line, on_place, l, l->e);
	r = dwarf_statements(l->dwarf, p->source, streq(p->symbol, "*") ? NULL : p->symbol,
			     on_statement, &x, l->e);
	put_statement(&x);
	return r;
}
