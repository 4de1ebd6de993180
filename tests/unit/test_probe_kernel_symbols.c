// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions of the kernel: from files as the kernel writes them, and from the kernel's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/probe_programs.h"
#include "probes/kernel/kallsyms.h"
#include "probes/kernel/symbols_priv.h"

static const char symbols[] = "ffffffff81000000 T _text\n"
			      "ffffffff81000200 T vfs_write\n"
			      "ffffffff81000100 T vfs_read\n"
			      "ffffffff810000f0 t __pfx_vfs_read\n"
			      "ffffffff81000300 t vfs_hidden\n"
			      "ffffffff81000400 t vfs_blacklisted\n"
			      "ffffffff81000500 t vfs_untraced\n"
			      "ffffffff81000600 t vfs_split.isra.0\n"
			      "ffffffff81000700 t vfs_read.cold\n"
			      "ffffffff81000800 d vfs_data\n"
			      "ffffffff81002000 T _sinittext\n"
			      "ffffffff81002010 t vfs_init\n"
			      "ffffffff81003000 T _einittext\n"
			      "ffffffffc0001000 t vfs_helper\t[my_fs]\n"
			      "ffffffffc0000f00 t vfs_read\t[my_fs]\n"
			      "ffffffffc0002000 t vfs_prog\t[bpf]\n"
			      "ffffffffc0003000 t vfs_tramp\t[__builtin__ftrace]\n"
			      "nonsense\n"
			      "ffffffffc0004000 t\n";
static const char traceable[] = "vfs_read\nvfs_write\nvfs_blacklisted\nvfs_split.isra.0\nvfs_init\n"
				"vfs_helper [my_fs]\n";
static const char blacklist[] = "0xffffffff81000400-0xffffffff81000480\tvfs_blacklisted\n"
				"0xffffffff81000900-0xffffffff81000980\tdo_int3\nnonsense\n";

struct list {
	char text[4096];
	uint64_t last;
	unsigned n, max;
};

static int add(void *arg, const char *name, const char *module, uint64_t address)
{
	struct list *l = arg;
	size_t n = strlen(l->text);

	assert_true(address >= l->last);
	l->last = address;
	l->n++;
	if (sizeof(l->text) - n > 128)
		snprintf(l->text + n, sizeof(l->text) - n, "%s%s%s ", module, *module ? ":" : "",
			 name);
	return l->n == l->max ? 42 : 0;
}

static struct kernel_files files_of(bool with_lists)
{
	struct kernel_files k = {0};

	build_source("symbols", symbols);
	build_source("traceable", traceable);
	build_source("blacklist", blacklist);
	snprintf(k.symbols, sizeof(k.symbols), "%s/symbols", build_dir);
	if (with_lists) {
		snprintf(k.traceable, sizeof(k.traceable), "%s/traceable", build_dir);
		snprintf(k.blacklist, sizeof(k.blacklist), "%s/blacklist", build_dir);
	}
	return k;
}

static void check_list(const struct kernel_files *k, const char *module, const char *glob,
		       const char *want)
{
	struct list l = {0};
	struct error e = {0};
	int r = kernel_functions_from(k, module, glob, add, &l, &e);

	if (r || !streq(l.text, want))
		fail_msg("%s of %s: '%s', not '%s' (%d: %s)", glob, module ? module : "any", l.text,
			 want, r, e.text);
}

static void check_error(const struct kernel_files *k, const char *module, const char *glob,
			const char *want)
{
	struct list l = {0};
	struct error e = {0};

	assert_int_equal(kernel_functions_from(k, module, glob, add, &l, &e), -ENOENT);
	if (!strstr(e.text, want) || l.n)
		fail_msg("%s: '%s', not '%s'", glob, e.text, want);
}

static void functions_that_match(void **state)
{
	struct kernel_files k = files_of(true);
	struct list l = {.max = 2};
	struct error e = {0};

	(void)state;
	check_list(&k, NULL, "vfs_read", "vfs_read my_fs:vfs_read ");
	check_list(&k, "", "vfs_read", "vfs_read ");
	check_list(&k, "vmlinux", "vfs_read", "vfs_read ");
	check_list(&k, "my-fs", "vfs_read", "my_fs:vfs_read ");
	check_list(&k, NULL, "vfs_*",
		   "vfs_read vfs_write vfs_split.isra.0 my_fs:vfs_read my_fs:vfs_helper ");
	check_list(&k, "", "vfs_[rw]*", "vfs_read vfs_write ");
	check_list(&k, "my_fs", "*", "my_fs:vfs_read my_fs:vfs_helper ");
	/* who asks for one is told why not by the kernel itself */
	check_list(&k, NULL, "vfs_blacklisted", "vfs_blacklisted ");
	check_list(&k, NULL, "vfs_read.cold", "vfs_read.cold ");
	assert_int_equal(kernel_functions_from(&k, NULL, "vfs_*", add, &l, &e), 42);
	assert_int_equal(l.n, 2);
}

static void without_the_lists(void **state)
{
	struct kernel_files k = files_of(false);

	(void)state;
	check_list(&k, "", "vfs_*",
		   "vfs_read vfs_write vfs_hidden vfs_blacklisted vfs_untraced vfs_split.isra.0 ");
	assert_true(kernel_probeable_from(&k, "do_int3"));
	/* files that cannot be read are as none */
	snprintf(k.traceable, sizeof(k.traceable), "%s/none", build_dir);
	check_list(&k, "my_fs", "*", "my_fs:vfs_read my_fs:vfs_helper ");
}

static void what_is_not_there(void **state)
{
	struct kernel_files k = files_of(true);
	struct list l = {0};
	struct error e = {0};

	(void)state;
	check_error(&k, NULL, "vfs_raed", "no function vfs_raed; did you mean 'vfs_read'?");
	check_error(&k, NULL, "vfs_split", "did you mean 'vfs_split.isra.0'?");
	check_error(&k, "my_fs", "vfs_write", "no function vfs_write in its module my_fs");
	check_error(&k, NULL, "tcp_*", "no function of the kernel that takes probes matches");
	check_error(&k, "my_fs", "tcp_*", "no function of the module my_fs that takes probes");
	check_error(&k, "nothing", "vfs_read", "no module 'nothing'");
	check_error(&k, NULL, "something_else_entirely", "no function something_else_entirely");
	snprintf(k.symbols, sizeof(k.symbols), "%s/none", build_dir);
	assert_int_equal(kernel_functions_from(&k, NULL, "x", add, &l, &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot be read"));
}

static void blacklisted(void **state)
{
	struct kernel_files k = files_of(true);

	(void)state;
	assert_false(kernel_probeable_from(&k, "do_int3"));
	assert_false(kernel_probeable_from(&k, "vfs_blacklisted"));
	assert_true(kernel_probeable_from(&k, "vfs_read"));
	assert_true(kernel_probeable_from(&k, ""));
}

static int count(void *arg, const struct kallsym *s)
{
	unsigned *n = arg;

	assert_true(*s->name);
	*n += kallsym_is_code(s);
	return 0;
}

static void this_kernel(void **state)
{
	struct list l = {0};
	struct error e = {0};
	unsigned n = 0;

	(void)state;
	assert_int_equal(kallsyms_read(KALLSYMS, count, &n), 0);
	assert_true(n > 1000);
	assert_int_equal(kernel_functions(NULL, "vfs_read", add, &l, &e), 0);
	assert_string_equal(l.text, "vfs_read ");
	l = (struct list){0};
	assert_int_equal(kernel_functions("", "vfs_*", add, &l, &e), 0);
	assert_true(l.n > 20);
	assert_true(kernel_symbol_probeable("vfs_read"));
	e = (struct error){0};
	assert_int_equal(kernel_functions(NULL, "vfs_reed", add, &l, &e), -ENOENT);
	assert_non_null(strstr(e.text, "did you mean 'vfs_re"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_that_match), cmocka_unit_test(without_the_lists),
		cmocka_unit_test(what_is_not_there),	cmocka_unit_test(blacklisted),
		cmocka_unit_test(this_kernel),
	};

	return cmocka_run_group_tests_name("probe_kernel_symbols", tests, build_dir_make,
					   build_dir_remove);
}
