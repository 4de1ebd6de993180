// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that grows, as a mapping: the kernel zeroes only the pages that are used, and growing
 * moves page tables instead of bytes.
 */
#include <sys/mman.h>

#include "compile/compile.h"

#define ARENA_FIRST ((size_t)64 << 10)

void arena_free(struct arena *a)
{
	if (a->data)
		munmap(a->data, a->cap);
	*a = (struct arena){0};
}

static int grow(struct arena *a, size_t need)
{
	size_t cap = a->cap ? a->cap : ARENA_FIRST;
	void *p;

	while (cap < need)
		cap *= 2;
	if (a->data)
		p = mremap(a->data, a->cap, cap, MREMAP_MAYMOVE);
	else
		p = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	a->data = p;
	a->cap = cap;
	return 0;
}

int64_t arena_add(struct arena *a, size_t size, size_t align)
{
	size_t at = (a->size + align - 1) & ~(align - 1);

	if (at > ARENA_MAX || size > ARENA_MAX - at)
		return -EFBIG;
	if (at + size > a->cap || !a->data) {
		int r = grow(a, at + size);

		if (r < 0)
			return r;
	}
	a->size = at + size;
	return (int64_t)at;
}
