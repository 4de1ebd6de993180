// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/arena_eval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

struct eval {
	const struct arena *a;
	const struct ax_layout *l;
};

static const void *eval_at(const struct eval *e, uint64_t off, size_t size)
{
	if (off < sizeof(struct ax_layout) || off + size > e->l->size ||
	    off % (size < 8 ? size : 8))
		fail_msg("access to %zu bytes at %llu of %u", size, (unsigned long long)off,
			 e->l->size);
	return e->a->data + off;
}

static uint32_t eval_u16(const struct eval *e, uint32_t table, uint32_t index)
{
	return *(const uint16_t *)eval_at(e, table + 2ull * index, 2);
}

/* In any order; only the row that the upper bits choose is looked at, and what fills it up is not
 * to be found. */
static uint32_t eval_points(const struct eval *e, const struct ax_field_layout *f, uint32_t off,
			    uint32_t low)
{
	uint32_t rows = 1u << off % 8, row = low / (65536 / rows);
	uint64_t at = off / 8 * AX_POINTS_SIZE + (uint64_t)row * AX_POINTS_SIZE;

	assert_true(f->points >> 16 != (f->points & 0xffff));
	assert_true((off / 8 + rows) * AX_POINTS_SIZE <= f->buckets4_size);
	for (uint32_t i = 0; i < AX_POINTS; i++)
		if (eval_u16(e, f->buckets4 + (uint32_t)at, i) == low)
			return f->points >> 16;
	return f->points & 0xffff;
}

static uint32_t eval_v4(const struct eval *e, const struct ax_field_layout *f, uint32_t addr)
{
	uint32_t root = *(const uint32_t *)eval_at(e, f->table + 4ull * (addr >> 16), 4);
	uint32_t off, kind, n, cls = 0;

	if (root & AX_ROOT_CLASS)
		return root & 0xffff;
	off = (root & ((1u << AX_ROOT_OFFSET_BITS) - 1)) * 4;
	kind = root >> AX_ROOT_OFFSET_BITS & 31;
	if (!kind)
		return eval_points(e, f, off / 4, addr & 0xffff);
	if (kind > AX_ROOT_LOG2_MAX) {
		n = 1u << (16 + AX_ROOT_LOG2_MAX - kind);
		assert_true(off + 2ull * n <= f->buckets4_size);
		return eval_u16(e, f->buckets4 + off, (addr & 0xffff) >> (kind - AX_ROOT_LOG2_MAX));
	}
	n = 1u << kind;
	assert_true(n >= 2 && off + 4ull * n <= f->buckets4_size);
	for (uint32_t i = 0, before = 0; i < n; i++) {
		uint32_t w = *(const uint32_t *)eval_at(e, f->buckets4 + off + 4ull * i, 4);

		assert_true(i ? w >> 16 >= before : w >> 16 == 0);
		before = w >> 16;
		if (before <= (addr & 0xffff))
			cls = w & 0xffff;
	}
	return cls;
}

static bool key_above(const struct ax_key128 *k, uint64_t hi, uint64_t lo)
{
	return k->hi != hi ? k->hi > hi : k->lo > lo;
}

/* The value of the last entry that is not above the key; the order is checked on the way. */
static uint64_t eval_search128(const struct eval *e, uint64_t table, size_t n, uint64_t hi,
			       uint64_t lo)
{
	const struct ax_key128 *k = eval_at(e, table, n * sizeof(*k));
	size_t first = 0, end = n;

	assert_true(n && !key_above(&k[0], hi, lo));
	while (end - first > 1) {
		size_t mid = (first + end) / 2;

		assert_true(key_above(&k[mid], k[first].hi, k[first].lo));
		if (key_above(&k[mid], hi, lo))
			end = mid;
		else
			first = mid;
	}
	return k[first].value;
}

static uint32_t eval_v6(const struct eval *e, const struct ax_field_layout *f,
			const struct ax_addr *a)
{
	uint64_t hi, lo, leads, at;

	memcpy(&hi, &a->b[0], 8);
	memcpy(&lo, &a->b[8], 8);
	hi = be64toh(hi);
	lo = be64toh(lo);
	leads = eval_search128(e, f->table6, f->entries, hi, lo);
	at = (leads & UINT32_MAX) * 8;
	assert_true(at + (leads >> 32) * sizeof(struct ax_key128) <= f->buckets6_size);
	assert_true(leads >> 32 <= 1u << AX_BUCKET6_LOG2_MAX);
	return (uint32_t)eval_search128(e, f->buckets6 + at, leads >> 32, hi, lo);
}

static uint32_t eval_addr(const struct eval *e, const struct ax_field_layout *f,
			  const struct match_packet *p, const struct ax_addr *a)
{
	if (!p->ip)
		return f->none;
	return p->v4 ? eval_v4(e, f, ntohl(a->w[3])) : eval_v6(e, f, a);
}

static uint32_t eval_mac(const struct eval *e, const struct ax_field_layout *f, const uint8_t *mac)
{
	uint64_t key = 0;
	const struct ax_key64 *k = eval_at(e, f->table, f->entries * sizeof(*k));
	uint32_t cls = 0;

	for (int i = 0; i < 6; i++)
		key = key << 8 | mac[i];
	for (uint32_t i = 0; i < f->entries; i++) {
		assert_true(i ? k[i].key > k[i - 1].key : k[i].key == 0);
		if (k[i].key <= key)
			cls = k[i].cls;
	}
	return cls;
}

uint32_t eval_payload(const struct ax_layout *l, const struct match_packet *p)
{
	uint32_t has = 0;

	for (uint32_t i = 0; i < l->payloads_n && match_has_payload(p); i++) {
		const struct ax_payload *want = &l->payload[i];
		bool fits = true;

		for (int k = 0; k < AX_PAYLOAD_PIECES && want->len[k] && fits; k++) {
			const uint8_t *bits = (const uint8_t *)&want->piece[k].bits;
			const uint8_t *mask = (const uint8_t *)&want->piece[k].mask;

			assert_true(want->at[k] + want->len[k] <= AX_PAYLOAD_REACH);
			fits = (size_t)want->at[k] + want->len[k] <= p->payload_len;
			for (int b = 0; b < want->len[k] && fits; b++)
				fits = (p->payload[want->at[k] + b] & mask[b]) == bits[b];
		}
		has |= (uint32_t)fits << i;
	}
	return AX_PAYLOAD_NONE + has;
}

uint32_t eval_marks(const struct ax_layout *l, const struct match_packet *p)
{
	uint32_t has = 0;

	assert_true(l->marks_n <= AX_MARKS_MAX);
	for (uint32_t i = 0; i < l->marks_n; i++)
		if ((p->mark & l->mark[i].mask) == l->mark[i].value)
			has |= 1u << i;
	return has;
}

/* --- names --- */

static uint64_t eval_label(const struct ax_layout *l, const char *label, size_t len)
{
	uint64_t h = l->name_key[0];

	for (; len > 0; len--) {
		uint8_t c = (uint8_t)label[len - 1];

		h = (h ^ (c >= 'A' && c <= 'Z' ? c + 32 : c)) * l->name_key[1];
		h ^= h >> 32;
	}
	return h;
}

static uint64_t eval_node(const struct ax_layout *l, uint64_t parent, uint64_t label)
{
	uint64_t h = (parent ^ label) * l->name_key[1];

	h = (h ^ h >> 32) * l->name_key[1];
	h ^= h >> 32;
	return h ? h : 1;
}

/* The value of a node; it may be in one of its buckets only. 0: it is not there. */
static uint32_t eval_find(const struct eval *e, uint64_t node)
{
	uint32_t n = e->l->names_n, buckets = n / AX_NAME_BUCKET, value = 0;
	const struct ax_name *all = eval_at(e, e->l->names, n * sizeof(*all));

	assert_int_equal(buckets & (buckets - 1), 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bucket = i / AX_NAME_BUCKET;

		if (all[i].node != node)
			continue;
		assert_int_equal(value, 0);
		assert_true(bucket == ((uint32_t)node & (buckets - 1)) ||
			    bucket == (node >> 32 & (buckets - 1)));
		value = all[i].value;
		assert_true(value >= AX_NAME_FIRST);
	}
	return value;
}

uint32_t eval_name(const struct arena *a, const struct ax_layout *l, const struct match_packet *p)
{
	struct eval e = {a, l};
	uint32_t value, found;
	uint64_t node = p->name_kind;
	size_t end = strlen(p->name);

	if (!p->name_kind || !(l->name_kinds >> p->name_kind & 1))
		return AX_NAME_NONE;
	value = found = l->name_roots[p->name_kind];
	while (end > 0 && found) {
		size_t from = end;

		while (from > 0 && p->name[from - 1] != '.')
			from--;
		node = eval_node(l, node, eval_label(l, p->name + from, end - from));
		found = eval_find(&e, node);
		value = found ? found : value;
		end = from ? from - 1 : 0;
	}
	return value;
}

static uint32_t eval_class(const struct eval *e, const struct rule_field *row,
			   const struct match_packet *p)
{
	const struct ax_field_layout *f = &e->l->field[row->number];
	uint32_t cls = UINT32_MAX, found;

	switch (row->kind) {
	case FIELD_ADDRESS:
		cls = eval_addr(e, f, p, row->number == AX_FIELD_SRC ? &p->src : &p->dst);
		break;
	case FIELD_NUMBER:
	case FIELD_BITS:
		cls = eval_u16(e, f->table, match_value_of(p, row->number));
		break;
	case FIELD_MAC:
		cls = eval_mac(e, f, p->mac);
		break;
	case FIELD_PAYLOAD:
		cls = eval_u16(e, f->table, eval_payload(e->l, p));
		break;
	case FIELD_NAME:
		found = eval_name(e->a, e->l, p);
		assert_true(found < f->entries);
		cls = eval_u16(e, f->table, found);
		break;
	case FIELD_FLOW:
		cls = eval_u16(e, f->table, 0);
		break;
	case FIELD_MARK:
		cls = eval_u16(e, f->table, eval_marks(e->l, p));
		break;
	case FIELD_GROUP: /* no packet's */
	case FIELD_KINDS:
		break;
	}
	assert_true(cls < f->classes);
	return cls;
}

static uint32_t eval_bitmap(const struct eval *e, const uint32_t *classes)
{
	const struct ax_layout *l = e->l;

	for (uint32_t w = 0; w < l->words; w++) {
		uint64_t some = ~0ull, bits = ~0ull; /* of the summary; of the rules */

		for (int f = 0; f < AX_FIELDS; f++) {
			const uint64_t *row;

			if (!l->field[f].used)
				continue;
			row = eval_at(e, l->field[f].rows + (uint64_t)classes[f] * l->row_size,
				      l->row_size);
			assert_int_equal(row[w / 64] >> w % 64 & 1, row[l->summary + w] != 0);
			some &= row[w / 64];
			bits &= row[l->summary + w];
		}
		assert_true(bits == 0 || some >> w % 64 & 1);
		if (bits)
			return w * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return l->rules;
}

uint32_t eval_rule(const struct arena *a, const struct ax_layout *l, const struct match_packet *p)
{
	struct eval e = {a, l};
	uint32_t classes[AX_FIELDS] = {0}, used = 0, last = 0;
	uint64_t product = 0;

	for (int f = 0; f < AX_FIELDS; f++) {
		if (!l->field[f].used)
			continue;
		classes[f] = eval_class(&e, rule_field((enum ax_field)f), p);
		product += (uint64_t)classes[f] * l->field[f].stride;
		last = classes[f];
		used++;
	}
	switch (l->match) {
	case AX_MATCH_NONE:
		assert_int_equal(used, 0);
		return l->only;
	case AX_MATCH_SINGLE:
		assert_int_equal(used, 1);
		return last;
	case AX_MATCH_PRODUCT:
		assert_true(product < l->products_n);
		return eval_u16(&e, l->products, (uint32_t)product);
	default:
		assert_int_equal(l->match, AX_MATCH_BITMAP);
		return eval_bitmap(&e, classes);
	}
}

const struct ax_action *eval_action(const struct arena *a, const struct ax_layout *l, uint32_t rule)
{
	assert_true(rule <= l->rules);
	assert_true(l->actions + sizeof(struct ax_action) * (l->rules + 1) <= l->size);
	return (const struct ax_action *)(a->data + l->actions) + rule;
}
