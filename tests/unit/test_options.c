/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option parser of the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/lib/options.c"
#include "tools/lib/words.c"

struct shared {
	int choice;
	uint32_t number, duration;
};

struct values {
	bool flag, quiet;
	const char *text, *common;
	struct strv many;
	struct shared shared;
};

static const char *const formats[] = {"table", "wide", "json", NULL};
static const struct words choices = {.choices = formats};

/* Parses up to 15 arguments; what is left of them comes back in `words`. */
static int parse(struct values *v, bool command_follows, const char *const *args, char **words,
		 struct error *e)
{
	/* the last three in a part of their own, as a table that commands share */
	static const struct opt own[] = {
		{"flag", 'f', OPT_FLAG, NULL, "a flag", offsetof(struct values, flag), NULL},
		{"quiet", 'q', OPT_FLAG, NULL, "another", offsetof(struct values, quiet), NULL},
		{"text", 't', OPT_STRING, "TEXT", "a text", offsetof(struct values, text), NULL},
		{"many", 0, OPT_STRINGS, "TEXT", "several", offsetof(struct values, many), NULL},
	};
	static const struct opt shared[] = {
		{"output", 'o', OPT_CHOICE, "FORMAT", "one of three",
		 offsetof(struct shared, choice), &choices},
		{"number", 'n', OPT_NUMBER, "N", "a number", offsetof(struct shared, number), NULL},
		{"duration", 'd', OPT_DURATION, "TIME", "a time", offsetof(struct shared, duration),
		 NULL},
	};
	static const struct opt socket[] = {
		{"socket", 0, OPT_STRING, "PATH", "of every command", 0, NULL},
	};
	const struct opt_syntax s = {
		.own = {{own, ARRAY_SIZE(own), 0},
			{shared, ARRAY_SIZE(shared), offsetof(struct values, shared)}},
		.command_follows = command_follows,
	};
	const struct opt_common common = {{socket, ARRAY_SIZE(socket), 0}, &v->common};
	int argc = 0;

	memset(e, 0, sizeof(*e));
	for (; args[argc]; argc++)
		words[argc] = (char *)(uintptr_t)args[argc];
	words[argc] = NULL;
	return opt_parse(&s, v, &common, argc, words, e);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_long_options(void **state)
{
	struct values v = {0};
	struct error e;
	char *words[16];

	(void)state;
	assert_int_equal(parse(&v, false,
			       ARGS("--flag", "--text=a=b", "--output", "json", "--number", "7",
				    "--duration=2m", "--socket", "/s"),
			       words, &e),
			 0);
	assert_true(v.flag);
	assert_false(v.quiet);
	assert_string_equal(v.text, "a=b");
	assert_int_equal(v.shared.choice, 2);
	assert_int_equal(v.shared.number, 7);
	assert_int_equal(v.shared.duration, 120000);
	assert_string_equal(v.common, "/s");
}

static void test_short_options(void **state)
{
	struct values v = {0};
	struct error e;
	char *words[16];

	(void)state;
	assert_int_equal(parse(&v, false, ARGS("-fqn3", "-ojson", "-t", "x", "-d300ms"), words, &e),
			 0);
	assert_true(v.flag && v.quiet);
	assert_int_equal(v.shared.number, 3);
	assert_int_equal(v.shared.choice, 2);
	assert_string_equal(v.text, "x");
	assert_int_equal(v.shared.duration, 300);
	assert_int_equal(parse(&v, false, ARGS("-o=wide"), words, &e), 0);
	assert_int_equal(v.shared.choice, 1);
}

static void test_repeated(void **state)
{
	struct values v = {0};
	struct error e;
	char *words[16];

	(void)state;
	assert_int_equal(parse(&v, false, ARGS("--many", "a", "--text=1", "--many=b", "--text=2"),
			       words, &e),
			 0);
	assert_int_equal(v.many.n, 2);
	assert_string_equal(v.many.v[0], "a");
	assert_string_equal(v.many.v[1], "b");
	assert_string_equal(v.text, "2");
	strv_free(&v.many);
}

static void test_words_between_options(void **state)
{
	struct values v = {0};
	struct error e;
	char *words[16];

	(void)state;
	assert_int_equal(parse(&v, false,
			       ARGS("apps", "-o", "json", "-", "--flag", "b", "--", "-q"), words,
			       &e),
			 4);
	assert_string_equal(words[0], "apps");
	assert_string_equal(words[1], "-");
	assert_string_equal(words[2], "b");
	assert_string_equal(words[3], "-q");
	assert_true(v.flag);
	assert_false(v.quiet);
}

static void test_command_follows(void **state)
{
	struct values v = {0};
	struct error e;
	char *words[16];

	(void)state;
	assert_int_equal(parse(&v, true, ARGS("-f", "cmd", "-q", "--", "--bogus"), words, &e), 4);
	assert_string_equal(words[0], "cmd");
	assert_string_equal(words[1], "-q");
	assert_string_equal(words[2], "--");
	assert_string_equal(words[3], "--bogus");
	assert_false(v.quiet);
	assert_int_equal(parse(&v, true, ARGS("--", "--flag"), words, &e), 1);
	assert_string_equal(words[0], "--flag");
}

static void test_nothing(void **state)
{
	struct values v = {0};
	struct error e;
	char *words[16];

	(void)state;
	assert_int_equal(parse(&v, false, (const char *const[]){NULL}, words, &e), 0);
	assert_int_equal(parse(&v, true, ARGS("--"), words, &e), 0);
}

static void test_errors(void **state)
{
	static const struct {
		const char *args[3];
		const char *says;
	} cases[] = {
		{{"--bogus"}, "there is no option --bogus"},
		{{"--fla"}, "did you mean --flag?"},
		{{"--sokcet=/s"}, "did you mean --socket?"},
		{{"-z"}, "there is no option -z"},
		{{"-fz"}, "there is no option -fz"},
		{{"--flag=1"}, "--flag takes no value"},
		{{"--text"}, "--text needs a value"},
		{{"--text="}, "--text needs a value"},
		{{"--text", "--"}, "--text needs a value"},
		{{"-t"}, "-t needs a value"},
		{{"-o", "xml"}, "-o cannot be 'xml': give table, wide or json"},
		{{"--number", "-1"}, "give a whole number"},
		{{"--number", "+1"}, "give a whole number"},
		{{"--number", " 1"}, "give a whole number"},
		{{"--number", "1x"}, "give a whole number"},
		{{"--number=4294967296"}, "give a whole number"},
		{{"--number=99999999999999999999"}, "give a whole number"},
		{{"--duration", "soon"}, "give a time like 5s"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct values v = {0};
		struct error e;
		char *words[16];

		assert_int_equal(parse(&v, false, cases[i].args, words, &e), -EINVAL);
		assert_int_equal(e.code, -EINVAL);
		if (!strstr(e.text, cases[i].says))
			fail_msg("'%s' does not say '%s'", e.text, cases[i].says);
	}
}

static void test_help(void **state)
{
	static const char expected[] =
		"Usage: ax x [-o FORMAT]\n"
		"\n"
		"Does one thing, and says so in a line that is longer than the eighty columns of\n"
		"a page.\n"
		"\n"
		"Second part.\n"
		"\n"
		"Options:\n"
		"  -o, --output FORMAT       table or json\n"
		"      --a-rather-long-option NAME\n"
		"                            what it is good for, told in more words than fit\n"
		"                            into one line\n"
		"\n"
		"Options of every command:\n"
		"  -h, --help                print this help\n";
	const struct opt own[] = {
		{"output", 'o', OPT_CHOICE, "FORMAT", "table or json", 0, &choices},
		{"a-rather-long-option", 0, OPT_STRING, "NAME",
		 "what it is good for, told in more words than fit into one line", 0, NULL},
	};
	const struct opt help[] = {{"help", 'h', OPT_FLAG, NULL, "print this help", 0, NULL}};
	const struct opt_common common = {{help, ARRAY_SIZE(help), 0}, NULL};
	const struct opt_syntax s = {
		.usage = "ax x [-o FORMAT]",
		.about = "Does one thing, and says so in a line that is longer than the eighty "
			 "columns of a page.\n\nSecond part.",
		.own = {{own, ARRAY_SIZE(own), 0}},
	};
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	opt_help(&s, &common, f);
	fclose(f);
	assert_string_equal(text, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_options),
		cmocka_unit_test(test_short_options),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_words_between_options),
		cmocka_unit_test(test_command_follows),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
