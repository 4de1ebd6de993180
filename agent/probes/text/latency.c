// SPDX-License-Identifier: GPL-2.0-or-later
/* The text of what measures time: of a function, or between two probes. */
#include "probes/text/latency.h"

/* --- words outside of quotes and parentheses --- */

static size_t skip_quoted(const char *text, size_t at)
{
	char quote = text[at++];

	while (text[at] && text[at] != quote)
		at += text[at] == '\\' && text[at + 1] ? 2 : 1;
	return text[at] ? at + 1 : at;
}

/* Where a word stands by itself from `at` on, or where the text ends. */
static size_t find_word(const char *text, size_t at, const char *word)
{
	size_t n = strlen(word);
	int depth = 0;

	while (text[at]) {
		if ((at == 0 || text[at - 1] == ' ') && !depth && starts_with(text + at, word) &&
		    (text[at + n] == ' ' || !text[at + n]))
			return at;
		if (text[at] == '"' || text[at] == '\'') {
			at = skip_quoted(text, at);
			continue;
		}
		depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
		at++;
	}
	return at;
}

static size_t earlier(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Takes "on VALUE" out of a probe's text. The value gets a probe of its own, so that it is parsed
 * and compiled as any. */
static int take_on(char *text, struct probe_spec *on, struct error *e)
{
	size_t at = find_word(text, 0, "on"), end, before;
	autofree char *whole = NULL;

	if (!text[at])
		return 0;
	end = earlier(find_word(text, at + 2, "if"), find_word(text, at + 2, "by"));
	before = earlier(at, earlier(find_word(text, 0, "if"), find_word(text, 0, "by")));
	if (asprintf(&whole, "%.*s%.*s", (int)before, text, (int)(end - at - 2), text + at + 2) <
	    0) {
		whole = NULL;
		return error_set(e, -ENOMEM, "out of memory");
	}
	memmove(text + at, text + end, strlen(text + end) + 1);
	if (probe_parse(whole, on, e) < 0)
		return -EINVAL;
	if (on->n_args == 1)
		return 0;
	return error_set(e, -EINVAL,
			 "'on' names what both probes have in common: expected one value, as in "
			 "'on arg0'");
}

/* --- the two forms --- */

/* The time of a function is measured at its return, whichever of the two was named. */
static const char *name_return(const char *text, char *buf, size_t size)
{
	static const char *const names[][2] = {
		{"uprobe:", "uretprobe:"},
		{"u:", "uretprobe:"},
		{"kprobe:", "kretprobe:"},
		{"k:", "kretprobe:"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (starts_with(text, names[i][0]) &&
		    (size_t)snprintf(buf, size, "%s%s", names[i][1], text + strlen(names[i][0])) <
			    size)
			return buf;
	return text;
}

static int refuse_values(const struct probe_spec *spec, struct error *e)
{
	return error_set(e, -EINVAL,
			 "what is measured is the time, so there is no '%.60s': expected values "
			 "only behind 'by'",
			 spec->args[0].text);
}

static int parse_function(const char *text, struct latency *l, struct error *e)
{
	char buf[PROBE_TEXT_MAX + 8];
	struct probe_spec *spec = &l->specs[0];
	int r = probe_parse(name_return(text, buf, sizeof(buf)), spec, e);

	if (r < 0)
		return r;
	l->n = 1;
	if (spec->n_args)
		return refuse_values(spec, e);
	if (spec->kind == PROBE_URETPROBE || spec->kind == PROBE_KRETPROBE)
		return 0;
	if (text[0] == 'p' && text[1] && strchr(": ", text[1]))
		return error_set(e, -EINVAL,
				 "a line that begins with 'p' names an entry, and time is measured "
				 "at a return: expected 'r'");
	return error_set(e, -EINVAL,
			 "a %s has no return, and so no time of its own: expected a function, or "
			 "'PROBE to PROBE' for the time between two probes",
			 probe_kind_name(spec->kind));
}

static int parse_pair(char *start, char *end, struct latency *l, struct error *e)
{
	int r = take_on(start, &l->on[1], e);

	l->n = 2;
	r = r < 0 ? r : take_on(end, &l->on[0], e);
	r = r < 0 ? r : probe_parse(end, &l->specs[0], e);
	r = r < 0 ? r : probe_parse(start, &l->specs[1], e);
	if (r < 0)
		return r;
	if (l->specs[0].n_args || l->specs[1].n_args)
		return refuse_values(&l->specs[l->specs[0].n_args ? 0 : 1], e);
	if (l->specs[1].n_by)
		return error_set(e, -EINVAL,
				 "'by' belongs to the second probe, where the time ends");
	return 0;
}

int latency_parse(const char *text, struct latency *l, struct error *e)
{
	autofree char *copy = strdup(text);
	char *end;
	size_t to;
	int r;

	*l = (struct latency){0};
	if (!copy)
		return error_set(e, -ENOMEM, "out of memory");
	to = find_word(copy, 0, "to");
	if (!copy[to]) {
		r = parse_function(copy, l, e);
	} else {
		end = copy + to + 2;
		end += strspn(end, " ");
		copy[to] = '\0';
		if (copy[strspn(copy, " ")] && *end)
			r = parse_pair(copy, end, l, e);
		else
			r = error_set(e, -EINVAL,
				      "'to' stands between two probes: expected one on each side");
	}
	if (r < 0)
		latency_free(l);
	return r;
}

void latency_free(struct latency *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->specs); i++) {
		probe_spec_free(&l->specs[i]);
		probe_spec_free(&l->on[i]);
	}
	*l = (struct latency){0};
}

/* --- writing --- */

/* " on VALUE", or nothing. */
static int put_on(FILE *f, const struct probe_spec *on)
{
	struct probe_spec bare = *on;
	autofree char *whole = NULL, *target = NULL;

	if (!on->n_args)
		return 0;
	bare.n_args = 0;
	whole = probe_format(on);
	target = probe_format(&bare);
	if (!whole || !target)
		return -ENOMEM;
	fprintf(f, " on %s", whole + strlen(target) + 1);
	return 0;
}

char *latency_format(const struct latency *l)
{
	autofree char *buf = NULL, *end = probe_format(&l->specs[0]), *start = NULL;
	size_t size;
	FILE *f;
	int r;

	if (l->n < 2 || !end)
		return take_ptr(&end);
	start = probe_format(&l->specs[1]);
	f = start ? open_memstream(&buf, &size) : NULL;
	if (!f)
		return NULL;
	fputs(start, f);
	r = put_on(f, &l->on[1]);
	fprintf(f, " to %s", end);
	r = r ? r : put_on(f, &l->on[0]);
	return fclose(f) == 0 && r == 0 ? take_ptr(&buf) : NULL;
}
