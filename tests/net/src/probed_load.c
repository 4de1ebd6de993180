// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is hard on probes:
 *
 *   probed_load names N	8 threads name pages that are gone each time, N times
 *   probed_load slow 1		6 threads wait for memory while others hit the same probe
 *   probed_load leave 1	calls that never return, and 100 that do
 *   probed_load numbers N	N calls with as many values
 *   probed_load few 1		pointers to nothing, and types that differ
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define PROBED __attribute__((noinline, noclone))
#define HERE   __asm__ volatile("" ::: "memory")
#define PAGE   4096L
#define SLOW   6
PROBED long named(const char *s, long n)
{
	HERE;
	return n + !!s;
}
PROBED long number(long n)
{
	HERE;
	return n + 1;
}
PROBED long at(volatile long *p, long n)
{
	HERE;
	return n + !!p;
}
PROBED long one_text(const char *x, long n)
{
	HERE;
	return n + !!x;
}
PROBED long one_number(int x, long n)
{
	HERE;
	return n + x;
}
static long times;
static char *area;
static int faults;
static volatile int done;
static void *name_often(void *arg)
{
	char text[300], *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(text, 'a' + (int)(long)arg, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	__asm__ volatile("" : : "r"(text) : "memory"); /* nobody but a probe reads it */
	for (long i = 0; i < times; i++) {
		named(text, (long)arg);
		/* these two pages are gone, and there again when somebody looks */
		madvise(page, 2 * PAGE, MADV_DONTNEED);
		named(page + PAGE - 1, -1);
	}
	return NULL;
}
static void *name_slow(void *arg)
{
	named(area + PAGE * (long)arg, 1);
	return NULL;
}
static void *fill(void *arg)
{
	static char page[PAGE] = "slow";
	struct uffd_msg m;
	while (!done)
		usleep(1000);
	while (read(faults, &m, sizeof(m)) == sizeof(m)) {
		struct uffdio_copy c = {.dst = m.arg.pagefault.address & ~(PAGE - 1),
					.src = (unsigned long)page,
					.len = PAGE};
		ioctl(faults, UFFDIO_COPY, &c);
	}
	return arg;
}
static int slow(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t t[SLOW], filler;
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
		return 77;
	area = mmap(NULL, SLOW * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r.range.start = (unsigned long)area;
	r.range.len = SLOW * PAGE;
	if (ioctl(faults, UFFDIO_REGISTER, &r))
		return 77;
	pthread_create(&filler, NULL, fill, NULL);
	for (long i = 0; i < SLOW; i++)
		pthread_create(&t[i], NULL, name_slow, (void *)i);
	usleep(100000); /* they all wait now */
	for (int i = 0; i < 1000; i++)
		named("fast", 2);
	done = 1;
	for (int i = 0; i < SLOW; i++)
		pthread_join(t[i], NULL);
	return 0;
}
static jmp_buf out;
static volatile int leave;
PROBED int left(int n)
{
	if (leave)
		longjmp(out, 1);
	return n + 1;
}
PROBED void deeper(int n)
{
	volatile char pad[16] = {0};
	if (n > 0)
		deeper(n - 1);
	else
		left(n);
	pad[0] = 1;
}
static void leave_often(void)
{
	for (int i = 0; i < 40; i++) {
		if (fork()) {
			wait(NULL);
			continue;
		}
		leave = 1;
		for (volatile int j = 0; j < 1000; j++)
			if (!setjmp(out))
				deeper(j);
		_exit(0);
	}
	for (int i = 0; i < 100; i++)
		left(i);
}
int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	pthread_t t[8];
	volatile long three = 3, four = 4;
	times = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(what, "slow"))
		return slow();
	if (!strcmp(what, "leave"))
		leave_often();
	for (long i = 0; !strcmp(what, "numbers") && i < times; i++)
		number(i);
	if (!strcmp(what, "names")) {
		for (long i = 0; i < 8; i++)
			pthread_create(&t[i], NULL, name_often, (void *)i);
		for (long i = 0; i < 8; i++)
			pthread_join(t[i], NULL);
	}
	if (!strcmp(what, "few")) {
		at(NULL, 1);
		at(&three, 2);
		at(&four, 3);
		for (int i = 0; i < 3; i++) {
			one_text(i ? "a text longer than a word" : "a text longer", 0);
			one_number(i - 1, 0);
		}
	}
	return 0;
}
