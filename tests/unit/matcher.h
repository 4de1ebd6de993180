/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a rule list means, in the plainest form: rule by rule, condition by condition. It shares
 * nothing with the compiler and the programs, which are held against it.
 */
#ifndef AX_TEST_MATCHER_H
#define AX_TEST_MATCHER_H

#include "rules/list.h"

/* A packet as the parser sees it. */
struct match_packet {
	bool ip, v4; /* v4: by its header, whatever the addresses look like */
	struct ax_addr src, dst;
	uint8_t proto;
	uint8_t fragment; /* enum ax_fragment */
	bool has_l4;	  /* ports, and TCP's flags */
	uint16_t sport, dport;
	uint8_t tcp_flags;
	bool has_icmp;
	uint8_t icmp_type, icmp_code;
	uint16_t vlan; /* AX_VLAN_NONE: untagged */
	uint32_t len;
	uint8_t mac[6];
};

static inline bool match_prefix(const struct prefix *x, const struct ax_addr *a, bool v4)
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

static inline bool match_prefixes(const struct prefix *v, size_t n, const struct ax_addr *a,
				  bool v4)
{
	for (size_t i = 0; i < n; i++)
		if (match_prefix(&v[i], a, v4))
			return true;
	return false;
}

static inline const struct rule_set_def *match_set(const struct rule_list *l, const char *name)
{
	for (size_t i = 0; i < l->n_sets; i++)
		if (strcmp(l->sets[i].name, name) == 0)
			return &l->sets[i];
	return NULL;
}

static inline bool match_addr(const struct rule_list *l, const struct rule_addrs *c,
			      const struct match_packet *p, const struct ax_addr *a)
{
	if (c->n == 0 && c->sets.n == 0)
		return true;
	if (!p->ip)
		return false;
	if (match_prefixes(c->v, c->n, a, p->v4))
		return true;
	for (size_t i = 0; i < c->sets.n; i++) {
		const struct rule_set_def *s = match_set(l, c->sets.v[i]);

		if (match_prefixes(s->prefixes, s->n, a, p->v4))
			return true;
	}
	return false;
}

static inline bool match_range(const struct range *v, size_t n, uint32_t value)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].lo <= value && value <= v[i].hi)
			return true;
	return false;
}

/* `there`: the packet has the field at all. */
static inline bool match_value(const struct rule_list *l, const struct ranges *c, bool there,
			       uint32_t value)
{
	if (c->n == 0 && c->sets.n == 0)
		return true;
	if (!there)
		return false;
	if (match_range(c->v, c->n, value))
		return true;
	for (size_t i = 0; i < c->sets.n; i++) {
		const struct rule_set_def *s = match_set(l, c->sets.v[i]);

		if (match_range(s->ports, s->n, value))
			return true;
	}
	return false;
}

static inline bool match_mac(const struct rule *r, const struct match_packet *p)
{
	for (size_t i = 0; i < r->n_mac; i++)
		if (memcmp(r->mac[i].b, p->mac, 6) == 0)
			return true;
	return r->n_mac == 0;
}

static inline bool match_flags(const struct rule *r, const struct match_packet *p)
{
	if (!r->flags_mask)
		return true;
	return p->has_l4 && p->proto == 6 && (p->tcp_flags & r->flags_mask) == r->flags_value;
}

/* What does not depend on the header behind IP's. */
static inline bool match_outer(const struct rule_list *l, const struct rule *r,
			       const struct match_packet *p)
{
	return match_addr(l, &r->src, p, &p->src) && match_addr(l, &r->dst, p, &p->dst) &&
	       match_value(l, &r->proto, p->ip, p->proto) &&
	       match_value(l, &r->vlan, true, p->vlan) &&
	       match_value(l, &r->fragment, true, p->fragment) &&
	       match_value(l, &r->length, true, p->len > 65535 ? 65535 : p->len) && match_mac(r, p);
}

static inline bool match_inner(const struct rule_list *l, const struct rule *r,
			       const struct match_packet *p)
{
	uint32_t icmp = (p->v4 ? 0u : 1u << 16) | (uint32_t)p->icmp_type << 8 | p->icmp_code;

	return match_value(l, &r->sport, p->has_l4, p->sport) &&
	       match_value(l, &r->dport, p->has_l4, p->dport) && match_flags(r, p) &&
	       match_value(l, &r->icmp, p->has_icmp, icmp);
}

/* Later fragments of what a rule balances by ports or flags go where the first one went. */
static inline bool match_balanced_fragment(const struct rule *r, const struct match_packet *p)
{
	bool by_ports = r->sport.n || r->sport.sets.n || r->dport.n || r->dport.sets.n;

	if (r->verdict != AX_VERDICT_BALANCE || p->fragment != AX_FRAGMENT_LATER || r->icmp.n)
		return false;
	if (r->flags_mask)
		return p->proto == 6;
	return by_ports && (p->proto == 6 || p->proto == 17);
}

static inline bool match_rule(const struct rule_list *l, const struct rule *r,
			      const struct match_packet *p)
{
	return match_outer(l, r, p) && (match_inner(l, r, p) || match_balanced_fragment(r, p));
}

/* The first rule of the list that matches, or n_rules: the default. */
static inline size_t match_first(const struct rule_list *l, const struct match_packet *p)
{
	size_t i = 0;

	while (i < l->n_rules && !match_rule(l, &l->rules[i], p))
		i++;
	return i;
}

#endif
