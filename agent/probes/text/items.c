// SPDX-License-Identifier: GPL-2.0-or-later
/* Items of expressions. */
#include "probes/text/priv.h"

unsigned expr_arity(enum expr_op op)
{
	switch (op) {
	case EXPR_ENTRY:
	case EXPR_DEREF:
	case EXPR_UDEREF:
	case EXPR_MEMBER:
	case EXPR_NOT:
	case EXPR_MAP:
		return 1;
	case EXPR_INDEX:
	case EXPR_ADD:
	case EXPR_SUB:
	case EXPR_MUL:
	case EXPR_DIV:
	case EXPR_MOD:
	case EXPR_AND:
	case EXPR_OR:
	case EXPR_XOR:
	case EXPR_SHL:
	case EXPR_SHR:
	case EXPR_EQ:
	case EXPR_NE:
	case EXPR_LT:
	case EXPR_LE:
	case EXPR_GT:
	case EXPR_GE:
	case EXPR_LAND:
	case EXPR_LOR:
		return 2;
	default:
		return 0;
	}
}

void expr_free(struct expr *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].text);
	free(e->v);
	*e = (struct expr){0};
}

int expr_push(struct probe_parser *p, struct expr *e, enum expr_op op, int64_t value,
	      const char *text, size_t len)
{
	autofree char *copy = NULL;

	if (e->n == PROBE_EXPR_MAX)
		return probe_fault(p, p->s, "the expression is too long: expected at most %d parts",
				   PROBE_EXPR_MAX);
	if (!e->v) {
		e->v = calloc(PROBE_EXPR_MAX, sizeof(*e->v));
		if (!e->v)
			return probe_no_memory(p);
	}
	if (text) {
		copy = strndup(text, len);
		if (!copy)
			return probe_no_memory(p);
	}
	e->v[e->n++] = (struct expr_item){.op = op, .value = value, .text = take_ptr(&copy)};
	return 0;
}
