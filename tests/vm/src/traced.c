// SPDX-License-Identifier: GPL-2.0-or-later
/* A program to be traced: traced N [DEPTH] calls its functions N times, and reads as often. */
// flags: -O1 -fno-optimize-sibling-calls -Wl,--eh-frame-hdr
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline, noclone)) int twice(int x)
{
	__asm__ volatile("" ::: "memory");
	return 2 * x;
}

static __attribute__((noinline, noclone)) int named(const char *name, int n)
{
	__asm__ volatile("" ::: "memory");
	return name[0] + twice(n);
}

static __attribute__((noinline, noclone)) int deep(int n)
{
	__asm__ volatile("" ::: "memory");
	return n ? deep(n - 1) + 1 : 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, depth = argc > 2 ? atoi(argv[2]) : 3, sum = 0;
	char file[] = "/dev/zero"; /* on the stack, where it is in memory when it is asked for */
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char c[10];

	for (int i = 0; i < n; i++) {
		sum += named("a name", i) + deep(depth);
		sum += (int)read(fd, c, (size_t)(i % 10) + 1);
	}
	printf("%d\n", sum);
	return 0;
}
