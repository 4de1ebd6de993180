// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -g -fno-pie -no-pie
/* Values that are fetched by every operation that there is: texts of a length that is told, structs
 * in registers, floating point. */
struct string { /* as Go has them */
	const char *str;
	unsigned long len;
};
struct pair {
	long a;
	const char *b;
};
enum color { RED, GREEN, BLUE = 7 };
struct record {
	struct string name;
	double d;
	enum color color;
	int list[3];
};
volatile long sink;

void take(struct string s, struct pair p, struct record *r);
__attribute__((noinline)) void take(struct string s, struct pair p, struct record *r)
{
	sink = (long)s.len + p.a + r->color;
	__asm__ volatile("" : : "r"(s.str), "r"(p.b), "r"(r) : "memory");
}

int main(void)
{
	struct record r = {{"in a record, and more", 11}, 0, BLUE, {1, 2, 3}};

	for (int i = 0; i < 3; i++) {
		r.d = 0.5 * i;
		take((struct string){"hello, world", 5}, (struct pair){i, "pair"}, &r);
	}
	return 0;
}
