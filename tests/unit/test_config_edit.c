// SPDX-License-Identifier: GPL-2.0-or-later
/* A config of which only the services that have changed are read is the one that the whole text
 * gives: after some thousand random edits, sensible ones and such that break quotes, braces and
 * indentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/edit.h"
#include "config/parse.h"

/* Of both texts that there are. */
struct held {
	struct config config;
	struct config_source *source;
	char *text;
};

static const char base[] =
	"# services of a town\n"
	"agent:\n  pool: {ipv4: 10.70.0.0/24, ipv6: \"fd70::/64\"}\n"
	"apps:\n  web: {ip: 10.70.0.9, command: [sleep, \"1\"]}\n  db: {}\n"
	"services:\n"
	"  s0: {ip: 10.70.0.20, ports: [\"80:7900\"], backends: [{address: 127.0.0.1-127.0.0.9}]}\n"
	"  s1: {ip: 10.70.0.21, ports: [80], strategy: maglev, backends: [{address: 127.0.1.1}]}\n"
	"  # in lines\n"
	"  s2:\n    ip: 10.70.0.22\n    ports:\n    - \"53/udp\"\n    - port: 80\n      target: "
	"8080\n"
	"    backends:\n    - app: web\n    - label: role=db\n    wait: 5s\n"
	"  s3: {ip: 10.70.0.23, ports: [443],\n    backends: [{address: 10.1.2.3:80},\n"
	"  {address: 10.1.2.4}]}\n"
	"\n"
	"  s4:\n    ports: [80]\n    backends: [db]\n    check: {type: exec, command: [sh, -c, \"a "
	"&& b\n"
	"      # no comment\"]}\n"
	"  s5: {ports: [80], backends: [web]} # of the pool\n"
	"  s6:\n    backends:\n      - address: 'fd00::1'\n    ports:\n      - >-\n        80\n"
	"  s7: {ip: 10.70.0.27, ports: [80], backends: [{address: 10.2.0.1}], expose: "
	"[\"8080:80\"]}\n"
	"  s8: {ip: 10.70.0.28, ports: [80], backends: [{address: 10.2.0.2}]}\n";
static const char policy[] =
	"policy:\n  rules:\n  - deny: {from: web, to: s3}\n  - allow: {from: role=x, to: s5}\n";

static bool same_config(const struct config *a, const struct config *b)
{
	if (a->n_services != b->n_services || a->n_apps != b->n_apps || a->n_rules != b->n_rules ||
	    a->n_egress != b->n_egress || a->n_interfaces != b->n_interfaces ||
	    a->n_probes != b->n_probes || memcmp(&a->pool4, &b->pool4, sizeof(a->pool4)) != 0 ||
	    memcmp(&a->pool6, &b->pool6, sizeof(a->pool6)) != 0 || a->dns != b->dns)
		return false;
	for (size_t i = 0; i < a->n_services; i++)
		if (!config_service_eq(&a->services[i], &b->services[i]))
			return false;
	for (size_t i = 0; i < a->n_apps; i++)
		if (!streq(a->apps[i].key, b->apps[i].key) ||
		    !app_spec_eq(&a->apps[i].spec, &b->apps[i].spec))
			return false;
	for (size_t i = 0; i < a->n_rules; i++)
		if (!config_rule_eq(&a->rules[i], &b->rules[i]))
			return false;
	return true;
}

static struct held hold(const char *text)
{
	struct config_errors errs;
	struct config_next next;
	struct held h = {.text = strdup(text)};

	if (config_read(NULL, NULL, text, strlen(text), &next, &errs)) {
		config_errors_print(&errs, "text", stderr);
		fail_msg("refused");
	}
	assert_false(next.edited);
	h.config = next.config;
	h.source = next.source;
	config_errors_free(&errs);
	return h;
}

static void held_free(struct held *h)
{
	config_free(&h->config);
	config_source_free(h->source);
	free(h->text);
}

static void assert_same_errors(const struct config_errors *a, const struct config_errors *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->e[i].line, b->e[i].line);
		assert_string_equal(a->e[i].found, b->e[i].found);
	}
}

enum outcome { REFUSED, WHOLE, EDITED };

/* Reads it both ways; the text holds from then on, if it is one and `stay` says so. */
static enum outcome try(struct held *h, const char *text, bool stay)
{
	struct config_errors errs, errs_whole;
	struct config whole;
	struct config_next next;
	int r = config_parse(text, strlen(text), &whole, &errs_whole);
	enum outcome outcome = REFUSED;

	assert_int_equal(config_read(&h->config, h->source, text, strlen(text), &next, &errs), r);
	assert_same_errors(&errs, &errs_whole);
	config_errors_free(&errs);
	config_errors_free(&errs_whole);
	if (r)
		return outcome;
	outcome = next.edited ? EDITED : WHOLE;
	if (!same_config(&next.config, &whole))
		fail_msg("%s reading gives another config for:\n%s\nbefore it was:\n%s",
			 next.edited ? "the edited part's" : "whole", text, h->text);
	config_free(&whole);
	if (!stay) {
		config_next_free(&next);
		return outcome;
	}
	config_next_holds(&next, &h->config);
	h->config = next.config;
	config_source_free(h->source);
	h->source = next.source;
	free(h->text);
	h->text = strdup(text);
	return outcome;
}

/* --- edits --- */

static uint64_t state = 88172645463325252ull;

static size_t any(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return below ? (size_t)(state % below) : 0;
}

/* Text [at, at + n) becomes `by`; malloc'ed. */
static char *replace(const char *text, size_t at, size_t n, const char *by)
{
	char *s = NULL;

	assert_true(asprintf(&s, "%.*s%s%s", (int)at, text, by, text + at + n) >= 0);
	return s;
}

static size_t line_at(const char *text, size_t at)
{
	while (at && text[at - 1] != '\n')
		at--;
	return at;
}

static size_t behind_line(const char *text, size_t at)
{
	return at + strcspn(text + at, "\n") + (strchr(text + at, '\n') != NULL);
}

static char *insert_line(const char *text, size_t at)
{
	static const char *const lines[] = {
		"  t1: {ip: 10.70.0.40, ports: [80], backends: [{address: 10.3.0.1}]}\n",
		"  t2: {ports: [80], backends: [web]}\n",
		"  t3: {ports: [81], backends: [db]}\n",
		"  s5: {ports: [82], backends: [db]}\n",
		"  web: {ports: [82], backends: [db]}\n",
		"  t4: {ip: 10.70.0.28, ports: [80], backends: [db]}\n",
		"    wait: 7s\n",
		"  t5: {ports: [80], backends: [web], expose: [\"8080:80\"]}\n",
		"\n",
		"# a word\n",
		"    # another\n",
		"      drain: 9s\n",
		"---\n",
		"...\n",
		"  t6: &a {backends: [db]}\n",
		"  t7: *a\n",
		" t8: {backends: [web]}\n",
		"apps: {}\n",
		"  end: {backends: [web]}\n",
		"  \"t9\": {backends: [web]}\n",
		"  ? t10\n  : {backends: [web]}\n",
		"\r",
		"\t",
		"  t11: |\n    x\n\n",
		"\xe2\x80\xa8  t12: {backends: [web]}\n",
	};

	return replace(text, line_at(text, at), 0, lines[any(sizeof(lines) / sizeof(*lines))]);
}

static char *edit(const char *text)
{
	static const char *const bits[] = {"{",	 "}",	"[", "]",  "'",	       "\"", "#", " #",
					   ":",	 ": ",	"-", "- ", ",",	       "|",  ">", "&a ",
					   "*a", "~",	" ", "  ", "\n",       "1",  "7", "x",
					   "s",	 "!t ", "@", "%",  "\xc2\x85", "\\"};
	size_t len = strlen(text), at, line, n;
	char bit[2] = "";

	if (!len)
		return insert_line(text, 0);
	at = any(len);
	line = line_at(text, at);
	switch (any(8)) {
	case 0:
	case 1:
		return insert_line(text, at);
	case 2: /* a line goes */
		return replace(text, line, behind_line(text, at) - line, "");
	case 3: /* what is put in */
		return replace(text, at, 0, bits[any(sizeof(bits) / sizeof(*bits))]);
	case 4: /* and taken out */
		return replace(text, at, 1, "");
	case 5: /* another digit, as people edit */
		for (n = 0; n < len && !strchr("0123456789", text[(at + n) % len]); n++)
			;
		bit[0] = (char)('0' + any(10));
		return replace(text, (at + n) % len, 1, bit);
	case 6: /* several at once */
		n = any(len - at) % 60;
		return replace(text, at, n, "");
	default: /* another word */
		return replace(text, at, 1, bits[any(sizeof(bits) / sizeof(*bits))]);
	}
}

static void edit_at_random(const char *start, size_t times, size_t least)
{
	size_t n[3] = {0};
	struct held h = hold(start);

	for (size_t i = 0; i < times; i++) {
		autofree char *once = edit(h.text), *twice = any(3) ? NULL : edit(once);
		const char *next = twice ? twice : once;

		n[try(&h, next, any(2) && strlen(next) < 4000)]++;
		if (i % 40 == 39) { /* not too far from what people write */
			held_free(&h);
			h = hold(start);
		}
	}
	held_free(&h);
	print_message("%zu refused, %zu read as a whole, %zu in part\n", n[REFUSED], n[WHOLE],
		      n[EDITED]);
	assert_true(n[EDITED] >= least);
	assert_true(n[REFUSED] >= least);
	assert_true(n[WHOLE] >= least);
}

static void test_random_edits_give_what_the_whole_text_gives(void **unused)
{
	autofree char *ruled = NULL;

	(void)unused;
	edit_at_random(base, 1500, 60);
	assert_true(asprintf(&ruled, "%s%s", base, policy) > 0);
	edit_at_random(ruled, 1500, 60);
}

/* --- what may be read in part, and what may not --- */

static enum outcome change(const char *start, const char *from, const char *to)
{
	struct held h = hold(start);
	const char *at = strstr(start, from);
	autofree char *text = NULL;
	enum outcome r;

	assert_non_null(at);
	text = replace(start, (size_t)(at - start), strlen(from), to);
	r = try(&h, text, true);
	/* and back, from what was kept of it */
	assert_int_not_equal(try(&h, start, true), REFUSED);
	held_free(&h);
	return r;
}

static void test_one_service_is_read_alone(void **unused)
{
	(void)unused;
	assert_int_equal(change(base, "maglev", "random"), EDITED);
	assert_int_equal(change(base, "wait: 5s", "wait: 6s"), EDITED);
	assert_int_equal(change(base, "10.2.0.2}", "10.2.0.3}"), EDITED); /* the last one */
	assert_int_equal(change(base, "  s1: ", "  n: {backends: [web]}\n  s1: "), EDITED);
	assert_int_equal(change(base, "  s5: {ports: [80], backends: [web]} # of the pool\n", ""),
			 EDITED);
	assert_int_equal(change(base, "# in lines", "# lines"), EDITED);
	assert_int_equal(change(base, "maglev", "maglev"), EDITED);
}

static void test_what_others_depend_on_is_read_as_a_whole(void **unused)
{
	static const char anchored[] =
		"services:\n  a: &x {ports: [80], backends: [w]}\n  b: *x\n  c: {backends: [w]}\n";
	static const char balanced[] =
		"services:\n  a: {backends: [{address: 10.0.0.1}]}\n  s: {ports: [80], backends: "
		"[{address: 10.0.0.1}]}\n  c: {backends: [w]}\n  d: {backends: [w]}\n"
		"xdp: {balancers: {b: {mode: nat, service: s}}}\n";
	autofree char *ruled = NULL;

	(void)unused;
	assert_true(asprintf(&ruled, "%s%s", base, policy) > 0);
	assert_int_equal(change(ruled, "10.1.2.4", "10.1.2.5"),
			 WHOLE); /* of s3, that a rule names */
	assert_int_equal(change(ruled, "maglev", "random"), EDITED);
	assert_int_equal(change(anchored, "c: {backends: [w]", "c: {backends: [v]"), WHOLE);
	assert_int_equal(change(base, "10.70.0.0/24", "10.70.0.0/23"), WHOLE);
	assert_int_equal(change(base, "8080:80", "8081:80"), WHOLE);
	assert_int_equal(change(balanced, "  s: {ports: [80]", "  s: {ports: [81]"), EDITED);
	assert_int_equal(change(balanced, "  c: {", "  e: {"), WHOLE);
	assert_int_equal(change(balanced, "  s: {", "  e: {"), REFUSED);
}

static void test_what_is_taken_is_refused_as_ever(void **unused)
{
	struct held h = hold(base);
	static const char *const wrong[][2] = {
		{"s1: ", "s8: "},
		{"s1: ", "web: "},
		{"10.70.0.21", "10.70.0.28"},
		{"10.70.0.21", "10.70.0.9"},
		{"strategy: maglev", "cook: 1"},
		{"maglev", "\"maglev"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *at = strstr(base, wrong[i][0]);
		autofree char *text =
			replace(base, (size_t)(at - base), strlen(wrong[i][0]), wrong[i][1]);

		assert_int_equal(try(&h, text, false), REFUSED);
	}
	held_free(&h);
}

static void test_a_full_pool_is_refused_as_ever(void **unused)
{
	static const char full[] = "agent: {pool: {ipv4: 10.70.0.0/29}}\nservices:\n"
				   "  a: {backends: [w]}\n  b: {backends: [w]}\n"
				   "  c: {backends: [w]}\n  d: {backends: [w]}\n";
	struct held h = hold(full);
	autofree char *five = replace(full, strlen(full), 0, "  e: {backends: [w]}\n");
	autofree char *six = replace(five, strlen(five), 0, "  f: {backends: [w]}\n");

	(void)unused;
	assert_int_equal(try(&h, six, false), REFUSED);
	assert_int_equal(try(&h, five, true), EDITED);
	assert_int_equal(try(&h, six, false), REFUSED);
	held_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_service_is_read_alone),
		cmocka_unit_test(test_what_others_depend_on_is_read_as_a_whole),
		cmocka_unit_test(test_what_is_taken_is_refused_as_ever),
		cmocka_unit_test(test_a_full_pool_is_refused_as_ever),
		cmocka_unit_test(test_random_edits_give_what_the_whole_text_gives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
