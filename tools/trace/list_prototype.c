/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions as they are declared. */
#include "tools/trace/list.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --- JSON --- */

static void put_parameters(struct lister *l, const struct prototype *p, bool results)
{
	struct trace_out *o = &l->out;
	bool first = true;
	char type[240];

	trace_out_char(o, '[');
	for (size_t i = 0; i < p->n; i++) {
		const struct prototype_parameter *v = &p->parameters[i];

		if (v->is_result != results)
			continue;
		trace_out_text(o, first ? "{\"name\":" : ",{\"name\":");
		first = false;
		if (v->name && *v->name != '~')
			trace_out_json(o, v->name, strlen(v->name));
		else
			trace_out_text(o, "null");
		ctype_write(&v->type, "", type, sizeof(type));
		list_put_member(o, "type", type);
		trace_out_char(o, '}');
	}
	trace_out_char(o, ']');
}

static void put_json(struct lister *l, const struct prototype *p, const char *text)
{
	struct trace_out *o = &l->out;
	char type[240];

	list_put_member(o, "prototype", text);
	if (p->source) {
		list_put_member(o, "source", p->source);
		trace_out_printf(o, ",\"line\":%u", p->line);
	}
	trace_out_text(o, ",\"parameters\":");
	put_parameters(l, p, false);
	if (p->go) {
		trace_out_text(o, ",\"results\":");
		put_parameters(l, p, true);
		return;
	}
	ctype_write(&p->returns, "", type, sizeof(type));
	list_put_member(o, "returns", type);
}

/* --- both --- */

static void put(struct lister *l, const struct prototype *p, const char *name)
{
	struct trace_out *o = &l->out;
	char text[1400];

	prototype_write(p, name, text, sizeof(text));
	if (l->json) {
		put_json(l, p, text);
		return;
	}
	trace_out_text(o, "  ");
	trace_out_safe(o, text, strlen(text));
	if (!p->source)
		return;
	trace_out_text(o, "  ");
	trace_out_safe(o, base_name(p->source), strlen(base_name(p->source)));
	trace_out_printf(o, ":%u", p->line);
}

static bool find(struct lister *l, const struct symbol *s, struct prototype *ret)
{
	struct error ignored = {0};

	if (l->dwarf && dwarf_prototype(l->dwarf, s->offset, ret, &ignored) == 0)
		return true;
	return l->given && given_types_prototype(l->given, s->name, ret, &ignored) == 0;
}

void list_put_function(struct lister *l, const struct symbol *s)
{
	autofree char *plain = s->demangled ? demangle(s->name, false) : NULL;
	struct prototype p;

	if (find(l, s, &p)) {
		put(l, &p, plain ? plain : s->demangled ? s->demangled : s->name);
	} else if (s->demangled && !l->json) {
		trace_out_text(&l->out, "  ");
		trace_out_safe(&l->out, s->demangled, strlen(s->demangled));
	}
}

void list_put_kernel_function(struct lister *l, const char *name, const char *module)
{
	struct error ignored = {0};
	struct prototype p;

	if (!l->btf && btf_types_new(&l->btf) < 0)
		return;
	if (btf_types_prototype(l->btf, module && *module ? module : "vmlinux", name, &p,
				&ignored) == 0)
		put(l, &p, name);
}
