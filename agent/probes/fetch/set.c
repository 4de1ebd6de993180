// SPDX-License-Identifier: GPL-2.0-or-later
/* What the variables of a script are set to. */
#include "probes/fetch/priv.h"

/* As a variable keeps it: 0 is none, and a program's has its process with it, since whoever asks
 * for it may be in another one. */
static int make_stack_to_keep(struct maker *m, const struct probe_arg *a, struct made *made)
{
	int r = make_stack(m, a, made);

	if (r == 0)
		r = make_op(m, AX_CODE_ADD, AX_OP_IMMEDIATE, 8, 1);
	if (r < 0 || a->type == VALUE_KERNEL_STACK)
		return r;
	r = make_leaf(m, AX_CODE_PID, 0, 8, 0);
	if (r == 0)
		r = make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8, 32);
	return r == 0 ? make_op(m, AX_CODE_OR, 0, 8, 0) : r;
}

/* Where it is kept, as the kind of its variable says. */
static const struct {
	uint8_t code;
	uint8_t text; /* enum ax_probe_text_of */
	uint64_t from;
} kept[] = {
	[VARIABLE_GLOBAL] = {AX_CODE_SET_GLOBAL, AX_TEXT_GLOBAL, 0},
	[VARIABLE_THREAD] = {AX_CODE_SET_THREAD, AX_TEXT_THREAD, 0},
	[VARIABLE_MAP] = {AX_CODE_SET_MAP, AX_TEXT_MAP, AX_PROBE_MAPS_FROM},
};

static int make_text_to_keep(struct maker *m, const struct probe_arg *a, struct made *made)
{
	int r;

	if (m->place->adds)
		return maker_fault(m, -EINVAL, "a text is not added to: expected =");
	if (is_comm(a)) {
		*made = (struct made){.kernel = true};
		m->list->depth = 0;
		return make_leaf(m, AX_CODE_TEXT, 0, AX_TEXT_COMM, 0);
	}
	r = make_typed(m, a, made);
	if (r < 0)
		return r;
	if (made->type != VALUE_STRING || made->form != MADE_PLAIN)
		return maker_fault(m, -ENOTSUP,
				   "it is no text that ends with a NUL: expected one, since the "
				   "variable is set to a text elsewhere");
	return 0;
}

static int make_set_text(struct maker *m, const struct probe_arg *a)
{
	enum probe_variable_kind kind = m->place->kind;
	struct made made = {0};
	int r = make_text_to_keep(m, a, &made);

	return r < 0 ? r
		     : make_op(m, AX_CODE_SET_TEXT, made.kernel ? AX_OP_KERNEL : 0, kept[kind].text,
			       m->place->variable + kept[kind].from);
}

int make_set(struct maker *m)
{
	const struct fetch_place *p = m->place;
	const struct probe_arg *a = &m->spec->args[0];
	struct made made;
	int r = make_on(m);

	m->what = a->text;
	if (r < 0)
		return r;
	if (p->texts && variable_is_text(p->texts, p->kind, p->variable))
		return make_set_text(m, a);
	r = is_comm(a) ? maker_fault(m, -EINVAL, "expected a number") : 0;
	if (r == 0)
		r = is_stack(a) ? make_stack_to_keep(m, a, &made) : make_typed(m, a, &made);
	if (r == 0)
		r = need_plain(m, &made);
	if (r == 0 && (is_text_type(made.type) || made.type == VALUE_FLOAT))
		r = maker_fault(m, -ENOTSUP,
				"a variable holds a number, or a text that is said to be one: "
				"expected :string behind it, or a number");
	return r < 0 ? r
		     : make_op(m, kept[p->kind].code, p->adds ? AX_OP_IMMEDIATE : 0, 8,
			       p->variable + kept[p->kind].from);
}
