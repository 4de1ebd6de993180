// SPDX-License-Identifier: GPL-2.0-or-later
/* Values whose types the program's debug data or the kernel's BTF tell: variables and members. */
#include <elf.h>

#include "probes/fetch/priv.h"

#define ADDENDS_MAX 6 /* of an index times a size that is no power of two */

/* --- variables --- */

static bool is_return(const struct maker *m)
{
	return m->spec->kind == PROBE_URETPROBE || m->spec->kind == PROBE_KRETPROBE;
}

static bool has_names(const struct maker *m)
{
	switch (m->spec->kind) {
	case PROBE_UPROBE:
	case PROBE_URETPROBE:
	case PROBE_LINE:
	case PROBE_USDT:
		return m->place->dwarf != NULL;
	case PROBE_KPROBE:
	case PROBE_KRETPROBE:
		return m->place->btf != NULL;
	default:
		return false;
	}
}

static int refuse_at_return(struct maker *m, const char *name)
{
	return maker_fault(m, -EINVAL,
			   "at a return it is only known what %.64s was at the entry: expected "
			   "%.64s@entry",
			   name, name);
}

static int kernel_function(struct maker *m, struct btf_function *f, struct error *e)
{
	if (!m->place->function)
		return error_set(e, -ENOENT,
				 "names are known only at a function's entry: expected registers, "
				 "as %%di");
	return btf_types_function(m->place->btf, m->place->module, m->place->function, f, e);
}

/* Arguments in front of it that are no numbers move it to where make_argument() does not look. */
static bool kernel_argument_is_simple(const struct btf_function *f, size_t which)
{
	if (ctype_is_aggregate(&f->returns) && f->returns.size > 16)
		return false;
	for (size_t i = 0; i <= which; i++)
		if (!ctype_is_number(&f->parameters[i].type))
			return false;
	return true;
}

static int kernel_argument(struct maker *m, const struct btf_function *f, size_t which,
			   struct made *ret)
{
	const struct ctype *t = &f->parameters[which].type;
	int r;

	if (!kernel_argument_is_simple(f, which))
		return maker_fault(m, -ENOTSUP,
				   "it or a parameter before it is no number, so how it is passed "
				   "is not known");
	r = make_argument(m, (int64_t)which, ret);
	if (r == 0)
		r = make_number(m, (uint32_t)t->size, t->is_signed);
	part_show_number(m, t, ret);
	return r;
}

static int kernel_variable(struct maker *m, const char *name, struct made *ret)
{
	struct error e = {0};
	struct btf_function f;
	char names[200] = "";
	int r = kernel_function(m, &f, &e);

	if (r < 0)
		return maker_fault(m, -EINVAL, "%s", e.text);
	for (size_t i = 0; i < f.n_parameters; i++) {
		const char *other = f.parameters[i].name;
		size_t len = strlen(names);

		if (other && streq(other, name))
			return kernel_argument(m, &f, i, ret);
		if (other)
			snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", other);
	}
	return maker_fault(m, -EINVAL, "%.64s has no parameter %.64s%s%s", m->place->function, name,
			   *names ? ": expected one of " : "", names);
}

/* An argument of the probe text has that name: it is that one's value. */
static bool names_argument(const struct maker *m, const char *name)
{
	for (size_t i = 0; m->names_args && i < m->spec->n_args; i++)
		if (m->spec->args[i].name && streq(m->spec->args[i].name, name))
			return true;
	return false;
}

/* 1: found */
static int find_variable(struct maker *m, const struct expr_item *item, struct dwarf_variable *v)
{
	struct error e = {0};
	int r;

	if (item->op == EXPR_NAME) {
		if (!has_names(m) || maker_in_kernel(m) || names_argument(m, item->text))
			return 0;
		if (is_return(m) && m->list == &m->main)
			return refuse_at_return(m, item->text);
		r = place_variable(m, item->text, v, &e);
		if (r == -ESRCH)
			m->gone = "it is optimised away here, or of another block";
		if (r >= 0)
			return 1;
		maker_fault(m, r == -ESRCH ? -ENODATA : -EINVAL, "%s", e.text);
		if (r == -ESRCH && m->names_args)
			say_lines_with(m, item->text);
		return m->e->code;
	}
	if (item->op != EXPR_RETVAL || item->value || m->spec->kind != PROBE_URETPROBE ||
	    !has_names(m) || m->list != &m->main)
		return 0;
	r = place_return(m, v, &e);
	return r < 0 || v->type.kind == CTYPE_VOID ? 0 : 1;
}

/* --- members and elements --- */

static int no_member(struct maker *m, const struct ctype *t, const char *name, int code,
		     const char *near)
{
	char what[160];

	ctype_describe(t, what, sizeof(what));
	if (code == -ENOENT)
		return maker_fault(m, -EINVAL, "%s has no member %.64s%s%s%s", what, name,
				   *near ? ": did you mean '" : "", near, *near ? "'?" : "");
	if (code == -EINVAL)
		return maker_fault(m, -EINVAL, "%s has no members, so no %.64s", what, name);
	return maker_fault(m, code, "what %s has as members is not known", what);
}

static int step_member(struct maker *m, const char *name, struct part *p)
{
	struct ctype_member f;
	char near[64];
	int r = ctype_find_member(&p->type, name, &f, near, sizeof(near));

	if (r < 0)
		return no_member(m, &p->type, name, r, r == -ENOENT ? near : "");
	part_enter_member(p, &f);
	return 0;
}

static size_t base_end(const struct expr_item *v, size_t end)
{
	/* behind the base of an index by a number, which is one item */
	return v[end - 1].op == EXPR_INDEX ? end - 2 : end - 1;
}

/* A path whose variable is known, with nothing between that has to be fetched first. 1: it is one,
 * and *p is what part of it. */
static int find_part(struct maker *m, const struct expr_item *v, size_t end,
		     struct dwarf_variable *var, struct part *p)
{
	const struct expr_item *item = &v[end - 1];
	struct ctype element;
	int r;

	if (item->op == EXPR_NAME || item->op == EXPR_RETVAL) {
		r = find_variable(m, item, var);
		*p = (struct part){.type = var->type};
		return r;
	}
	if (item->op != EXPR_MEMBER &&
	    (item->op != EXPR_INDEX || v[end - 2].op != EXPR_NUMBER || v[end - 2].value < 0))
		return 0;
	r = find_part(m, v, base_end(v, end), var, p);
	if (r <= 0 || !ctype_is_aggregate(&p->type))
		return r < 0 ? r : 0;
	if (item->op == EXPR_MEMBER) {
		r = step_member(m, item->text, p);
		return r < 0 ? r : 1;
	}
	if (ctype_target(&p->type, &element) || !element.size)
		return 0;
	p->offset += (uint64_t)v[end - 2].value * element.size;
	p->type = element;
	return 1;
}

int make_known(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	struct dwarf_variable var = {0};
	struct part p;
	int r = find_part(m, v, end, &var, &p);

	if (r <= 0)
		return r;
	r = make_part(m, &var.where, &p, ret);
	if (r == -ENODATA && m->names_args)
		say_lines_with(m, var.name);
	return r < 0 ? r : 1;
}

struct in_register {
	const char *reg;
	struct made *made;
};

static int on_in_register(void *arg, const struct dwarf_variable *v)
{
	struct in_register *x = arg;
	const struct where *w = &v->where;

	if (w->n_pieces != 1 || w->pieces[0].kind != WHERE_VALUE || w->n_items != 1 ||
	    w->items[0].op != WHERE_REGISTER || !streq(w->items[0].reg, x->reg))
		return 0;
	x->made->ctype = v->type;
	x->made->typed = true;
	return 1;
}

/* The type of an argument by number: of the parameter that is in its register. */
static void find_type(struct maker *m, const struct expr_item *item, struct made *made)
{
	struct in_register x = {argument_register(m, item->value), made};
	struct error e = {0};
	struct btf_function f;

	if (item->op != EXPR_ARG || item->value < 0 || !has_names(m) || made->typed)
		return;
	if (maker_in_kernel(m)) {
		if (kernel_function(m, &f, &e) == 0 && (size_t)item->value < f.n_parameters) {
			made->ctype = f.parameters[item->value].type;
			made->typed = true;
		}
	} else if (x.reg) {
		place_variables(m, true, on_in_register, &x, &e);
	}
}

/* "struct sock *": the struct, by the kernel's types. */
static bool field_struct(struct maker *m, const struct expr_item *item, struct ctype *ret)
{
	const struct field *f;
	struct error e = {0};
	const char *s;
	char name[80];
	size_t len;

	if (item->op != EXPR_NAME || !m->place->format || !m->place->btf)
		return false;
	f = format_find(m->place->format, item->text);
	if (!f || f->kind != FIELD_POINTER)
		return false;
	s = f->type;
	if (starts_with(s, "const "))
		s += strlen("const ");
	if (!starts_with(s, "struct "))
		return false;
	s += strlen("struct ");
	len = strcspn(s, " *");
	if (len >= sizeof(name) || strchr(s, '*') != strrchr(s, '*'))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)len, s);
	return btf_types_struct(m->place->btf, name, ret, &e) == 0;
}

/* The struct that an argument by its number, or a tracepoint's field, points to, if that is known:
 * other things there are the 8 bytes that they have always been. */
void find_pointed(struct maker *m, const struct expr_item *item, struct made *made)
{
	struct made typed = *made;
	struct ctype pointed;

	find_type(m, item, &typed);
	if (typed.typed) {
		if (typed.ctype.kind != CTYPE_POINTER || ctype_target(&typed.ctype, &pointed) ||
		    !ctype_is_aggregate(&pointed))
			return;
	} else if (!field_struct(m, item, &pointed)) {
		return;
	}
	made->ctype = pointed;
	made->pointed = true;
}

static int untyped(struct maker *m, const char *member)
{
	return maker_fault(m, -ENOTSUP,
			   "which struct's member %.64s is is not known, that takes debug data or "
			   "the kernel's types: expected its place, as in +16(%%di)",
			   member);
}

int make_member(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	const struct expr_item *item = &v[end - 1], *base = &v[end - 2];
	struct made made;
	struct part p = {0};
	int r = make_known(m, v, end, ret);

	if (r)
		return r < 0 ? r : 0;
	r = make_expr(m, v, end - 1, &made);
	if (r < 0)
		return r;
	r = need_plain(m, &made);
	if (r < 0)
		return r;
	find_type(m, base, &made);
	if (made.pointed && base->op == EXPR_TASK) {
		p.type = made.ctype;
		r = step_member(m, item->text, &p);
		return r < 0 ? r : part_load(m, true, &p, 0, ret);
	}
	if (!made.typed && field_struct(m, base, &p.type))
		return (r = step_member(m, item->text, &p)) < 0
			       ? r
			       : part_load(m, maker_in_kernel(m), &p, 0, ret);
	if (!made.typed)
		return untyped(m, item->text);
	p.type = made.ctype;
	if (p.type.kind == CTYPE_POINTER && ctype_target(&made.ctype, &p.type))
		return untyped(m, item->text);
	r = step_member(m, item->text, &p);
	return r < 0 ? r
		     : part_load(m,
				 ctype_is_aggregate(&made.ctype) ? made.kernel : maker_in_kernel(m),
				 &p, 0, ret);
}

int make_typed_deref(struct maker *m, const struct made *pointer, struct made *ret)
{
	struct part p = {0};

	if (pointer->pointed) {
		p.type = pointer->ctype;
		return part_load(m, maker_in_kernel(m), &p, 0, ret);
	}
	if (!pointer->typed || !pointer->ctype.source ||
	    (pointer->ctype.kind != CTYPE_POINTER && pointer->ctype.kind != CTYPE_ARRAY) ||
	    ctype_target(&pointer->ctype, &p.type) || !p.type.size || p.type.kind == CTYPE_FUNCTION)
		return -ENOENT;
	return part_load(m, maker_in_kernel(m), &p, 0, ret);
}

/* The accumulator plus the index times the size. */
static int add_index(struct maker *m, const struct expr_item *v, size_t end, uint64_t size)
{
	struct made unused;
	int r = 0;

	if (__builtin_popcountll(size) > ADDENDS_MAX)
		return maker_fault(m, -ENOTSUP,
				   "an index that varies, into elements of %llu bytes, is too much "
				   "to compute",
				   (unsigned long long)size);
	for (unsigned bit = 0; r == 0 && bit < 63; bit++) {
		if (!(size >> bit & 1))
			continue;
		r = make_expr(m, v, end, &unused);
		if (r == 0 && bit)
			r = make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8, bit);
		if (r == 0)
			r = make_op(m, AX_CODE_ADD, 0, 8, 0);
	}
	return r;
}

int make_typed_index(struct maker *m, const struct made *base, const struct expr_item *v,
		     size_t end, struct made *ret)
{
	const struct expr_item *index = &v[end - 2];
	struct part p = {0};
	int r = 0;

	if (!base->typed ||
	    (base->ctype.kind != CTYPE_POINTER && base->ctype.kind != CTYPE_ARRAY) ||
	    ctype_target(&base->ctype, &p.type) || !p.type.size)
		return -ENOENT;
	if (index->op == EXPR_NUMBER)
		p.offset = (uint64_t)index->value * p.type.size;
	else
		r = add_index(m, v, end - 1, p.type.size);
	return r < 0 ? r : part_load(m, maker_in_kernel(m), &p, 0, ret);
}

/* --- names and results --- */

int make_variable(struct maker *m, const char *name, struct made *ret)
{
	struct expr_item item = {.op = EXPR_NAME, .text = (char *)name};
	int r;

	if (!has_names(m))
		return -ENOENT;
	if (maker_in_kernel(m)) {
		if (is_return(m) && m->list == &m->main)
			return refuse_at_return(m, name);
		return kernel_variable(m, name, ret);
	}
	r = make_known(m, &item, 1, ret);
	return r > 0 ? 0 : r ? r : -ENOENT;
}

int make_typed_return(struct maker *m, struct made *ret)
{
	struct expr_item item = {.op = EXPR_RETVAL};
	struct error e = {0};
	struct btf_function f;
	int r;

	if (!has_names(m))
		return -ENOENT;
	if (m->spec->kind == PROBE_URETPROBE) {
		r = make_known(m, &item, 1, ret);
		return r > 0 ? 0 : r ? r : -ENOENT;
	}
	if (m->spec->kind != PROBE_KRETPROBE || kernel_function(m, &f, &e) < 0 ||
	    !ctype_is_number(&f.returns))
		return -ENOENT;
	r = make_register(m, m->place->machine == EM_AARCH64 ? "x0" : "ax", ret);
	if (r == 0)
		r = make_number(m, (uint32_t)f.returns.size, f.returns.is_signed);
	part_show_number(m, &f.returns, ret);
	/* what functions of the kernel return below 0 is an error mostly */
	if (f.returns.kind == CTYPE_INTEGER && f.returns.is_signed && f.returns.size >= 4)
		ret->type = VALUE_ERRNO;
	return r;
}

/* --- all of them --- */

struct state {
	size_t n, n_values, n_hidden;
	bool exact;
	struct error e;
};

static struct state save(const struct maker *m)
{
	return (struct state){m->list->n, m->out->n_values, m->out->n_hidden, m->out->needs_exact,
			      *m->e};
}

static void forget_values(struct fetch *f, size_t n)
{
	for (; f->n_values > n; f->n_values--)
		fetch_shown_free(&f->values[f->n_values - 1]);
}

int refuse_float_return(struct maker *m)
{
	struct state s = save(m);
	struct dwarf_variable v;
	struct error e = {0};
	struct made made;
	int r;

	if (m->spec->kind != PROBE_URETPROBE || !has_names(m) || place_return(m, &v, &e) < 0 ||
	    v.type.kind != CTYPE_FLOAT)
		return 0;
	r = make_typed_return(m, &made);
	m->list->n = s.n;
	return r;
}

/* A value that everybody would look for: an integer or pointer that is not there was optimized
 * away, but of these it is ax that cannot fetch them. */
static bool is_missed(const struct ctype *t)
{
	return t && (t->kind == CTYPE_FLOAT || t->kind == CTYPE_OTHER ||
		     (ctype_is_aggregate(t) && t->size));
}

/* Keeps what was made, or leaves it out if it could not be fetched, and says why of what is missed.
 */
static int keep_or_undo(struct maker *m, const struct state *s, int r, struct made *made,
			const struct ctype *t, const char *name, const struct loader *l)
{
	if (r == 0 && made->type == VALUE_BUFFER && !made->size)
		r = -ENOTSUP;
	if (r == 0 && made->type == VALUE_BUFFER && made->form != MADE_PUT &&
	    made->size > SHOWN_MAX)
		made->size = SHOWN_MAX;
	if (r == 0)
		r = store_made(m, made, name);
	if (r == 0 && l)
		r = follow_texts(m, made, l);
	if (r == 0 || r == -ENOMEM)
		return r;
	m->list->n = s->n;
	m->list->depth = 0;
	forget_values(m->out, s->n_values);
	m->out->n_hidden = s->n_hidden;
	m->out->needs_exact = s->exact;
	*m->e = s->e;
	return is_missed(t) && m->gone && m->spec->kind != PROBE_LINE ? store_gone(m, name) : 0;
}

/* By this name. */
static int make_all_of(struct maker *m, const struct dwarf_variable *v, const char *name)
{
	struct state s = save(m);
	struct part p = {.type = v->type};
	struct loader l = {
		.load = load_of_variable, .address = address_of_variable, .where = &v->where};
	struct made made;
	int r;

	m->what = name;
	m->gone = NULL;
	m->list->depth = 0;
	r = make_part(m, &v->where, &p, &made);
	return keep_or_undo(m, &s, r, &made, &v->type, name, &l);
}

static int on_parameter(void *arg, const struct dwarf_variable *v)
{
	struct maker *m = arg;

	if (m->out->n_values == PROBE_ARGS_MAX)
		return 1;
	if (!v->name || !*v->name || v->is_static)
		return 0;
	return make_all_of(m, v, v->name);
}

static int all_of_kernel(struct maker *m)
{
	struct error e = {0};
	struct btf_function f;
	int r = 0;

	if (kernel_function(m, &f, &e) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < f.n_parameters && m->out->n_values < PROBE_ARGS_MAX; i++) {
		struct state s = save(m);
		struct made made;

		if (!f.parameters[i].name)
			continue;
		m->what = f.parameters[i].name;
		m->list->depth = 0;
		r = kernel_argument(m, &f, i, &made);
		r = keep_or_undo(m, &s, r, &made, NULL, f.parameters[i].name, NULL);
	}
	return r;
}

struct results {
	struct maker *m;
	size_t n;
};

/* One without a name of its own has that by which its first word can be asked for. */
static int on_result(void *arg, const struct dwarf_variable *v)
{
	struct results *results = arg;
	struct maker *m = results->m;
	size_t which = results->n++;
	int64_t word = result_word(m, &v->where);
	char name[32];

	if (!which) /* it is there already, as retval */
		return 0;
	if (m->out->n_values == PROBE_ARGS_MAX)
		return 1;
	if (v->name && *v->name && *v->name != '~')
		return make_all_of(m, v, v->name);
	if (word > 0)
		snprintf(name, sizeof(name), "retval%lld", (long long)word);
	else
		snprintf(name, sizeof(name), "result%zu", which);
	return make_all_of(m, v, name);
}

static int further_results(struct maker *m)
{
	struct results results = {.m = m};
	struct error e = {0};
	int r;

	if (!m->place->go || !m->place->dwarf)
		return 0;
	r = dwarf_results(m->place->dwarf, m->place->offset, on_result, &results, &e);
	return r == -ENOMEM ? error_set(m->e, r, "out of memory") : 0;
}

static int all_of_return(struct maker *m)
{
	struct state s = save(m);
	struct dwarf_variable v = {0};
	struct error e = {0};
	struct made made;
	int r;

	m->what = "retval";
	m->gone = NULL;
	m->list->depth = 0;
	r = make_typed_return(m, &made);
	if (r < 0 && (maker_in_kernel(m) || place_return(m, &v, &e) < 0))
		v.type.kind = CTYPE_VOID;
	r = keep_or_undo(m, &s, r, &made, &v.type, "retval", NULL);
	return r < 0 ? r : further_results(m);
}

int fetch_all_parameters(struct maker *m)
{
	struct error e = {0};
	int r;

	if (!has_names(m))
		return 0;
	if (is_return(m))
		return all_of_return(m);
	if (maker_in_kernel(m))
		return all_of_kernel(m);
	r = place_variables(m, m->spec->kind != PROBE_LINE, on_parameter, m, &e);
	return r == -ENOMEM ? error_set(m->e, r, "out of memory") : 0;
}
