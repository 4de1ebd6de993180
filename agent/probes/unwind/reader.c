// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/unwind/priv.h"

uint64_t reader_fixed(struct reader *r, size_t size)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->at) < size) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&v, r->at, size);
	r->at += size;
	return v;
}

uint64_t reader_uleb(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t b = (uint8_t)reader_fixed(r, 1);

		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

int64_t reader_sleb(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t b = (uint8_t)reader_fixed(r, 1);

		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		if (shift + 7 < 64 && (b & 0x40))
			v |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)v;
	}
	r->bad = true;
	return 0;
}

void reader_skip(struct reader *r, uint64_t len)
{
	if (len > (uint64_t)(r->end - r->at)) {
		r->bad = true;
		r->at = r->end;
		return;
	}
	r->at += len;
}

uint64_t reader_pointer(struct reader *r, uint8_t encoding, uint64_t place)
{
	uint64_t v = 0;

	switch (encoding & ENCODED_FORM) {
	case 0x00: /* as wide as an address */
	case 0x04:
	case 0x0c:
		v = reader_fixed(r, 8);
		break;
	case 0x01:
		v = reader_uleb(r);
		break;
	case 0x09:
		v = (uint64_t)reader_sleb(r);
		break;
	case 0x02:
		v = reader_fixed(r, 2);
		break;
	case 0x0a:
		v = (uint64_t)(int64_t)(int16_t)reader_fixed(r, 2);
		break;
	case 0x03:
		v = reader_fixed(r, 4);
		break;
	case 0x0b:
		v = (uint64_t)(int64_t)(int32_t)reader_fixed(r, 4);
		break;
	default:
		r->bad = true;
	}
	if ((encoding & ENCODED_RELATION) == ENCODED_PCREL)
		v += place;
	else if ((encoding & ENCODED_RELATION) != ENCODED_ABSOLUTE)
		r->bad = true;
	if (encoding & ENCODED_INDIRECT)
		r->bad = true;
	return v;
}
