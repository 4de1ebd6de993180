// SPDX-License-Identifier: GPL-2.0-or-later
/* The names of system calls are those of this machine's header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "probes/kernel/syscalls.h"

static void test_known(void **state)
{
	static const struct {
		long number;
		const char *name;
	} known[] = {
		{SYS_read, "read"},
		{SYS_close, "close"},
		{SYS_futex, "futex"},
		{SYS_openat, "openat"},
		{SYS_exit_group, "exit_group"},
		{SYS_getrandom, "getrandom"},
		{SYS_statx, "statx"},
		{SYS_io_uring_setup, "io_uring_setup"},
		{SYS_clone3, "clone3"},
		{SYS_openat2, "openat2"},
		{SYS_mremap, "mremap"},
		{SYS_newfstatat, "newfstatat"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_string_equal(syscall_name((uint64_t)known[i].number), known[i].name);
}

static void test_unknown(void **state)
{
	static const uint64_t unknown[] = {400, 423, 4000, UINT32_MAX, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_null(syscall_name(unknown[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
