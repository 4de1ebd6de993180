// SPDX-License-Identifier: GPL-2.0-or-later
/* A script to its clauses. */
#include <stdarg.h>

#include "base/values.h"
#include "probes/script/priv.h"

/* --- places and mistakes --- */

static struct script_place place_of(const struct script_reader *r, const char *at)
{
	struct script_place p = {.line = 1, .column = 1};

	for (const char *s = r->text; s < at; s++)
		if (*s == '\n')
			p = (struct script_place){.line = p.line + 1, .column = 1};
		else
			p.column++;
	return p;
}

int script_fault(struct script_reader *r, const char *at, const char *fmt, ...)
{
	struct script_place p = place_of(r, at);
	char message[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	return error_set(r->e, -EINVAL, "%.80s:%u:%u: %s", r->name, p.line, p.column, message);
}

static int out_of_memory(struct script_reader *r)
{
	return error_set(r->e, -ENOMEM, "there is no memory left to read the script");
}

/* --- spans --- */

struct span span_trim(struct span s)
{
	while (s.len && blank_char(*s.at)) {
		s.at++;
		s.len--;
	}
	while (s.len && blank_char(s.at[s.len - 1]))
		s.len--;
	return s;
}

/* NULL: they are not closed. */
static const char *quotes_end(const char *s, const char *end)
{
	for (s++; s < end && *s != '"'; s++)
		if (*s == '\\' && s + 1 < end)
			s++;
	return s < end ? s + 1 : NULL;
}

static const char *behind_quotes(const char *s, const char *end)
{
	const char *behind = quotes_end(s, end);

	return behind ? behind : end;
}

const char *span_find(struct span s, const char *chars)
{
	const char *end = s.at + s.len, *at = s.at;

	while (at < end && !strchr(chars, *at))
		at = *at == '"' ? behind_quotes(at, end) : at + 1;
	return at < end ? at : end;
}

const char *span_word(struct span s, const char *word)
{
	const char *end = s.at + s.len, *at = s.at;
	size_t n = strlen(word);
	int depth = 0;

	while (at < end) {
		if ((at == s.at || blank_char(at[-1])) && !depth && (size_t)(end - at) >= n &&
		    !strncmp(at, word, n) && (at + n == end || blank_char(at[n])))
			return at;
		if (*at == '"') {
			at = behind_quotes(at, end);
			continue;
		}
		depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
		at++;
	}
	return end;
}

static bool span_is(struct span s, const char *word)
{
	return s.len == strlen(word) && !strncmp(s.at, word, s.len);
}

/* --- a step's probe --- */

/* A step of the clause at hand: NULL when there is no room for one (the sentence is set). */
static struct script_step *add_step(struct script_reader *r, const char *at)
{
	struct script *s = r->script;
	struct script_step *step;

	if (s->n_steps == SCRIPT_STEPS_MAX) {
		script_fault(r, at,
			     "too many actions: expected at most %d, conditions of several "
			     "together among them",
			     SCRIPT_STEPS_MAX);
		return NULL;
	}
	step = &s->steps[s->n_steps++];
	step->at = place_of(r, at);
	step->when = r->when;
	step->anywhere = r->anywhere;
	return step;
}

/* The place in the script of what is at `at` in the text that was put together. */
static const char *origin(const struct probe_parts *p, size_t at)
{
	if (at <= p->target.len)
		return p->target.at + at;
	at -= p->target.len + 1;
	if (p->args.len && at <= p->args.len)
		return p->args_at + at;
	at -= p->args.len ? p->args.len + 1 : 0;
	at -= at >= strlen("if ") ? strlen("if ") : at;
	return p->condition.at + (at < p->condition.len ? at : p->condition.len);
}

int script_parse_probe(struct script_reader *r, const struct probe_parts *p, struct probe_spec *ret)
{
	struct probe_scope *scope = &r->script->scope;
	autofree char *text = NULL;
	struct error e = {0};
	int n;

	n = asprintf(&text, "%.*s%s%.*s%s%.*s", (int)p->target.len, p->target.at,
		     p->args.len ? " " : "", (int)p->args.len, p->args.len ? p->args.at : "",
		     p->condition.len ? " if " : "", (int)p->condition.len,
		     p->condition.len ? p->condition.at : "");
	if (n < 0) {
		text = NULL;
		return out_of_memory(r);
	}
	scope->fault = 0;
	n = probe_parse_in(text, scope, ret, &e);
	script_note_asked(r, p->args.len	? p->args_at
			     : p->condition.len ? p->condition.at
						: p->target.at);
	if (n == -ENOMEM)
		return out_of_memory(r);
	return n < 0 ? script_fault(r, origin(p, scope->fault), "%s", e.text) : 0;
}

/* --- headers --- */

uint32_t script_state(struct script_reader *r, struct span name)
{
	struct script *s = r->script;
	size_t i;

	if (!name.len || ident_len(name.at) != name.len) {
		script_fault(r, name.at, "expected the name of a state, as in 'arm NAME'");
		return 0;
	}
	for (i = 0; i < s->n_states; i++)
		if (span_is(name, s->states[i].name))
			return (uint32_t)i + 1;
	if (i == SCRIPT_STATES_MAX) {
		script_fault(r, name.at, "too many states: expected at most %d", SCRIPT_STATES_MAX);
		return 0;
	}
	s->states[i].name = strndup(name.at, name.len);
	if (!s->states[i].name) {
		out_of_memory(r);
		return 0;
	}
	s->n_states++;
	return (uint32_t)i + 1;
}

/* `anywhere`, the last word of what happens. */
static bool take_anywhere(struct span *target)
{
	static const char word[] = "anywhere";
	size_t n = strlen(word);

	if (target->len <= n || strncmp(target->at + target->len - n, word, n) != 0 ||
	    !blank_char(target->at[target->len - n - 1]))
		return false;
	target->len -= n;
	*target = span_trim(*target);
	return true;
}

/* `when STATE` and `if CONDITION`, behind what happens. */
static int read_conditions(struct script_reader *r, struct span header)
{
	const char *end = header.at + header.len, *when = span_word(header, "when");
	const char *cond = span_word(header, "if");
	struct span name;

	r->condition = (struct span){.at = end};
	r->when = 0;
	if (cond < end) {
		r->condition =
			span_trim((struct span){.at = cond + 2, .len = (size_t)(end - cond - 2)});
		if (!r->condition.len)
			return script_fault(r, cond, "expected a condition behind 'if'");
	}
	if (when > cond)
		when = cond;
	r->target = span_trim((struct span){.at = header.at, .len = (size_t)(when - header.at)});
	r->anywhere = take_anywhere(&r->target);
	if (when == cond)
		return 0;
	name = span_trim((struct span){.at = when + 4, .len = (size_t)(cond - when - 4)});
	r->when = script_state(r, name);
	if (r->when && !r->script->states[r->when - 1].asked.line)
		r->script->states[r->when - 1].asked = place_of(r, name.at);
	return r->when ? 0 : -EINVAL;
}

static int read_every(struct script_reader *r, struct script_clause *c)
{
	struct span time = span_trim(
		(struct span){.at = r->target.at + 5, .len = r->target.len - strlen("every")});
	autofree char *text = strndup(time.at, time.len);
	const char *wanted;

	if (!text)
		return out_of_memory(r);
	wanted = want_duration_ms(text, &c->every_ms);
	if (wanted)
		return script_fault(r, time.at, "expected %s behind 'every'", wanted);
	if (c->every_ms < SCRIPT_EVERY_MIN_MS)
		return script_fault(r, time.at, "expected a time of at least %dms",
				    SCRIPT_EVERY_MIN_MS);
	c->event = SCRIPT_EVERY;
	r->target.len = strlen("every");
	return 0;
}

static int read_event(struct script_reader *r, struct script_clause *c)
{
	struct probe_parts parts = {.target = r->target};
	struct probe_spec spec = {0};
	int n = 0;

	if (!r->target.len)
		return script_fault(r, r->target.at,
				    "expected a probe, BEGIN, END or every TIME before {");
	if (span_is(r->target, "BEGIN"))
		c->event = SCRIPT_BEGIN;
	else if (span_is(r->target, "END"))
		c->event = SCRIPT_END;
	else if (r->target.len >= 5 && !strncmp(r->target.at, "every", 5) &&
		 (r->target.len == 5 || blank_char(r->target.at[5])))
		return read_every(r, c);
	else
		n = script_parse_probe(r, &parts, &spec);
	if (n == 0 && (spec.n_args || spec.n_by))
		n = script_fault(r, r->target.at,
				 "values belong to what is done with them: expected 'if' or {, as "
				 "in 'PROBE { watch VALUE }'");
	probe_spec_free(&spec);
	return n;
}

/* --- clauses --- */

/* The state and the condition of a clause belong to its one action, or are a step before those. */
static struct script_step *add_gate(struct script_reader *r)
{
	struct probe_parts parts = {.target = r->target, .condition = r->condition};
	struct script_step *gate = add_step(r, r->condition.at);

	if (!gate)
		return NULL;
	gate->verb = SCRIPT_GATE;
	return script_parse_probe(r, &parts, &gate->spec) < 0 ? NULL : gate;
}

static bool needs_entry(const struct expr *e)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].op == EXPR_ELAPSED || e->v[i].op == EXPR_ENTRY)
			return true;
	return false;
}

/* What it does at a function's return needs what was there at its entry. */
static bool has_entry(const struct script_step *step)
{
	const struct probe_spec *p = &step->spec;
	bool entry = needs_entry(&p->condition) || (step->verb == SCRIPT_LATENCY && !step->timer);

	for (size_t i = 0; i < p->n_args; i++)
		entry |= needs_entry(&p->args[i].expr);
	for (size_t i = 0; i < p->n_by; i++)
		entry |= needs_entry(&p->by[i].expr);
	return entry;
}

/* It happens whenever its condition is true: whatever else it needs is always there. */
static bool can_decide(const struct script_step *step)
{
	return !has_entry(step) && !step->spec.condition.n && step->verb != SCRIPT_LATENCY &&
	       step->verb != SCRIPT_START;
}

/* The first action takes the condition over, and the others follow that. */
static void drop_gate(struct script_reader *r, struct script_step *gate)
{
	struct script *s = r->script;
	size_t at = (size_t)(gate - s->steps);

	gate[1].spec.condition = gate->spec.condition;
	gate->spec.condition = (struct expr){0};
	probe_spec_free(&gate->spec);
	memmove(gate, gate + 1, (s->n_steps - at - 1) * sizeof(*gate));
	s->steps[--s->n_steps] = (struct script_step){0};
	for (size_t i = 0; i < s->n_tables; i++)
		s->tables[i].step -= s->tables[i].step > at;
}

static int finish_gate(struct script_reader *r, struct script_step *gate, size_t n)
{
	if (n > 1 && can_decide(&gate[1])) {
		drop_gate(r, gate);
		n--;
	}

	gate->likes = calloc(n, sizeof(*gate->likes));
	if (!gate->likes)
		return out_of_memory(r);
	for (size_t i = 0; i < n; i++) {
		gate[i + 1].follows = true;
		/* it is looked at once: one of them may disarm it; but entries are kept only while
		 * it is armed */
		if (!has_entry(&gate[i + 1]))
			gate[i + 1].when = 0;
		gate->likes[gate->n_likes++] = &gate[i + 1].spec;
	}
	return 0;
}

static bool has_one_action(struct span body)
{
	const char *end = body.at + body.len, *first = span_find(body, ";");
	struct span action = {.at = body.at, .len = (size_t)(first - body.at)};
	struct span rest = {.at = first, .len = (size_t)(end - first)};

	while (rest.len && (*rest.at == ';' || blank_char(*rest.at))) {
		rest.at++;
		rest.len--;
	}
	return !rest.len && span_word(action, "if") == first;
}

static int read_actions(struct script_reader *r, struct span body, size_t *n)
{
	const char *end = body.at + body.len, *next;
	int err = 0;

	for (const char *at = body.at; err == 0 && at < end; at = next < end ? next + 1 : end) {
		struct span action;
		struct script_step *step;

		next = span_find((struct span){.at = at, .len = (size_t)(end - at)}, ";");
		action = span_trim((struct span){.at = at, .len = (size_t)(next - at)});
		if (!action.len)
			continue;
		step = add_step(r, action.at);
		if (!step)
			return -E2BIG;
		++*n;
		err = script_parse_action(r, action, step);
	}
	if (err == 0 && !*n)
		return script_fault(r, body.at, "expected an action, as in '{ count }'");
	return err;
}

static int read_body(struct script_reader *r, struct span body, struct script_clause *c)
{
	struct script_step *gate = NULL;
	struct span condition = r->condition;
	size_t n = 0;
	int err;

	c->first = r->script->n_steps;
	if ((condition.len || r->when) && !has_one_action(body)) {
		gate = add_gate(r);
		if (!gate)
			return -EINVAL;
		r->condition.len = 0;
	}
	err = read_actions(r, body, &n);
	if (err == 0 && gate)
		err = finish_gate(r, gate, n);
	c->n = r->script->n_steps - c->first;
	return err;
}

static int add_clause(struct script_reader *r, struct script_clause **ret)
{
	struct script *s = r->script;
	struct script_clause *v = realloc(s->clauses, (s->n_clauses + 1) * sizeof(*v));

	if (!v)
		return out_of_memory(r);
	s->clauses = v;
	*ret = &v[s->n_clauses++];
	**ret = (struct script_clause){0};
	return 0;
}

/* *at goes behind the clause. */
static int read_clause(struct script_reader *r, const char **at)
{
	struct span all = {.at = *at, .len = strlen(*at)}, header, body;
	const char *end = all.at + all.len, *open = span_find(all, "{}"), *close;
	struct script_clause *c = NULL;
	int err;

	header = span_trim((struct span){.at = all.at, .len = (size_t)(open - all.at)});
	if (open == end || *open == '}')
		return script_fault(r, open == end ? header.at : open,
				    "expected { ACTION; ... } behind a probe");
	body = (struct span){.at = open + 1, .len = (size_t)(end - open - 1)};
	close = span_find(body, "{}");
	if (close == end || *close == '{')
		return script_fault(r, close == end ? open : close,
				    close == end ? "the brace is not closed: expected }"
						 : "an action has no braces: expected ; or }");
	body.len = (size_t)(close - body.at);
	*at = close + 1;
	err = add_clause(r, &c);
	err = err < 0 ? err : read_conditions(r, header);
	err = err < 0 ? err : read_event(r, c);
	return err < 0 ? err : read_body(r, body, c);
}

/* --- what clauses say of each other --- */

static int fault_at(struct script_reader *r, struct script_place p, const char *what,
		    const char *name, const char *expected)
{
	return error_set(r->e, -EINVAL, "%.80s:%u:%u: %s '%.60s'%s", r->name, p.line, p.column,
			 what, name, expected);
}

static int check_states(struct script_reader *r)
{
	const struct script *s = r->script;

	for (size_t i = 0; i < s->n_states; i++)
		if (s->states[i].asked.line && !s->states[i].armed)
			return fault_at(r, s->states[i].asked, "nothing arms", s->states[i].name,
					": expected 'arm NAME' somewhere");
	return 0;
}

static int check_timers(struct script_reader *r)
{
	const struct script *s = r->script;

	for (size_t i = 0; i < s->n_steps; i++) {
		const struct script_step *end = &s->steps[i], *start = NULL;

		for (size_t j = 0; end->timer && j < s->n_steps; j++)
			if (s->steps[j].timer == end->timer && s->steps[j].verb == SCRIPT_START)
				start = &s->steps[j];
		if (end->timer && !start)
			return fault_at(r, end->at, "nothing starts", s->timers.v[end->timer - 1],
					": expected 'start TIMER' somewhere");
		if (start && !start->on.n_args != !end->on.n_args)
			return fault_at(r, end->at, "only one side says which",
					s->timers.v[end->timer - 1],
					" it is: expected 'on VALUE' where it starts and where "
					"it ends");
	}
	return 0;
}

static int find_tables(struct script_reader *r, struct script_step *step)
{
	const struct script *s = r->script;

	for (size_t i = 0; i < step->table_names.n; i++) {
		const char *name = step->table_names.v[i];
		size_t t = 0;

		while (t < s->n_tables && !streq(s->tables[t].name, name))
			t++;
		if (t == s->n_tables)
			return fault_at(r, step->at, "nothing is counted as", name,
					": expected a NAME behind 'as'");
		step->tables |= 1u << (t + 1);
	}
	return 0;
}

static int check_script(struct script_reader *r)
{
	int err = script_check_variables(r);

	err = err < 0 ? err : check_states(r);
	err = err < 0 ? err : check_timers(r);
	for (size_t i = 0; err == 0 && i < r->script->n_steps; i++)
		err = find_tables(r, &r->script->steps[i]);
	return err;
}

/* --- the whole --- */

/* Comments become blanks, so that places stay what they are. */
static void blank_comments(char *text)
{
	struct span all = {.at = text, .len = strlen(text)};
	const char *end = text + all.len;

	while (all.len) {
		const char *hash = span_find(all, "#");
		char *s = text + (hash - text);

		if (hash < end && (hash == text || blank_char(hash[-1]) || strchr(";{}", hash[-1])))
			while (*s && *s != '\n')
				*s++ = ' ';
		else if (hash < end)
			s++;
		all = (struct span){.at = s, .len = (size_t)(end - s)};
	}
}

/* Else it would be said of the brace that they hide. */
static int check_quotes(struct script_reader *r)
{
	const char *end = r->text + strlen(r->text), *at = r->text;

	while ((at = strchr(at, '"'))) {
		const char *behind = quotes_end(at, end);

		if (!behind)
			return script_fault(r, at,
					    "the text is not closed: expected \" at its end");
		at = behind;
	}
	return 0;
}

static int check_text(struct script_reader *r)
{
	for (const char *s = r->text; *s; s++)
		if (((unsigned char)*s < ' ' && !blank_char(*s)) || *s == 127)
			return script_fault(r, s, "expected text without control characters");
	return check_quotes(r);
}

static int read_script(struct script_reader *r)
{
	const char *at = skip_blanks(r->text);
	int err = check_text(r);

	if (err == 0 && !*at)
		return script_fault(r, at, "expected a clause, as in 'PROBE { count by comm }'");
	while (err == 0 && *at) {
		err = read_clause(r, &at);
		at = skip_blanks(at);
	}
	return err < 0 ? err : check_script(r);
}

int script_parse(const char *name, const char *text, struct script *ret, struct error *e)
{
	autofree char *clean = NULL;
	struct script_reader r = {.script = ret, .name = name, .e = e};
	int err;

	*ret = (struct script){.scope = {.max = SCRIPT_VARIABLES_MAX + 1}};
	if (strnlen(text, SCRIPT_TEXT_MAX + 1) > SCRIPT_TEXT_MAX)
		return error_set(e, -E2BIG, "%.80s is too long: expected at most %d characters",
				 name, SCRIPT_TEXT_MAX);
	clean = strdup(text);
	/* one more, which is never used, so that steps may be followed by what is not there */
	ret->steps = calloc(SCRIPT_STEPS_MAX + 1, sizeof(*ret->steps));
	if (!clean || !ret->steps) {
		free(ret->steps);
		ret->steps = NULL;
		return out_of_memory(&r);
	}
	blank_comments(clean);
	r.text = clean;
	err = read_script(&r);
	if (err < 0)
		script_free(ret);
	return err;
}

void script_free(struct script *s)
{
	for (size_t i = 0; s->steps && i < s->n_steps; i++) {
		probe_spec_free(&s->steps[i].spec);
		probe_spec_free(&s->steps[i].on);
		strv_free(&s->steps[i].table_names);
		script_format_free(&s->steps[i].format);
		free(s->steps[i].likes);
	}
	for (size_t i = 0; i < s->n_tables; i++)
		free(s->tables[i].name);
	for (size_t i = 0; i < s->n_states; i++)
		free(s->states[i].name);
	free(s->steps);
	free(s->clauses);
	strv_free(&s->timers);
	probe_scope_free(&s->scope);
	*s = (struct script){0};
}
