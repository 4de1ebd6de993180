// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A small just-in-time compiler: functions that return a number, each executed as soon as it is
 * made.
 *
 *	jit wx N	N versions on one page, which is never writable and executable
 *	jit pkey N	the same by pkey_mprotect()
 *	jit hidden N	the same on a page that may be executed only, not read
 *	jit none N	version N on such a page, which could not be read before; it waits
 *	jit lost N	the same, but the program ends at once
 *	jit toggle N	N changes of permissions, every second one executable, of nothing
 *	jit threads N	versions in four threads: numbers from 1000, 2000, ...
 *	jit fork N	a child has one version of its own of its parent's page, N; the parent 1
 *	jit rwx N	version N on a page that is both
 *	jit unmapped N	the same, given back before the end
 *	jit many N	N versions, each on such a page at another place, given back but for the
 *last jit dual N	version N written by another mapping of the same memory (memfd) jit readonly
 *N	the same, executed by a descriptor that is not for writing
 *	jit program N	executes `jit wx N` after it made version N + 1 on a page that is both
 *	jit commands N	starts N commands, and has 64 pages that are both
 *	jit wait N	version N on a page that is both; a line when it is there; then it waits
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 65536 /* of any system */

static int (*protect)(void *at, size_t len, int prot) = mprotect;
static int executable = PROT_READ | PROT_EXEC;

static int by_pkey(void *at, size_t len, int prot)
{
	return (int)syscall(SYS_pkey_mprotect, at, len, prot, -1);
}

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void *map(int prot, int flags, int fd)
{
	void *at = mmap(NULL, PAGE, prot, flags, fd, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

/* `return n`, n below 65536 */
static void write_code(void *at, unsigned n)
{
#if defined(__x86_64__)
	uint8_t code[] = {0xb8, (uint8_t)n, (uint8_t)(n >> 8), 0, 0, 0xc3};
#elif defined(__aarch64__)
	uint32_t code[] = {0x52800000u | n << 5, 0xd65f03c0u};
#endif
	memcpy(at, code, sizeof(code));
}

static void run_code(void *at, unsigned n)
{
	unsigned (*f)(void);

	__builtin___clear_cache(at, (char *)at + 8);
	memcpy(&f, &at, sizeof(f));
	must(f() == n, "what was made returns something else");
}

static void version(void *at, unsigned n)
{
	must(protect(at, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	write_code(at, n);
	must(protect(at, PAGE, executable) == 0, "mprotect");
	run_code(at, n);
}

static void versions(unsigned first, unsigned n)
{
	void *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	for (unsigned i = 0; i < n; i++)
		version(at, first + i);
}

/* When it becomes executable nobody can read it, and before neither. */
static void none(unsigned n)
{
	void *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	write_code(at, n);
	must(mprotect(at, PAGE, PROT_NONE) == 0, "mprotect");
	must(mprotect(at, PAGE, PROT_EXEC) == 0, "mprotect");
	run_code(at, n);
}

static void toggle(unsigned n)
{
	void *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	for (unsigned i = 0; i < n; i++)
		must(protect(at, PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC) == 0, "mprotect");
}

static unsigned count;

static void *thread(void *arg)
{
	versions((unsigned)(uintptr_t)arg, count);
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		must(pthread_create(&t[i], NULL, thread, (void *)(1000 * (i + 1))) == 0, "thread");
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void forks(unsigned n)
{
	void *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int status = 1;
	pid_t pid;

	version(at, 1);
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		run_code(at, 1);
		version(at, n);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	must(status == 0, "the child");
	run_code(at, 1);
	printf("%d %d\n", getpid(), pid);
}

static void *both(unsigned n)
{
	void *at = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	write_code(at, n);
	run_code(at, n);
	return at;
}

/* None of the places is beside another one. */
static void many(unsigned n)
{
	size_t size = 2 * PAGE * (size_t)n;
	char *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(room != MAP_FAILED, "mmap");
	for (unsigned i = 1; i <= n; i++) {
		void *at = mmap(room + 2 * PAGE * (size_t)(i - 1), PAGE,
				PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		must(at != MAP_FAILED, "mmap");
		write_code(at, i);
		run_code(at, i);
		if (i < n)
			must(munmap(at, PAGE) == 0, "munmap");
	}
}

static void dual(unsigned n, int flags)
{
	int fd = (int)syscall(SYS_memfd_create, "code", 0), again;
	char path[32];
	void *w, *x;

	must(fd >= 0 && ftruncate(fd, PAGE) == 0, "memfd_create");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags);
	must(again >= 0, path);
	w = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	x = map(PROT_READ | PROT_EXEC, MAP_SHARED, again);
	write_code(w, n);
	run_code(x, n);
}

static void commands(unsigned n)
{
	char *at = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED, "mmap");
	memset(at, 1, 64 * 4096);
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = vfork();

		if (!pid) {
			execlp("true", "true", (char *)NULL);
			_exit(1);
		}
		must(pid > 0 && waitpid(pid, NULL, 0) == pid, "vfork");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	must(argc > 2, "usage: jit WHAT N");
	count = (unsigned)atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "pkey"))
		protect = by_pkey;
	if (!strcmp(what, "hidden"))
		executable = PROT_EXEC;
	if (!strcmp(what, "wx") || !strcmp(what, "pkey") || !strcmp(what, "hidden"))
		versions(1, count);
	else if (!strcmp(what, "none") || !strcmp(what, "lost"))
		none(count);
	else if (!strcmp(what, "toggle"))
		toggle(count);
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "fork"))
		forks(count);
	else if (!strcmp(what, "rwx"))
		both(count);
	else if (!strcmp(what, "unmapped"))
		must(munmap(both(count), PAGE) == 0, "munmap");
	else if (!strcmp(what, "many"))
		many(count);
	else if (!strcmp(what, "dual"))
		dual(count, O_RDWR);
	else if (!strcmp(what, "readonly"))
		dual(count, O_RDONLY);
	else if (!strcmp(what, "program")) {
		both(count + 1);
		execl(argv[0], argv[0], "wx", argv[2], (char *)NULL);
		must(0, "execl");
	} else if (!strcmp(what, "commands")) {
		commands(count);
	}
	if (!strcmp(what, "none")) {
		usleep(500000);
	} else if (!strcmp(what, "wait")) {
		both(count);
		printf("%d\n", getpid());
		pause();
	}
	return 0;
}
