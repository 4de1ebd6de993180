/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* Records, processes and removal of real cgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "machine/cgroup.h"
#include "tests/lib/instance.h"

#define CHILDREN 5

struct fixture {
	struct instance inst;
	char root[4096];
	char app[4096 + 16], sub[4096 + 32], deep[4096 + 48]; /* each one below the one before */
	pid_t children[CHILDREN];
};

static struct fixture f;

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	if (own_instance(&f.inst, f.root))
		return -1;
	snprintf(f.app, sizeof(f.app), "%s/app-1", f.root);
	snprintf(f.sub, sizeof(f.sub), "%s/sub", f.app);
	snprintf(f.deep, sizeof(f.deep), "%s/deep", f.sub);
	return mkdir(f.app, 0755) || mkdir(f.sub, 0755) || mkdir(f.deep, 0755);
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < CHILDREN; i++) {
		if (f.children[i] <= 0)
			continue;
		kill(f.children[i], SIGKILL);
		waitpid(f.children[i], NULL, 0);
	}
	/* a cgroup is busy until its last process is wholly gone */
	for (int tries = 0; tries < 1000; tries++) {
		if (cgroup_remove(f.root) == 0)
			return 0;
		usleep(2000);
	}
	return -1;
}

/* A process that waits for a signal, in this cgroup. */
static void start(int i, const char *cgroup)
{
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGTERM, SIG_DFL);
		alarm(30);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	f.children[i] = pid;
	assert_int_equal(cgroup_move(cgroup, pid), 0);
}

static void assert_ended_by(int i, int signal)
{
	int status;

	assert_int_equal(waitpid(f.children[i], &status, 0), f.children[i]);
	f.children[i] = 0;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), signal);
}

/* The kernel says so a moment after the last process is gone. */
static void assert_empty(const char *cgroup)
{
	for (int tries = 0; tries < 1000 && cgroup_populated(cgroup) == 1; tries++)
		usleep(2000);
	assert_int_equal(cgroup_populated(cgroup), 0);
}

static void test_root(void **state)
{
	char again[4096];
	struct error e;
	struct stat st;
	uint64_t id;

	(void)state;
	assert_int_equal(cgroup_root(&f.inst, again, NULL, &e), 0);
	assert_string_equal(again, f.root);
	assert_non_null(strstr(f.root, f.inst.name));
	assert_int_equal(stat(f.app, &st), 0);
	assert_int_equal(cgroup_id(f.app, &id), 0);
	assert_true(id == st.st_ino);
	assert_int_equal(cgroup_id("/nonexistent", &id), -ENOENT);
}

static void assert_record(const char *key, const char *text)
{
	autofree char *got = NULL;

	assert_int_equal(cgroup_record_get(f.app, key, &got), 0);
	assert_string_equal(got, text);
}

static void test_records(void **state)
{
	autofree char *long_text = malloc(4001);
	char *got = NULL;

	(void)state;
	assert_non_null(long_text);
	assert_int_equal(cgroup_record_get(f.app, "app", &got), -ENODATA);
	assert_int_equal(cgroup_record_set(f.app, "app", "{\"id\":1}"), 0);
	assert_record("app", "{\"id\":1}");
	assert_int_equal(cgroup_record_set(f.app, "exit", "7"), 0);
	assert_int_equal(cgroup_record_set(f.app, "app", "2"), 0); /* shorter than before */
	assert_record("app", "2");
	assert_record("exit", "7");
	assert_int_equal(cgroup_record_set(f.app, "app", ""), 0);
	assert_record("app", "");
	memset(long_text, 'x', 4000);
	long_text[4000] = 0;
	assert_int_equal(cgroup_record_set(f.app, "app", long_text), 0);
	assert_record("app", long_text);
	/* of this cgroup alone, and gone with it */
	assert_int_equal(cgroup_record_get(f.sub, "app", &got), -ENODATA);
	assert_int_equal(cgroup_remove(f.app), 0);
	assert_int_equal(cgroup_record_get(f.app, "app", &got), -ENOENT);
	assert_int_equal(cgroup_record_set(f.app, "app", "x"), -ENOENT);
	assert_int_equal(mkdir(f.app, 0755), 0);
	assert_int_equal(cgroup_record_get(f.app, "app", &got), -ENODATA);
	assert_null(got);
}

static void test_processes(void **state)
{
	(void)state;
	assert_int_equal(cgroup_populated(f.app), 0);
	assert_int_equal(cgroup_first_pid(f.app), 0);
	start(0, f.deep);
	assert_int_equal(cgroup_populated(f.app), 1); /* by a process two levels below */
	assert_int_equal(cgroup_populated(f.deep), 1);
	assert_int_equal(cgroup_first_pid(f.app), f.children[0]);
	assert_int_equal(cgroup_move(f.app, f.children[0]), 0);
	assert_int_equal(cgroup_populated(f.sub), 0);
	assert_int_equal(cgroup_first_pid(f.sub), 0);
	assert_int_equal(cgroup_first_pid(f.app), f.children[0]);
	kill(f.children[0], SIGKILL);
	assert_ended_by(0, SIGKILL);
	assert_empty(f.app);
	assert_int_equal(cgroup_first_pid(f.app), 0);
	assert_int_equal(cgroup_populated("/nonexistent"), -ENOENT);
	assert_int_equal(cgroup_first_pid("/nonexistent"), -ENOENT);
	assert_true(cgroup_move("/nonexistent", 0) < 0);
}

static void test_move_oneself(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(cgroup_move(f.sub, 0) || cgroup_first_pid(f.app) != getpid());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_signal_reaches_everybody(void **state)
{
	static const int signals[] = {SIGTERM, SIGKILL};

	(void)state;
	for (size_t s = 0; s < ARRAY_SIZE(signals); s++) {
		start(0, f.app);
		start(1, f.app);
		start(2, f.sub);
		start(3, f.deep);
		start(4, f.root); /* beside the app */
		assert_int_equal(cgroup_signal(f.app, signals[s]), 0);
		for (int i = 0; i < 4; i++)
			assert_ended_by(i, signals[s]);
		assert_empty(f.app);
		assert_int_equal(kill(f.children[4], 0), 0);
		assert_int_equal(waitpid(f.children[4], NULL, WNOHANG), 0);
		kill(f.children[4], SIGKILL);
		assert_ended_by(4, SIGKILL);
	}
	assert_int_equal(cgroup_signal(f.app, SIGTERM), 0); /* nobody there */
	assert_true(cgroup_signal("/nonexistent", SIGTERM) < 0);
	assert_true(cgroup_signal("/nonexistent", SIGKILL) < 0);
}

static void test_remove(void **state)
{
	(void)state;
	start(0, f.deep);
	assert_int_equal(cgroup_remove(f.app), -EBUSY);
	assert_int_equal(access(f.deep, F_OK), 0);
	kill(f.children[0], SIGKILL);
	assert_ended_by(0, SIGKILL);
	assert_empty(f.app);
	assert_int_equal(cgroup_remove(f.app), 0);
	assert_int_equal(access(f.app, F_OK), -1);
	assert_int_equal(access(f.root, F_OK), 0);
	assert_int_equal(cgroup_remove(f.app), 0); /* gone already */
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_root),
		TEST(test_records),
		TEST(test_processes),
		TEST(test_move_oneself),
		TEST(test_signal_reaches_everybody),
		TEST(test_remove),
	};

	if (geteuid() != 0) {
		fputs("cgroups need root\n", stderr);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
