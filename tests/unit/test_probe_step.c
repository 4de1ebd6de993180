// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory of processes that are traced: whose it is, and what of it may be written. */
#include <setjmp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "probes/step/step.h"

static int variable = 5;

/* Only what the process may write itself, though the file would write to all. */
static void test_rights(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)p, value = UINT64_MAX;
	autoclose int memory = step_memory(getpid());

	(void)state;
	assert_true(memory >= 0);
	assert_int_equal(mprotect(p + page, page, PROT_READ), 0);
	assert_int_equal(step_write_memory(memory, getpid(), at + page - 8, &value, 8), 0);
	assert_int_equal(step_write_memory(memory, getpid(), at + page, &value, 8), -EFAULT);
	assert_int_equal(step_write_memory(memory, getpid(), at + page - 4, &value, 8), -EFAULT);
	value = 0;
	assert_int_equal(step_read_memory(memory, at + page - 8, &value, 8), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(mprotect(p + page, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(p, page, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	assert_int_equal(step_write_memory(memory, getpid(), at + page - 4, &value, 8), 0);
	munmap(p, 2 * page);
	assert_int_equal(step_read_memory(memory, at, &value, 8), -EFAULT);
	assert_int_equal(step_write_memory(memory, getpid(), at, &value, 8), -EFAULT);
}

/* The memory of a process that became another program is not that one's. */
static void test_other_program(void **state)
{
	uint64_t at = (uint64_t)(uintptr_t)&variable;
	int go[2], done[2], value = 0;
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC) | pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) == 1)
			execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	close(done[1]);
	{
		autoclose int memory = step_memory(pid);

		assert_true(memory >= 0);
		assert_int_equal(step_read_memory(memory, at, &value, sizeof(value)), 0);
		assert_int_equal(value, 5);
		value = 6;
		assert_int_equal(step_write_memory(memory, pid, at, &value, sizeof(value)), 0);
		assert_int_equal(write(go[1], "g", 1), 1);
		assert_int_equal(read(done[0], &c, 1), 0); /* it was executed */
		assert_int_equal(step_read_memory(memory, at, &value, sizeof(value)), -EFAULT);
		assert_int_equal(step_write_memory(memory, pid, at, &value, sizeof(value)),
				 -EFAULT);
	}
	assert_int_equal(variable, 5);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(done[0]);
	close(go[0]);
	close(go[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_other_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
