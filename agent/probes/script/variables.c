// SPDX-License-Identifier: GPL-2.0-or-later
/* What the actions of a script say of its variables. */
#include "probes/script/priv.h"

/* Those that this text names for the first time. */
void script_note_asked(struct script_reader *r, const char *at)
{
	for (size_t kind = 0; kind < VARIABLE_KINDS; kind++)
		for (size_t i = r->script->scope.names[kind].n; i && !r->variables[kind][i].asked;
		     i--)
			r->variables[kind][i].asked = at;
}

static int check_set(struct script_reader *r, enum probe_variable_kind kind)
{
	const struct strv *names = &r->script->scope.names[kind];
	const char *word = probe_variable_word(kind), *by = kind == VARIABLE_MAP ? "[KEY]" : "";

	for (size_t i = 1; i <= names->n; i++)
		if (!r->variables[kind][i].set)
			return script_fault(r, r->variables[kind][i].asked,
					    "%s.%s is never set: expected 'set %s.%s%s = VALUE' "
					    "somewhere",
					    word, names->v[i - 1], word, names->v[i - 1], by);
	return 0;
}

/* --- texts --- */

static bool is_text_variable(const struct script *s, const struct expr_item *item)
{
	switch (item->op) {
	case EXPR_GLOBAL:
		return variable_is_text(&s->texts, VARIABLE_GLOBAL, (uint64_t)item->value);
	case EXPR_THREAD:
		return variable_is_text(&s->texts, VARIABLE_THREAD, (uint64_t)item->value);
	case EXPR_MAP:
		return variable_is_text(&s->texts, VARIABLE_MAP, (uint64_t)item->value);
	default:
		return false;
	}
}

/* What it is set to says by itself that it is a text. */
static bool is_text(const struct script *s, const struct probe_arg *a)
{
	const struct expr_item *last = &a->expr.v[a->expr.n - 1];

	if (a->type == VALUE_STRING || a->type == VALUE_USTRING)
		return true;
	return a->type == VALUE_NONE &&
	       (last->op == EXPR_STRING || last->op == EXPR_COMM || is_text_variable(s, last));
}

/* True: there was one that was not known to be. */
static bool find_texts(struct script *s)
{
	bool more = false;

	for (size_t i = 0; i < s->n_steps; i++) {
		const struct script_step *step = &s->steps[i];
		uint64_t *texts = &s->texts.of[step->kind];

		if (step->verb != SCRIPT_SET || (*texts >> step->variable & 1) ||
		    !is_text(s, &step->spec.args[0]))
			continue;
		*texts |= UINT64_C(1) << step->variable;
		more = true;
	}
	return more;
}

/* A number that is written down, say: what else is no text is only known at its place. */
static int check_texts(const struct script_reader *r)
{
	const struct script *s = r->script;

	for (size_t i = 0; i < s->n_steps; i++) {
		const struct script_step *step = &s->steps[i];

		if (step->verb == SCRIPT_SET &&
		    variable_is_text(&s->texts, step->kind, step->variable) && step->adds)
			return error_set(r->e, -EINVAL,
					 "%.80s:%u:%u: %s.%.60s is a text, which is not added to: "
					 "expected =",
					 r->name, step->at.line, step->at.column,
					 probe_variable_word(step->kind),
					 s->scope.names[step->kind].v[step->variable - 1]);
	}
	return 0;
}

int script_check_variables(struct script_reader *r)
{
	int err = 0;

	for (int kind = 0; err == 0 && kind < VARIABLE_KINDS; kind++)
		err = check_set(r, (enum probe_variable_kind)kind);
	while (err == 0 && find_texts(r->script))
		;
	return err < 0 ? err : check_texts(r);
}
