// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/jit/capture.h"
#include "probes/jit/defaults.h"
#include "probes/jit/pages.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd1b54a32d192ed03ull);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Who makes two versions with the same sums deceives only himself. */
static void sum_up(const uint8_t *data, uint64_t sum[2])
{
	uint64_t a = 1, b = 2, v[2];

	for (size_t i = 0; i < JIT_PAGE; i += sizeof(v)) {
		memcpy(v, data + i, sizeof(v));
		a = mix(a ^ v[0], v[1] + i);
		b = mix(b + v[1], v[0] ^ a);
	}
	sum[0] = a;
	sum[1] = b;
}

static struct jit_page *place_of(const struct jit_pages *p, uint64_t address)
{
	size_t i = (size_t)mix(address, 1) & (p->size - 1);

	while (p->v[i].address && p->v[i].address != address)
		i = (i + 1) & (p->size - 1);
	return &p->v[i];
}

static bool grow(struct jit_pages *p)
{
	struct jit_pages more = {.size = p->size ? 2 * p->size : 64, .n = p->n};

	if (p->size && p->n < p->size / 2)
		return true;
	if (more.size > 2 * JIT_PAGES_MAX)
		return false;
	more.v = calloc(more.size, sizeof(*more.v));
	if (!more.v)
		return false;
	for (size_t i = 0; i < p->size; i++)
		if (p->v[i].address)
			*place_of(&more, p->v[i].address) = p->v[i];
	free(p->v);
	*p = more;
	return true;
}

bool jit_pages_see(struct jit_pages *p, uint64_t address, const uint8_t *data)
{
	uint64_t sum[2];
	struct jit_page *at;

	if (!grow(p))
		return true;
	sum_up(data, sum);
	at = place_of(p, address);
	if (at->address && !memcmp(at->sum, sum, sizeof(sum)))
		return false;
	p->n += !at->address;
	at->address = address;
	memcpy(at->sum, sum, sizeof(sum));
	return true;
}

bool jit_pages_know(const struct jit_pages *p, uint64_t start, uint64_t end)
{
	/* whichever are fewer are gone through */
	if ((end - start) / JIT_PAGE > p->size) {
		for (size_t i = 0; i < p->size; i++)
			if (p->v[i].address >= start && p->v[i].address < end)
				return true;
		return false;
	}
	for (uint64_t at = start; p->size && at < end; at += JIT_PAGE)
		if (place_of(p, at)->address)
			return true;
	return false;
}

int jit_pages_copy(struct jit_pages *to, const struct jit_pages *from)
{
	*to = (struct jit_pages){0};
	if (!from->size)
		return 0;
	to->v = malloc(from->size * sizeof(*to->v));
	if (!to->v)
		return -ENOMEM;
	memcpy(to->v, from->v, from->size * sizeof(*to->v));
	to->n = from->n;
	to->size = from->size;
	return 0;
}

void jit_pages_free(struct jit_pages *p)
{
	free(p->v);
	*p = (struct jit_pages){0};
}
