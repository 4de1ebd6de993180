// SPDX-License-Identifier: GPL-2.0-or-later
/* What a tracer may change: results, a variable, what a pointer points to. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define PROBED __attribute__((noinline, noclone))
#define HERE   __asm__ volatile("" ::: "memory")

int limit = 10;

PROBED long check(long n)
{
	HERE;
	return n % 2;
}

PROBED void greet(const char *name)
{
	HERE;
	printf("hello %s, limit %d\n", name, limit);
	fflush(stdout);
}

/* Each line that comes in is a name; the answer says what check() returned for its length. */
int main(void)
{
	char name[64];

	while (fgets(name, sizeof(name), stdin)) {
		name[strcspn(name, "\n")] = 0;
		greet(name);
		printf("%s: %ld\n", name, check((long)strlen(name)));
		fflush(stdout);
	}
	return 0;
}
