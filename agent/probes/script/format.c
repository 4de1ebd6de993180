// SPDX-License-Identifier: GPL-2.0-or-later
/* The text of `print`: what is written as it is, and values. */
#include "probes/script/priv.h"

#define WIDTH_MAX 256

void script_format_free(struct script_format *f)
{
	for (size_t i = 0; f->v && i <= f->n_values; i++)
		free(f->v[i].text);
	free(f->v);
	*f = (struct script_format){0};
}

/* Behind a %: flags, a width and a letter. Where it ends, NULL: it is none. */
static const char *read_conversion(const char *s, struct script_piece *p)
{
	size_t n = 0;

	for (; *s && strchr("-0+", *s) && n < sizeof(p->how) - 1; s++)
		p->how[n++] = *s;
	for (size_t digits = 0; *s >= '0' && *s <= '9' && digits < 3 && n < sizeof(p->how) - 1;
	     digits++)
		p->how[n++] = *s++;
	while (*s == 'l') /* as C has it for numbers of 64 bits, which all are */
		s++;
	if (!*s || !strchr("diuxcs", *s))
		return NULL;
	p->type = *s == 'i' ? 'd' : *s;
	return s + 1;
}

static bool is_too_wide(const char *how)
{
	return strtoul(how + strspn(how, "-0+"), NULL, 10) > WIDTH_MAX;
}

/* The text up to the next value, of which %% is one character. */
static const char *read_text(const char *s, char *to)
{
	for (; *s && (*s != '%' || s[1] == '%'); s++) {
		*to++ = *s;
		s += *s == '%';
	}
	*to = '\0';
	return s;
}

int script_parse_format(struct script_reader *r, const char *at, const char *text,
			struct script_format *ret)
{
	const char *s = text;

	ret->v = calloc(PROBE_ARGS_MAX + 1, sizeof(*ret->v));
	if (!ret->v)
		return error_set(r->e, -ENOMEM, "there is no memory left to read the script");
	for (;;) {
		struct script_piece *p = &ret->v[ret->n_values];

		p->text = malloc(strlen(s) + 1);
		if (!p->text)
			return error_set(r->e, -ENOMEM,
					 "there is no memory left to read the script");
		s = read_text(s, p->text);
		if (!*s)
			return 0;
		if (ret->n_values == PROBE_ARGS_MAX)
			return script_fault(r, at, "expected at most %d values in the text",
					    PROBE_ARGS_MAX);
		s = read_conversion(s + 1, p);
		if (!s || is_too_wide(p->how))
			return script_fault(r, at,
					    "a %% stands for a value: expected %%d, %%u, %%x, %%c "
					    "or %%s, perhaps with a width of at most %d as in "
					    "%%-16s, or %%%%",
					    WIDTH_MAX);
		ret->n_values++;
	}
}
