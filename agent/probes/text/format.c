// SPDX-License-Identifier: GPL-2.0-or-later
/* Probes to their canonical text, and whether two are equal. */
#include <inttypes.h>

#include "probes/text/priv.h"

/* How tightly an operator binds; those between two operands are C's. */
enum level {
	LEVEL_ANY,
	LEVEL_LOR,
	LEVEL_LAND,
	LEVEL_OR,
	LEVEL_XOR,
	LEVEL_AND,
	LEVEL_EQUAL,
	LEVEL_ORDER,
	LEVEL_SHIFT,
	LEVEL_ADD,
	LEVEL_MUL,
	LEVEL_PREFIX,
	LEVEL_POSTFIX,
	LEVEL_PRIMARY,
};

static const struct {
	enum level level;
	const char *text;
} between[] = {
	[EXPR_ADD] = {LEVEL_ADD, "+"},	  [EXPR_SUB] = {LEVEL_ADD, "-"},
	[EXPR_MUL] = {LEVEL_MUL, "*"},	  [EXPR_DIV] = {LEVEL_MUL, "/"},
	[EXPR_MOD] = {LEVEL_MUL, "%"},	  [EXPR_AND] = {LEVEL_AND, "&"},
	[EXPR_OR] = {LEVEL_OR, "|"},	  [EXPR_XOR] = {LEVEL_XOR, "^"},
	[EXPR_SHL] = {LEVEL_SHIFT, "<<"}, [EXPR_SHR] = {LEVEL_SHIFT, ">>"},
	[EXPR_EQ] = {LEVEL_EQUAL, "=="},  [EXPR_NE] = {LEVEL_EQUAL, "!="},
	[EXPR_LT] = {LEVEL_ORDER, "<"},	  [EXPR_LE] = {LEVEL_ORDER, "<="},
	[EXPR_GT] = {LEVEL_ORDER, ">"},	  [EXPR_GE] = {LEVEL_ORDER, ">="},
	[EXPR_LAND] = {LEVEL_LAND, "&&"}, [EXPR_LOR] = {LEVEL_LOR, "||"},
};

struct expr_writer {
	FILE *f;
	const struct probe_spec *spec;
	const struct expr_item *v;
};

static void write_node(const struct expr_writer *w, size_t i, enum level least, bool mask);

/* Where the items of the expression that ends with item i begin. */
static size_t node_start(const struct expr_item *v, size_t i)
{
	for (size_t open = 1;; i--) {
		open = open - 1 + expr_arity(v[i].op);
		if (!open || !i)
			return i;
	}
}

/* Of a memory access that is written @SYM. */
static bool is_at_symbol(const struct expr_writer *w, size_t i)
{
	return w->v[i].op == EXPR_DEREF && !w->v[i].value && w->v[i - 1].op == EXPR_SYMBOL;
}

static enum level node_level(const struct expr_writer *w, size_t i)
{
	const struct expr_item *item = &w->v[i];

	switch (item->op) {
	case EXPR_DEREF:
		return item->value || is_at_symbol(w, i) ? LEVEL_PRIMARY : LEVEL_PREFIX;
	case EXPR_NOT:
		return LEVEL_PREFIX;
	case EXPR_ENTRY:
	case EXPR_MEMBER:
	case EXPR_INDEX:
	case EXPR_MAP:
		return LEVEL_POSTFIX;
	default:
		return expr_arity(item->op) == 2 ? between[item->op].level : LEVEL_PRIMARY;
	}
}

static void write_number(FILE *f, int64_t v, bool mask)
{
	if (mask && v > 9)
		fprintf(f, "0x%" PRIx64, (uint64_t)v);
	else
		fprintf(f, "%" PRId64, v);
}

static void write_symbol(FILE *f, const struct expr_item *item)
{
	fprintf(f, "@%s", item->text ? item->text : "");
	if (item->value || !item->text)
		fprintf(f, "%+" PRId64, item->value);
}

static void write_name(const struct expr_writer *w, const char *name)
{
	fprintf(w->f, "%s%s", expr_is_builtin(w->spec, name) ? "args." : "", name);
}

static void write_leaf(const struct expr_writer *w, const struct expr_item *item, bool mask)
{
	static const char *const words[] = {
		[EXPR_PID] = "pid",	  [EXPR_TID] = "tid",	      [EXPR_COMM] = "comm",
		[EXPR_CGROUP] = "cgroup", [EXPR_APP] = "app",	      [EXPR_NSECS] = "nsecs",
		[EXPR_CPU] = "cpu",	  [EXPR_ELAPSED] = "elapsed",
	};

	switch (item->op) {
	case EXPR_NUMBER:
		write_number(w->f, item->value, mask);
		break;
	case EXPR_STRING:
		write_quoted(w->f, item->text);
		break;
	case EXPR_FLOAT:
		fputs(item->text, w->f);
		break;
	case EXPR_REGS:
		fputs("$regs", w->f);
		break;
	case EXPR_TASK:
		fputs("$task", w->f);
		break;
	case EXPR_GLOBAL:
	case EXPR_THREAD:
		fprintf(w->f, "%s.%s", item->op == EXPR_GLOBAL ? "global" : "thread", item->text);
		break;
	case EXPR_RETVAL:
		fputs("retval", w->f);
		if (item->value)
			fprintf(w->f, "%" PRId64, item->value);
		break;
	case EXPR_ARG:
		fprintf(w->f, "arg%" PRId64, item->value);
		break;
	case EXPR_REG:
		fprintf(w->f, "%%%s", item->text);
		break;
	case EXPR_STACK:
		fputs("$stack", w->f);
		if (item->value >= 0)
			fprintf(w->f, "%" PRId64, item->value);
		break;
	case EXPR_NAME:
		write_name(w, item->text);
		break;
	case EXPR_SYMBOL:
		write_symbol(w->f, item);
		break;
	default:
		fputs(words[item->op], w->f);
	}
}

static void write_prefix(const struct expr_writer *w, size_t i)
{
	const struct expr_item *item = &w->v[i];

	if (item->op == EXPR_NOT || (item->op == EXPR_DEREF && !item->value)) {
		if (is_at_symbol(w, i)) {
			write_symbol(w->f, &w->v[i - 1]);
			return;
		}
		putc(item->op == EXPR_NOT ? '!' : '*', w->f);
		write_node(w, i - 1, LEVEL_PREFIX, false);
		return;
	}
	fprintf(w->f, "%c%s%" PRIu64 "(", item->value < 0 ? '-' : '+',
		item->op == EXPR_UDEREF ? "u" : "",
		item->value < 0 ? 0 - (uint64_t)item->value : (uint64_t)item->value);
	write_node(w, i - 1, LEVEL_ANY, false);
	putc(')', w->f);
}

static void write_postfix(const struct expr_writer *w, size_t i)
{
	size_t right = node_start(w->v, i - 1);

	switch (w->v[i].op) {
	case EXPR_MEMBER:
		write_node(w, i - 1, LEVEL_POSTFIX, false);
		fprintf(w->f, "->%s", w->v[i].text);
		break;
	case EXPR_ENTRY:
		write_node(w, i - 1, LEVEL_POSTFIX, false);
		fputs("@entry", w->f);
		break;
	case EXPR_MAP:
		fprintf(w->f, "map.%s[", w->v[i].text);
		write_node(w, i - 1, LEVEL_ANY, false);
		putc(']', w->f);
		break;
	default:
		write_node(w, right - 1, LEVEL_POSTFIX, false);
		putc('[', w->f);
		write_node(w, i - 1, LEVEL_ANY, false);
		putc(']', w->f);
	}
}

static void write_between(const struct expr_writer *w, size_t i)
{
	enum expr_op op = w->v[i].op;
	size_t right = node_start(w->v, i - 1);
	bool mask = op == EXPR_AND || op == EXPR_OR || op == EXPR_XOR;

	write_node(w, right - 1, between[op].level, mask);
	fprintf(w->f, " %s ", between[op].text);
	write_node(w, i - 1, between[op].level + 1, mask);
}

/* mask: it is an operand of & and the like, whose numbers are hexadecimal. */
static void write_node(const struct expr_writer *w, size_t i, enum level least, bool mask)
{
	enum expr_op op = w->v[i].op;
	bool parentheses = node_level(w, i) < least;

	if (parentheses)
		putc('(', w->f);
	if (op == EXPR_DEREF || op == EXPR_UDEREF || op == EXPR_NOT)
		write_prefix(w, i);
	else if (op == EXPR_MEMBER || op == EXPR_ENTRY || op == EXPR_INDEX || op == EXPR_MAP)
		write_postfix(w, i);
	else if (expr_arity(op) == 2)
		write_between(w, i);
	else
		write_leaf(w, &w->v[i], mask);
	if (parentheses)
		putc(')', w->f);
}

void write_expr(FILE *f, const struct probe_spec *p, const struct expr *e)
{
	struct expr_writer w = {.f = f, .spec = p, .v = e->v};

	if (e->n)
		write_node(&w, e->n - 1, LEVEL_ANY, false);
}

char *probe_format(const struct probe_spec *p)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	write_target(f, p);
	for (size_t i = 0; i < p->n_args; i++) {
		putc(' ', f);
		write_arg(f, p, &p->args[i]);
	}
	if (p->condition.n) {
		fputs(" if ", f);
		write_expr(f, p, &p->condition);
	}
	for (size_t i = 0; i < p->n_by; i++) {
		fputs(i ? " " : " by ", f);
		write_arg(f, p, &p->by[i]);
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- equality --- */

static bool text_eq(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static bool expr_eq(const struct expr *a, const struct expr *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct expr_item *x = &a->v[i], *y = &b->v[i];

		if (x->op != y->op || x->value != y->value || !text_eq(x->text, y->text))
			return false;
	}
	return true;
}

static bool args_eq(const struct probe_arg *a, size_t n_a, const struct probe_arg *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++) {
		if (!text_eq(a[i].name, b[i].name) || !text_eq(a[i].text, b[i].text) ||
		    a[i].type != b[i].type || a[i].size != b[i].size || a[i].bits != b[i].bits ||
		    a[i].bit != b[i].bit || !expr_eq(&a[i].expr, &b[i].expr) ||
		    !expr_eq(&a[i].length, &b[i].length))
			return false;
	}
	return true;
}

bool probe_spec_eq(const struct probe_spec *a, const struct probe_spec *b)
{
	return a->kind == b->kind && text_eq(a->name, b->name) &&
	       text_eq(a->name_group, b->name_group) && text_eq(a->file, b->file) &&
	       text_eq(a->symbol, b->symbol) && text_eq(a->group, b->group) &&
	       text_eq(a->source, b->source) && a->line == b->line && a->offset == b->offset &&
	       a->semaphore == b->semaphore && args_eq(a->args, a->n_args, b->args, b->n_args) &&
	       args_eq(a->by, a->n_by, b->by, b->n_by) && expr_eq(&a->condition, &b->condition);
}
