// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The returns of a function: where probes on the returns of Go functions go, whose stack a
 * uretprobe would break, and those of C++ functions that exceptions pass through.
 */
#include "probes/elf/symbols.h"
#include "probes/place/place.h"
#include "probes/place/priv.h"

static int add_offset(uint64_t **offsets, size_t *n, uint64_t offset)
{
	uint64_t *v = *offsets;

	/* doubled at each power of two */
	if (!(*n & (*n - 1))) {
		v = reallocarray(v, *n ? *n * 2 : 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		*offsets = v;
	}
	v[(*n)++] = offset;
	return 0;
}

static int find_returns(const struct binary *b, const struct code *c, uint64_t offset,
			uint64_t **offsets, size_t *n)
{
	bool x86 = b->image.machine == EM_X86_64;
	size_t at = 0;
	int r = 0;

	while (!r && at < c->len) {
		struct x86_insn i = {.len = 4};
		bool returns;

		if (x86) {
			if (!x86_decode(c->bytes + at, c->len - at, &i))
				return -EILSEQ;
			returns = i.flow == FLOW_RETURN;
		} else {
			if (c->len - at < 4)
				break;
			returns = arm64_is_return(get_u32(c->bytes + at));
		}
		if (returns)
			r = add_offset(offsets, n, offset + at);
		at += i.len;
	}
	return r;
}

int binary_returns(struct binary *b, const struct symbol *s, uint64_t **offsets, size_t *n,
		   struct error *e)
{
	struct code c CLEANUP(place_code_free) = {0};
	autofree uint64_t *found = NULL;
	size_t n_found = 0;
	uint64_t end = symbols_end(b, s->address, s->size);
	int r;

	if (b->image.machine != EM_X86_64 && b->image.machine != EM_AARCH64)
		return error_set(e, -ENOTSUP, "%s is for a processor that ax does not know",
				 b->path);
	if (end - s->address > CODE_MAX)
		return error_set(e, -EFBIG, "%.100s in %s is too big to look for its returns",
				 s->name, b->path);
	r = place_load_code(b, s->address, end, &c, e);
	if (r < 0)
		return r;
	if (c.len < end - s->address)
		return error_set(e, -EFBIG, "the code of %.100s in %s is not whole", s->name,
				 b->path);
	r = find_returns(b, &c, s->offset, &found, &n_found);
	if (r == -EILSEQ)
		return error_set(e, r,
				 "the returns of %.100s in %s are not all found: there is an "
				 "instruction in it that is not known",
				 s->name, b->path);
	if (r < 0)
		return error_set(e, r, "out of memory");
	if (!n_found)
		return error_set(e, -ENOENT,
				 "%.100s in %s has no return: it never ends, or ends by jumping to "
				 "another function",
				 s->name, b->path);
	*offsets = take_ptr(&found);
	*n = n_found;
	return 0;
}
