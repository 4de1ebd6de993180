// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What ax trace syscalls, files, signals, malloc and locks count, in known numbers.
 *
 *   tallied calls N            N getppid(), N read() that fail, and some sleep
 *   tallied refused N          N getppid() that a filter refuses, and N calls of no number
 *   tallied files DIR          opens, reads and writes files in known amounts
 *   tallied signals            sends itself signals of several kinds
 *   tallied leak N             allocates in several ways, and leaves a known part
 *   tallied scattered N        N times the same, with no frame pointer but what looks like one
 *   tallied churn THREADS N    allocates and frees, and leaves nothing
 *   tallied locks THREADS MS   threads that wait for a mutex that one of them holds for so long
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static void *volatile kept[16];

/* --- system calls --- */

static int calls(int n)
{
	const struct timespec t = {.tv_nsec = 20000000};
	char c;

	for (int i = 0; i < n; i++) {
		syscall(SYS_getppid);
		if (read(-1, &c, 1) != -1)
			return 1;
	}
	nanosleep(&t, NULL);
	return 0;
}

static int refused(int n)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 1;
	for (int i = 0; i < n; i++)
		if (syscall(SYS_getppid) != -1 || syscall(100000 + i) != -1)
			return 1;
	return 0;
}

/* --- files --- */

static int files(const char *dir)
{
	char path[4096], buf[1000] = "x";
	struct iovec v[2] = {{buf, 300}, {buf, 200}};
	int a, b;

	snprintf(path, sizeof(path), "%s/a", dir);
	a = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	snprintf(path, sizeof(path), "%s/b", dir);
	b = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (a < 0 || b < 0)
		return 1;
	for (int i = 0; i < 10; i++)
		if (write(a, buf, sizeof(buf)) != sizeof(buf))
			return 1;
	if (pread(a, buf, 700, 0) != 700 || writev(b, v, 2) != 500)
		return 1;
	lseek(a, 0, SEEK_SET);
	if (sendfile(b, a, NULL, 4000) != 4000)
		return 1;
	close(a);
	snprintf(path, sizeof(path), "%s/a", dir);
	a = open(path, O_WRONLY);
	if (read(a, buf, 1) != -1 || errno != EBADF)
		return 1;
	return 0;
}

/* --- signals --- */

static void ignore(int n)
{
	(void)n;
}

static int signals(void)
{
	union sigval v = {.sival_int = 7};
	sigset_t blocked;

	signal(SIGUSR1, ignore);
	signal(SIGUSR2, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGALRM);
	kill(getpid(), SIGALRM);
	sigqueue(getpid(), SIGUSR1, v);
	raise(SIGUSR1);
	if (kill(0x3ffffffe, SIGTERM) != -1)
		return 1;
	*(volatile int *)(uintptr_t)8 = 1;
	return 0;
}

/* --- memory --- */

NOINLINE static void *leaks_here(size_t n)
{
	void *p = malloc(n);

	__asm__ volatile("" ::: "memory");
	return p;
}

NOINLINE static void *leaks_aligned(void)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, 640))
		return NULL;
	return p;
}

NOINLINE static void *grows(void)
{
	void *p = realloc(NULL, 100), *q;

	q = realloc(p, 5000);
	__asm__ volatile("" ::: "memory");
	return q;
}

static int leak(int n)
{
	for (int i = 0; i < n; i++)
		kept[0] = leaks_here(1000);
	kept[1] = leaks_aligned();
	kept[2] = grows();
	kept[3] = calloc(30, 7);
	kept[4] = aligned_alloc(256, 1024);
	free(kept[4]);
	kept[5] = malloc(77);
	free(kept[5]);
	kept[6] = realloc(malloc(10), SIZE_MAX / 2); /* which fails: the 10 bytes are left */
	return !kept[2];
}

/* What a register points to that is no frame pointer is as a stack that is never twice the same. */
#if defined(__x86_64__)
void *malloc_with(void *frame, size_t n);
__asm__(".text\n"
	".type malloc_with, @function\n"
	"malloc_with:\n"
	"	push %rbp\n"
	"	mov %rdi, %rbp\n"
	"	mov %rsi, %rdi\n"
	"	call malloc@plt\n"
	"	pop %rbp\n"
	"	ret\n"
	".size malloc_with, . - malloc_with\n");
#else
static void *malloc_with(void *frame, size_t n)
{
	(void)frame;
	return malloc(n);
}
#endif

static int scattered(int n)
{
	uintptr_t *list = calloc(1, 64);

	for (int i = 0; i < n && list; i++) {
		uintptr_t *next = malloc_with(list, 64);

		next[0] = (uintptr_t)list;
		next[1] = 0x10000 + (uintptr_t)i * 64;
		list = next;
	}
	kept[0] = list;
	return !list;
}

static void *churn(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++) {
		void *p = malloc((size_t)(i % 500 + 1));

		if (i % 3 == 0)
			p = realloc(p, 700);
		__asm__ volatile("" : : "r"(p) : "memory");
		free(p);
	}
	return NULL;
}

static int run_threads(int n, void *(*f)(void *), void *arg)
{
	pthread_t t[64];

	for (int i = 0; i < n && i < 64; i++)
		if (pthread_create(&t[i], NULL, f, arg))
			return 1;
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* --- locks --- */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, free_one = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void waits_here(void)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	__asm__ volatile("" ::: "memory");
}

static void *waiter(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100000; i++) { /* nobody waits for this one */
		pthread_mutex_lock(&free_one);
		pthread_mutex_unlock(&free_one);
		if (i == 10)
			waits_here();
	}
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* who joins waits, too */
	return NULL;
}

static int locks(int n, int ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	pthread_t threads[64];

	pthread_mutex_lock(&held);
	for (int i = 0; i < n && i < 64; i++)
		if (pthread_create(&threads[i], NULL, waiter, NULL))
			return 1;
	nanosleep(&t, NULL);
	pthread_mutex_unlock(&held);
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0, m = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "calls"))
		return calls(n);
	if (!strcmp(what, "refused"))
		return refused(n);
	if (!strcmp(what, "files") && argc > 2)
		return files(argv[2]);
	if (!strcmp(what, "signals"))
		return signals();
	if (!strcmp(what, "leak"))
		return leak(n);
	if (!strcmp(what, "scattered"))
		return scattered(n);
	if (!strcmp(what, "churn"))
		return run_threads(n, churn, &m);
	if (!strcmp(what, "locks"))
		return locks(n, m);
	return 2;
}
