// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program for arm64, whose places, variables and callers are looked for on any machine
 * (test_probe_arm64.c). The seed fuzz_dwarf/arm64 is what Debian 12's cross compiler made of it:
 *
 *	aarch64-linux-gnu-gcc -O2 -g -gdwarf-5 -fno-pie -static -nostdlib \
 *		-mbranch-protection=standard -fasynchronous-unwind-tables \
 *		-fdebug-prefix-map=$PWD=/src -Wl,--build-id=none,--eh-frame-hdr \
 *		-Wl,-z,max-page-size=0x1000,-z,noseparate-code \
 *		-o tests/fuzz/corpus/fuzz_dwarf/arm64 tests/unit/arm64/program.c
 */
#ifdef __aarch64__
#include <stddef.h>
struct node {
	const char *name;
	int number;
	unsigned low : 3, mid : 5;
	struct node *next;
};
struct big {
	long v[4];
};
struct node second = {"second", 7, 5, 9, NULL};
long counter = 41;

__attribute__((noinline)) long leaf(long a, long b)
{
	return a * 3 + b;
}

__attribute__((noinline)) long work(int n, struct node *p, signed char c, struct big b, long e,
				    long f, long g, long h, long on_stack)
{
	long sum = leaf(n, c) + b.v[2] + e + f + g + h;

	__asm__ __volatile__("990: nop\n"
			     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte "
			     "992f-991f, 994f-993f, 3\n"
			     "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, 0, 0\n"
			     ".asciz \"prov\"\n.asciz \"at\"\n.asciz \"-4@%w0 8@%1 -8@%2 "
			     "8@%3\"\n994: .balign 4\n.popsection\n" ::"r"(n),
			     "r"(p), "r"(sum), "m"(p->next));
	counter += sum;
	if (n > 3)
		return leaf(sum, on_stack) + p->number;
	return sum + on_stack;
}

__attribute__((noinline)) long atomic(long *p)
{
	long old, new;
	int failed;

	__asm__ __volatile__(
		"1: ldaxr %0, [%3]\n add %1, %0, #1\n stlxr %w2, %1, [%3]\n cbnz %w2, 1b"
		: "=&r"(old), "=&r"(new), "=&r"(failed)
		: "r"(p)
		: "memory");
	return old;
}

void _start(void)
{
	struct big b = {{1, 2, 3, 4}};
	struct node n = {"node", 5, 1, 2, &second};

	work(4, &n, -5, b, 5, 6, 7, 8, 99);
	atomic(&counter);
	for (;;)
		;
}
#endif
