// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"

static void nobody_waits_for_a_fifo(void **state)
{
	char dir[] = "/tmp/ax-fifo.XXXXXX", path[64], fd_path[32];
	autofree char *text = NULL;
	int fds[2];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_read(path, 100, &text), -ESPIPE);
	unlink(path);
	rmdir(dir);
	/* as a shell's <(command) */
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "piped", 5), 5);
	close(fds[1]);
	snprintf(fd_path, sizeof(fd_path), "/dev/fd/%d", fds[0]);
	assert_int_equal(file_read(fd_path, 100, &text), 0);
	assert_string_equal(text, "piped");
	close(fds[0]);
}

static void a_short_write_has_an_errno_of_its_own(void **state)
{
	static char much[1 << 20];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	errno = ENOENT; /* of something else, before */
	assert_int_equal(write_whole(fds[1], much, sizeof(much)), -EIO);
	assert_int_equal(write_whole(fds[1], much, sizeof(much)), -EAGAIN);
	close(fds[0]);
	close(fds[1]);
}

static void times_of_the_machine_are_times_of_its_clock(void **state)
{
	int64_t off = time_unix_of_boot(time_boot_s() - 100) - (time(NULL) - 100);

	(void)state;
	assert_true(off >= -1 && off <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_waits_for_a_fifo),
		cmocka_unit_test(a_short_write_has_an_errno_of_its_own),
		cmocka_unit_test(times_of_the_machine_are_times_of_its_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
