/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a packet to its rule. The layout's values are constants to the verifier, so what a list does
 * not use is not in its program; offsets that come out of the arena are held against the layout's
 * bounds, because the verifier cannot know that the compiler got them right.
 *
 * Searches take no branch on what they compare: it would be mispredicted every other time, and each
 * one doubles the paths that the verifier follows.
 */
#ifndef AX_CLASSIFY_BPF_H
#define AX_CLASSIFY_BPF_H

#include "rules.bpf.h"

/* All ones if a < b, else 0. */
static __always_inline __u64 mask_less(__u64 a, __u64 b)
{
	/* the borrow of a - b */
	__u64 borrow = (~a & b) | ((~a | b) & (a - b));

	/* the mask, not what it is made of: else its use becomes a branch, and the verifier takes
	 * both ways at every step, 2^19 of them in a table of half a million entries */
	borrow = 0 - (borrow >> 63);
	opaque(borrow);
	return borrow;
}

/* The same of numbers of 128 bits. */
static __always_inline __u64 mask_less128(__u64 hi, __u64 lo, __u64 than_hi, __u64 than_lo)
{
	__u64 borrow = ((~lo & than_lo) | ((~lo | than_lo) & (lo - than_lo))) >> 63;

	borrow = ((~hi & than_hi) | ((~hi | than_hi) & (hi - than_hi - borrow))) >> 63;
	borrow = 0 - borrow;
	opaque(borrow);
	return borrow;
}

/* Whether some of the four numbers of 16 bits in v is 0: not 0 then. (A borrow only gets to those
 * above one that is.) */
static __always_inline __u64 has_zero16(__u64 v)
{
	return (v - 0x0001000100010001ULL) & ~v & 0x8000800080008000ULL;
}

/* The class of lower half `low` in a bucket of points: all of a row are compared at once, as the
 * order of what is in it would be searched in steps that wait for each other. */
static __always_inline __u16 search_points(const __u8 *a, const volatile struct ax_field_layout *f,
					   __u32 root, __u32 low)
{
	__u32 log2 = root & AX_POINTS_LOG2_MAX;
	__u32 at = (root & ((1u << AX_ROOT_OFFSET_BITS) - 1) & ~AX_POINTS_LOG2_MAX) * 4;
	__u64 all = low * 0x0001000100010001ULL, found = 0;
	const __u64 *row;

	at += (low >> (16 - log2)) * AX_POINTS_SIZE;
	opaque(at);
	if (at > f->buckets4_size - AX_POINTS_SIZE)
		return 0;
	row = (const __u64 *)(a + f->buckets4 + at);
#pragma unroll
	for (int i = 0; i < AX_POINTS_SIZE / 8; i++)
		found |= has_zero16(row[i] ^ all);
	found = 0 - ((found | (0 - found)) >> 63);
	opaque(found);
	return (__u16)(f->points ^ ((f->points ^ f->points >> 16) & found));
}

/* The class of lower half `low` in an IPv4 bucket, see AX_ROOT_CLASS. */
static __always_inline __u16 search_bucket(const __u8 *a, __u32 buckets, __u32 size, __u32 root,
					   __u32 low)
{
	__u32 at = (root & ((1u << AX_ROOT_OFFSET_BITS) - 1)) * 4;
	__u32 kind = root >> AX_ROOT_OFFSET_BITS & 31;
	__u32 step = (1u << kind) >> 1;
	__u64 key = low << 16 | 0xffff;

	if (kind > AX_ROOT_LOG2_MAX) {
		at += (low >> (kind - AX_ROOT_LOG2_MAX)) * sizeof(__u16);
		opaque(at);
		return at > size - 2 ? 0 : *(const __u16 *)(a + buckets + at);
	}
	for (int i = 0; i < AX_ROOT_LOG2_MAX; i++) {
		__u32 probe = at + step * 4;
		__s64 over;

		if (!step || probe > size - 4)
			break;
		over = ((__s64)key - *(const __u32 *)(a + buckets + probe)) >> 63;
		opaque(over); /* the mask: clang 19 makes a branch of a sign */
		at += step * 4 & (__u32)~over;
		step >>= 1;
	}
	if (at > size - 4)
		return 0;
	return (__u16) * (const __u32 *)(a + buckets + at);
}

#define MAC_LOG2_MAX 25

/* Offset in the arena of the last of n entries at `base` that is not above the key; `end` bounds
 * it. */
static __always_inline __u32 search64(const __u8 *a, __u32 base, __u32 n, __u32 end, __u64 key)
{
	__u32 at = base;

	for (int i = 0; i < MAC_LOG2_MAX; i++) {
		__u32 step = n >> 1, probe = at + step * sizeof(struct ax_key64);

		if (!step || probe > end - sizeof(struct ax_key64))
			break;
		at += step * sizeof(struct ax_key64) &
		      ~(__u32)mask_less(key, ((const struct ax_key64 *)(a + probe))->key);
		n -= step;
	}
	return at;
}

/* The same of keys of 128 bits. */
static __always_inline __u32 search128(const __u8 *a, __u32 base, __u32 n, __u32 end, int log2_max,
				       __u64 hi, __u64 lo)
{
	__u32 at = base;

	for (int i = 0; i < log2_max; i++) {
		__u32 step = n >> 1, probe = at + step * (__u32)sizeof(struct ax_key128);
		const struct ax_key128 *k;

		if (!step || probe > end - sizeof(*k))
			break;
		k = (const struct ax_key128 *)(a + probe);
		at += step * (__u32)sizeof(*k) & ~(__u32)mask_less128(hi, lo, k->hi, k->lo);
		n -= step;
	}
	return at;
}

static __always_inline __u64 half(const struct ax_addr *addr, int i)
{
	return (__u64)bpf_ntohl(addr->w[2 * i]) << 32 | bpf_ntohl(addr->w[2 * i + 1]);
}

static __always_inline __u16 class_v6(const __u8 *a, const volatile struct ax_field_layout *f,
				      const struct ax_addr *addr)
{
	__u32 root_end = f->table6 + f->entries * (__u32)sizeof(struct ax_key128), at;
	__u32 end = f->buckets6 + f->buckets6_size;
	__u64 hi = half(addr, 0), lo = half(addr, 1), leads;

	at = search128(a, f->table6, f->entries, root_end, AX_ROOT6_LOG2_MAX, hi, lo);
	if (at > root_end - sizeof(struct ax_key128))
		return 0;
	/* read once: it changes, see struct ax_journal */
	leads = ((const volatile struct ax_key128 *)(a + at))->value;
	at = f->buckets6 + (((__u32)leads & AX_BUCKET6_OFFSET_MASK) << 3);
	at = search128(a, at, leads >> 32, end, AX_BUCKET6_LOG2_MAX, hi, lo);
	if (at > end - sizeof(struct ax_key128))
		return 0;
	return (__u16)((const struct ax_key128 *)(a + at))->value;
}

static __always_inline __u16 class_v4(const __u8 *a, const volatile struct ax_field_layout *f,
				      __u32 addr)
{
	/* read once: it changes, see struct ax_journal */
	__u32 root = *(const volatile __u32 *)(a + f->table + (addr >> 16) * 4);

	if (root & AX_ROOT_CLASS)
		return (__u16)root;
	if (f->buckets4_size < 4)
		return 0;
	if (f->points && !(root >> AX_ROOT_OFFSET_BITS))
		return search_points(a, f, root, addr & 0xffff);
	return search_bucket(a, f->buckets4, f->buckets4_size, root, addr & 0xffff);
}

/* --- one function for each kind of fields (agent/rules/field.h) --- */

/* An address: that of packets without one has a class of its own. */
static __always_inline __u32 class_address(const __u8 *a, const volatile struct ax_field_layout *f,
					   const struct packet *p, const struct ax_addr *addr)
{
	if (p->fragment == AX_FRAGMENT_NOT_IP)
		return f->none;
	return p->v4 ? class_v4(a, f, bpf_ntohl(addr->w[3])) : class_v6(a, f, addr);
}

/* A product whose bound the verifier knows: Linux 6.1 only follows a multiplication whose right
 * operand is a constant, and the compiler takes them in either order. */
static __always_inline __u64 times(__u64 range, __u64 constant)
{
#ifdef __bpf__
	asm volatile("%0 *= %1" : "+r"(range) : "r"(constant));
	return range;
#else /* the unit tests' */
	return range * constant;
#endif
}

/* Numbers and bits. */
static __always_inline __u16 class_at(const __u8 *a, __u32 table, __u32 index)
{
	return *(const __u16 *)(a + table + index * sizeof(__u16));
}

/* Read where it is used: kept for both ends, it would need stack. */
static __always_inline __u32 sets_in(const struct packet *p)
{
	return *(const volatile __u8 *)&p->sets;
}

/* The class of an address that is in these timed sets of the list, too; `cls`: without. */
static __always_inline __u32 class_timed(const __u8 *a, const volatile struct ax_field_layout *f,
					 __u32 cls, __u32 sets)
{
	if (!f->timed)
		return cls;
	cls += (sets & ((1u << layout.timed_n) - 1)) * f->classes;
	opaque(cls);
	if (cls >= f->classes << layout.timed_n)
		return 0;
	return class_at(a, f->timed, cls);
}

/* A function of its own: the verifier follows its search once, not once more for each way to get
 * there. */
static __noinline __u32 class_mac(__u64 mac)
{
	const volatile struct ax_field_layout *f = &layout.field[AX_FIELD_MAC];
	__u32 end = f->table + f->entries * (__u32)sizeof(struct ax_key64), at;
	const __u8 *a = arena_get();

	if (!a)
		return 0;
	at = search64(a, f->table, f->entries, end, mac);
	return at > end - sizeof(struct ax_key64) ? 0 : ((const struct ax_key64 *)(a + at))->cls;
}

/* An end of a name: its value is an index of which the layout knows the bound. */
static __always_inline __u32 class_name(const __u8 *a, const volatile struct ax_field_layout *f,
					const struct packet *p)
{
	__u64 v = p->has_l4 ? p->name : AX_NAME_NONE;

	opaque(v); /* or what is compared is a copy of what is used */
	if (v >= f->entries)
		v = AX_NAME_NONE;
	opaque(v); /* nor is what is used made before */
	return class_at(a, f->table, (__u32)v);
}

/* What a packet is judged by, beside what the parser said. */
struct judged {
	const struct packet *p;
	__u64 mac; /* 48 bits, the first byte highest */
	__u32 len;
	__u32 minute; /* of the week, below AX_TIME_MINUTES */
};

/* The class of one field; `i` is a constant at every call. */
static __always_inline __u32 class_of(const __u8 *a, int i, const struct judged *j)
{
	const volatile struct ax_field_layout *f = &layout.field[i];

	if (i == AX_FIELD_SRC)
		return class_timed(a, f, class_address(a, f, j->p, &j->p->src), sets_in(j->p));
	if (i == AX_FIELD_DST)
		return class_timed(a, f, class_address(a, f, j->p, &j->p->dst), sets_in(j->p) >> 4);
	if (i == AX_FIELD_MAC)
		return class_mac(j->mac);
	if (i == AX_FIELD_TIME)
		return class_at(a, f->table, j->minute);
	if (i == AX_FIELD_NAME)
		return class_name(a, f, j->p);
	return class_at(a, f->table, packet_value(j->p, (enum ax_field)i, j->len));
}

/* The rows of the used fields, as offsets in the arena. */
struct rows {
	__u32 at[AX_FIELDS];
};

static __always_inline __u64 rows_and(const __u8 *a, const struct rows *r, __u32 word)
{
	__u64 v = ~0ULL;

#pragma unroll
	for (int i = 0; i < AX_FIELDS; i++)
		if (layout.field[i].used)
			v &= *(const __u64 *)(a + r->at[i] + word * sizeof(__u64));
	return v;
}

/* De Bruijn's sequence B(2, 6) tells the lowest bit by a multiplication: BPF has no instruction. */
#define DE_BRUIJN 0x03f79d71b4cb0a89ULL
static const __u8 de_bruijn[64] = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};
static __always_inline __u32 lowest_bit(__u64 v)
{
	return de_bruijn[(v & -v) * DE_BRUIJN >> 58];
}

static __always_inline __u32 match_rows(const __u8 *a, const struct rows *r)
{
	for (__u32 s = 0; s < AX_SUMMARY_MAX && s < layout.summary; s++) {
		__u64 some = rows_and(a, r, s);

		for (int i = 0; i < 64 && some; i++) {
			__u32 word = s * 64 + lowest_bit(some);
			__u64 bits;

			if (word >= layout.words)
				break;
			bits = rows_and(a, r, layout.summary + word);
			if (bits)
				return word * 64 + lowest_bit(bits);
			some &= some - 1;
		}
	}
	return layout.rules;
}

#ifdef __bpf__
/*
 * By what was found before. A packet may be judged in the middle of another one's judging (of a
 * test run, which explains; before Linux 6.11), and of what both write a mixture may stay: that has
 * no classes whose hash is beside the rule.
 */
static __always_inline __u32 match_again(const __u8 *a, const struct rows *r, __u64 hi, __u64 lo)
{
	__u64 h = (hi * 0xd6e8feb86659fd93ULL ^ lo) * 0x9fb21c651e98df25ULL;
	__u32 index = bpf_get_smp_processor_id() * found_places, rule;
	struct found *f;

	index += (__u32)(h >> 32) & (found_places - 1);
	h &= ~FOUND_RULE;
	f = bpf_map_lookup_elem(&founds, &index);
	if (f && f->hi == hi && f->lo == lo && f->rule > h && f->rule - h <= FOUND_RULE)
		return (__u32)(f->rule - h - 1);
	if (!f)
		return match_rows(a, r);
	/* these first, and of the search's result what it is of: else they would need stack */
	f->rule = 0;
	f->hi = hi;
	f->lo = lo;
	rule = match_rows(a, r);
	f->rule = h + rule + 1;
	return rule;
}
#else /* the unit tests' */
#define found_places 0
static __u32 match_again(const __u8 *a, const struct rows *r, __u64 hi, __u64 lo)
{
	(void)hi;
	(void)lo;
	return match_rows(a, r);
}
#endif

static __always_inline __u32 match_bitmap(const __u8 *a, const struct judged *j)
{
	struct rows r = {0};
	__u64 hi = 0, lo = 0;

#pragma unroll
	for (int i = 0; i < AX_FIELDS; i++) {
		__u32 cls;

		if (!layout.field[i].used)
			continue;
		cls = class_of(a, i, j);
		if (cls >= layout.field[i].classes)
			return layout.rules;
		r.at[i] = layout.field[i].rows + (__u32)times(cls, layout.row_size);
		hi = hi << 16 | lo >> 48;
		lo = lo << 16 | cls;
	}
	return found_places ? match_again(a, &r, hi, lo) : match_rows(a, &r);
}

static __always_inline __u32 product_at(const __u8 *a, __u32 index)
{
	return index >= layout.products_n ? layout.rules : class_at(a, layout.products, index);
}

/* *at: where it was found. */
static __always_inline __u32 match_product(const __u8 *a, const struct judged *j, __u32 *at)
{
	__u32 index = 0;

#pragma unroll
	for (int i = 0; i < AX_FIELDS; i++)
		if (layout.field[i].used)
			index += class_of(a, i, j) * layout.field[i].stride;
	*at = index;
	return product_at(a, index);
}

static __always_inline __u32 match_single(const __u8 *a, const struct judged *j)
{
#pragma unroll
	for (int i = 0; i < AX_FIELDS; i++)
		if (layout.field[i].used)
			return class_of(a, i, j);
	return layout.rules;
}

static __always_inline __u32 at_most_default(__u32 rule)
{
	return rule > layout.rules ? layout.rules : rule;
}

/* The number of the first rule that matches; layout.rules: none. *at: for classify_payload(). Not
 * for AX_MATCH_BITMAP. */
static __always_inline __u32 classify_table(const __u8 *a, const struct judged *j, __u32 *at)
{
	*at = 0;
	switch (layout.match) {
	case AX_MATCH_NONE:
		return layout.only;
	case AX_MATCH_SINGLE:
		return at_most_default(match_single(a, j));
	default:
		return at_most_default(match_product(a, j, at));
	}
}

/* The same for any list. */
static __always_inline __u32 classify(const __u8 *a, const struct judged *j, __u32 *at)
{
	if (layout.match != AX_MATCH_BITMAP)
		return classify_table(a, j, at);
	*at = 0;
	return at_most_default(match_bitmap(a, j));
}

/* The same, where the packet's payload alone has changed since, from AX_PAYLOAD_UNASKED. Not for
 * AX_MATCH_BITMAP, of which there would be too much to keep until then. */
static __always_inline __u32 classify_payload(const __u8 *a, const struct judged *j, __u32 at)
{
	const volatile struct ax_field_layout *l = &layout.field[AX_FIELD_PAYLOAD];
	__u32 cls = class_of(a, AX_FIELD_PAYLOAD, j);

	if (layout.match == AX_MATCH_SINGLE)
		return at_most_default(cls);
	cls -= class_at(a, l->table, AX_PAYLOAD_UNASKED);
	return at_most_default(product_at(a, at + cls * l->stride));
}

#endif
