// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules to vectors; see include/party.h. What a rule matches says config/policy_match.c alone. */
#include <netinet/in.h>

#include "allot/learnt.h"
#include "allot/policy.h"

static size_t n_rules(const struct policy *p)
{
	return p->n_rules < AX_RULES_MAX ? p->n_rules : AX_RULES_MAX;
}

static void bit_set(struct ax_rule_bits *b, size_t i)
{
	b->w[i / 64] |= 1ull << i % 64;
}

void policy_party_rules(const struct policy *p, uint32_t party, struct ax_party_rules *ret)
{
	struct policy_end end;

	memset(ret, 0, sizeof(*ret));
	if (!policy_party(p, party))
		return;
	end = policy_end_of(p, party);
	for (size_t i = 0; i < n_rules(p); i++) {
		if (policy_side_is(&p->rules[i].from, &end))
			bit_set(&ret->from, i);
		if (policy_side_is(&p->rules[i].to, &end))
			bit_set(&ret->to, i);
	}
}

/* --- ports --- */

static uint64_t bits_hash(const struct ax_rule_bits *b)
{
	uint64_t h = 0;

	for (int i = 0; i < AX_RULE_WORDS; i++)
		h = (h ^ b->w[i]) * 0x9e3779b97f4a7c15; /* Fibonacci hashing */
	return h;
}

static void port_bits(const struct policy *p, const struct policy_port *port,
		      struct ax_rule_bits *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < n_rules(p); i++)
		if (policy_port_is(&p->rules[i], port))
			bit_set(ret, i);
}

/* The class of what those ports are like. There is room: the config has no more ranges. */
static uint16_t class_for(struct policy_tables *t, const struct ax_rule_bits *b)
{
	uint64_t hash = bits_hash(b);

	for (unsigned i = AX_PORTS_CLASSES; i < t->n_classes; i++)
		if (t->hashes[i] == hash && memcmp(&t->classes[i], b, sizeof(*b)) == 0)
			return (uint16_t)i;
	if (t->n_classes == AX_PORT_CLASSES)
		return AX_PORTS_NONE;
	t->hashes[t->n_classes] = hash;
	t->classes[t->n_classes] = *b;
	return (uint16_t)t->n_classes++;
}

static void put_ports(const struct policy *p, uint8_t proto, struct policy_tables *t,
		      uint16_t *class_of)
{
	bool begins[65537] = {true};
	struct ax_rule_bits b;
	uint16_t class = 0;

	for (size_t i = 0; i < n_rules(p); i++) {
		const struct config_rule *r = &p->rules[i];

		for (size_t k = 0; k < r->n_ports; k++) {
			begins[r->ports[k].first] = true;
			begins[r->ports[k].last + 1] = true;
		}
	}
	for (unsigned port = 0; port < 65536; port++) {
		if (begins[port]) {
			port_bits(p, &(struct policy_port){.proto = proto, .port = (uint16_t)port},
				  &b);
			class = class_for(t, &b);
		}
		class_of[port] = class;
	}
}

/* --- addresses that are not ax's --- */

static int outside_cmp(const void *x, const void *y)
{
	const struct policy_outside *a = x, *b = y;
	int c = addr_cmp(&a->prefix.addr, &b->prefix.addr);

	return c ? c : (int)a->prefix.len - (int)b->prefix.len;
}

static size_t gather(const struct config_side *s, struct policy_outside *v)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].kind != WHO_PREFIX)
			continue;
		if (v)
			v[n].prefix = s->v[i].prefix;
		n++;
	}
	return n;
}

static bool has_address(const struct config_side *s, const struct ax_addr *addr)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == WHO_PREFIX && s->v[i].prefix.len == 128 &&
		    addr_eq(&s->v[i].prefix.addr, addr))
			return true;
	return false;
}

/* Whether the side has all addresses of that prefix. */
static bool side_covers(const struct config_side *s, const struct prefix *p)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == WHO_PREFIX && s->v[i].prefix.len <= p->len &&
		    prefix_contains(&s->v[i].prefix, &p->addr))
			return true;
	return false;
}

static int put_outside(const struct policy *p, struct policy_tables *t)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < n_rules(p); i++)
		n += gather(&p->rules[i].from, NULL) + gather(&p->rules[i].to, NULL);
	t->outside = calloc(n + 1, sizeof(*t->outside));
	if (!t->outside)
		return -ENOMEM;
	for (size_t i = 0, k = 0; i < n_rules(p); i++) {
		k += gather(&p->rules[i].from, t->outside + k);
		k += gather(&p->rules[i].to, t->outside + k);
	}
	qsort(t->outside, n, sizeof(*t->outside), outside_cmp);
	for (size_t i = 0; i < n; i++) {
		struct policy_outside *o = &t->outside[kept];

		if (kept && outside_cmp(o - 1, &t->outside[i]) == 0)
			continue;
		*o = t->outside[i];
		for (size_t k = 0; k < n_rules(p); k++) {
			if (side_covers(&p->rules[k].from, &o->prefix))
				bit_set(&o->rules.from, k);
			if (side_covers(&p->rules[k].to, &o->prefix))
				bit_set(&o->rules.to, k);
		}
		kept++;
	}
	t->n_outside = kept;
	return 0;
}

/* --- all of it --- */

static void put_set(const struct policy *p, struct ax_rule_set *set)
{
	set->n_words = (uint32_t)(n_rules(p) + 63) / 64;
	for (size_t i = 0; i < n_rules(p); i++) {
		const struct config_rule *r = &p->rules[i];

		if (r->action == RULE_LOG)
			bit_set(&set->log, i);
		else if (r->audit)
			bit_set(&set->audit, i);
		else
			bit_set(&set->decide, i);
		if (r->action == RULE_LOG || r->audit)
			set->flags |= AX_RULES_PASS;
		else if (r->action == RULE_ALLOW)
			bit_set(&set->allow, i);
		if (r->n_ports || r->protocols)
			set->flags |= AX_RULES_PORTS;
	}
}

bool policy_address_rules(const struct policy *p, const struct ax_addr *addr,
			  struct ax_party_rules *ret)
{
	struct policy_end end = {.addr = *addr};
	struct strv names = {0};
	bool any;

	memset(ret, 0, sizeof(*ret));
	if (p->learnt && learnt_names(p->learnt, addr, &names))
		return false;
	end.names = &names;
	any = names.n;
	for (size_t i = 0; i < n_rules(p); i++) {
		any = any || has_address(&p->rules[i].from, addr) ||
		      has_address(&p->rules[i].to, addr);
		if (p->rules[i].from.n && policy_side_is(&p->rules[i].from, &end))
			bit_set(&ret->from, i);
		if (p->rules[i].to.n && policy_side_is(&p->rules[i].to, &end))
			bit_set(&ret->to, i);
	}
	free(names.v);
	return any;
}

static bool names_names(const struct policy *p)
{
	for (size_t i = 0; i < n_rules(p); i++)
		if (policy_side_names(&p->rules[i].to, NULL))
			return true;
	return false;
}

const struct config_rule *policy_name_rule(const struct policy *p, uint32_t party, const char *name)
{
	struct policy_end end;
	int i;

	if (!policy_party(p, party))
		return NULL;
	end = policy_end_of(p, party);
	i = policy_judge_name(p->rules, n_rules(p), &end, name);
	return i < 0 ? NULL : &p->rules[i];
}

static bool speaks_of(const struct policy *p, uint32_t party, const char *name)
{
	struct policy_end end;

	if (!policy_party(p, party))
		return false;
	end = policy_end_of(p, party);
	for (size_t i = 0; i < n_rules(p); i++)
		if (policy_side_names(&p->rules[i].to, name) &&
		    policy_side_is(&p->rules[i].from, &end))
			return true;
	return false;
}

bool policy_learns(const struct policy *p, uint32_t party, const char *name)
{
	return speaks_of(p, party, name);
}

bool policy_speaks_of_names(const struct policy *p, uint32_t party)
{
	return speaks_of(p, party, NULL);
}

static bool is_outside(const struct config_side *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == WHO_PREFIX || s->v[i].kind == WHO_DOMAIN)
			return true;
	return false;
}

/* proto: by a rule that can match what has no ports; 0: by any. */
static bool decides_outside(const struct policy *p, uint32_t party, enum rule_action action,
			    uint8_t proto)
{
	const struct policy_port what = {.proto = proto};
	struct policy_end end;

	if (!policy_party(p, party))
		return false;
	end = policy_end_of(p, party);
	for (size_t i = 0; i < n_rules(p); i++)
		if (p->rules[i].action == action && !p->rules[i].audit &&
		    (!proto || policy_port_is(&p->rules[i], &what)) &&
		    is_outside(&p->rules[i].to) && policy_side_is(&p->rules[i].from, &end))
			return true;
	return false;
}

bool policy_leaves(const struct policy *p, uint32_t party)
{
	return decides_outside(p, party, RULE_ALLOW, 0);
}

bool policy_confines(const struct policy *p, uint32_t party)
{
	return decides_outside(p, party, RULE_DENY, IPPROTO_ICMP);
}

struct policy_tables *policy_compile(const struct policy *p)
{
	struct policy_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	put_set(p, &t->set);
	port_bits(p, &(struct policy_port){.proto = IPPROTO_ICMP}, &t->classes[AX_PORTS_NONE]);
	port_bits(p, &(struct policy_port){.proto = IPPROTO_TCP, .fragment = true},
		  &t->classes[AX_PORTS_TCP_FRAGMENT]);
	port_bits(p, &(struct policy_port){.proto = IPPROTO_UDP, .fragment = true},
		  &t->classes[AX_PORTS_UDP_FRAGMENT]);
	t->n_classes = AX_PORTS_CLASSES;
	put_ports(p, IPPROTO_TCP, t, t->class_of[0]);
	put_ports(p, IPPROTO_UDP, t, t->class_of[1]);
	if (put_outside(p, t)) {
		policy_tables_free(t);
		return NULL;
	}
	if (t->n_outside || names_names(p))
		t->set.flags |= AX_RULES_OUTSIDE;
	return t;
}

void policy_tables_free(struct policy_tables *t)
{
	if (t)
		free(t->outside);
	free(t);
}

uint64_t policy_rule_id(const struct config_rule *r)
{
	autofree char *text = r->name ? strdup(r->name) : config_rule_text(r);
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */

	for (const char *s = text; s && *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return h ? h : 1;
}

bool policy_may(const struct policy *p, uint32_t client, uint32_t server,
		const struct policy_port *port)
{
	struct policy_verdict v;
	struct policy_end from, to;

	if (!policy_party(p, client) || !policy_party(p, server))
		return false;
	from = policy_end_of(p, client);
	to = policy_end_of(p, server);
	policy_judge(p->rules, n_rules(p), &from, &to, port, &v);
	return !v.deny && !v.no_label;
}
