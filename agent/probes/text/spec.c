// SPDX-License-Identifier: GPL-2.0-or-later
/* Probes from their text: a target, arguments, a condition and keys. */
#include "probes/text/priv.h"

static void args_free(struct probe_arg *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].text);
		expr_free(&v[i].expr);
		expr_free(&v[i].length);
	}
}

void probe_spec_free(struct probe_spec *p)
{
	free(p->name);
	free(p->name_group);
	free(p->file);
	free(p->symbol);
	free(p->group);
	free(p->source);
	args_free(p->args, p->n_args);
	args_free(p->by, p->n_by);
	expr_free(&p->condition);
	*p = (struct probe_spec){0};
}

static bool at_word(const char *s, const char *word, const char *ends)
{
	size_t len = strlen(word);

	return strncmp(s, word, len) == 0 &&
	       (!s[len] || blank_char(s[len]) || strchr(ends, s[len]));
}

static bool at_if(const char *s)
{
	return at_word(s, "if", "(!\"");
}

static bool at_by(const char *s)
{
	return at_word(s, "by", "");
}

/* What may come behind an argument. */
static int expect_end_of_arg(struct probe_parser *p)
{
	if (!*p->s || blank_char(*p->s) || *p->s == ',')
		return 0;
	if (*p->s == '=')
		return probe_fault(p, p->s, "expected NAME= before the value, or == behind 'if'");
	return probe_fault(p, p->s, "expected an operator, ':TYPE' or a blank behind the argument");
}

static int check_name(struct probe_parser *p, const struct probe_arg *v, size_t n, const char *at)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].name && v[n].name && streq(v[i].name, v[n].name))
			return probe_fault(p, at, "two arguments have that name: expected another");
	return 0;
}

/* Arguments up to the end, 'if' or 'by'. */
static int parse_list(struct probe_parser *p, struct probe_arg *v, size_t *n, size_t max)
{
	while (*(p->s = skip_blanks(p->s)) && !at_if(p->s) && !at_by(p->s)) {
		const char *at = p->s;
		int r;

		if (*n == max)
			return probe_fault(p, at, "expected at most %zu %s", max,
					   v == p->spec->by ? "keys" : "arguments");
		(*n)++; /* its parts are freed with the probe whatever happens */
		r = probe_arg(p, &v[*n - 1]);
		if (r == 0)
			r = expect_end_of_arg(p);
		if (r == 0)
			r = check_name(p, v, *n - 1, at);
		if (r < 0)
			return r;
		at = skip_blanks(p->s);
		if (*at != ',')
			continue;
		p->s = skip_blanks(at + 1);
		if (!*p->s || *p->s == ',' || at_if(p->s) || at_by(p->s))
			return probe_fault(p, at, "expected an argument behind the comma");
	}
	return 0;
}

static int parse_condition(struct probe_parser *p)
{
	enum expr_class class;
	bool fetched;
	int r;

	if (p->spec->condition.n)
		return probe_fault(p, p->s, "expected one condition: join two with &&");
	p->s = skip_blanks(p->s + strlen("if"));
	r = probe_expr(p, true, &p->spec->condition, &class, &fetched);
	if (r < 0)
		return r;
	p->s = skip_blanks(p->s);
	if (!*p->s || at_by(p->s))
		return 0;
	if (*p->s == '=')
		return probe_fault(p, p->s, "= compares nothing: expected ==");
	return probe_fault(p, p->s, "expected an operator (== != < <= > >= & && ||) or 'by'");
}

static int parse_by(struct probe_parser *p)
{
	const char *at = p->s;
	int r;

	if (p->spec->n_by)
		return probe_fault(p, at, "expected one 'by' with all keys behind it");
	p->s += strlen("by");
	r = parse_list(p, p->spec->by, &p->spec->n_by, PROBE_BY_MAX);
	if (r == 0 && !p->spec->n_by)
		return probe_fault(p, at, "expected keys behind it, as by comm pid");
	return r;
}

static int parse_all(struct probe_parser *p)
{
	int r;

	for (const char *s = p->text; *s; s++)
		if (((unsigned char)*s < ' ' && !blank_char(*s)) || *s == 127)
			return probe_fault(p, s, "expected text without control characters");
	p->s = skip_blanks(p->text);
	r = probe_target(p);
	if (r == 0)
		r = parse_list(p, p->spec->args, &p->spec->n_args, PROBE_ARGS_MAX);
	while (r == 0 && *p->s)
		r = at_if(p->s) ? parse_condition(p) : parse_by(p);
	return r;
}

static int too_long(struct error *e)
{
	return error_set(e, -EINVAL, "the probe is too long: expected at most %d characters",
			 PROBE_TEXT_MAX);
}

/* What is written of it is read again somewhere, so it has to fit too: escapes make it longer. */
static int check_length(struct probe_parser *p)
{
	autofree char *text = probe_format(p->spec);

	if (!text)
		return probe_no_memory(p);
	return strlen(text) > PROBE_TEXT_MAX ? too_long(p->error) : 0;
}

int probe_parse_in(const char *text, struct probe_scope *scope, struct probe_spec *ret,
		   struct error *e)
{
	struct probe_spec spec = {0};
	struct probe_parser p = {
		.text = text, .s = text, .spec = &spec, .error = e, .scope = scope};
	int r;

	*ret = (struct probe_spec){0};
	if (strnlen(text, PROBE_TEXT_MAX + 1) > PROBE_TEXT_MAX)
		return too_long(e);
	r = parse_all(&p);
	if (r == 0)
		r = check_length(&p);
	if (r < 0)
		probe_spec_free(&spec);
	else
		*ret = spec;
	return r;
}

int probe_parse(const char *text, struct probe_spec *ret, struct error *e)
{
	return probe_parse_in(text, NULL, ret, e);
}

void probe_scope_free(struct probe_scope *s)
{
	for (size_t i = 0; i < VARIABLE_KINDS; i++)
		strv_free(&s->names[i]);
	*s = (struct probe_scope){0};
}

const char *probe_variable_word(enum probe_variable_kind kind)
{
	static const char *const words[] = {"global", "thread", "map"};

	return words[kind];
}

int probe_variable(struct strv *names, size_t max, const char *name, size_t len)
{
	autofree char *copy = NULL;

	for (size_t i = 0; i < names->n; i++)
		if (strlen(names->v[i]) == len && !memcmp(names->v[i], name, len))
			return (int)i + 1;
	if (names->n + 1 >= max)
		return -E2BIG;
	copy = strndup(name, len);
	if (!copy || strv_add(names, copy) < 0)
		return -ENOMEM;
	return (int)names->n;
}

int probe_parse_words(const char *const *words, size_t n, struct probe_spec *p, struct error *e)
{
	char text[PROBE_TEXT_MAX + 1];
	size_t len = 0;

	*p = (struct probe_spec){0};
	for (size_t i = 0; i < n; i++) {
		size_t word = strlen(words[i]);

		if (word + (i > 0) > PROBE_TEXT_MAX - len)
			return too_long(e);
		if (i)
			text[len++] = ' ';
		memcpy(text + len, words[i], word);
		len += word;
	}
	text[len] = '\0';
	return probe_parse(text, p, e);
}
