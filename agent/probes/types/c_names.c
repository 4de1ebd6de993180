// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/types/c_names.h"

#include <ctype.h>

#define LINES_MAX 16 /* of a declaration, in front of the name */

struct scanner {
	const char *s, *end;
};

static bool is_word(char c)
{
	return c == '_' || isalnum((unsigned char)c);
}

/* Comments count as blanks; of a text in quotes only the end matters. */
static void skip_to(struct scanner *x, const char *end_mark)
{
	size_t n = strlen(end_mark);

	while ((size_t)(x->end - x->s) >= n && memcmp(x->s, end_mark, n) != 0)
		x->s++;
	x->s = (size_t)(x->end - x->s) >= n ? x->s + n : x->end;
}

static void skip_quoted(struct scanner *x, char quote)
{
	for (x->s++; x->s < x->end && *x->s != quote; x->s++)
		if (*x->s == '\\' && x->s + 1 < x->end)
			x->s++;
	x->s += x->s < x->end;
}

/* The next word or sign. False: there is none. */
static bool next_token(struct scanner *x, struct c_name *ret)
{
	while (x->s < x->end) {
		bool two = x->end - x->s > 1;

		if (isspace((unsigned char)*x->s))
			x->s++;
		else if (two && x->s[0] == '/' && x->s[1] == '*')
			skip_to(x, "*/");
		else if (two && x->s[0] == '/' && x->s[1] == '/')
			skip_to(x, "\n");
		else if (*x->s == '"' || *x->s == '\'')
			skip_quoted(x, *x->s);
		else
			break;
	}
	if (x->s >= x->end)
		return false;
	*ret = (struct c_name){x->s, 1};
	if (!is_word(*x->s)) {
		x->s++;
		return true;
	}
	while (x->s < x->end && is_word(*x->s))
		x->s++;
	ret->len = (size_t)(x->s - ret->s);
	return true;
}

static bool is(const struct c_name *t, const char *word)
{
	return t->len == strlen(word) && memcmp(t->s, word, t->len) == 0;
}

static bool is_one_of(const struct c_name *t, const char *const *words)
{
	for (; *words; words++)
		if (is(t, *words))
			return true;
	return false;
}

/* --- one parameter --- */

struct parameter {
	struct c_name name, last;
	size_t words;	/* that may be a type or a name */
	bool fixed;	/* a function pointer's, or there is a default behind it */
	bool attribute; /* what is in parentheses now is none of it */
	bool any;
};

static const char *const qualifiers[] = {
	"const",	 "volatile", "restrict",     "register",     "__const", "__restrict",
	"__extension__", "_Atomic",  "__volatile__", "__restrict__", NULL};
static const char *const types[] = {"void",	"char",	  "short",    "int",	  "long",
				    "float",	"double", "bool",     "_Bool",	  "signed",
				    "unsigned", "auto",	  "_Complex", "__int128", NULL};
static const char *const tags[] = {"struct", "union", "enum", "class", "typename", NULL};

/* Outside of all parentheses but the list's. */
static void take(struct parameter *p, const struct c_name *t)
{
	p->any = true;
	if (p->fixed)
		return;
	if (is(t, "=")) {
		p->fixed = true;
	} else if (is(t, "*") || is(t, "&")) {
		p->name.len = 0;
	} else if (is_word(*t->s) && !is_one_of(t, qualifiers)) {
		p->attribute = t->len > 6 && memcmp(t->s, "__attr", 6) == 0;
		if (p->attribute)
			return;
		p->name.len = 0;
		if (p->words++ && !is_one_of(t, types) && !is_one_of(&p->last, tags))
			p->name = *t;
		p->last = *t;
	}
}

/* In parentheses of its own: "(*f)" is a name. */
static void take_inner(struct parameter *p, const struct c_name *before, const struct c_name *t)
{
	if (p->fixed || p->attribute || !is_word(*t->s) || is_one_of(t, qualifiers))
		return;
	if (is(before, "*") || is(before, "^")) {
		p->name = *t;
		p->fixed = true;
	}
}

/* --- the list --- */

static void add(const struct parameter *p, struct c_name *v, size_t max, int *n)
{
	if ((size_t)*n < max)
		v[*n] = p->name;
	++*n;
}

/* Behind the opening parenthesis. */
static int read_list(struct scanner *x, struct c_name *v, size_t max)
{
	struct parameter p = {0};
	struct c_name t, before = {"", 0};
	unsigned depth = 1;
	int n = 0;

	while (next_token(x, &t) && n < 1000) {
		if (is(&t, "(") || is(&t, "[") || is(&t, "{")) {
			depth++;
		} else if (is(&t, ")") || is(&t, "]") || is(&t, "}")) {
			if (--depth == 0) {
				bool nothing = !p.any || (p.words == 1 && is(&p.last, "void") &&
							  !n && !p.fixed && !is(&before, "*"));

				if (!nothing && !is(&before, "."))
					add(&p, v, max, &n);
				return n;
			}
		} else if (depth == 1 && *t.s == ',') {
			add(&p, v, max, &n);
			p = (struct parameter){0};
		} else if (depth == 1) {
			take(&p, &t);
		} else if (depth == 2) {
			take_inner(&p, &before, &t);
		}
		before = t;
	}
	return -ENOENT;
}

int c_parameter_names(const char *text, size_t len, uint32_t line, const char *function,
		      struct c_name *v, size_t max)
{
	struct scanner x = {text, text + len};
	const char *stop;
	struct c_name t;

	for (uint32_t i = 1; i < line; i++) {
		x.s = memchr(x.s, '\n', (size_t)(x.end - x.s));
		if (!x.s)
			return -ENOENT;
		x.s++;
	}
	stop = x.s;
	for (int i = 0; i < LINES_MAX && stop < x.end; i++) {
		stop = memchr(stop, '\n', (size_t)(x.end - stop));
		stop = stop ? stop + 1 : x.end;
	}
	while (next_token(&x, &t) && t.s < stop) {
		struct scanner at = x;
		struct c_name open;

		if (is(&t, function) && next_token(&at, &open) && is(&open, "("))
			return read_list(&at, v, max);
	}
	return -ENOENT;
}
