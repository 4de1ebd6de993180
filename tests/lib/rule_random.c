// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/rule_random.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t rnd_next(struct rnd *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint32_t rnd_below(struct rnd *r, uint32_t n)
{
	return (uint32_t)((rnd_next(r) >> 32) * n >> 32);
}

bool rnd_one_in(struct rnd *r, uint32_t n)
{
	return rnd_below(r, n) == 0;
}

void *rnd_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		abort();
	return p;
}

void rnd_name(struct strv *s, const char *name)
{
	s->v = realloc(s->v, (s->n + 2) * sizeof(*s->v));
	if (!s->v)
		abort();
	s->v[s->n++] = strdup(name);
	s->v[s->n] = NULL;
}

/* --- conditions --- */

/* Few different bases, so that prefixes nest, and the ends of the address space. */
static struct ax_addr rnd_addr(struct rnd *r, bool v4)
{
	static const uint8_t bytes[] = {0, 0xff, 10, 0xfd, 0x80, 1};
	struct ax_addr a = {.b = {[10] = 0xff, [11] = 0xff}};

	for (int i = v4 ? 12 : 0; i < 16; i++)
		a.b[i] = rnd_one_in(r, 12) ? (uint8_t)rnd_next(r)
					   : bytes[rnd_below(r, rnd_one_in(r, 4) ? 6 : 2)];
	if (!v4 && rnd_one_in(r, 16)) /* around the mapped addresses */
		for (int i = 0; i < 12; i++)
			a.b[i] = i < 10 ? 0 : 0xff;
	return a;
}

void rnd_mask(struct prefix *p)
{
	for (unsigned bit = p->len; bit < 128; bit++)
		p->addr.b[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

static struct prefix rnd_prefix(struct rnd *r)
{
	static const uint8_t common[] = {0, 8, 12, 15, 16, 17, 24, 31, 32};
	static const uint8_t common6[] = {0, 8, 48, 63, 64, 65, 96, 127, 128};
	bool v4 = rnd_one_in(r, 2);
	struct prefix p = {.addr = rnd_addr(r, v4)};

	if (v4)
		p.len = 96 + (rnd_one_in(r, 3) ? rnd_below(r, 33) : common[rnd_below(r, 9)]);
	else
		p.len = rnd_one_in(r, 3) ? rnd_below(r, 129) : common6[rnd_below(r, 9)];
	rnd_mask(&p);
	return p;
}

static int rnd_prefix_cmp(const void *pa, const void *pb)
{
	const struct prefix *a = pa, *b = pb;
	int c = memcmp(&a->addr, &b->addr, sizeof(a->addr));

	return c ? c : a->len < b->len ? -1 : a->len > b->len;
}

static int rnd_range_cmp(const void *pa, const void *pb)
{
	const struct range *a = pa, *b = pb;

	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* Up to n ranges within 0..last, sorted and apart. */
static struct range *rnd_ranges(struct rnd *r, size_t *n, uint32_t last)
{
	struct range *v = rnd_alloc(*n, sizeof(*v));
	size_t k = 0;

	for (size_t i = 0; i < *n; i++) {
		uint32_t room = rnd_one_in(r, 4) ? last + 1 : rnd_one_in(r, 2) ? 4 : 300;

		v[i].lo = rnd_one_in(r, 10) ? 0 : rnd_below(r, last + 1);
		v[i].hi = v[i].lo + rnd_below(r, rnd_one_in(r, 2) ? 1 : room);
		if (v[i].hi > last || rnd_one_in(r, 20))
			v[i].hi = last;
	}
	qsort(v, *n, sizeof(*v), rnd_range_cmp);
	for (size_t i = 0; i < *n; i++) {
		if (k && v[i].lo <= v[k - 1].hi)
			v[k - 1].hi = v[i].hi > v[k - 1].hi ? v[i].hi : v[k - 1].hi;
		else
			v[k++] = v[i];
	}
	*n = k;
	return v;
}

static void rnd_value_set(struct rnd *r, struct condition *c, uint32_t last)
{
	c->n = 1 + rnd_below(r, 3);
	c->ranges = rnd_ranges(r, &c->n, last);
}

static const char *rnd_set(struct rnd *r, const struct rule_list *l, enum set_kind kind)
{
	const struct rule_set_def *s =
		l->n_sets ? &l->sets[rnd_below(r, (uint32_t)l->n_sets)] : NULL;

	return s && s->kind == kind ? s->name : NULL;
}

static void rnd_addrs(struct rnd *r, const struct rule_list *l, struct condition *c)
{
	const char *set = rnd_one_in(r, 3) ? rnd_set(r, l, SET_PREFIXES) : NULL;

	if (set)
		rnd_name(&c->sets, set);
	if (set && rnd_one_in(r, 2))
		return;
	c->n = 1 + rnd_below(r, 3);
	c->prefixes = rnd_alloc(c->n, sizeof(*c->prefixes));
	for (size_t i = 0; i < c->n; i++)
		c->prefixes[i] = rnd_prefix(r);
}

static void rnd_numbers(struct rnd *r, const struct rule_list *l, const struct rule_field *row,
			struct condition *c)
{
	const char *set = row->sets && rnd_one_in(r, 3) ? rnd_set(r, l, SET_PORTS) : NULL;

	if (set)
		rnd_name(&c->sets, set);
	if (!set || rnd_one_in(r, 2))
		rnd_value_set(r, c, row->last);
}

static uint8_t rnd_proto(struct rnd *r)
{
	static const uint8_t usual[] = {6, 17, 1, 58, 6, 17, 47, 0, 255};

	return rnd_one_in(r, 12) ? (uint8_t)rnd_next(r) : usual[rnd_below(r, sizeof(usual))];
}

static void rnd_mac(struct rnd *r, uint8_t *mac)
{
	uint8_t edge = rnd_one_in(r, 2) ? 0 : 0xff;

	for (int i = 0; i < 6; i++)
		mac[i] = rnd_one_in(r, 4) ? (uint8_t)rnd_below(r, 3) : edge;
}

void rnd_one_number(struct condition *c, uint32_t value)
{
	c->n = 1;
	c->ranges = rnd_alloc(1, sizeof(*c->ranges));
	c->ranges[0] = (struct range){value, value};
}

static void rnd_flags(struct rnd *r, struct condition *c)
{
	uint8_t mask = (uint8_t)(rnd_next(r) & (rnd_one_in(r, 3) ? 0xff : 0x12));

	if (!mask)
		return;
	c->n = 1;
	c->bits = rnd_alloc(1, sizeof(*c->bits));
	c->bits[0] = (struct rule_bits){mask, (uint8_t)(rnd_next(r) & mask)};
}

/* One of a few, since a list can have but so many: no two lists' are the same. */
static struct rule_payload rnd_payload(struct rnd *r, const struct rule_list *l)
{
	struct rnd own = {rnd_below(r, 10) * 7919 + l->n_rules};
	struct rule_payload p = {.n = (uint8_t)(1 + rnd_below(&own, AX_PAYLOAD_PIECES))};

	for (size_t i = 0; i < p.n; i++) {
		struct payload_piece *piece = &p.piece[i];

		piece->len = (uint8_t)(1 + rnd_below(&own, AX_PAYLOAD_BYTES));
		piece->at = (uint8_t)rnd_below(&own, rnd_one_in(&own, 2) ? 4 : 128u - piece->len);
		for (size_t k = 0; k < piece->len; k++) {
			piece->mask[k] = rnd_one_in(&own, 2) ? 0xff : (uint8_t)rnd_next(&own);
			piece->value[k] = (uint8_t)(rnd_below(&own, 3) & piece->mask[k]);
		}
	}
	return p;
}

/* The same of marks. */
static struct rule_mark rnd_mark(struct rnd *r, const struct rule_list *l)
{
	struct rnd own = {rnd_below(r, 10) * 7919 + l->n_rules};
	uint32_t mask = rnd_one_in(&own, 2) ? UINT32_MAX : (uint32_t)rnd_next(&own);

	if (rnd_one_in(&own, 3))
		mask = 0xffu << rnd_below(&own, 25);
	return (struct rule_mark){(rnd_one_in(&own, 2) ? 0x10101010 : rnd_below(&own, 3)) & mask,
				  mask};
}

/* Few different labels, so that names are under each other. */
static void rnd_text(struct rnd *r, char *text)
{
	static const char *const labels[] = {"a", "b", "example", "org", "ab", "a-1"};
	uint32_t n = 1 + rnd_below(r, 4);

	text[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		strcat(text, i ? "." : "");
		strcat(text, labels[rnd_below(r, ARRAY_SIZE(labels))]);
	}
}

/* As they are when they were read: in order, each once. */
static void rnd_names(struct rnd *r, struct condition *c)
{
	c->n = 1 + rnd_below(r, 4);
	c->names = rnd_alloc(c->n, sizeof(*c->names));
	for (size_t i = 0; i < c->n; i++) {
		c->names[i].kind = (uint8_t)(1 + rnd_below(r, AX_NAME_KINDS - 1));
		if (rnd_one_in(r, 20))
			strcpy(c->names[i].text, ".");
		else
			rnd_text(r, c->names[i].text);
	}
	names_sort(c);
}

void rnd_condition(struct rnd *r, const struct rule_list *l, enum ax_field f, struct rule *to)
{
	const struct rule_field *row = rule_field(f);
	struct condition *c = &to->in[f];
	const char *set;

	switch (row->kind) {
	case FIELD_ADDRESS:
		return rnd_addrs(r, l, c);
	case FIELD_NUMBER:
		if (f == AX_FIELD_PROTO && !rnd_one_in(r, 4))
			return rnd_one_number(c, rnd_proto(r));
		return rnd_numbers(r, l, row, c);
	case FIELD_BITS:
		return rnd_flags(r, c);
	case FIELD_MAC:
		c->n = 1 + rnd_below(r, 3);
		c->macs = rnd_alloc(c->n, sizeof(*c->macs));
		for (size_t i = 0; i < c->n; i++)
			rnd_mac(r, c->macs[i].b);
		return;
	case FIELD_PAYLOAD:
		c->n = 1 + rnd_below(r, 2);
		c->payloads = rnd_alloc(c->n, sizeof(*c->payloads));
		for (size_t i = 0; i < c->n; i++)
			c->payloads[i] = rnd_payload(r, l);
		return;
	case FIELD_NAME:
		return rnd_names(r, c);
	case FIELD_FLOW:
		set = rnd_set(r, l, SET_FLOWS);
		if (set)
			rnd_name(&c->sets, set);
		return;
	case FIELD_MARK:
		c->n = 1 + rnd_below(r, 2);
		c->marks = rnd_alloc(c->n, sizeof(*c->marks));
		for (size_t i = 0; i < c->n; i++)
			c->marks[i] = rnd_mark(r, l);
		return;
	case FIELD_GROUP: /* no packet's */
	case FIELD_KINDS:
		break;
	}
}

/* --- lists --- */

static void rnd_make_set(struct rnd *r, struct rule_set_def *s, size_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "s%zu", number);
	s->name = strdup(name);
	s->kind = rnd_one_in(r, 3) ? SET_PORTS : SET_PREFIXES;
	if (rnd_one_in(r, 6)) { /* (there are no more sets than may be timed) */
		s->kind = SET_FLOWS;
		s->timed = true;
		return;
	}
	s->n = rnd_below(r, rnd_one_in(r, 4) ? 60 : 8);
	if (s->kind == SET_PORTS) {
		s->ports = rnd_ranges(r, &s->n, 65535);
		return;
	}
	s->prefixes = rnd_alloc(s->n, sizeof(*s->prefixes));
	for (size_t i = 0; i < s->n; i++)
		s->prefixes[i] = rnd_prefix(r);
	qsort(s->prefixes, s->n, sizeof(*s->prefixes), rnd_prefix_cmp);
}

static uint32_t rnd_list_size(struct rnd *r)
{
	if (rnd_one_in(r, 50))
		return 60 + rnd_below(r, 400);
	return rnd_below(r, rnd_one_in(r, 4) ? 80 : 9);
}

void rnd_list(struct rnd *r, uint32_t fields, bool balance, struct rule_list *l)
{
	uint32_t some = (uint32_t)rnd_next(r) & (rnd_one_in(r, 3) ? ~0u : (uint32_t)rnd_next(r));

	memset(l, 0, sizeof(*l));
	if (balance) /* in lists for what comes in alone, and marks in those for what leaves */
		fields &= ~(1u << AX_FIELD_MARK);
	l->direction = fields >> AX_FIELD_MARK & 1 ? DIRECTION_EGRESS : DIRECTION_INGRESS;
	l->n_sets = rnd_one_in(r, 2) ? rnd_below(r, 5) : 0;
	l->sets = rnd_alloc(l->n_sets, sizeof(*l->sets));
	for (size_t i = 0; i < l->n_sets; i++)
		rnd_make_set(r, &l->sets[i], i);
	if (balance) {
		l->n_balancers = 1;
		l->balancers = rnd_alloc(1, sizeof(*l->balancers));
		l->balancers->name = strdup("b");
	}
	l->n_rules = rnd_list_size(r);
	l->rules = rnd_alloc(l->n_rules, sizeof(*l->rules));
	some = rnd_one_in(r, 4) ? 1u << rnd_below(r, AX_FIELDS) : some;
	for (size_t i = 0; i < l->n_rules; i++) {
		struct rule *to = &l->rules[i];

		for (int f = 0; f < AX_FIELDS; f++)
			if ((fields & some) >> f & 1 && (rnd_one_in(r, 2) || i == 0))
				rnd_condition(r, l, (enum ax_field)f, to);
		to->verdict = rnd_one_in(r, 2) ? AX_VERDICT_DROP : AX_VERDICT_PASS;
		if (balance && rnd_one_in(r, 3)) {
			to->verdict = AX_VERDICT_BALANCE;
			to->target = strdup("b");
			condition_free(&to->in[AX_FIELD_FLOW]); /* see check_flow() */
		}
	}
	l->default_action = rnd_one_in(r, 2) ? AX_VERDICT_DROP : AX_VERDICT_PASS;
}

/* --- sets whose tables are as deep as they get --- */

static struct ax_addr dense_addr(uint32_t part, uint32_t i)
{
	struct ax_addr a = addr_from_v4(htonl(0x0a000000 + i));

	if (part == 0)
		return a;
	a = (struct ax_addr){.b = {part == 1 ? 0x20 : 0xfd}};
	a.w[part == 1 ? 1 : 3] = htonl(i);
	return a;
}

void dense_set(struct rule_set_def *s)
{
	s->kind = SET_PREFIXES;
	s->prefixes = rnd_alloc(DENSE_V4 + 2 * DENSE_V6, sizeof(*s->prefixes));
	for (uint32_t part = 0; part < 3; part++)
		for (uint32_t i = 0; i < (part ? DENSE_V6 : DENSE_V4); i++) {
			struct prefix *p = &s->prefixes[s->n++];

			p->addr = dense_addr(part, 2 * i);
			p->len = part == 1 ? 64 : 128;
		}
}

struct ax_addr dense_pick(struct rnd *r, bool *in)
{
	uint32_t part = rnd_below(r, 3), most = 2 * (part ? DENSE_V6 : DENSE_V4);
	uint32_t i = rnd_one_in(r, 8) ? most - 1 - rnd_below(r, 3) : rnd_below(r, most + 2);
	struct ax_addr a = dense_addr(part, i);

	*in = i % 2 == 0 && i < most;
	if (part == 1)
		a.w[3] = (__be32)rnd_next(r);
	return a;
}

/* --- packets --- */

/* The end of a range, or what is just outside of it. */
static uint32_t rnd_near(struct rnd *r, const struct range *v, uint32_t last)
{
	uint32_t x = rnd_one_in(r, 2) ? v->lo : v->hi;

	x += rnd_below(r, 3) - 1;
	return x > last ? rnd_one_in(r, 2) ? 0 : last : x;
}

static uint32_t rnd_value(struct rnd *r, const struct rule_list *l, const struct condition *c,
			  uint32_t last)
{
	if (c->sets.n && (!c->n || rnd_one_in(r, 2))) {
		const struct rule_set_def *s =
			match_set(l, c->sets.v[rnd_below(r, (uint32_t)c->sets.n)]);

		if (s->n)
			return rnd_near(r, &s->ports[rnd_below(r, (uint32_t)s->n)], last);
	}
	if (c->n && !rnd_one_in(r, 10))
		return rnd_near(r, &c->ranges[rnd_below(r, (uint32_t)c->n)], last);
	return rnd_below(r, last + 1);
}

/* First or last address of a prefix, or the one before or behind, or one with a bit changed. */
static struct ax_addr rnd_addr_near(struct rnd *r, const struct prefix *p)
{
	struct ax_addr a = p->addr;
	unsigned flip = rnd_below(r, 128);
	int i;

	if (rnd_one_in(r, 2))
		for (unsigned bit = p->len; bit < 128; bit++)
			a.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	switch (rnd_below(r, 4)) {
	case 0: /* one more */
		for (i = 15; i >= 0 && ++a.b[i] == 0; i--)
			;
		break;
	case 1: /* one less */
		for (i = 15; i >= 0 && a.b[i]-- == 0; i--)
			;
		break;
	case 2:
		a.b[flip / 8] ^= (uint8_t)(0x80 >> flip % 8);
		break;
	}
	return a;
}

static struct ax_addr rnd_packet_addr(struct rnd *r, const struct rule_list *l,
				      const struct condition *c)
{
	if (c->sets.n && (!c->n || rnd_one_in(r, 2))) {
		const struct rule_set_def *s =
			match_set(l, c->sets.v[rnd_below(r, (uint32_t)c->sets.n)]);

		if (s->n)
			return rnd_addr_near(r, &s->prefixes[rnd_below(r, (uint32_t)s->n)]);
	}
	if (c->n && !rnd_one_in(r, 10))
		return rnd_addr_near(r, &c->prefixes[rnd_below(r, (uint32_t)c->n)]);
	return rnd_addr(r, rnd_one_in(r, 2));
}

/* An IPv4 packet has two IPv4 addresses. An IPv6 one mostly none that look like it. */
static void rnd_ends(struct rnd *r, const struct rule_list *l, const struct rule *near,
		     struct match_packet *p)
{
	const struct condition *icmp = &near->in[AX_FIELD_ICMP];

	p->src = rnd_packet_addr(r, l, &near->in[AX_FIELD_SRC]);
	p->dst = rnd_packet_addr(r, l, &near->in[AX_FIELD_DST]);
	p->v4 = addr_is_v4(rnd_one_in(r, 2) ? &p->src : &p->dst);
	if (icmp->n && !rnd_one_in(r, 4))
		p->v4 = icmp->ranges[0].lo < 65536;
	if (p->v4 != addr_is_v4(&p->src) && (p->v4 || !rnd_one_in(r, 8)))
		p->src = rnd_addr(r, p->v4);
	if (p->v4 != addr_is_v4(&p->dst) && (p->v4 || !rnd_one_in(r, 8)))
		p->dst = rnd_addr(r, p->v4);
}

static void rnd_transport(struct rnd *r, const struct rule_list *l, const struct rule *near,
			  struct match_packet *p)
{
	const struct condition *flags = &near->in[AX_FIELD_TCP_FLAGS];
	bool ports = match_has(near, AX_FIELD_SPORT) || match_has(near, AX_FIELD_DPORT);

	p->proto = rnd_proto(r);
	if (match_has(near, AX_FIELD_PROTO) && !rnd_one_in(r, 8))
		p->proto = (uint8_t)rnd_value(r, l, &near->in[AX_FIELD_PROTO], 255);
	else if (flags->n && !rnd_one_in(r, 8))
		p->proto = 6;
	else if (ports && !rnd_one_in(r, 8))
		p->proto = rnd_one_in(r, 2) ? 6 : 17;
	else if (match_has(near, AX_FIELD_ICMP) && !rnd_one_in(r, 8))
		p->proto = p->v4 ? 1 : 58;
	if (p->fragment == AX_FRAGMENT_LATER)
		return;
	p->has_l4 = p->proto == 6 || p->proto == 17;
	p->has_icmp = p->proto == (p->v4 ? 1 : 58);
	if (p->proto == 6)
		p->tcp_flags =
			(uint8_t)((flags->n ? flags->bits->value : 0) ^ (1u << rnd_below(r, 16)));
}

/* What the packet has of numbers that do not say what it is. */
static void rnd_values(struct rnd *r, const struct rule_list *l, const struct rule *near,
		       struct match_packet *p)
{
	for (size_t i = 0; i < AX_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];

		if (row->kind == FIELD_NUMBER && match_value_of(p, row->number) <= row->last)
			match_set_value(p, row->number,
					rnd_value(r, l, &near->in[row->number], row->last));
	}
}

/* What one of the rule's payloads wants, or nearly; often no longer than that. */
static void rnd_set_payload(struct rnd *r, const struct condition *want, struct match_packet *p)
{
	size_t last = 0;

	for (size_t i = 0; i < sizeof(p->payload); i++)
		p->payload[i] = (uint8_t)rnd_below(r, 3);
	if (want->n) {
		const struct rule_payload *w = &want->payloads[rnd_below(r, (uint32_t)want->n)];

		for (size_t i = 0; i < w->n; i++) {
			const struct payload_piece *piece = &w->piece[i];
			size_t end = (size_t)piece->at + piece->len;

			for (size_t k = 0; k < piece->len; k++)
				p->payload[piece->at + k] =
					(uint8_t)((rnd_next(r) & ~piece->mask[k]) |
						  piece->value[k]);
			last = end > last ? end : last;
		}
	}
	p->payload_len = rnd_one_in(r, 2) ? last : rnd_below(r, sizeof(p->payload) + 1);
	if (p->payload_len && rnd_one_in(r, 8))
		p->payload_len--;
	memset(p->payload + p->payload_len, 0, sizeof(p->payload) - p->payload_len);
}

/* What one of the rule's marks wants, or nearly. */
static uint32_t rnd_packet_mark(struct rnd *r, const struct condition *want)
{
	const struct rule_mark *w = want->n ? &want->marks[rnd_below(r, (uint32_t)want->n)] : NULL;
	uint32_t mark = rnd_one_in(r, 2) ? rnd_below(r, 3) : (uint32_t)rnd_next(r);

	if (w)
		mark = (mark & ~w->mask) | w->value;
	return rnd_one_in(r, 4) ? mark ^ 1u << rnd_below(r, 32) : mark;
}

/* One of the rule's names, or under it, or nearly. */
static void rnd_set_name(struct rnd *r, const struct condition *want, struct match_packet *p)
{
	const struct rule_name *w = want->n ? &want->names[rnd_below(r, (uint32_t)want->n)] : NULL;
	bool udp = p->proto == 17;

	if (!p->has_l4 || rnd_one_in(r, 3))
		return;
	p->name_kind = (uint8_t)(udp ? AX_NAME_DNS : 1 + rnd_below(r, AX_NAME_KINDS - 1));
	if (w && !rnd_one_in(r, 8) && (w->kind == AX_NAME_DNS) == udp)
		p->name_kind = w->kind;
	if ((p->name_kind == AX_NAME_DNS) != udp) {
		p->name_kind = 0;
		return;
	}
	rnd_text(r, p->name);
	if (w && w->text[1] && !rnd_one_in(r, 4)) {
		strcat(p->name, rnd_one_in(r, 8) ? "" : ".");
		strcat(p->name, w->text);
		if (rnd_one_in(r, 2))
			strcpy(p->name, w->text);
	}
	for (size_t i = 0; p->name[i]; i++)
		if (p->name[i] >= 'a' && p->name[i] <= 'z' && rnd_one_in(r, 4))
			p->name[i] = (char)(p->name[i] - 32);
}

void rnd_packet(struct rnd *r, const struct rule_list *l, struct match_packet *p)
{
	static const struct rule none;
	const struct rule *near =
		l->n_rules ? &l->rules[rnd_below(r, (uint32_t)l->n_rules)] : &none;
	const struct condition *mac = &near->in[AX_FIELD_MAC];

	memset(p, 0, sizeof(*p));
	p->vlan = match_has(near, AX_FIELD_VLAN) || rnd_one_in(r, 4)
			  ? (uint16_t)rnd_value(r, l, &near->in[AX_FIELD_VLAN], AX_VLAN_NONE)
			  : AX_VLAN_NONE;
	p->len = rnd_value(r, l, &near->in[AX_FIELD_LENGTH], 65540);
	rnd_mac(r, p->mac);
	if (mac->n && !rnd_one_in(r, 8)) {
		memcpy(p->mac, mac->macs[rnd_below(r, (uint32_t)mac->n)].b, 6);
		p->mac[5] = (uint8_t)(p->mac[5] + rnd_below(r, 3) - 1);
	}
	p->mark = rnd_packet_mark(r, &near->in[AX_FIELD_MARK]);
	p->ip = !rnd_one_in(r, 12);
	p->fragment = AX_FRAGMENT_NOT_IP;
	if (!p->ip)
		return;
	p->fragment =
		match_has(near, AX_FIELD_FRAGMENT) || rnd_one_in(r, 6)
			? (uint8_t)rnd_value(r, l, &near->in[AX_FIELD_FRAGMENT], AX_FRAGMENT_LATER)
			: AX_FRAGMENT_NONE;
	rnd_ends(r, l, near, p);
	rnd_transport(r, l, near, p);
	rnd_values(r, l, near, p);
	rnd_set_payload(r, &near->in[AX_FIELD_PAYLOAD], p);
	rnd_set_name(r, &near->in[AX_FIELD_NAME], p);
}
