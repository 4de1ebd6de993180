// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets: from text and files, large ones too, added to and taken from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/stat.h>
#include "rules/list.h"

static void free_elements(struct rule_set_def *s)
{
	free(s->prefixes);
	free(s->ports);
	free(s->flows);
	*s = (struct rule_set_def){.kind = s->kind};
}

static void add(struct rule_set_def *s, const char *text)
{
	struct error e = {0};

	if (set_parse(s, text, strlen(text), "f", &e) < 0)
		fail_msg("%s", e.text);
}

/* The elements with a blank between. */
static void assert_set(const struct rule_set_def *s, const char *expected)
{
	char buf[1024] = "", prefix[FLOW_STRLEN];

	for (size_t i = 0; i < s->n; i++) {
		char *end = buf + strlen(buf);

		if (s->kind == SET_PORTS)
			sprintf(end, "%s%u-%u", i ? " " : "", s->ports[i].lo, s->ports[i].hi);
		else if (s->kind == SET_FLOWS)
			sprintf(end, "%s%s", i ? " " : "", set_flow_format(&s->flows[i], prefix));
		else
			sprintf(end, "%s%s", i ? " " : "", prefix_format(&s->prefixes[i], prefix));
	}
	assert_string_equal(buf, expected);
}

static void elements_are_read_and_sorted(void **state)
{
	static const struct {
		enum set_kind kind;
		const char *text, *set;
	} cases[] = {
		{SET_PREFIXES, "", ""},
		{SET_PREFIXES, "\n\n  # nothing here\n#\n,", ""},
		{SET_PREFIXES, "10.0.0.2\n10.0.0.0/8\r\n10.0.0.1/32",
		 "10.0.0.0/8 10.0.0.1/32 10.0.0.2/32"},
		{SET_PREFIXES, "10.0.0.0/9,10.0.0.0/8\t10.0.0.0/9 10.0.0.0/10",
		 "10.0.0.0/8 10.0.0.0/9 10.0.0.0/10"},
		{SET_PREFIXES, "1.2.3.4#5.6.7.8\n9.9.9.9 # 8.8.8.8", "1.2.3.4/32 9.9.9.9/32"},
		{SET_PREFIXES,
		 "; a list as others publish it\n192.0.2.0/24 ; SBL1, and more\n"
		 "2001:db8::/32 ; SBL2 10.0.0.0/8\n;",
		 "192.0.2.0/24 2001:db8::/32"},
		{SET_PREFIXES, "fd00::/8 0.0.0.0/0 ::1 255.255.255.255 ::/0",
		 "::/0 ::1/128 0.0.0.0/0 255.255.255.255/32 fd00::/8"},
		{SET_PREFIXES, "::ffff:10.0.0.0/104 10.0.0.0/8", "10.0.0.0/8"},
		{SET_PORTS, "", ""},
		{SET_FLOWS,
		 "10.0.0.1-10.0.0.2:22/tcp # x\n10.0.0.1-10.0.0.2:22/tcp fd00::1-[::]:1/udp",
		 "10.0.0.1-10.0.0.2:22/tcp fd00::1-[::]:1/udp"},
		{SET_PORTS, "80,22 8000-8099\n22 # ssh\n8000-8001",
		 "22-22 80-80 8000-8001 8000-8099"},
		{SET_PORTS, "65535 0 0-65535", "0-0 0-65535 65535-65535"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rule_set_def s = {.kind = cases[i].kind};

		add(&s, cases[i].text);
		assert_set(&s, cases[i].set);
		add(&s, cases[i].text);
		assert_set(&s, cases[i].set);
		free_elements(&s);
	}
}

static void wrong_elements_are_named(void **state)
{
#define PREFIX "a prefix such as 10.0.0.0/8 or fd00::/8, or an address"
#define PORT   "a port of 0 to 65535, or a range such as 8000-8099"
	static const struct {
		enum set_kind kind;
		const char *text, *error;
	} cases[] = {
		{SET_PREFIXES, "10.0.0.1\n\n10.0.0.256",
		 "f:3: \"10.0.0.256\" is not valid: use " PREFIX},
		{SET_PREFIXES, "# x\n10.0.0.1/8 # y",
		 "f:2: \"10.0.0.1/8\" is not valid: use a prefix without host bits: 10.0.0.0/8"},
		{SET_PREFIXES, "10.0.0.0/33", "f:1: \"10.0.0.0/33\" is not valid: use " PREFIX},
		{SET_PREFIXES, "10.0.0.0/", "f:1: \"10.0.0.0/\" is not valid: use " PREFIX},
		{SET_PREFIXES, "10.0.0.0/08", "f:1: \"10.0.0.0/08\" is not valid: use " PREFIX},
		{SET_PREFIXES, "10.0.0.0/8x", "f:1: \"10.0.0.0/8x\" is not valid: use " PREFIX},
		{SET_PREFIXES, "10.0.0", "f:1: \"10.0.0\" is not valid: use " PREFIX},
		{SET_PREFIXES, "10.0.0.0.0", "f:1: \"10.0.0.0.0\" is not valid: use " PREFIX},
		{SET_PREFIXES, "010.0.0.0", "f:1: \"010.0.0.0\" is not valid: use " PREFIX},
		{SET_PREFIXES, "10.0.0.1000", "f:1: \"10.0.0.1000\" is not valid: use " PREFIX},
		{SET_PREFIXES, ".0.0.1", "f:1: \".0.0.1\" is not valid: use " PREFIX},
		{SET_PREFIXES, "fd00::1/8",
		 "f:1: \"fd00::1/8\" is not valid: use a prefix without "
		 "host bits: fd00::/8"},
		{SET_PREFIXES, "80", "f:1: \"80\" is not valid: use " PREFIX},
		{SET_PREFIXES, "\xce\x01", "f:1: \"\\xce\\x01\" is not valid: use " PREFIX},
		{SET_PREFIXES, "\x1b[2J", "f:1: \"\\x1b[2J\" is not valid: use " PREFIX},
		{SET_PREFIXES,
		 "0000000000000000000000000000000000000000000000000000000000000000000000",
		 "f:1: \"000000000000000000000000000000000000000000000000000000000000...\" is not "
		 "valid: use " PREFIX},
		{SET_PORTS, "1\n2\n3-2", "f:3: \"3-2\" is not valid: use " PORT},
		{SET_PORTS, "100-200x", "f:1: \"100-200x\" is not valid: use " PORT},
		{SET_PORTS, "65536", "f:1: \"65536\" is not valid: use " PORT},
		{SET_PORTS, "10.0.0.0/8", "f:1: \"10.0.0.0/8\" is not valid: use " PORT},
	};
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rule_set_def s = {.kind = cases[i].kind};
		bool ports = cases[i].kind == SET_PORTS;

		add(&s, ports ? "7" : "192.0.2.1");
		assert_int_equal(set_parse(&s, cases[i].text, strlen(cases[i].text), "f", &e),
				 -EINVAL);
		assert_string_equal(e.text, cases[i].error);
		assert_set(&s, ports ? "7-7" : "192.0.2.1/32"); /* nothing of it was added */
		assert_int_equal(set_parse(&s, cases[i].text, strlen(cases[i].text), "f", NULL),
				 -EINVAL);
		free_elements(&s);
	}
	{
		struct rule_set_def s = {.kind = SET_PREFIXES};

		assert_int_equal(set_parse(&s, "10.0.0.1\n1\0002", 12, "f", &e), -EINVAL);
		assert_string_equal(e.text, "f:2: \"1\\x002\" is not valid: use " PREFIX);
	}
}

static void elements_are_taken_out(void **state)
{
	static const struct {
		enum set_kind kind;
		const char *set, *gone, *left;
		size_t missing;
	} cases[] = {
		{SET_PREFIXES, "1.1.1.1 2.2.2.2 3.3.3.3", "2.2.2.2", "1.1.1.1/32 3.3.3.3/32", 0},
		{SET_PREFIXES, "1.1.1.1 2.2.2.2", "1.1.1.1 2.2.2.2", "", 0},
		{SET_PREFIXES, "1.1.1.1 2.2.2.2", "0.0.0.0 2.2.2.2 9.9.9.9 1.5.0.0", "1.1.1.1/32",
		 3},
		{SET_PREFIXES, "10.0.0.0/8", "10.0.0.0/9 10.0.0.0/7", "10.0.0.0/8", 2},
		{SET_PREFIXES, "", "10.0.0.0", "", 1},
		{SET_PREFIXES, "10.0.0.0", "", "10.0.0.0/32", 0},
		{SET_PORTS, "80 8000-8099", "8000-8099 8000", "80-80", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rule_set_def s = {.kind = cases[i].kind}, gone = {.kind = cases[i].kind};
		size_t missing = 77;

		add(&s, cases[i].set);
		if (strstr(cases[i].gone, "10.0.0.0/7"))
			add(&gone, "10.0.0.0/9 10.0.0.0/7");
		else
			add(&gone, cases[i].gone);
		assert_int_equal(set_remove(&s, &gone, &missing), 0);
		assert_int_equal(missing, cases[i].missing);
		assert_set(&s, cases[i].left);
		add(&s, cases[i].set); /* and put in again */
		add(&s, cases[i].left);
		assert_int_equal(set_remove(&s, &gone, &missing), 0);
		assert_set(&s, cases[i].left);
		free_elements(&s);
		free_elements(&gone);
	}
}

static void kinds_are_not_mixed(void **state)
{
	struct rule_set_def s = {.kind = SET_PREFIXES}, gone = {.kind = SET_PORTS};
	size_t missing;

	(void)state;
	assert_int_equal(set_remove(&s, &gone, &missing), -EINVAL);
}

/* Pseudo-random prefixes of both families, compared with a plain sort. */
static int compare(const void *a, const void *b)
{
	return prefix_cmp(a, b);
}

static void many_are_sorted_alike(void **state)
{
	enum { N = 20000 };
	autofree struct prefix *expected = calloc(N, sizeof(*expected));
	struct rule_set_def s = {.kind = SET_PREFIXES};
	uint32_t x = 1;
	size_t n = 0;

	(void)state;
	assert_non_null(expected);
	s.prefixes = calloc(N, sizeof(*s.prefixes));
	assert_non_null(s.prefixes);
	for (s.n = 0; s.n < N; s.n++) {
		struct prefix *p = &s.prefixes[s.n];

		x = x * 1664525 + 1013904223;
		p->addr = addr_from_v4(htonl(x & 0xffff0000));
		p->len = 112 + x % 8;
		if (x & 256) {
			p->addr.b[0] = (uint8_t)(x >> 20);
			p->addr.b[10] = (uint8_t)(x >> 28);
		}
		expected[s.n] = *p;
	}
	qsort(expected, N, sizeof(*expected), compare);
	for (size_t i = 1; i < N; i++)
		if (prefix_cmp(&expected[i], &expected[n]) != 0)
			expected[++n] = expected[i];
	assert_int_equal(set_sort(&s), 0);
	assert_int_equal(s.n, n + 1);
	assert_memory_equal(s.prefixes, expected, s.n * sizeof(*expected));
	free_elements(&s);
}

static void a_million_lines(void **state)
{
	enum { N = 1000000 };
	autofree char *text = malloc(N * 20);
	struct rule_set_def s = {.kind = SET_PREFIXES}, gone = {.kind = SET_PREFIXES};
	uint32_t x = 12345;
	char *p = text;
	size_t missing;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < N; i++) {
		x = x * 1664525 + 1013904223; /* every 32-bit number comes once */
		p += sprintf(p, "%u.%u.%u.%u/32\n", x >> 24, x >> 16 & 255, x >> 8 & 255, x & 255);
	}
	add(&s,
	    text); /* (if each were looked for among all others, the test would reach its limit) */
	assert_int_equal(s.n, N);
	for (size_t i = 1; i < N; i++)
		assert_true(prefix_cmp(&s.prefixes[i - 1], &s.prefixes[i]) < 0);
	add(&s, text);
	assert_int_equal(s.n, N);
	add(&gone, "0.0.0.0/0");
	assert_int_equal(set_remove(&s, &gone, &missing), 0);
	assert_int_equal(missing, 1);
	assert_int_equal(set_remove(&s, &s, &missing), 0);
	assert_int_equal(s.n, 0);
	free_elements(&s);
	free_elements(&gone);
}

/* --- files --- */

static void write_text(const char *dir, const char *name, const char *text, size_t len)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void sets_come_from_files(void **state)
{
	char dir[] = "/tmp/ax-test-set-XXXXXX", path[256], expected[512];
	struct rule_set_def sets[3] = {{.kind = SET_PREFIXES}, {.kind = SET_PORTS}, {0}};
	struct rule_list l = {.sets = sets, .n_sets = 3};
	struct error e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_text(dir, "nets", "10.0.0.0/8\n", 11);
	write_text(dir, "ports", "22\n80\n", 6);
	write_text(dir, "bad", "22\nx\n", 5);
	write_text(dir, "nul", "22\n\0x\n", 6);
	snprintf(path, sizeof(path), "%s/ports", dir);
	for (size_t i = 0; i < 3; i++)
		sets[i].name = (char *[]){"a", "b", "c"}[i];
	add(&sets[2], "1.1.1.1"); /* given, not from a file */
	sets[0].file = "nets";
	sets[1].file = path;
	for (int i = 0; i < 2; i++) { /* read again, they are not doubled */
		assert_int_equal(rule_list_read_sets(&l, dir, &e), 0);
		assert_set(&sets[0], "10.0.0.0/8");
		assert_set(&sets[1], "22-22 80-80");
		assert_set(&sets[2], "1.1.1.1/32");
	}
	sets[1].file = "bad";
	assert_int_equal(rule_list_read_sets(&l, dir, &e), -EINVAL);
	snprintf(expected, sizeof(expected), "%s/bad:2: \"x\" is not valid: use " PORT, dir);
	assert_string_equal(e.text, expected);
	assert_set(&sets[1], "22-22 80-80");
	sets[1].file = "nul";
	assert_int_equal(rule_list_read_sets(&l, dir, &e), -EINVAL);
	snprintf(expected, sizeof(expected),
		 "%s/nul has a NUL byte in it: use a text file with one element a line", dir);
	assert_string_equal(e.text, expected);
	sets[1].file = "none";
	assert_int_equal(rule_list_read_sets(&l, dir, &e), -ENOENT);
	snprintf(expected, sizeof(expected),
		 "cannot read %s/none for the set b: No such file or directory", dir);
	assert_string_equal(e.text, expected);
	for (size_t i = 0; i < 3; i++)
		free_elements(&sets[i]);
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir,
			 (const char *[]){"nets", "ports", "bad", "nul"}[i]);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_are_read_and_sorted),
		cmocka_unit_test(wrong_elements_are_named),
		cmocka_unit_test(elements_are_taken_out),
		cmocka_unit_test(kinds_are_not_mixed),
		cmocka_unit_test(many_are_sorted_alike),
		cmocka_unit_test(a_million_lines),
		cmocka_unit_test(sets_come_from_files),
	};

	return cmocka_run_group_tests_name("rule_set", tests, NULL, NULL);
}
