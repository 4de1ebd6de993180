// SPDX-License-Identifier: GPL-2.0-or-later
/* Values of all types that C has, as parameters, in memory and returned. */
#include <stdbool.h>

enum color { RED, GREEN, BLUE = 7 };
enum flags { F_READ = 1, F_WRITE = 2, F_EXEC = 4, F_TRUNC = 8 };
struct point {
	double x, y;
};
struct item {
	char name[8];
	const char *why;
	enum color color;
	enum flags flags;
	unsigned low : 3;
	int mid : 5;
	unsigned long wide : 40;
	bool on;
	struct point at;
	union {
		int i;
		float f;
	} u;
	int list[3];
	short grid[2][2];
	struct item *next;
	long double exact;
	char rest[4000];
};
struct small {
	int a;
	short b;
};
struct pair {
	long a;
	const char *b;
};
struct mixed {
	long n;
	double d;
};
volatile long sink;
double numbers[] = {1.5, -0.25, 1e300};

__attribute__((noinline)) int take(struct item *it, struct small s, struct pair p, enum color c,
				   double d, struct mixed m)
{
	sink = it->color + s.a + p.a + c + (long)d + m.n + (long)m.d;
	__asm__ volatile("" : : "r"(it), "r"(p.b), "r"(numbers) : "memory");
	return -2;
}

__attribute__((noinline)) struct small give(int n)
{
	struct small s = {n, 5};

	sink = n;
	return s;
}

__attribute__((noinline)) struct mixed give_mixed(int n)
{
	struct mixed m = {n, 2.5};

	sink = n;
	return m;
}

int main(void)
{
	static struct item it = {.name = "abc",
				 .why = "because",
				 .flags = F_READ | F_EXEC,
				 .low = 5,
				 .mid = -3,
				 .wide = 0x1234567890,
				 .on = true,
				 .u.f = 1,
				 .list = {1, 2, 3},
				 .grid = {{1, 2}, {3, -4}},
				 .exact = 3.25L};

	it.next = &it;
	for (int i = 0; i < 3; i++) {
		it.at = (struct point){i, -0.1};
		it.color = i == 1 ? GREEN : BLUE;
		take(&it, (struct small){i, -7}, (struct pair){i, "pair"}, GREEN, 2.5,
		     (struct mixed){i, 0.5});
		give(i);
		give_mixed(i);
	}
	return 0;
}
