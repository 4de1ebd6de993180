// SPDX-License-Identifier: GPL-2.0-or-later
// Exceptions that pass through functions which are traced.
#include <cstdio>
#include <stdexcept>

namespace sample
{
__attribute__((noinline)) int thrower(int x)
{
	if (x > 1)
		throw std::runtime_error("too many");
	return x;
}

__attribute__((noinline)) int between(int x)
{
	int r = thrower(x);

	asm volatile("");
	return r + 1;
}
} // namespace sample

int main()
{
	for (int i = 0; i < 4; i++) {
		try {
			printf("%d\n", sample::between(i));
		} catch (const std::exception &e) {
			printf("caught: %s\n", e.what());
		}
	}
	return 0;
}
