/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searching sorted arrays. */
#ifndef AX_BASE_SEARCH_H
#define AX_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/*
 * The index of the first element above `x`, `n` if there is none. `v`: n elements of `size` bytes,
 * sorted by the uint64_t that each has at offset `at` in it; equal ones are below. May be NULL when
 * there are none.
 */
static inline size_t search_above(const void *v, size_t n, size_t size, size_t at, uint64_t x)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *element = (const char *)v + mid * size;

		if (*(const uint64_t *)(const void *)(element + at) <= x)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
