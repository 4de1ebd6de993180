// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a map of a just-in-time compiler, which grows while it is read: what is found is
 * where it was said to be, and reading in two pieces is like reading at once. */
#include <fcntl.h>
#include <sys/mman.h>

#include "probes/process/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static struct jit read_in_pieces(int file, const uint8_t *data, size_t size, size_t first)
{
	struct jit j = JIT_NONE;

	check(ftruncate(file, 0) == 0 && pwrite(file, data, first, 0) == (ssize_t)first);
	j.fd = fcntl(file, F_DUPFD_CLOEXEC, 3);
	check(j.fd >= 0);
	jit_read(&j);
	check(pwrite(file, data, size, 0) == (ssize_t)size);
	jit_read(&j);
	return j;
}

static void check_same(const struct jit *a, const struct jit *b, uint64_t address)
{
	uint64_t at_a = 0, at_b = 0;
	const char *in_a = jit_find(a, address, &at_a), *in_b = jit_find(b, address, &at_b);

	check(!in_a == !in_b);
	check(!in_a || (streq(in_a, in_b) && at_a == at_b && at_a <= address && *in_a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int file = -1;
	struct jit whole, pieces;

	if (file < 0)
		file = memfd_create("map", MFD_CLOEXEC);
	check(file >= 0);
	whole = read_in_pieces(file, data, size, size);
	pieces = read_in_pieces(file, data, size, size ? data[0] % size : 0);
	check(whole.n == pieces.n);
	for (uint64_t address = 0; address < 0x2000; address += 7)
		check_same(&whole, &pieces, address);
	check_same(&whole, &pieces, UINT64_MAX);
	jit_free(&whole);
	jit_free(&pieces);
	return 0;
}
