// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any text as a script of ax trace run. What is taken keeps its bounds, and what refers to
 * something else refers to what is there; what is refused is explained, with a place.
 */
#include "probes/script/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_step(const struct script *s, const struct script_step *step)
{
	check(step->at.line > 0 && step->at.column > 0);
	check(step->when <= s->n_states && step->state <= s->n_states);
	check(step->table <= s->n_tables && !step->table == !script_is_table(step->verb));
	check(step->timer <= s->timers.n);
	check(step->variable <= s->scope.names[step->kind].n);
	check(!step->variable == (step->verb != SCRIPT_SET));
	check(step->spec.n_args <= PROBE_ARGS_MAX && step->spec.n_by <= PROBE_BY_MAX);
	if (step->verb == SCRIPT_PRINT)
		check(step->format.v && step->format.n_values == step->spec.n_args);
	for (size_t i = 0; i < step->format.n_values; i++)
		check(strchr("duxcs", step->format.v[i].type) && step->format.v[i].text);
	for (size_t i = 0; i < step->n_likes; i++)
		check(step->likes[i] == &step[i + 1].spec && step[i + 1].follows);
}

static void check_script(const struct script *s)
{
	size_t steps = 0;

	check(s->n_steps <= SCRIPT_STEPS_MAX && s->n_tables <= SCRIPT_TABLES_MAX);
	for (size_t i = 0; i < VARIABLE_KINDS; i++)
		check(s->scope.names[i].n <= SCRIPT_VARIABLES_MAX);
	for (size_t i = 0; i < s->n_clauses; i++) {
		check(s->clauses[i].first == steps && s->clauses[i].n > 0);
		check(!s->steps[steps].follows);
		check(!s->clauses[i].every_ms == (s->clauses[i].event != SCRIPT_EVERY));
		steps += s->clauses[i].n;
	}
	check(steps == s->n_steps);
	for (size_t i = 0; i < s->n_steps; i++)
		check_step(s, &s->steps[i]);
}

static void check_text(const char *s)
{
	check(starts_with(s, "f:") || strstr(s, "too long") || strstr(s, "too many"));
	for (; *s; s++)
		check((unsigned char)*s >= ' ' && *s != 127);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size);
	struct error e = {0};
	struct script s;

	check(text != NULL);
	if (script_parse("f", text, &s, &e) < 0) {
		check(e.code == -EINVAL || e.code == -E2BIG);
		check_text(e.text);
		return 0;
	}
	check_script(&s);
	script_free(&s);
	return 0;
}
