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

/* Results that are not in the register that a number or pointer is in. */

PROBED double half(double n)
{
	HERE;
	return n / 2;
}

struct wide {
	long v[4];
};

PROBED struct wide make_wide(long n)
{
	HERE;
	return (struct wide){{n, n, n, n}};
}

struct pair {
	long a, b;
};

PROBED struct pair make_pair(long n)
{
	HERE;
	return (struct pair){n, n};
}

PROBED unsigned char small(long n)
{
	HERE;
	return (unsigned char)n;
}

/* Each line that comes in is a name; the answer says what check() returned for its length. */
int main(void)
{
	char name[64];

	while (fgets(name, sizeof(name), stdin)) {
		name[strcspn(name, "\n")] = 0;
		greet(name);
		printf("%s: %ld\n", name, check((long)strlen(name)));
		printf("small %d\n", small((long)strlen(name)));
		if (half(3) != 1.5 || make_wide(1).v[3] != 1 || make_pair(1).b != 1)
			printf("%s: other results\n", name);
		fflush(stdout);
	}
	return 0;
}
