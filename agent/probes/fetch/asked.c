// SPDX-License-Identifier: GPL-2.0-or-later
/* What was asked for, as what its own type says or the one that was given. */
#include <linux/bpf.h>

#include "probes/fetch/priv.h"

bool is_text_type(enum value_type t)
{
	return t == VALUE_STRING || t == VALUE_USTRING || t == VALUE_BUFFER;
}

bool is_stack_type(enum value_type t)
{
	return t == VALUE_USER_STACK || t == VALUE_KERNEL_STACK;
}

bool is_comm(const struct probe_arg *a)
{
	return a->expr.n == 1 && a->expr.v[0].op == EXPR_COMM;
}

/* The number of a call stack from what a variable keeps (make_stack_to_keep()). */
static int make_kept_stack(struct maker *m)
{
	int r = make_op(m, AX_CODE_AND, AX_OP_IMMEDIATE, 8, UINT32_MAX);

	return r == 0 ? make_op(m, AX_CODE_SUB, AX_OP_IMMEDIATE, 8, 1) : r;
}

/* The type that was asked for. */
static int give_type(struct maker *m, const struct probe_arg *a, struct made *made)
{
	int r = (made->form == MADE_COUNTED || made->own_text) && is_text_type(a->type)
			? 0
			: need_plain(m, made);

	if (r < 0)
		return r;
	made->typed = made->registers = false;
	if (is_text_type(a->type)) {
		if (!is_text_type(made->type))
			made->kernel = maker_in_kernel(m);
		if (a->type == VALUE_USTRING)
			made->kernel = false;
		made->type = a->type == VALUE_BUFFER ? VALUE_BUFFER : VALUE_STRING;
		made->size = a->size;
		return 0;
	}
	if (made->type == VALUE_BUFFER ||
	    (made->type == VALUE_STRING && made->kernel && !made->pointer))
		return maker_fault(m, -EINVAL,
				   "it is an array in the record: expected string, "
				   "buf[N], or one element of it, as %.32s[0]",
				   a->text);
	made->type = a->type;
	made->size = a->size ? a->size : 8;
	if (is_stack_type(a->type)) {
		m->out->needs_stacks = true;
		return make_kept_stack(m);
	}
	r = make_number(m, made->size, a->type == VALUE_SIGNED);
	return r == 0 && a->bits ? make_bits(m, a->bit, a->bits, false) : r;
}

/* Below the text's address, where its length is said. */
static int make_length(struct maker *m, const struct probe_arg *a)
{
	struct made made;
	int r;

	if (!a->length.n)
		return 0;
	r = make_expr(m, a->length.v, a->length.n, &made);
	return r < 0 ? r : need_plain(m, &made);
}

/* The expression, and what it is by its own type or the one that was asked for. */
int make_typed(struct maker *m, const struct probe_arg *a, struct made *made)
{
	int r;

	m->list->depth = 0;
	m->type_given = a->type != VALUE_NONE;
	m->element = a->type != VALUE_NONE && !is_text_type(a->type) ? a->size : 0;
	m->of_task = a->expr.v[0].op == EXPR_TASK;
	r = make_length(m, a);
	if (r == 0)
		r = make_expr(m, a->expr.v, a->expr.n, made);
	m->type_given = false;
	if (r == 0 && a->length.n) {
		r = need_plain(m, made);
		made->form = MADE_COUNTED;
	} else if (r == 0 && (a->type == VALUE_NONE || is_text_type(a->type)))
		r = make_text(m, made);
	if (r == 0 && a->type != VALUE_NONE)
		r = give_type(m, a, made);
	m->of_task = false;
	return r;
}

/* And not one that a variable was set to. */
bool is_stack(const struct probe_arg *a)
{
	return is_stack_type(a->type) && a->expr.v[0].op == EXPR_STACK;
}

int make_stack(struct maker *m, const struct probe_arg *a, struct made *made)
{
	m->list->depth = 0;
	m->out->needs_stacks = true;
	m->out->needs_copies |= a->type == VALUE_USER_STACK;
	*made = (struct made){.type = a->type, .size = 8};
	return make_leaf(m, AX_CODE_STACK, 0, 8,
			 a->type == VALUE_USER_STACK ? BPF_F_USER_STACK : 0);
}
