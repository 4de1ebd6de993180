// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs that start others, whose results tell whether they were disturbed while these were
 * stepped. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define STEPPED __attribute__((noinline, noclone))
#define HERE	__asm__ volatile("" ::: "memory")

static volatile long sink;

STEPPED long work(long n)
{
	long sum = 0;

	HERE;
	for (volatile long i = 0; i < 20; i++)
		sum += i % 3;
	return sum + n;
}

STEPPED void round_of(long n) __asm__("round");
STEPPED void round_of(long n)
{
	HERE;
	for (volatile long i = 0; i < n; i++)
		sink += i;
}

STEPPED int becomes(char **argv)
{
	HERE;
	return execv(argv[0], argv);
}

static int status_of(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- fork() --- */

/* Each child says by its status what it computed. */
static int forks(int n)
{
	long last = work(0);

	for (int i = 1; i <= n; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit((int)(work(i) & 0x7f));
		last = status_of(pid);
	}
	printf("%ld\n", last);
	return 0;
}

/* Which end in the midst of their steps. */
static int ends(int n)
{
	int ended = 0;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			sink = work(i);
			_exit(0);
		}
		ended += status_of(pid) == 0;
	}
	printf("%d\n", ended);
	return 0;
}

static int orphan(void)
{
	pid_t pid = fork(), parent;
	int n = 0;

	if (pid)
		return status_of(pid);
	parent = getpid();
	if (fork())
		_exit(0);
	while (getppid() == parent && n++ < 5000)
		usleep(1000);
	sink = work(1);
	_exit(0);
}

static int killed(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			sink = work(1);
	usleep(50000);
	kill(pid, SIGKILL);
	printf("%d\n", status_of(pid));
	return 0;
}

/* A child that is stopped and goes on, as a shell has it. */
static int stops(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		sink = work(1);
		raise(SIGSTOP);
		sink = work(1);
		_exit(5);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return 1;
	printf("stopped %d\n", WSTOPSIG(status));
	kill(pid, SIGCONT);
	printf("%d\n", status_of(pid));
	return 0;
}

/* --- other calls --- */

static int starts(const char *how, char **argv)
{
	pid_t pid = -1;

	if (!strcmp(how, "spawn"))
		posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	else if (!strcmp(how, "clone"))
		pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	else
		pid = vfork();
	if (!pid)
		_exit(becomes(argv));
	printf("status %d\n", status_of(pid));
	return 0;
}

static int in_clone(void *arg)
{
	for (int i = 0; i < 50; i++) {
		sink = work(i);
		usleep(5000);
	}
	return (int)work((long)(intptr_t)arg);
}

/* Without the signal of fork(): the kernel tells of it as of a thread. */
static int clones(int flags)
{
	static char stack[65536] __attribute__((aligned(16)));
	long own = work(0);
	pid_t pid = clone(in_clone, stack + sizeof(stack), flags, (void *)1);

	printf("%d\n", own == work(0) ? status_of(pid) : -1);
	return 0;
}

/* --- for long --- */

/* With two children, until the input ends. */
static int endless(void)
{
	char c;
	pid_t pid[2];
	int bad = 0;

	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i])
			break;
	}
	if (pid[0] && pid[1]) {
		printf("ready\n");
		fflush(stdout);
	}
	fcntl(0, F_SETFL, O_NONBLOCK);
	do {
		round_of(500);
		usleep(100);
	} while (read(0, &c, 1) != 0);
	if (!pid[0] || !pid[1])
		_exit(0);
	for (int i = 0; i < 2; i++)
		bad += status_of(pid[i]) != 0;
	printf(bad ? "ended badly\n" : "ended\n");
	return bad;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(mode, "forks"))
		return forks(n);
	if (!strcmp(mode, "ends"))
		return ends(n);
	if (!strcmp(mode, "orphan"))
		return orphan();
	if (!strcmp(mode, "killed"))
		return killed();
	if (!strcmp(mode, "stops"))
		return stops();
	if (!strcmp(mode, "shared"))
		return clones(CLONE_VM);
	if (!strcmp(mode, "untraced"))
		return clones(CLONE_UNTRACED);
	if (argc > 3)
		return starts(mode, argv + 2);
	return endless();
}
