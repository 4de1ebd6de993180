// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions in assembly share code: glibc's mempcpy jumps to behind the first instruction of
 * memcpy, OpenSSL's functions into one another. Such two come from one file, so they are close
 * together.
 */
#include "base/search.h"
#include "probes/elf/symbols.h"
#include "probes/place/priv.h"

#define BLOCK	 (16u << 10) /* how far is looked, and what is kept at once */
#define SYNC_LEN 64 /* decoding that starts inside of an instruction gets right within this */

struct sweep {
	struct binary *b;
	uint64_t from, to; /* what the segment has of the block */
	struct targets *t;
	size_t max;
};

static int add(struct sweep *s, uint64_t target)
{
	struct targets *t = s->t;

	if (t->n == s->max) {
		size_t more = s->max ? s->max * 2 : 256;
		uint64_t *v = reallocarray(t->v, more, sizeof(*v));

		if (!v)
			return -ENOMEM;
		t->v = v;
		s->max = more;
	}
	t->v[t->n++] = target;
	return 0;
}

/* One instruction after the other, but anew where a function starts. */
static int sweep(struct sweep *s, const uint8_t *code, size_t len, uint64_t address)
{
	size_t next = symbols_behind(s->b, address), at = 0;
	int r = 0;

	while (!r && at < len) {
		uint64_t start =
			next < s->b->n_functions ? s->b->functions[next].address : UINT64_MAX;
		struct x86_insn i;

		if (address + at >= start) {
			at = start - address;
			next = symbols_behind(s->b, start);
		}
		if (!x86_decode(code + at, len - at, &i)) {
			at++;
			continue;
		}
		if ((i.flow == FLOW_JUMP || i.flow == FLOW_BRANCH || i.flow == FLOW_CALL) &&
		    address + at >= s->from)
			r = add(s, address + at + i.target);
		at += i.len;
	}
	return r;
}

static int compare(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

static int load(struct sweep *s, uint64_t segment)
{
	uint64_t from = s->from - segment < SYNC_LEN ? segment : s->from - SYNC_LEN, offset;
	autofree void *code = NULL;
	uint64_t len = s->to - from;
	int r;

	if (!image_offset(&s->b->image, from, true, &offset))
		return 0;
	if (len > s->b->image.size - offset)
		len = s->b->image.size - offset;
	r = image_load(&s->b->image, offset, len, &code);
	if (!r)
		r = sweep(s, code, len, from);
	if (s->t->n)
		qsort(s->t->v, s->t->n, sizeof(*s->t->v), compare);
	return r == -ENOMEM ? r : 0;
}

static const Elf64_Phdr *segment_of(const struct image *im, uint64_t address)
{
	for (size_t i = 0; i < im->n_segments; i++) {
		const Elf64_Phdr *p = &im->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz && p->p_filesz <= UINT64_MAX - p->p_vaddr)
			return p;
	}
	return NULL;
}

static int block_targets(struct binary *b, const Elf64_Phdr *p, uint64_t block,
			 const struct targets **ret)
{
	struct targets *t = &b->targets[block % TARGETS_BLOCKS];
	uint64_t end = p->p_vaddr + p->p_filesz;
	struct sweep s = {.b = b, .t = t, .from = block * BLOCK, .to = block * BLOCK + BLOCK};
	int r;

	*ret = t;
	if (t->block == block + 1)
		return 0;
	free(t->v);
	*t = (struct targets){.block = block + 1};
	if (s.from < p->p_vaddr)
		s.from = p->p_vaddr;
	if (s.to > end || s.to < s.from)
		s.to = end;
	r = s.from < s.to ? load(&s, p->p_vaddr) : 0;
	if (r < 0)
		t->block = 0;
	return r;
}

int place_near_jumps(struct binary *b, const struct code *c, struct jumps *j)
{
	const Elf64_Phdr *p = segment_of(&b->image, c->address);
	uint64_t block = c->address / BLOCK;
	int r = symbols_load_more(b);

	for (uint64_t k = block ? block - 1 : 0; !r && p && k <= block + 1; k++) {
		const struct targets *t;
		size_t low;

		r = block_targets(b, p, k, &t);
		if (r < 0)
			break;
		low = c->address ? search_above(t->v, t->n, sizeof(*t->v), 0, c->address - 1) : 0;
		for (; low < t->n && t->v[low] - c->address < JUMPS_KNOWN; low++)
			if (t->v[low] != c->address) /* a call */
				j->to[t->v[low] - c->address] = true;
	}
	return r;
}
