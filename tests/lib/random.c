// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/random.h"

uint64_t random_state;

uint32_t random_number(void)
{
	/* splitmix64, public domain: https://prng.di.unimi.it/splitmix64.c */
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(z ^ z >> 31);
}
