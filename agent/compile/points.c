// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Buckets of single IPv4 addresses (include/xdp.h: AX_POINTS). A host in a set is an interval of
 * one address: as such it takes two words of a bucket that has to be searched, here half a word of
 * one that does not.
 */
#include "compile/priv.h"

/* Boyer and Moore's vote: the pair that more than half of all are, if there is one. */
void points_choose(const struct cuts *t, struct ax_field_layout *l)
{
	size_t votes = 0;

	for (size_t i = 1; i + 1 < t->n; i++) {
		uint32_t out = t->v[i - 1].cls, points = t->v[i].cls << 16 | out;

		if (t->v[i + 1].hi - t->v[i].hi != 1ull << 32 || t->v[i + 1].cls != out)
			continue;
		if (!votes)
			l->points = points;
		votes += l->points == points ? 1 : (size_t)-1;
	}
}

static bool collect(const struct ax_field_layout *l, const struct cut *v, size_t n, uint32_t before,
		    size_t max, struct points *p)
{
	uint32_t in = l->points >> 16, out = l->points & 0xffff;

	if (lower4(&v[0]) && before != out)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint32_t at = lower4(&v[i]), end = i + 1 < n ? lower4(&v[i + 1]) : 65536;

		if (v[i].cls == out)
			continue;
		if (v[i].cls != in || end - at > max - p->n)
			return false;
		while (at < end)
			p->at[p->n++] = (uint16_t)at++;
	}
	return p->n > 0;
}

/* Whether no row has more than there is room for. */
static bool fits(const struct points *p, uint32_t log2)
{
	for (size_t i = AX_POINTS; i < p->n; i++)
		if (p->at[i] >> (16 - log2) == p->at[i - AX_POINTS] >> (16 - log2))
			return false;
	return true;
}

bool points_of(const struct ax_field_layout *l, const struct cut *v, size_t n, uint32_t before,
	       size_t size, struct points *ret)
{
	size_t max = size / sizeof(ret->at[0]);

	ret->n = 0;
	ret->log2 = 0;
	if (!l->points || size < AX_POINTS_SIZE)
		return false;
	if (!collect(l, v, n, before, max < ARRAY_SIZE(ret->at) ? max : ARRAY_SIZE(ret->at), ret))
		return false;
	while (!fits(ret, ret->log2))
		if (++ret->log2 > AX_POINTS_LOG2_MAX || (size_t)AX_POINTS_SIZE << ret->log2 > size)
			return false;
	return true;
}

int64_t points_write(const struct points *p, struct arena *a)
{
	uint32_t rows = 1u << p->log2, shift = 16 - p->log2;
	int64_t at = arena_add(a, (size_t)rows * AX_POINTS_SIZE, AX_POINTS_SIZE);
	size_t i = 0;

	if (at < 0)
		return at;
	for (uint32_t row = 0; row < rows; row++) {
		uint16_t *to = (uint16_t *)(a->data + at) + (size_t)row * AX_POINTS;
		size_t n = 0;

		while (i < p->n && (uint32_t)p->at[i] >> shift == row)
			to[n++] = p->at[i++];
		/* of an empty row: what belongs to another one (a single one is not empty) */
		for (size_t k = n; k < AX_POINTS; k++)
			to[k] = n ? to[0] : (uint16_t)(~row << shift);
	}
	return at;
}
