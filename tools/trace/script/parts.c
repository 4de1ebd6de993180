// SPDX-License-Identifier: GPL-2.0-or-later
/* A script's steps as parts of a session. */
#include "tools/trace/script/script.h"

static int fault(const struct script_run *run, const struct script_step *step, int code,
		 const char *text, struct error *e)
{
	return error_set(e, code, "%.80s:%u:%u: %.380s", run->name, step->at.line, step->at.column,
			 text);
}

static enum trace_action action_of(const struct script_step *step)
{
	static const enum trace_action actions[] = {
		[SCRIPT_WATCH] = TRACE_WATCH,	  [SCRIPT_PRINT] = TRACE_PRINT,
		[SCRIPT_FLOW] = TRACE_WATCH,	  [SCRIPT_COUNT] = TRACE_COUNT,
		[SCRIPT_HIST] = TRACE_HIST,	  [SCRIPT_STATS] = TRACE_STATS,
		[SCRIPT_LATENCY] = TRACE_LATENCY, [SCRIPT_START] = TRACE_START,
		[SCRIPT_SET] = TRACE_SET,	  [SCRIPT_ARM] = TRACE_ARM,
		[SCRIPT_DISARM] = TRACE_DISARM,	  [SCRIPT_SHOW] = TRACE_PRINT,
		[SCRIPT_CLEAR] = TRACE_PRINT,	  [SCRIPT_EXIT] = TRACE_PRINT,
		[SCRIPT_GATE] = TRACE_SET,
	};

	return actions[step->verb];
}

static void make_part(struct script_run *run, const struct script_step *step)
{
	uint32_t state = step->when ? step->when : step->state;

	run->parts[run->n_parts++] = (struct session_part){
		.spec = &step->spec,
		.action = action_of(step),
		.buckets = step->buckets,
		.when = step->when,
		.state = step->state,
		.per_thread = state && run->script.states[state - 1].per_thread,
		.between = step->verb == SCRIPT_LATENCY && step->timer,
		.on = step->on.n_args ? &step->on.args[0] : NULL,
		.table = step->table,
		.follows = step->follows,
		.all_parameters = step->all_parameters,
		.move = step->verb == SCRIPT_FLOW,
		.anywhere = step->anywhere,
		.timer = step->timer,
		.variable = step->variable,
		.kind = step->kind,
		.adds = step->adds,
		.likes = step->likes,
		.n_likes = step->n_likes,
	};
}

/* A state of its own for each thread, or for all: one action cannot set one and test another. */
static int check_states(const struct script_run *run, struct error *e)
{
	for (size_t i = 0; i < run->script.n_steps; i++) {
		const struct script_step *step = &run->script.steps[i];

		if (step->when && step->state &&
		    run->script.states[step->when - 1].per_thread !=
			    run->script.states[step->state - 1].per_thread)
			return fault(run, step, -ENOTSUP,
				     "one of the states is each thread's own and the other is not: "
				     "expected both alike",
				     e);
	}
	return 0;
}

int script_make_parts(struct script_run *run, struct error *e)
{
	int r = check_states(run, e);

	for (size_t i = 0; r == 0 && i < run->script.n_steps; i++)
		make_part(run, &run->script.steps[i]);
	run->t.options.texts = run->script.texts;
	run->t.script = run->parts;
	run->t.n_script = run->n_parts;
	return r;
}

/* --- what only resolved probes tell --- */

static bool is_text(const struct fetch_shown *shown)
{
	return shown->type == VALUE_STRING || shown->type == VALUE_BUFFER ||
	       trace_is_stack(shown) || shown->type == VALUE_APP;
}

static int check_print(const struct script_run *run, const struct script_step *step,
		       const struct fetch *f, struct error *e)
{
	char text[200];

	for (size_t i = 0; i < f->n_values && i < step->format.n_values; i++)
		if (step->format.v[i].type != 's' && is_text(&f->values[i])) {
			snprintf(text, sizeof(text),
				 "%.60s is a text: expected %%s for it, not %%%c",
				 f->values[i].name, step->format.v[i].type);
			return fault(run, step, -EINVAL, text, e);
		}
	return 0;
}

static bool alike(const struct fetch *a, const struct fetch *b)
{
	if (a->n_keys != b->n_keys || a->key_words != b->key_words ||
	    a->fault_word != b->fault_word)
		return false;
	for (size_t i = 0; i < a->n_keys; i++)
		if (a->keys[i].type != b->keys[i].type || a->keys[i].word != b->keys[i].word)
			return false;
	return true;
}

/* What fills one table has keys of the same kinds. */
static int check_table(struct script_run *run, const struct session_probe *p,
		       const struct script_step *step, struct error *e)
{
	const struct script_table *t = &run->script.tables[step->table - 1];
	const struct fetch *first;

	run->t.table = step->table;
	first = trace_table_fetch(&run->t);
	run->has_keys |= trace_table_has_names(&run->t);
	if (p->part == t->step || alike(first, &p->fetch))
		return 0;
	return fault(run, step, -EINVAL,
		     "this has other keys than what fills the same table: expected the same "
		     "number and kinds behind 'by', or another name",
		     e);
}

int script_check_probe(struct script_run *run, const struct session_probe *p, struct error *e)
{
	const struct script_step *step = &run->script.steps[p->part];

	if (p->part >= run->script.n_steps || !p->attached)
		return 0;
	if (step->verb == SCRIPT_PRINT)
		return check_print(run, step, &p->fetch, e);
	return step->table ? check_table(run, p, step, e) : 0;
}

int script_check_session(struct script_run *run, struct error *e)
{
	const struct session *s = run->t.session;
	int r = 0;

	for (size_t i = 0; r == 0 && i < session_n_probes(s); i++)
		r = script_check_probe(run, session_probe(s, i), e);
	return r;
}
