// SPDX-License-Identifier: GPL-2.0-or-later
/* Arguments of several sizes, with their signs: 303 calls. */
__attribute__((noinline, noclone)) static void sized(signed char a, unsigned short b, long c)
{
	__asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
}
int main(void)
{
	for (int i = -3; i < 300; i++)
		sized((signed char)i, (unsigned short)(i * 1000), i * (1l << 40));
	return 0;
}
