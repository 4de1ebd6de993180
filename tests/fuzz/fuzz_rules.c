// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any text or bytes as a rule, a rule file, a set or a saved list; the first byte chooses. What is
 * taken has a form that is taken again and is equal; what is refused is explained.
 */
#include "config/config.h"
#include "config/rule_file.h"

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

#define WORDS_MAX 128

static int parse_line(char *line, struct rule *r, struct error *e)
{
	const char *words[WORDS_MAX];
	char *word;
	size_t n = 0;

	while (n < WORDS_MAX && (word = strsep(&line, " ")))
		words[n++] = word;
	return rule_parse(words, n, r, e);
}

static void check_rule(const struct rule *r)
{
	autofree char *line = rule_format(r), *again = NULL;
	autofree char *words = line ? strdup(line) : NULL;
	struct rule copy, second;
	struct error e;

	check(words != NULL);
	check(parse_line(words, &second, &e) == 0);
	again = rule_format(&second);
	check(again && streq(line, again));
	check(rule_eq(r, &second));
	check(rule_copy(r, &copy) == 0 && rule_eq(r, &copy));
	rule_free(&copy);
	rule_free(&second);
}

static void fuzz_rule(const char *text, size_t len)
{
	autofree char *line = strndup(text, len);
	struct error e = {0};
	struct rule r;

	check(line != NULL);
	if (parse_line(line, &r, &e) < 0) {
		check(e.code < 0);
		check_text(e.text);
		return;
	}
	check_rule(&r);
	rule_free(&r);
}

/* What was saved is restored, and the same. */
static void check_list(const struct rule_list *l)
{
	autofree void *data = NULL, *second = NULL;
	struct timed_set timed[AX_TIMED_SETS];
	struct rule_list again, copy;
	struct strv names;
	size_t len, second_len;

	check(rule_list_check(l, NULL) == 0);
	check(rule_list_timed_sets(l, timed) <= AX_TIMED_SETS);
	for (size_t i = 0; i < l->n_rules; i++)
		check_rule(&l->rules[i]);
	check(rule_list_save(l, &data, &len) == 0);
	check(rule_list_restore(data, len, &again) == 0);
	check(rule_list_save(&again, &second, &second_len) == 0);
	check(len == second_len && memcmp(data, second, len) == 0);
	check(rule_list_copy(&again, &copy) == 0 && rule_list_eq(&again, &copy));
	check(rule_list_counter_names(l, &names) == 0 && names.n == l->n_rules + 1);
	strv_free(&names);
	rule_list_free(&copy);
	rule_list_free(&again);
}

static void fuzz_file(const char *text, size_t len)
{
	struct config_errors errs;
	struct rule_list l;

	if (rule_file_parse(text, len, DIRECTION_INGRESS, &l, &errs) == 0) {
		check(errs.n == 0);
		check_list(&l);
		rule_list_free(&l);
	} else {
		check(errs.n > 0);
		for (size_t i = 0; i < errs.n; i++) {
			check(errs.e[i].line >= 1 && errs.e[i].column >= 1);
			check_text(errs.e[i].found);
			check_text(errs.e[i].expected);
		}
	}
	config_errors_free(&errs);
}

/* Reading the same again, and taking it out, leaves what was there. */
static void fuzz_set(const char *text, size_t len, enum set_kind kind)
{
	struct rule_set_def s = {.kind = kind};
	struct error e = {0};
	size_t n, missing;

	if (set_parse(&s, text, len, "text", &e) < 0) {
		check(e.code < 0 && s.n == 0);
		check_text(e.text);
		return;
	}
	n = s.n;
	check(set_parse(&s, text, len, "text", &e) == 0 && s.n == n);
	for (size_t i = 1; i < n && kind == SET_PREFIXES; i++)
		check(prefix_cmp(&s.prefixes[i - 1], &s.prefixes[i]) < 0);
	check(set_remove(&s, &s, &missing) == 0 && s.n == 0 && missing == 0);
	free(s.prefixes);
	free(s.ports);
	free(s.flows);
}

static void fuzz_state(const uint8_t *data, size_t size)
{
	struct lazy_view v = {.data = (uint8_t *)(uintptr_t)data, .size = size};
	struct rule_outline o;
	struct rule_list l;
	bool taken = rule_list_outline(&v, 0, size, &o) == 0;

	if (taken)
		rule_outline_free(&o);
	if (rule_list_restore(data, size, &l) < 0)
		return;
	check(taken);
	check_list(&l);
	rule_list_free(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size == 0)
		return 0;
	size--;
	switch (data[0] % 5) {
	case 0:
		fuzz_rule(text, size);
		break;
	case 1:
		fuzz_file(text, size);
		break;
	case 2:
		fuzz_set(text, size, SET_PREFIXES);
		break;
	case 3:
		fuzz_set(text, size, SET_PORTS);
		fuzz_set(text, size, SET_FLOWS);
		break;
	case 4:
		fuzz_state(data + 1, size);
		break;
	}
	return 0;
}
