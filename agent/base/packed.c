/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/packed.h"

#include <errno.h>
#include <stdlib.h>

#include <zstd.h>

/* more than any object has, and less than what zstd says for an unknown size or for an error */
#define MOST (1ULL << 26)

static _Thread_local void *last;

void unpacked_free(void)
{
	free(last);
	last = NULL;
}

const void *unpacked(const void *packed, size_t packed_size, size_t *size)
{
	unsigned long long whole = ZSTD_getFrameContentSize(packed, packed_size);

	*size = 0;
	unpacked_free();
	if (whole > MOST) {
		errno = EBADMSG;
		return NULL;
	}
	last = malloc(whole);
	if (!last) {
		errno = ENOMEM;
		return NULL;
	}
	if (ZSTD_decompress(last, whole, packed, packed_size) != whole) {
		unpacked_free();
		errno = EBADMSG;
		return NULL;
	}
	*size = whole;
	return last;
}
