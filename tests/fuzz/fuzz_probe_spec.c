// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any text as a probe. What is taken has a text that is taken again, is equal and has the same
 * text; what is refused is explained. Words cut anywhere at a blank mean the same as the whole.
 */
#include "probes/text/spec.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

/* Nothing that a terminal would obey. */
static void check_text(const char *s)
{
	check(*s);
	for (; *s; s++)
		check((unsigned char)*s >= ' ' && *s != 127);
}

/* Operands are there for every operator, and one value is left. */
static void check_expr(const struct expr *e)
{
	size_t depth = 0;

	check(e->n <= PROBE_EXPR_MAX);
	for (size_t i = 0; i < e->n; i++) {
		enum expr_op op = e->v[i].op;
		size_t takes = op >= EXPR_INDEX && op <= EXPR_LOR ? 2 : op >= EXPR_ENTRY ? 1 : 0;

		check(depth >= takes);
		depth += 1 - takes;
	}
	check(depth == (e->n ? 1 : 0));
}

static void check_args(const struct probe_arg *v, size_t n, size_t max)
{
	check(n <= max);
	for (size_t i = 0; i < n; i++) {
		check(v[i].expr.n > 0 && v[i].text && v[i].size <= PROBE_FETCH_MAX);
		check_text(v[i].text);
		check_expr(&v[i].expr);
	}
}

static void check_spec(const struct probe_spec *p)
{
	autofree char *text = probe_format(p), *again = NULL;
	struct probe_spec second;
	struct error e;

	check(text != NULL);
	check_text(text);
	check(starts_with(text, p->name ? "" : probe_kind_name(p->kind)));
	check_args(p->args, p->n_args, PROBE_ARGS_MAX);
	check_args(p->by, p->n_by, PROBE_BY_MAX);
	check_expr(&p->condition);
	check(probe_parse(text, &second, &e) == 0);
	check(probe_spec_eq(p, &second));
	again = probe_format(&second);
	check(again && streq(text, again));
	probe_spec_free(&second);
}

/* The same text, cut at some of its blanks. */
static void check_words(const char *text, uint8_t cuts, const struct probe_spec *p, int expected)
{
	autofree char *copy = strdup(text);
	const char *words[WORDS_MAX];
	struct probe_spec other;
	struct error e;
	size_t n = 1;

	check(copy != NULL);
	words[0] = copy;
	for (size_t i = 0; copy[i] && n < WORDS_MAX; i++) {
		if (copy[i] == ' ' && (cuts >> i % 8 & 1)) {
			copy[i] = '\0';
			words[n++] = copy + i + 1;
		}
	}
	check(probe_parse_words(words, n, &other, &e) == expected);
	check(expected || probe_spec_eq(p, &other));
	probe_spec_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = NULL;
	struct error e = {0};
	struct probe_spec p;
	int r;

	if (!size)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	check(text != NULL);
	r = probe_parse(text, &p, &e);
	check_words(text, data[0], &p, r);
	if (r < 0) {
		check(r == -EINVAL && e.code == r);
		check_text(e.text);
		return 0;
	}
	check_spec(&p);
	probe_spec_free(&p);
	return 0;
}
