// SPDX-License-Identifier: GPL-2.0-or-later
/* Packed bytes come back whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <zstd.h>

#include "base/packed.h"

static char plain[200000];
static char packed[ZSTD_COMPRESSBOUND(sizeof(plain))];
static size_t packed_size;

static int pack(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (char)(i * i >> 7);
	packed_size = ZSTD_compress(packed, sizeof(packed), plain, sizeof(plain), 19);
	return ZSTD_isError(packed_size) ? -1 : 0;
}

static void comes_back_whole(void **state)
{
	(void)state;
	/* twice: what the first call gave is freed by the second */
	for (int i = 0; i < 2; i++) {
		size_t size;
		const void *bytes = unpacked(packed, packed_size, &size);

		assert_non_null(bytes);
		assert_int_equal(size, sizeof(plain));
		assert_memory_equal(bytes, plain, size);
	}
	unpacked_free();
	unpacked_free();
}

static void nothing_of(const void *bytes, size_t n)
{
	size_t size = 7;

	errno = 0;
	assert_null(unpacked(bytes, n, &size));
	assert_int_equal(size, 0);
	assert_int_equal(errno, EBADMSG);
}

static void damaged_is_refused(void **state)
{
	/* says that it holds 2^40 bytes */
	static const unsigned char vast[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0,
					     0,	   0,	 1,    0,    0,	   1, 0, 0};

	(void)state;
	nothing_of(packed, 0);
	nothing_of(packed, packed_size - 1);
	nothing_of(packed, packed_size / 2);
	nothing_of(packed + 1, packed_size - 1);
	nothing_of(plain, 1000);
	nothing_of(vast, sizeof(vast));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back_whole),
		cmocka_unit_test(damaged_is_refused),
	};

	return cmocka_run_group_tests_name("packed", tests, pack, NULL);
}
