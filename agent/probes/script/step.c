// SPDX-License-Identifier: GPL-2.0-or-later
/* One action of a script. */
#include "base/near.h"
#include "probes/script/priv.h"

static const char *const verbs[] = {
	[SCRIPT_FLOW] = "flow",	      [SCRIPT_WATCH] = "watch",	  [SCRIPT_PRINT] = "print",
	[SCRIPT_COUNT] = "count",     [SCRIPT_HIST] = "hist",	  [SCRIPT_STATS] = "stats",
	[SCRIPT_LATENCY] = "latency", [SCRIPT_START] = "start",	  [SCRIPT_SET] = "set",
	[SCRIPT_ARM] = "arm",	      [SCRIPT_DISARM] = "disarm", [SCRIPT_SHOW] = "show",
	[SCRIPT_CLEAR] = "clear",     [SCRIPT_EXIT] = "exit",
};

static const char *verb_name(enum script_verb v)
{
	return v < ARRAY_SIZE(verbs) ? verbs[v] : "if";
}

bool script_is_table(enum script_verb v)
{
	return v >= SCRIPT_COUNT && v <= SCRIPT_LATENCY;
}

static int out_of_memory(struct script_reader *r)
{
	return error_set(r->e, -ENOMEM, "there is no memory left to read the script");
}

/* --- pieces of an action --- */

/* What is behind the verb: a copy, in which what was taken out is blank. */
struct rest {
	char *text; /* malloc'ed */
	const char *at;
	size_t len;
};

static struct span span_of(const struct rest *rest)
{
	return (struct span){.at = rest->text, .len = rest->len};
}

static const char *place(const struct rest *rest, const char *at)
{
	return rest->at + (at - rest->text);
}

/* The first word from `at` on; what is in parentheses may have blanks. */
static struct span next_word(const struct rest *rest, size_t at)
{
	struct span word = {.at = rest->text + at};
	int depth = 0;

	while (at < rest->len && blank_char(rest->text[at]))
		at++;
	word.at = rest->text + at;
	for (; at < rest->len && (depth > 0 || !blank_char(rest->text[at])); at++) {
		depth += rest->text[at] == '(' ? 1 : rest->text[at] == ')' ? -1 : 0;
		word.len++;
	}
	return word;
}

/* The word behind `key`, both of which are taken out: into ret->at, of the text before. 1: it was
 * there, 0: it was not. The word stays readable in `copy` (malloc'ed). */
static int take_word(struct script_reader *r, struct rest *rest, const char *key, char **copy,
		     const char **at)
{
	const char *end = rest->text + rest->len, *found = span_word(span_of(rest), key);
	struct span word;

	if (found == end)
		return 0;
	word = next_word(rest, (size_t)(found - rest->text) + strlen(key));
	*at = place(rest, word.at);
	if (!word.len)
		return script_fault(r, place(rest, found), "expected a word behind '%s'", key);
	*copy = strndup(word.at, word.len);
	if (!*copy)
		return out_of_memory(r);
	memset(rest->text + (found - rest->text), ' ', (size_t)(word.at + word.len - found));
	return 1;
}

/* The same of a name. */
static int take_name(struct script_reader *r, struct rest *rest, const char *key, char **copy)
{
	const char *at;
	int n = take_word(r, rest, key, copy, &at);

	if (n > 0 && ident_len(*copy) != strlen(*copy))
		return script_fault(r, at,
				    "expected a name behind '%s': letters, digits and _, as in "
				    "'%s sizes'",
				    key, key);
	return n;
}

static int parse_rest(struct script_reader *r, const struct rest *rest, struct probe_spec *ret)
{
	struct span args = span_trim(span_of(rest));
	struct probe_parts parts = {.target = r->target,
				    .args = args,
				    .args_at = place(rest, args.at),
				    .condition = r->condition};

	return script_parse_probe(r, &parts, ret);
}

static int expect_nothing(struct script_reader *r, const struct script_step *step,
			  const struct rest *rest)
{
	struct span args = span_trim(span_of(rest));

	if (!step->spec.n_args && !step->spec.n_by)
		return 0;
	return script_fault(r, place(rest, args.at),
			    "'%s' is of no values: expected perhaps 'if' there, or ;",
			    verb_name(step->verb));
}

/* --- tables --- */

static bool has_table(const struct script *s, const char *name)
{
	for (size_t i = 0; i < s->n_tables; i++)
		if (streq(s->tables[i].name, name))
			return true;
	return false;
}

/* One that nobody named. malloc'ed. */
static char *default_name(const struct script *s, enum script_verb verb)
{
	char *name = NULL;

	for (unsigned i = 1; i <= SCRIPT_TABLES_MAX + 1; i++) {
		if (asprintf(&name, i > 1 ? "%s%u" : "%s", verbs[verb], i) < 0)
			return NULL;
		if (!has_table(s, name))
			return name;
		free(name);
	}
	return NULL;
}

static bool same_buckets(const struct trace_buckets *a, const struct trace_buckets *b)
{
	return a->least == b->least && a->step == b->step && a->n == b->n;
}

static int share_table(struct script_reader *r, struct script_step *step, size_t table)
{
	const struct script_table *t = &r->script->tables[table];
	const struct script_step *first = &r->script->steps[t->step];

	step->table = (uint32_t)table + 1;
	if (first->verb != step->verb || !same_buckets(&first->buckets, &step->buckets))
		return error_set(r->e, -EINVAL,
				 "%.80s:%u:%u: '%.60s' is already made by '%s' in line %u, in "
				 "another way: expected another name",
				 r->name, step->at.line, step->at.column, t->name,
				 verb_name(first->verb), first->at.line);
	return 0;
}

/* Takes `name`. */
static int add_table(struct script_reader *r, struct script_step *step, char *name)
{
	struct script *s = r->script;

	for (size_t i = 0; name && i < s->n_tables; i++)
		if (streq(s->tables[i].name, name)) {
			free(name);
			return share_table(r, step, i);
		}
	if (!name)
		name = default_name(s, step->verb);
	if (!name)
		return out_of_memory(r);
	if (s->n_tables == SCRIPT_TABLES_MAX) {
		free(name);
		return error_set(r->e, -E2BIG, "%.80s:%u:%u: too many tables: expected at most %d",
				 r->name, step->at.line, step->at.column, SCRIPT_TABLES_MAX);
	}
	s->tables[s->n_tables] =
		(struct script_table){.name = name, .step = (size_t)(step - s->steps)};
	step->table = (uint32_t)++s->n_tables;
	return 0;
}

static int take_buckets(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	autofree char *text = NULL;
	const char *at = NULL;
	struct error e = {0};
	int n = take_word(r, rest, "linear", &text, &at);

	if (n <= 0)
		return n;
	return trace_buckets_parse(text, &step->buckets, &e) < 0 ? script_fault(r, at, "%s", e.text)
								 : 0;
}

/* --- timers --- */

static int find_timer(struct script_reader *r, const char *name, uint32_t *ret)
{
	int n = probe_variable(&r->script->timers, SCRIPT_TABLES_MAX, name, strlen(name));

	if (n < 0)
		return error_set(r->e, n, "%.80s: too many timers: expected at most %d", r->name,
				 SCRIPT_TABLES_MAX - 1);
	*ret = (uint32_t)n;
	return 0;
}

static int take_on(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	struct probe_parts parts = {.target = r->target};
	autofree char *text = NULL;
	int n = take_word(r, rest, "on", &text, &parts.args_at);

	if (n <= 0)
		return n;
	parts.args = (struct span){.at = text, .len = strlen(text)};
	n = script_parse_probe(r, &parts, &step->on);
	if (n == 0 && step->on.n_args != 1)
		return script_fault(r, parts.args_at, "expected one value behind 'on'");
	return n;
}

static int parse_start(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	struct span word = next_word(rest, 0);
	autofree char *name = strndup(word.at, word.len);
	int n;

	if (!name)
		return out_of_memory(r);
	if (!word.len || ident_len(name) != word.len)
		return script_fault(r, place(rest, word.at),
				    "expected the name of a timer, as in 'start wait'");
	memset(rest->text + (word.at - rest->text), ' ', word.len);
	n = find_timer(r, name, &step->timer);
	n = n < 0 ? n : take_on(r, rest, step);
	n = n < 0 ? n : parse_rest(r, rest, &step->spec);
	return n < 0 ? n : expect_nothing(r, step, rest);
}

static bool is_function(enum probe_kind k)
{
	return k == PROBE_URETPROBE || k == PROBE_KRETPROBE;
}

static int parse_latency(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	autofree char *timer = NULL;
	int n = take_name(r, rest, "since", &timer);

	if (n > 0)
		n = find_timer(r, timer, &step->timer);
	n = n < 0 ? n : take_on(r, rest, step);
	n = n < 0 ? n : parse_rest(r, rest, &step->spec);
	if (n < 0)
		return n;
	if (step->spec.n_args)
		return script_fault(r, rest->at,
				    "what is measured is the time: expected values only behind "
				    "'by'");
	if (!step->timer && !is_function(step->spec.kind))
		return script_fault(r, rest->at,
				    "latency is the time of a function, known at its return: "
				    "expected uretprobe: or kretprobe:, or 'since TIMER'");
	return 0;
}

/* --- actions --- */

static int parse_table(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	autofree char *name = NULL;
	int n = take_name(r, rest, "as", &name);

	if (n >= 0 && (step->verb == SCRIPT_HIST || step->verb == SCRIPT_LATENCY))
		n = take_buckets(r, rest, step);
	if (n < 0)
		return n;
	n = step->verb == SCRIPT_LATENCY ? parse_latency(r, rest, step)
					 : parse_rest(r, rest, &step->spec);
	if (n < 0)
		return n;
	if ((step->verb == SCRIPT_HIST || step->verb == SCRIPT_STATS) && step->spec.n_args != 1)
		return script_fault(r, rest->at,
				    "'%s' is of one value: expected it there, others behind 'by'",
				    verbs[step->verb]);
	return add_table(r, step, take_ptr(&name));
}

static int parse_watch(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	int n = parse_rest(r, rest, &step->spec);

	if (n == 0 && step->spec.n_by)
		return script_fault(r, rest->at,
				    "'%s' makes lines, there is nothing to divide 'by': expected "
				    "count, hist, stats or latency",
				    verbs[step->verb]);
	return n;
}

/* What tells calls apart, before what is shown of them. */
static int add_call(struct script_reader *r, struct probe_spec *spec)
{
	struct probe_spec own;
	struct error e = {0};

	if (spec->n_args + SCRIPT_FLOW_VALUES > PROBE_ARGS_MAX)
		return -E2BIG;
	if (probe_parse("uprobe:a:b back=$stack0 ip=%ip", &own, &e) < 0)
		return out_of_memory(r);
	memmove(spec->args + SCRIPT_FLOW_VALUES, spec->args, spec->n_args * sizeof(*spec->args));
	memcpy(spec->args, own.args, SCRIPT_FLOW_VALUES * sizeof(*spec->args));
	spec->n_args += SCRIPT_FLOW_VALUES;
	own.n_args = 0; /* they are the other's */
	probe_spec_free(&own);
	return 0;
}

static int parse_flow(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	int n = parse_watch(r, rest, step);

	if (n < 0)
		return n;
	if (step->spec.kind != PROBE_UPROBE && step->spec.kind != PROBE_URETPROBE)
		return script_fault(r, rest->at,
				    "'flow' is of calls in a program: expected uprobe: and "
				    "uretprobe:");
	step->all_parameters = !step->spec.n_args;
	if (step->spec.kind == PROBE_URETPROBE)
		return 0;
	n = add_call(r, &step->spec);
	return n == -E2BIG ? script_fault(r, rest->at, "expected fewer values") : n;
}

static int parse_print(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	struct span text = next_word(rest, 0);
	struct error e = {0};
	struct probe_parser p = {
		.text = text.at, .s = text.at, .error = &e, .scope = &r->script->scope};
	autofree char *format = NULL;
	int n;

	if (!text.len || *text.at != '"')
		return script_fault(r, place(rest, text.at),
				    "expected a text in quotes, as in 'print \"%%s\" comm'");
	if (probe_quoted(&p, &format) < 0)
		return script_fault(r, place(rest, text.at) + p.scope->fault, "%s", e.text);
	n = script_parse_format(r, place(rest, text.at), format, &step->format);
	if (n < 0)
		return n;
	memset(rest->text + (text.at - rest->text), ' ', (size_t)(p.s - text.at));
	n = parse_watch(r, rest, step);
	if (n == 0 && step->spec.n_args != step->format.n_values)
		return script_fault(r, place(rest, text.at),
				    "the text has %zu value%s and %zu follow%s: expected as many",
				    step->format.n_values, step->format.n_values == 1 ? "" : "s",
				    step->spec.n_args, step->spec.n_args == 1 ? "s" : "");
	return n;
}

/* Behind the opening bracket: where it is closed again. NULL: it is not. */
static const char *closing(const char *s, const char *end)
{
	int depth = 1;

	for (; s < end; s++) {
		depth += *s == '[' ? 1 : *s == ']' ? -1 : 0;
		if (!depth)
			return s;
	}
	return NULL;
}

/* [VALUE] behind map.NAME; *end goes behind it. */
static int parse_map_key(struct script_reader *r, const struct rest *rest, const char **end,
			 struct script_step *step)
{
	const char *open = *end, *close;
	struct probe_parts parts = {.target = r->target, .args_at = place(rest, open)};
	int n;

	close = *open == '[' ? closing(open + 1, rest->text + rest->len) : NULL;
	if (!close)
		return script_fault(r, place(rest, open),
				    "expected [VALUE] there, as in 'set map.since[arg0] = nsecs'");
	parts.args = span_trim((struct span){.at = open + 1, .len = (size_t)(close - open - 1)});
	parts.args_at = place(rest, parts.args.at);
	*end = close + 1;
	n = script_parse_probe(r, &parts, &step->on);
	if (n == 0 && step->on.n_args != 1)
		return script_fault(r, place(rest, open), "expected one value in [ ]");
	return n;
}

static int no_variable(struct script_reader *r, const char *at)
{
	return script_fault(r, at,
			    "expected a variable, as in 'set global.n = 1', 'set thread.since = "
			    "nsecs' or 'set map.since[arg0] = nsecs'");
}

/* global.NAME, thread.NAME or map.NAME[VALUE]: its number. */
static int parse_variable(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	struct probe_scope *scope = &r->script->scope;
	struct span word = next_word(rest, 0);
	const char *name, *end;
	size_t kind = 0, len;
	int n;

	for (; kind < VARIABLE_KINDS; kind++) {
		const char *own = probe_variable_word((enum probe_variable_kind)kind);

		if (word.len > strlen(own) && starts_with(word.at, own) &&
		    word.at[strlen(own)] == '.')
			break;
	}
	if (kind == VARIABLE_KINDS)
		return no_variable(r, place(rest, word.at));
	step->kind = (enum probe_variable_kind)kind;
	name = word.at + strlen(probe_variable_word(step->kind)) + 1;
	len = ident_len(name);
	if (!len)
		return no_variable(r, place(rest, word.at));
	n = probe_variable(&scope->names[kind], scope->max, name, len);
	if (n < 0)
		return script_fault(r, place(rest, word.at),
				    "too many variables: expected at most %d",
				    SCRIPT_VARIABLES_MAX);
	step->variable = (uint32_t)n;
	r->variables[kind][n].set = true;
	end = name + len;
	n = kind == VARIABLE_MAP ? parse_map_key(r, rest, &end, step) : 0;
	if (n == 0)
		memset(rest->text + (word.at - rest->text), ' ', (size_t)(end - word.at));
	return n;
}

static int parse_set(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	int n = parse_variable(r, rest, step);
	struct span left;

	if (n < 0)
		return n;
	left = span_trim(span_of(rest));
	step->adds = left.len > 1 && starts_with(left.at, "+=");
	if (!left.len || (!step->adds && *left.at != '='))
		return script_fault(r, place(rest, left.at),
				    "expected = or += behind the variable");
	memset(rest->text + (left.at - rest->text), ' ', step->adds ? 2 : 1);
	n = parse_rest(r, rest, &step->spec);
	if (n == 0 && (step->spec.n_args != 1 || step->spec.n_by))
		return script_fault(r, rest->at, "expected one value for the variable");
	return n;
}

static int parse_arm(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	struct span word = next_word(rest, 0), more;
	struct script_state *state;
	int n;

	step->state = script_state(r, (struct span){.at = place(rest, word.at), .len = word.len});
	if (!step->state)
		return -EINVAL;
	memset(rest->text + (word.at - rest->text), ' ', word.len);
	state = &r->script->states[step->state - 1];
	more = next_word(rest, 0);
	if (step->verb == SCRIPT_ARM)
		state->armed = true;
	if (step->verb == SCRIPT_ARM && more.len == strlen("per-thread") &&
	    starts_with(more.at, "per-thread")) {
		state->per_thread = true;
		memset(rest->text + (more.at - rest->text), ' ', more.len);
	}
	n = parse_rest(r, rest, &step->spec);
	return n < 0 ? n : expect_nothing(r, step, rest);
}

static int parse_show(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	struct span word;
	int n;

	while ((word = next_word(rest, 0)).len && !(word.len == 2 && starts_with(word.at, "if"))) {
		autofree char *name = strndup(word.at, word.len);

		if (!name)
			return out_of_memory(r);
		if (ident_len(name) != word.len)
			return script_fault(
				r, place(rest, word.at),
				"expected names of what is counted, or nothing for all");
		if (strv_add(&step->table_names, name) < 0)
			return out_of_memory(r);
		memset(rest->text + (word.at - rest->text), ' ', word.len);
	}
	n = parse_rest(r, rest, &step->spec);
	return n < 0 ? n : expect_nothing(r, step, rest);
}

static int parse_by_verb(struct script_reader *r, struct rest *rest, struct script_step *step)
{
	int n;

	if (script_is_table(step->verb))
		return parse_table(r, rest, step);
	switch (step->verb) {
	case SCRIPT_WATCH:
		return parse_watch(r, rest, step);
	case SCRIPT_PRINT:
		return parse_print(r, rest, step);
	case SCRIPT_FLOW:
		return parse_flow(r, rest, step);
	case SCRIPT_START:
		return parse_start(r, rest, step);
	case SCRIPT_SET:
		return parse_set(r, rest, step);
	case SCRIPT_ARM:
	case SCRIPT_DISARM:
		return parse_arm(r, rest, step);
	case SCRIPT_SHOW:
	case SCRIPT_CLEAR:
		return parse_show(r, rest, step);
	default:
		n = parse_rest(r, rest, &step->spec);
		return n < 0 ? n : expect_nothing(r, step, rest);
	}
}

int script_parse_action(struct script_reader *r, struct span text, struct script_step *step)
{
	const char *end = span_find(text, " \t\n\r\"");
	autofree char *word = strndup(text.at, (size_t)(end - text.at)), *copy = NULL;
	struct rest rest = {.at = end, .len = text.len - (size_t)(end - text.at)};
	const char *near;
	size_t i = 0;

	copy = strndup(end, rest.len);
	if (!word || !copy)
		return out_of_memory(r);
	while (i < ARRAY_SIZE(verbs) && !streq(verbs[i], word))
		i++;
	if (i < ARRAY_SIZE(verbs)) {
		step->verb = (enum script_verb)i;
		rest.text = copy;
		return parse_by_verb(r, &rest, step);
	}
	near = nearest_word(word, verbs, ARRAY_SIZE(verbs));
	return script_fault(
		r, text.at,
		"'%.40s' is no action: expected watch, print, flow, count, hist, stats, "
		"latency, start, set, arm, disarm, show, clear or exit%s%s%s",
		word, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
