// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/matcher.h"

#include <string.h>

static bool match_prefix(const struct prefix *x, const struct ax_addr *a, bool v4)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool prefix_v4 = x->len >= 96 && memcmp(x->addr.b, mapped, 12) == 0;

	if (prefix_v4 != v4)
		return false;
	for (unsigned bit = 0; bit < x->len; bit++)
		if ((x->addr.b[bit / 8] ^ a->b[bit / 8]) >> (7 - bit % 8) & 1)
			return false;
	return true;
}

static bool match_prefixes(const struct prefix *v, size_t n, const struct ax_addr *a, bool v4)
{
	for (size_t i = 0; i < n; i++)
		if (match_prefix(&v[i], a, v4))
			return true;
	return false;
}

const struct rule_set_def *match_set(const struct rule_list *l, const char *name)
{
	for (size_t i = 0; i < l->n_sets; i++)
		if (strcmp(l->sets[i].name, name) == 0)
			return &l->sets[i];
	return NULL;
}

static bool match_addr(const struct rule_list *l, const struct condition *c,
		       const struct match_packet *p, const struct ax_addr *a)
{
	if (!p->ip)
		return false;
	if (match_prefixes(c->prefixes, c->n, a, p->v4))
		return true;
	for (size_t i = 0; i < c->sets.n; i++) {
		const struct rule_set_def *s = match_set(l, c->sets.v[i]);

		if (match_prefixes(s->prefixes, s->n, a, p->v4))
			return true;
	}
	return false;
}

static bool match_range(const struct range *v, size_t n, uint32_t value)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].lo <= value && value <= v[i].hi)
			return true;
	return false;
}

static bool match_number(const struct rule_list *l, const struct condition *c, uint32_t value)
{
	if (match_range(c->ranges, c->n, value))
		return true;
	for (size_t i = 0; i < c->sets.n; i++) {
		const struct rule_set_def *s = match_set(l, c->sets.v[i]);

		if (match_range(s->ports, s->n, value))
			return true;
	}
	return false;
}

static bool match_bits(const struct condition *c, uint32_t value)
{
	for (size_t i = 0; i < c->n; i++)
		if ((value & c->bits[i].mask) == c->bits[i].value)
			return true;
	return false;
}

static bool match_mac(const struct condition *c, const struct match_packet *p)
{
	for (size_t i = 0; i < c->n; i++)
		if (memcmp(c->macs[i].b, p->mac, 6) == 0)
			return true;
	return false;
}

/* All pieces, byte by byte. */
static bool match_pieces(const struct rule_payload *want, const struct match_packet *p)
{
	for (size_t i = 0; i < want->n; i++) {
		const struct payload_piece *piece = &want->piece[i];

		for (size_t k = 0; k < piece->len; k++) {
			size_t at = (size_t)piece->at + k;

			if (at >= p->payload_len ||
			    (p->payload[at] & piece->mask[k]) != piece->value[k])
				return false;
		}
	}
	return true;
}

static bool match_payload(const struct condition *c, const struct match_packet *p)
{
	for (size_t i = 0; match_has_payload(p) && i < c->n; i++)
		if (match_pieces(&c->payloads[i], p))
			return true;
	return false;
}

/* The name itself, or one under it. */
static bool match_suffix(const char *suffix, const char *name)
{
	size_t len = strlen(name), n = strlen(suffix);

	if (strcmp(suffix, ".") == 0)
		return true;
	if (n > len || strcasecmp(name + len - n, suffix) != 0)
		return false;
	return n == len || name[len - n - 1] == '.';
}

static bool match_name(const struct condition *c, const struct match_packet *p)
{
	for (size_t i = 0; p->name_kind && i < c->n; i++)
		if (c->names[i].kind == p->name_kind && match_suffix(c->names[i].text, p->name))
			return true;
	return false;
}

static bool match_mark(const struct condition *c, const struct match_packet *p)
{
	for (size_t i = 0; i < c->n; i++)
		if ((p->mark & c->marks[i].mask) == c->marks[i].value)
			return true;
	return false;
}

static bool match_field(const struct rule_list *l, const struct rule_field *row,
			const struct condition *c, const struct match_packet *p)
{
	uint32_t value = match_value_of(p, row->number);

	if (c->n == 0 && c->sets.n == 0)
		return true;
	switch (row->kind) {
	case FIELD_ADDRESS:
		return match_addr(l, c, p, row->number == AX_FIELD_SRC ? &p->src : &p->dst);
	case FIELD_NUMBER:
		return value <= row->last && match_number(l, c, value);
	case FIELD_BITS:
		return value <= row->last && match_bits(c, value);
	case FIELD_MAC:
		return match_mac(c, p);
	case FIELD_PAYLOAD:
		return match_payload(c, p);
	case FIELD_NAME:
		return match_name(c, p);
	case FIELD_MARK:
		return match_mark(c, p);
	case FIELD_FLOW:  /* what came to sets is no part of the list */
	case FIELD_GROUP: /* no packet's */
	case FIELD_KINDS:
		break;
	}
	return false;
}

/* What depends on the header behind IP's (`transport`), or what does not. */
static bool match_fields(const struct rule_list *l, const struct rule *r,
			 const struct match_packet *p, bool transport)
{
	for (size_t i = 0; i < AX_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];

		if ((row->layer == LAYER_TRANSPORT) == transport &&
		    !match_field(l, row, &r->in[row->number], p))
			return false;
	}
	return true;
}

bool match_has(const struct rule *r, enum ax_field f)
{
	return r->in[f].n || r->in[f].sets.n;
}

/* Later fragments of what a rule balances by ports or flags go where the first one went. */
static bool match_balanced_fragment(const struct rule *r, const struct match_packet *p)
{
	bool by_ports = match_has(r, AX_FIELD_SPORT) || match_has(r, AX_FIELD_DPORT);

	if (r->verdict != AX_VERDICT_BALANCE || p->fragment != AX_FRAGMENT_LATER ||
	    match_has(r, AX_FIELD_ICMP))
		return false;
	if (match_has(r, AX_FIELD_TCP_FLAGS))
		return p->proto == 6;
	return by_ports && (p->proto == 6 || p->proto == 17);
}

static bool match_rule(const struct rule_list *l, const struct rule *r,
		       const struct match_packet *p)
{
	return match_fields(l, r, p, false) &&
	       (match_fields(l, r, p, true) || match_balanced_fragment(r, p));
}

size_t match_first(const struct rule_list *l, const struct match_packet *p)
{
	size_t i = 0;

	while (i < l->n_rules && !match_rule(l, &l->rules[i], p))
		i++;
	return i;
}
