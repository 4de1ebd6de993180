// SPDX-License-Identifier: GPL-2.0-or-later
/* Tracepoints' format files, as kernels write them and as nothing should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probes/kernel/fields.h"
#include "probes/kernel/tracefs.h"

#define HEAD "name: made_up\nID: 365\nformat:\n"
#define FIELD(declaration, offset, size, is_signed) \
	"\tfield:" declaration ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #is_signed ";\n"

static const char made_up[] = HEAD FIELD("unsigned short common_type", 0, 2, 0) FIELD(
	"int common_pid", 4, 4, 1) "\n" FIELD("__data_loc char[] filename", 8, 4, 0)
	FIELD("pid_t pid", 12, 4, 1) FIELD("const char * name", 16, 8, 0) FIELD(
		"struct file * file", 24, 8, 0) FIELD("char comm[16]", 32, 16,
						      0) FIELD("unsigned long args[6]", 48, 48, 0)
		FIELD("__u8 saddr[4]", 96, 4, 0) FIELD("__rel_loc char[] tail", 100, 4,
						       0) FIELD("__data_loc u32[] list", 104, 4, 0)
			FIELD("struct timespec when", 112, 16,
			      0) "\nprint fmt: \"field:int no; offset:0; size:4;\", REC->pid\n";

static void each_kind_of_field(void **state)
{
	static const struct {
		const char *name;
		enum field_kind kind;
		uint16_t offset, size, element;
		bool is_signed;
	} want[] = {
		{"common_type", FIELD_NUMBER, 0, 2, 2, false},
		{"common_pid", FIELD_NUMBER, 4, 4, 4, true},
		{"filename", FIELD_DYNAMIC, 8, 4, 4, false},
		{"pid", FIELD_NUMBER, 12, 4, 4, true},
		{"name", FIELD_TEXT, 16, 8, 8, false},
		{"file", FIELD_POINTER, 24, 8, 8, false},
		{"comm", FIELD_STRING, 32, 16, 1, false},
		{"args", FIELD_ARRAY, 48, 48, 8, false},
		{"saddr", FIELD_ARRAY, 96, 4, 1, false},
		{"tail", FIELD_RELATIVE, 100, 4, 4, false},
		{"list", FIELD_DYNAMIC_ARRAY, 104, 4, 4, false},
		{"when", FIELD_ARRAY, 112, 16, 1, false},
	};
	struct error e = {0};
	struct format f;

	(void)state;
	assert_int_equal(format_parse(made_up, &f, &e), 0);
	assert_string_equal(f.name, "made_up");
	assert_int_equal(f.id, 365);
	assert_false(f.user);
	assert_int_equal(f.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < f.n; i++) {
		assert_string_equal(f.v[i].name, want[i].name);
		assert_int_equal(f.v[i].kind, want[i].kind);
		assert_int_equal(f.v[i].offset, want[i].offset);
		assert_int_equal(f.v[i].size, want[i].size);
		assert_int_equal(f.v[i].element, want[i].element);
		assert_int_equal(f.v[i].is_signed, want[i].is_signed);
		assert_int_equal(field_is_common(&f.v[i]), i < 2);
	}
	assert_ptr_equal(format_find(&f, "pid"), &f.v[3]);
	assert_null(format_find(&f, "no"));
	format_free(&f);
}

static void wrong_files_are_refused(void **state)
{
	static const struct {
		const char *text, *line;
	} wrong[] = {
		{"", "line 1 "},
		{"name: x\n", "line 2 "},
		{"ID: 3\n", "line 2 "},
		{"name: x\nID: none\n", "line 2 "},
		{"name: x\nID: -3\n", "line 2 "},
		{"name:\nID: 3\n", "line 1 "},
		{HEAD "field:int a; offset:0;\n", "line 4 "},
		{HEAD "field:int a; size:4;\n", "line 4 "},
		{HEAD "field:int a; offset:-4; size:4;\n", "line 4 "},
		{HEAD "field:int a; offset:8190; size:4;\n", "line 4 "},
		{HEAD "field:int a; offset:99999999999999999999; size:4;\n", "line 4 "},
		{HEAD "field:int a; offset:0; size:4; signed:2;\n", "line 4 "},
		{HEAD "field:int; offset:0; size:4;\n", "line 4 "},
		{HEAD "field:int a offset:0 size:4\n", "line 4 "},
		{HEAD "field:__data_loc char[] a; offset:0; size:8;\n", "line 4 "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct error e = {0};
		struct format f;

		if (format_parse(wrong[i].text, &f, &e) != -EINVAL ||
		    !strstr(e.text, wrong[i].line))
			fail_msg("'%s': %s", wrong[i].text, e.text);
		assert_null(f.v);
	}
}

static void too_many_fields_are_refused(void **state)
{
	autofree char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct error e = {0};
	struct format f;

	(void)state;
	assert_non_null(out);
	fputs(HEAD, out);
	for (int i = 0; i < 200; i++)
		fprintf(out, "field:int a%d; offset:%d; size:4; signed:1;\n", i, 4 * i);
	fclose(out);
	assert_int_equal(format_parse(text, &f, &e), -E2BIG);
}

static void system_calls_have_user_addresses(void **state)
{
	struct error e = {0};
	struct format f;

	(void)state;
	assert_int_equal(
		format_parse("name: sys_enter_openat\nID: 7\n" FIELD("int dfd", 16, 8, 0), &f, &e),
		0);
	assert_true(f.user);
	format_free(&f);
}

/* Each that this kernel has, since each is what a kernel writes. */
static size_t n_formats;
static int read_one(void *arg, const char *category, const char *name)
{
	struct error e = {0};
	struct format f;

	if (tracefs_format(*(int *)arg, category, name, &f, &e))
		fail_msg("%s:%s: %s", category, name, e.text);
	assert_string_equal(f.name, name);
	format_free(&f);
	n_formats++;
	return 0;
}

/* Whether this kernel has a tracefs, which root can always look at: it need not be mounted. */
static bool has_tracefs(void)
{
	char line[100];
	bool found = false;
	FILE *f = fopen("/proc/filesystems", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= strcmp(line, "nodev\ttracefs\n") == 0;
	fclose(f);
	return found;
}

static void all_of_this_kernel_are_read(void **state)
{
	struct error e = {0};
	autoclose int tracefs = tracefs_open(&e);

	(void)state;
	if (tracefs < 0 && (geteuid() || !has_tracefs())) {
		print_message("SKIP: %s\n", geteuid() ? e.text : "missing kernel feature tracefs");
		skip();
	}
	if (tracefs < 0)
		fail_msg("%s", e.text);
	assert_int_equal(tracefs_tracepoints(tracefs, "*", "*", read_one, &tracefs, &e), 0);
	assert_in_range(n_formats, 100, 100000);
	assert_int_equal(
		tracefs_tracepoints(tracefs, "sched", "sched_swich", read_one, &tracefs, &e),
		-ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_field),
		cmocka_unit_test(wrong_files_are_refused),
		cmocka_unit_test(too_many_fields_are_refused),
		cmocka_unit_test(system_calls_have_user_addresses),
		cmocka_unit_test(all_of_this_kernel_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
