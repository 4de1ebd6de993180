// SPDX-License-Identifier: GPL-2.0-or-later
/* The code of one function. */
#include <inttypes.h>

#include "probes/elf/symbols.h"
#include "probes/place/priv.h"

void place_code_free(struct code *c)
{
	free(c->bytes);
}

int place_no_code(const struct binary *b, uint64_t offset, struct error *e)
{
	return error_set(e, -EINVAL, "there is no code at 0x%" PRIx64 " in %s", offset, b->path);
}

int place_load_code(struct binary *b, uint64_t address, uint64_t end, struct code *c,
		    struct error *e)
{
	uint64_t len = end - address, offset;
	void *bytes;
	int r;

	if (!image_offset(&b->image, address, true, &offset))
		return place_no_code(b, address, e);
	if (len > b->image.size - offset)
		len = b->image.size - offset;
	if (len > CODE_MAX)
		len = CODE_MAX;
	if (!binary_may_read(b, len) && len > X86_LEN_MAX)
		len = X86_LEN_MAX;
	r = image_load(&b->image, offset, len, &bytes);
	if (r < 0)
		return error_set(e, r, "the code of %s cannot be read: %s", b->path, strerror(-r));
	*c = (struct code){.bytes = bytes, .len = len, .address = address};
	return 0;
}

int place_bytes(struct binary *b, uint64_t offset, uint8_t *bytes, size_t *n)
{
	if (offset >= b->image.size)
		return -ENOEXEC;
	if (*n > b->image.size - offset)
		*n = b->image.size - offset;
	return image_read(&b->image, offset, bytes, *n);
}
