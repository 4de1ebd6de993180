/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our block in /etc/hosts, and what others have there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "machine/hosts_file.h"

#define BLOCK "# begin of ax, instance ax\n1.2.3.4 web\n# end of ax, instance ax\n"
#define OTHER "# begin of ax, instance b\n1.2.3.5 web2\n# end of ax, instance b\n"

static void check(const char *text, const char *lines, const char *expected)
{
	autofree char *got = hosts_block_replace(text, "ax", lines);

	assert_non_null(got);
	assert_string_equal(got, expected);
}

static void a_block_comes_goes_and_changes(void **state)
{
	(void)state;
	check("", "1.2.3.4 web\n", BLOCK);
	check("127.0.0.1 localhost\n", "1.2.3.4 web\n", "127.0.0.1 localhost\n" BLOCK);
	check("127.0.0.1 localhost", "1.2.3.4 web\n", "127.0.0.1 localhost\n" BLOCK);
	check("a\n" BLOCK "b\n", "1.2.3.4 web\n", "a\nb\n" BLOCK);
	check("a\n" BLOCK "b\n", "", "a\nb\n");
	check("a\n" BLOCK OTHER, "", "a\n" OTHER);
	check(BLOCK "a\n" BLOCK, "", "a\n");
	check("", "", "");
}

static void what_others_wrote_is_never_lost(void **state)
{
	(void)state;
	/* somebody has taken the end away: what follows may be theirs */
	check("# begin of ax, instance ax\n1.2.3.4 web\nx\n", "", "1.2.3.4 web\nx\n");
	check("# begin of ax, instance ax\nx\n" OTHER, "", "x\n" OTHER);
	check("# begin of ax, instance ax\nx\n" BLOCK, "", "x\n");
	check("# begin of ax, instance axe\nx\n# end of ax, instance axe\n", "",
	      "# begin of ax, instance axe\nx\n# end of ax, instance axe\n");
}

static void names_of_others_are_found(void **state)
{
	static const char text[] = "127.0.0.1\tlocalhost  Db # web\n#1.2.3.4 no\n" BLOCK "::1 six";

	(void)state;
	assert_true(hosts_has_name(text, "localhost"));
	assert_true(hosts_has_name(text, "db"));
	assert_true(hosts_has_name(text, "six"));
	assert_false(hosts_has_name(text, "web"));
	assert_false(hosts_has_name(text, "no"));
	assert_false(hosts_has_name(text, "local"));
	assert_false(hosts_has_name(text, "127.0.0.1"));
	assert_false(hosts_has_name("", "x"));
}

static void a_file_keeps_its_mode(void **state)
{
	char path[] = "/tmp/test_hosts.XXXXXX";
	autofree char *text = NULL;
	int fd = mkstemp(path);
	struct error e = {0};
	struct stat before, after;

	(void)state;
	assert_true(fd >= 0);
	if (geteuid() != 0) { /* (it takes a lock of root's) */
		unlink(path);
		close(fd);
		skip();
	}
	assert_int_equal(write_whole(fd, "a\n", 2), 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(hosts_file_update(path, "ax", "1.2.3.4 web\n", &e), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_not_equal(after.st_ino, before.st_ino);
	assert_int_equal(file_read(path, 4096, &text), 0);
	assert_string_equal(text, "a\n" BLOCK);
	assert_int_equal(hosts_file_update(path, "ax", "1.2.3.4 web\n", &e), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(after.st_ino, before.st_ino); /* nothing changed: nothing is written */
	unlink(path);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_comes_goes_and_changes),
		cmocka_unit_test(what_others_wrote_is_never_lost),
		cmocka_unit_test(names_of_others_are_found),
		cmocka_unit_test(a_file_keeps_its_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
