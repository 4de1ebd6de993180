// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What an IFUNC chooses from. The function that chooses returns an address that it computed
 * relative to itself, so the addresses of code that it names are the implementations.
 */
#include "probes/elf/symbols.h"
#include "probes/place/priv.h"

#define RESOLVER_MAX 4096

static bool add(struct binary *b, uint64_t address, uint64_t *ret, size_t *n, size_t max)
{
	uint64_t offset;

	if (!image_offset(&b->image, address, true, &offset))
		return true;
	for (size_t i = 0; i < *n; i++)
		if (ret[i] == address)
			return true;
	if (*n == max)
		return false;
	ret[(*n)++] = address;
	return true;
}

int place_implementations(struct binary *b, uint64_t address, uint64_t size, uint64_t *ret,
			  size_t max)
{
	uint64_t len = size && size < RESOLVER_MAX ? size : RESOLVER_MAX, offset;
	autofree void *code = NULL;
	struct x86_insn i;
	size_t n = 0;
	int r;

	if (b->image.machine != EM_X86_64 || !image_offset(&b->image, address, true, &offset))
		return 0;
	len = len < b->image.size - offset ? len : b->image.size - offset;
	if (!binary_may_read(b, len))
		return 0;
	r = image_load(&b->image, offset, len, &code);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t at = 0; at < len; at += i.len) {
		uint64_t to = address + at;

		if (!x86_decode((uint8_t *)code + at, len - at, &i) ||
		    (!size && i.flow == FLOW_RETURN))
			break;
		to += i.len;
		/* lea X(%rip),%reg; in programs with fixed addresses mov $X,%reg */
		if (i.map == 0 && !i.vex && i.opcode == 0x8d && x86_rip_relative(&i))
			to += (uint64_t)(int64_t)i.disp;
		else if (b->image.type == ET_EXEC && i.map == 0 && !i.vex &&
			 ((i.opcode & 0xf8) == 0xb8 || (i.opcode == 0xc7 && x86_mod(&i) == 3)))
			to = (uint64_t)i.imm;
		else
			continue;
		if (!add(b, to, ret, &n, max))
			break;
	}
	return (int)n;
}
