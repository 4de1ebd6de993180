// SPDX-License-Identifier: GPL-2.0-or-later
/* What is in the sets of an arena: as they were compiled, and what came and went since. */
#include <endian.h>

#include "compile/patch.h"

/* --- elements --- */

static u128 ones(unsigned n)
{
	return n >= 128 ? ~(u128)0 : ((u128)1 << n) - 1;
}

static u128 number_of(const uint8_t b[16])
{
	uint64_t hi, lo;

	memcpy(&hi, b, 8);
	memcpy(&lo, b + 8, 8);
	return (u128)be64toh(hi) << 64 | be64toh(lo);
}

static struct span span_v4(uint32_t addr_be, unsigned len)
{
	u128 first = be32toh(addr_be);

	return (struct span){LINE_V4, first, first | ones(128 - len)};
}

static struct span span_v6(const uint8_t b[16], unsigned len)
{
	u128 first = number_of(b);

	return (struct span){LINE_V6, first, first | ones(128 - len)};
}

struct span span_of_prefix(const struct prefix *p)
{
	if (p->len >= 96 && addr_is_v4(&p->addr))
		return span_v4(p->addr.w[3], p->len);
	return span_v6(p->addr.b, p->len);
}

struct span span_of_range(const struct range *r, uint32_t last)
{
	return (struct span){LINE_PORTS, r->lo, r->hi < last ? r->hi : last};
}

static struct span span_of_entry(const struct patch *c, const struct ax_journal_entry *e)
{
	const struct prefix p = {e->addr, e->len};

	if (c->o.list.sets[e->set].kind == SET_PORTS)
		return (struct span){LINE_PORTS, e->addr.w[0], e->addr.w[1]};
	return span_of_prefix(&p);
}

static bool span_eq(const struct span *a, const struct span *b)
{
	return a->line == b->line && a->first == b->first && a->last == b->last;
}

/* --- as they were compiled --- */

/* The neighbours of a set on a line: at most two runs. */
static size_t runs_of(const struct set_outline *s, enum line line, const struct run_outline **ret)
{
	*ret = line == LINE_V4 ? &s->v4 : line == LINE_V6 ? s->v6 : &s->ports;
	return line == LINE_V6 ? 2 : 1;
}

/* If it cannot be fetched, the view says so in the end: see arena_change_sets(). */
static struct span element(const struct patch *c, const struct run_outline *r, enum line line,
			   size_t i)
{
	static const size_t size[] = {
		[LINE_V4] = SET_OUTLINE_V4,
		[LINE_V6] = SET_OUTLINE_V6,
		[LINE_PORTS] = SET_OUTLINE_PORT,
	};
	const uint8_t *p = view_at(c->v, r->at + i * size[line], size[line]);
	uint32_t addr;
	uint16_t ports[2];

	if (!p)
		return (struct span){line, 0, 0};
	if (line == LINE_V6)
		return span_v6(p, p[16]);
	if (line == LINE_V4) {
		memcpy(&addr, p, sizeof(addr));
		return span_v4(addr, p[4]);
	}
	memcpy(ports, p, sizeof(ports));
	return (struct span){line, ports[0], ports[1]};
}

/* In the order of sets: of two that begin together the wider one of addresses is the first, and the
 * narrower one of ports. */
static int span_cmp(const struct span *a, const struct span *b)
{
	int r = (a->last > b->last) - (a->last < b->last);

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->line == LINE_PORTS ? r : -r;
}

/* The first element that does not come before s. */
static size_t find(const struct patch *c, const struct run_outline *r, const struct span *s)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct span at = element(c, r, s->line, mid);

		if (span_cmp(&at, s) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool was_compiled(const struct patch *c, size_t set, const struct span *s)
{
	const struct run_outline *r;
	size_t n = runs_of(&c->o.sets[set], s->line, &r);

	for (; n-- > 0; r++) {
		size_t i = find(c, r, s);
		struct span at = {0};

		if (i < r->n)
			at = element(c, r, s->line, i);
		if (i < r->n && span_eq(&at, s))
			return true;
	}
	return false;
}

/* --- what came and went since --- */

/* The last that the journal says about an element. NULL: nothing. */
static const struct ax_journal_entry *last_entry(const struct patch *c, size_t set,
						 const struct span *s)
{
	uint32_t n = c->n;

	while (n-- > 0) {
		const struct ax_journal_entry *e = &c->journal->v[n];
		struct span at;

		if (e->set != set)
			continue;
		at = span_of_entry(c, e);
		if (span_eq(&at, s))
			return e;
	}
	return NULL;
}

static bool is_gone(const struct patch *c, size_t set, const struct span *s)
{
	const struct ax_journal_entry *e = last_entry(c, set, s);

	return e && e->gone;
}

bool patch_is_element(const struct patch *c, size_t set, const struct span *s)
{
	const struct ax_journal_entry *e = last_entry(c, set, s);

	return e ? !e->gone : was_compiled(c, set, s);
}

/* --- who holds a value --- */

/* How many elements do not come behind s. */
static size_t find_behind(const struct patch *c, const struct run_outline *r, const struct span *s)
{
	size_t i = find(c, r, s);
	struct span at = {0};

	if (i < r->n)
		at = element(c, r, s->line, i);
	return i < r->n && span_eq(&at, s) ? i + 1 : i;
}

/*
 * Prefixes that hold x, from the narrowest on: the last that begins at x or before either does, or
 * has the beginning in common with x that all of them have, which is where to go on.
 */
static bool held_by_prefix(const struct patch *c, size_t set, const struct run_outline *r,
			   enum line line, u128 x)
{
	struct span s = {line, x, x};
	size_t i = find_behind(c, r, &s);

	while (i > 0) {
		struct span at = element(c, r, line, i - 1);
		u128 differ = at.first ^ x;
		unsigned bits = differ >> 64 ? 128 - (unsigned)__builtin_clzll(
							     (unsigned long long)(differ >> 64))
				: differ
					? 64 - (unsigned)__builtin_clzll((unsigned long long)differ)
					: 0;

		if (at.last >= x) {
			if (!is_gone(c, set, &at))
				return true;
			i--;
			continue;
		}
		s = (struct span){line, x & ~ones(bits), x | ones(bits)};
		i = c->v->error ? 0 : find_behind(c, r, &s);
	}
	return false;
}

static bool held_by_range(const struct patch *c, size_t set, const struct run_outline *r, u128 x)
{
	for (size_t i = 0; i < r->n; i++) {
		struct span at = element(c, r, LINE_PORTS, i);

		if (at.first > x)
			break;
		if (at.last >= x && !is_gone(c, set, &at))
			return true;
	}
	return false;
}

static bool held_compiled(const struct patch *c, size_t set, enum line line, u128 x)
{
	const struct run_outline *r;
	size_t n = runs_of(&c->o.sets[set], line, &r);
	bool held = false;

	for (; n-- > 0 && !held; r++)
		held = line == LINE_PORTS ? held_by_range(c, set, r, x)
					  : held_by_prefix(c, set, r, line, x);
	return held;
}

void patch_holders(const struct patch *c, const struct set_users *users, enum line line, u128 x,
		   bool in[SETS_MAX])
{
	for (size_t i = 0; i < users->n; i++)
		in[i] = users->who[i] && held_compiled(c, i, line, x);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct ax_journal_entry *e = &c->journal->v[i];
		struct span at;

		if (e->gone || in[e->set] || !users->who[e->set])
			continue;
		at = span_of_entry(c, e);
		if (span_holds(&at, line, x))
			in[e->set] = last_entry(c, e->set, &at) == e;
	}
}

/* --- what begins and ends in others --- */

static int add_border(const struct span *s, const struct span *other, u128 *at, size_t *n)
{
	if (*n + 2 > MARKS_MAX)
		return -E2BIG;
	if (other->first > s->first && other->first <= s->last)
		at[(*n)++] = other->first;
	if (other->last >= s->first && other->last < s->last)
		at[(*n)++] = other->last + 1;
	return 0;
}

static int borders_compiled(const struct patch *c, size_t set, const struct span *s, u128 *at,
			    size_t *n)
{
	const struct run_outline *r;
	size_t runs = runs_of(&c->o.sets[set], s->line, &r);
	int err = 0;

	for (; runs-- > 0; r++) {
		/* ranges of ports that began before may end in it */
		size_t i = s->line == LINE_PORTS ? 0 : find(c, r, s);

		for (; i < r->n && err == 0; i++) {
			struct span other = element(c, r, s->line, i);

			if (other.first > s->last)
				break;
			err = add_border(s, &other, at, n);
		}
	}
	return err;
}

int patch_borders(const struct patch *c, const struct set_users *users, const struct span *s,
		  u128 *at, size_t *n)
{
	int r = 0;

	if (s->first == s->last)
		return 0;
	for (size_t i = 0; i < users->n && r == 0; i++)
		r = users->who[i] ? borders_compiled(c, i, s, at, n) : 0;
	for (uint32_t i = 0; i < c->n && r == 0; i++) {
		const struct ax_journal_entry *e = &c->journal->v[i];
		struct span other;

		if (!users->who[e->set])
			continue;
		other = span_of_entry(c, e);
		if (other.line == s->line)
			r = add_border(s, &other, at, n);
	}
	return r;
}
