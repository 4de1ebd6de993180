// SPDX-License-Identifier: GPL-2.0-or-later
/* Optimised: functions that end by jumping to another, and one that has no code of its own. */
__attribute__((noinline)) int last(int x)
{
	__asm__ volatile("");
	return x * 3;
}

__attribute__((noinline)) int middle(int x)
{
	__asm__ volatile("");
	return last(x + 1);
}

__attribute__((noinline)) int first(int x)
{
	__asm__ volatile("");
	return middle(x + 1);
}

static inline int tiny(int x)
{
	return x + 10;
}

__attribute__((noinline)) int caller(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += first(tiny(i));
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	return caller(argc + 1) == 999;
}
