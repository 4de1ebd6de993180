// SPDX-License-Identifier: GPL-2.0-or-later
/* A text that goes beside a request arrives as it was; whatever else is handed over is refused at
 * once, and nobody is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "control/text.h"

static void test_a_text_arrives(void **unused)
{
	autofree char *long_text = malloc(3u << 20), *got = NULL, *empty = NULL;
	autoclose int fd = -1, none = control_text_seal("", 0);
	size_t len = 1;

	(void)unused;
	memset(long_text, 'x', 3u << 20);
	long_text[0] = '\0'; /* any bytes */
	fd = control_text_seal(long_text, 3u << 20);
	assert_true(fd >= 0 && none >= 0);
	assert_int_equal(control_text_read(fd, 3u << 20, &got, &len), 0);
	assert_int_equal(len, 3u << 20);
	assert_memory_equal(got, long_text, len);
	assert_int_equal(got[len], '\0');
	assert_int_equal(control_text_read(none, 0, &empty, &len), 0);
	assert_int_equal(len, 0);
}

static void test_one_that_is_too_long_is_refused(void **unused)
{
	autoclose int fd = control_text_seal("0123456789", 10);
	char *got = NULL;
	size_t len;

	(void)unused;
	assert_int_equal(control_text_read(fd, 9, &got, &len), -EFBIG);
	assert_null(got);
}

static void assert_refused(int fd)
{
	char *got = NULL;
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(control_text_read(fd, 1000, &got, &len), -EINVAL);
	assert_null(got);
	close(fd);
}

static void test_what_could_change_or_wait_is_refused(void **unused)
{
	int pair[2], pipes[2], fd;

	(void)unused;
	assert_refused(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW), 0); /* may shrink */
	assert_refused(fd);
	assert_refused(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	assert_refused(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	assert_refused(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_refused(pipes[0]); /* nobody ever writes */
	close(pipes[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_refused(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_text_arrives),
		cmocka_unit_test(test_one_that_is_too_long_is_refused),
		cmocka_unit_test(test_what_could_change_or_wait_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
