/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/options.h"

#include "base/near.h"
#include "config/spec.h"

#define HELP_COLUMN 28
#define HELP_WIDTH  80

/* The command line, and what it is read into. */
struct cursor {
	const struct opt_syntax *syntax;
	const struct opt_common *common;
	void *to;
	int argc, at;
	char **argv;
};

const struct opt *opt_own(const struct opt_syntax *s, size_t i, size_t *at)
{
	for (size_t p = 0; p < OPT_PARTS && s->own[p].v; p++) {
		const struct opt_part *part = &s->own[p];

		if (i < part->n) {
			if (at)
				*at = part->at + part->v[i].at;
			return &part->v[i];
		}
		i -= part->n;
	}
	return NULL;
}

static size_t count_own(const struct opt_syntax *s)
{
	size_t n = 0;

	for (size_t p = 0; p < OPT_PARTS && s->own[p].v; p++)
		n += s->own[p].n;
	return n;
}

/* Own options come first; *to is where the value goes. */
static const struct opt *entry(const struct cursor *c, size_t i, void **to)
{
	size_t at, n = count_own(c->syntax);

	if (i < n) {
		const struct opt *o = opt_own(c->syntax, i, &at);

		*to = (char *)c->to + at;
		return o;
	}
	i -= n;
	if (i >= c->common->part.n)
		return NULL;
	*to = (char *)c->common->to + c->common->part.v[i].at;
	return &c->common->part.v[i];
}

static const struct opt *find_long(const struct cursor *c, const char *name, size_t len, void **to)
{
	const struct opt *o;

	for (size_t i = 0; (o = entry(c, i, to)); i++)
		if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

static const struct opt *find_short(const struct cursor *c, char letter, void **to)
{
	const struct opt *o;

	for (size_t i = 0; (o = entry(c, i, to)); i++)
		if (o->letter && o->letter == letter)
			return o;
	return NULL;
}

/* What is written instead of a letter, or of a name (letter 0). NULL: nobody knows. */
static const char *instead(const struct cursor *c, const char *name, char letter)
{
	const struct opt_elsewhere *x = c->syntax->elsewhere;

	for (; x && x->name; x++)
		if (letter ? x->letter == letter : streq(x->name, name))
			return x->here;
	return NULL;
}

static int unknown_long(const struct cursor *c, const char *name, struct error *e)
{
	const char *here = instead(c, name, 0);
	size_t n = count_own(c->syntax) + c->common->part.n;
	autofree const char **names = calloc(n + 1, sizeof(*names));
	const char *near = NULL;
	void *to;

	if (here)
		return error_set(e, -EINVAL, "there is no option --%.60s: %s", name, here);
	for (size_t i = 0; names && i < n; i++)
		names[i] = entry(c, i, &to)->name;
	if (names)
		near = nearest_word(name, names, n);
	if (near)
		return error_set(e, -EINVAL, "there is no option --%.60s: did you mean --%s?", name,
				 near);
	return error_set(e, -EINVAL, "there is no option --%.60s", name);
}

/* --- values --- */

static int set_choice(const struct opt *o, void *to, const char *dashed, const char *value,
		      struct error *e)
{
	const char *word = words_choice(o->words, 0), *next;
	char list[128] = "";

	for (int n = 0; word; n++, word = next) {
		next = words_choice(o->words, (size_t)n + 1);
		if (streq(word, value)) {
			*(int *)to = n;
			return 0;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 n == 0 ? ""
			 : next ? ", "
				: " or ",
			 word);
	}
	return error_set(e, -EINVAL, "%s cannot be '%.60s': give %s", dashed, value, list);
}

static int set_number(void *to, const char *dashed, const char *value, struct error *e)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 10);
	/* strtoull takes blanks and signs */
	if (value[0] < '0' || value[0] > '9' || *end || errno || n > UINT32_MAX)
		return error_set(e, -EINVAL, "%s cannot be '%.60s': give a whole number", dashed,
				 value);
	*(uint32_t *)to = (uint32_t)n;
	return 0;
}

static int set_duration(const struct opt *o, void *to, const char *dashed, const char *value,
			struct error *e)
{
	struct error why = {0};

	if (spec_parse_duration_ms(value, to, &why))
		return error_set(e, -EINVAL,
				 "%s cannot be '%.60s': give a time like 5s, 300ms or 2m", dashed,
				 value);
	if (o->type == OPT_SPAN && !*(uint32_t *)to)
		return error_set(e, -EINVAL, "%s cannot be 0", dashed);
	return 0;
}

static int set_value(const struct opt *o, void *to, const char *dashed, const char *value,
		     struct error *e)
{
	if (!*value)
		return error_set(e, -EINVAL, "%s needs a value", dashed);
	switch (o->type) {
	case OPT_FLAG:
		break;
	case OPT_MAYBE:
	case OPT_STRING:
		*(const char **)to = value;
		return 0;
	case OPT_STRINGS:
		if (strv_add(to, value))
			return error_set(e, -ENOMEM, "out of memory");
		return 0;
	case OPT_CHOICE:
		return set_choice(o, to, dashed, value, e);
	case OPT_NUMBER:
		return set_number(to, dashed, value, e);
	case OPT_DURATION:
	case OPT_SPAN:
		return set_duration(o, to, dashed, value, e);
	}
	return error_set(e, -EINVAL, "%s takes no value", dashed);
}

static void set_flag(const struct opt *o, void *to)
{
	if (o->type == OPT_MAYBE)
		*(const char **)to = "";
	else
		*(bool *)to = true;
}

/* The next argument as the value of an option; "--" is none: a forgotten value must not make the
 * command to run disappear. */
static const char *next_value(struct cursor *c)
{
	if (c->at + 1 >= c->argc || streq(c->argv[c->at + 1], "--"))
		return "";
	return c->argv[++c->at];
}

static int take_long(struct cursor *c, struct error *e)
{
	const char *name = c->argv[c->at] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	void *to;
	const struct opt *o = find_long(c, name, len, &to);
	char dashed[80];

	snprintf(dashed, sizeof(dashed), "--%.*s", (int)(len < 60 ? len : 60), name);
	if (!o)
		return unknown_long(c, dashed + 2, e);
	if (opt_takes_next(o) || (equals && o->type == OPT_MAYBE))
		return set_value(o, to, dashed, equals ? equals + 1 : next_value(c), e);
	if (equals)
		return error_set(e, -EINVAL, "%s takes no value", dashed);
	set_flag(o, to);
	return 0;
}

static int unknown_short(const struct cursor *c, char letter, struct error *e)
{
	const char *here = instead(c, "", letter);

	if (here)
		return error_set(e, -EINVAL, "there is no option -%c: %s", letter, here);
	return error_set(e, -EINVAL, "there is no option %.60s", c->argv[c->at]);
}

/* -f, -fn3, -n3, -n=3, -n 3 */
static int take_short(struct cursor *c, struct error *e)
{
	for (const char *p = c->argv[c->at] + 1; *p; p++) {
		void *to;
		const struct opt *o = find_short(c, *p, &to);
		char dashed[3] = {'-', *p};

		if (!o)
			return unknown_short(c, *p, e);
		if (opt_takes_next(o)) {
			if (p[1])
				return set_value(o, to, dashed, p + 1 + (p[1] == '='), e);
			return set_value(o, to, dashed, next_value(c), e);
		}
		set_flag(o, to);
	}
	return 0;
}

int opt_parse(const struct opt_syntax *s, void *to, const struct opt_common *common, int argc,
	      char **argv, struct error *e)
{
	struct cursor c = {
		.syntax = s,
		.common = common,
		.to = to,
		.argc = argc,
		.argv = argv,
	};
	int words = 0;

	for (; c.at < argc; c.at++) {
		char *arg = argv[c.at];
		int r;

		if (streq(arg, "--")) {
			c.at++;
			break;
		}
		if (arg[0] != '-' || !arg[1]) { /* "-" alone is a word: standard input */
			if (s->command_follows)
				break;
			argv[words++] = arg;
			continue;
		}
		r = arg[1] == '-' ? take_long(&c, e) : take_short(&c, e);
		if (r)
			return r;
	}
	while (c.at < argc)
		argv[words++] = argv[c.at++];
	return words;
}

/* --- help --- */

void opt_wrap(const char *text, size_t at, size_t indent, FILE *to)
{
	size_t column = at;
	bool first = true; /* of its line */

	while (*text) {
		size_t len = strcspn(text, " \n");

		if (len) {
			if (!first && column + 1 + len > HELP_WIDTH) {
				fprintf(to, "\n%*s", (int)indent, "");
				column = indent;
				first = true;
			}
			fprintf(to, "%s%.*s", first ? "" : " ", (int)len, text);
			column += len + !first;
			first = false;
			text += len;
		}
		if (*text == '\n') {
			fprintf(to, "\n%*s", text[1] && text[1] != '\n' ? (int)indent : 0, "");
			column = indent;
			first = true;
		}
		text += *text != 0;
	}
	putc('\n', to);
}

static void help_entry(const struct opt *o, FILE *to)
{
	char left[80];
	int n = snprintf(left, sizeof(left), "  %c%c%s --%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
			 o->value && o->type != OPT_MAYBE ? " " : "", o->value ? o->value : "");

	fputs(left, to);
	if (n > HELP_COLUMN - 2) {
		putc('\n', to);
		n = 0;
	}
	fprintf(to, "%*s", HELP_COLUMN - n, "");
	opt_wrap(o->help, HELP_COLUMN, HELP_COLUMN, to);
}

void opt_help(const struct opt_syntax *s, const struct opt_common *common, FILE *to)
{
	size_t own = count_own(s);

	fprintf(to, "Usage: %s\n\n", s->usage);
	opt_wrap(s->about, 0, 0, to);
	if (own)
		fputs("\nOptions:\n", to);
	for (size_t i = 0; i < own; i++)
		help_entry(opt_own(s, i, NULL), to);
	fputs(own ? "\nOptions of every command:\n" : "\nOptions:\n", to);
	for (size_t i = 0; i < common->part.n; i++)
		help_entry(&common->part.v[i], to);
}
