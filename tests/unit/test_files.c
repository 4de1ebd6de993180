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

/* Also one whose length the kernel does not say, and one that is as long as it may be. */
static void a_file_is_read_as_a_whole(void **state)
{
	static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 8192, 100000};
	char path[] = "/tmp/ax-file.XXXXXX";
	static char much[100001];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		autofree char *text = NULL, *none = NULL;

		memset(much, 'x', sizes[i]);
		much[sizes[i]] = 0;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, much, sizes[i], 0), (ssize_t)sizes[i]);
		assert_int_equal(file_read(path, sizes[i], &text), 0);
		assert_string_equal(text, much);
		if (sizes[i])
			assert_int_equal(file_read(path, sizes[i] - 1, &none), -EFBIG);
		assert_null(none);
	}
	unlink(path);
	close(fd);
	for (size_t max = 1; max <= 4096; max *= 64) {
		autofree char *text = NULL;

		assert_int_equal(file_read("/proc/self/status", max, &text),
				 max < 4096 ? -EFBIG : 0);
	}
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

static void a_file_is_replaced_whole_or_stays_and_nothing_is_left_beside(void **state)
{
	char dir[] = "/tmp/ax-files-XXXXXX", path[64], beside[64], other[64];
	autofree char *text = NULL, *victim = NULL;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/record", dir);
	snprintf(beside, sizeof(beside), "%s/record.new", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(file_replace(other, 0644, "another's"), 0);
	assert_int_equal(symlink(other, beside), 0); /* what lies beside is not written through */
	assert_int_equal(file_replace(path, 0600, "first, and longer"), 0);
	assert_int_equal(file_replace(path, 0600, "second"), 0);
	assert_int_equal(file_read(path, 100, &text), 0);
	assert_string_equal(text, "second");
	assert_int_equal(file_read(other, 100, &victim), 0);
	assert_string_equal(victim, "another's");
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(access(beside, F_OK), -1);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0); /* which no file takes the place of */
	assert_int_equal(file_replace(path, 0600, "third"), -EISDIR);
	assert_int_equal(access(beside, F_OK), -1);
	unlink(other);
	rmdir(path);
	assert_int_equal(rmdir(dir), 0);
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
		cmocka_unit_test(a_file_is_read_as_a_whole),
		cmocka_unit_test(a_short_write_has_an_errno_of_its_own),
		cmocka_unit_test(a_file_is_replaced_whole_or_stays_and_nothing_is_left_beside),
		cmocka_unit_test(times_of_the_machine_are_times_of_its_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
