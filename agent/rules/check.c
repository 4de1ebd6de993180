// SPDX-License-Identifier: GPL-2.0-or-later
/* What no key of a rule can know alone: conditions and actions that do not go together. */
#include "rules/key.h"
#include "rules/priv.h"

#include <netinet/in.h>

static bool is_given(uint64_t given, enum rule_key_number key)
{
	return given & 1ull << key;
}

/* Every value of the ranges is one of the two. */
static bool only_has(const struct condition *c, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < c->n; i++)
		for (uint64_t v = c->ranges[i].lo; v <= c->ranges[i].hi; v++)
			if (v != a && v != b)
				return false;
	return true;
}

/* "dport with proto icmp": what clashes, with the rule's own words. */
static int clash(struct rule_fault *f, const char *a, const char *b, const char *want)
{
	char found[64];

	snprintf(found, sizeof(found), "%s with %s", a, b);
	return fault_set(f, found, "%s", want);
}

static bool has_value(const struct condition *c, uint32_t v)
{
	for (size_t i = 0; i < c->n; i++)
		if (v >= c->ranges[i].lo && v <= c->ranges[i].hi)
			return true;
	return false;
}

static bool only_later(const struct rule *r)
{
	const struct condition *fragment = &r->in[AX_FIELD_FRAGMENT];

	return fragment->n && only_has(fragment, AX_FRAGMENT_LATER, AX_FRAGMENT_LATER);
}

/* That there can be packets with the header that the key is about. */
static int check_header(const struct rule *r, const char *key, const struct field_header *header,
			struct rule_fault *f)
{
	if (!only_has(&r->in[AX_FIELD_PROTO], header->protos[0], header->protos[1]))
		return clash(f, key, header->other, header->want_proto);
	if (r->in[AX_FIELD_ICMP].n)
		return clash(f, key, "icmp", header->want_icmp);
	if (only_later(r))
		return clash(f, key, "fragment later", header->want_later);
	return 0;
}

static int check_headers(const struct rule *r, struct rule_fault *f)
{
	int code = 0;

	for (size_t i = 0; i < AX_FIELDS && code == 0; i++) {
		const struct rule_field *row = &rule_fields[i];

		if (row->header && !condition_is_empty(&r->in[row->number]))
			code = check_header(r, row->keys[0].name, row->header, f);
	}
	if (code == 0 && r->rewrite & AX_REWRITE_DPORT)
		code = check_header(r, "to-port", rule_field(AX_FIELD_DPORT)->header, f);
	return code;
}

enum family { FAMILY_ANY, FAMILY_4, FAMILY_6 };

/* Which family alone its addresses are of; what a set holds is not known here. */
static enum family addrs_family(const struct condition *c)
{
	enum family all = FAMILY_ANY;

	if (c->sets.n)
		return FAMILY_ANY;
	for (size_t i = 0; i < c->n; i++) {
		const struct prefix *p = &c->prefixes[i];
		enum family one = p->len >= 96 && addr_is_v4(&p->addr) ? FAMILY_4 : FAMILY_6;

		if (all != FAMILY_ANY && all != one)
			return FAMILY_ANY;
		all = one;
	}
	return all;
}

static enum family icmp_family(const struct condition *c)
{
	if (!c->n)
		return FAMILY_ANY;
	if (c->ranges[c->n - 1].hi < ICMP_V6)
		return FAMILY_4;
	return c->ranges[0].lo >= ICMP_V6 ? FAMILY_6 : FAMILY_ANY;
}

/* What of a rule is of one family, and of which. */
struct of_family {
	enum family family;
	char what[24];
};

static void note_family(struct of_family *all, size_t *n, enum family family, const char *v4,
			const char *v6)
{
	if (family == FAMILY_ANY)
		return;
	all[*n].family = family;
	snprintf(all[*n].what, sizeof(all[*n].what), "%s", family == FAMILY_4 ? v4 : v6);
	++*n;
}

static size_t find_families(const struct rule *r, struct of_family *all)
{
	size_t n = 0;

	for (size_t i = 0; i < AX_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];
		char v4[24], v6[24];

		if (row->kind != FIELD_ADDRESS)
			continue;
		snprintf(v4, sizeof(v4), "IPv4 %s", row->keys[0].name);
		snprintf(v6, sizeof(v6), "IPv6 %s", row->keys[0].name);
		note_family(all, &n, addrs_family(&r->in[row->number]), v4, v6);
	}
	note_family(all, &n, icmp_family(&r->in[AX_FIELD_ICMP]), "icmp", "icmp6");
	if (r->rewrite & AX_REWRITE_DST)
		note_family(all, &n, addr_is_v4(&r->to) ? FAMILY_4 : FAMILY_6, "IPv4 to",
			    "IPv6 to");
	return n;
}

static int check_families(const struct rule *r, struct rule_fault *f)
{
	struct of_family all[AX_FIELDS + 2];
	size_t n = find_families(r, all);

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			if (all[i].family != all[j].family)
				return clash(
					f, all[i].what, all[j].what,
					"one address family in a rule, since a packet has one");
	return 0;
}

static int check_icmp(const struct rule *r, struct rule_fault *f)
{
	enum family family = icmp_family(&r->in[AX_FIELD_ICMP]);

	if (!r->in[AX_FIELD_ICMP].n)
		return 0;
	if (!only_has(&r->in[AX_FIELD_PROTO], family == FAMILY_6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
		      family == FAMILY_4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return clash(f, family == FAMILY_6 ? "icmp6" : "icmp", "another protocol",
			     family == FAMILY_6	  ? "proto icmp6, or no proto, with icmp6"
			     : family == FAMILY_4 ? "proto icmp, or no proto, with icmp"
						  : "proto icmp,icmp6, or no proto, with both");
	if (only_later(r))
		return clash(f, "icmp", "fragment later",
			     "one of them: later fragments have no ICMP header");
	return 0;
}

static int check_flow(const struct rule *r, struct rule_fault *f)
{
	const struct condition *proto = &r->in[AX_FIELD_PROTO];

	if (r->verdict == AX_VERDICT_BALANCE && !condition_is_empty(&r->in[AX_FIELD_FLOW]))
		return fault_set(f, "flow with action balance",
				 "balance without flow, since all packets of a flow have to go "
				 "the same way, later fragments too");
	if (!r->learn_flow || r->learn_proto)
		return 0;
	if (r->in[AX_FIELD_ICMP].n || only_later(r) ||
	    (proto->n && !has_value(proto, IPPROTO_TCP) && !has_value(proto, IPPROTO_UDP)))
		return fault_set(f, "learn flow of packets without ports",
				 "flow=22/tcp, which says the port, or rules of tcp or udp");
	return 0;
}

static int check_payload(const struct rule *r, struct rule_fault *f)
{
	if (condition_is_empty(&r->in[AX_FIELD_PAYLOAD]))
		return 0;
	if (r->verdict == AX_VERDICT_BALANCE)
		return fault_set(f, "payload with action balance",
				 "balance without payload, since all packets of a flow have to go "
				 "the same way");
	if (only_later(r))
		return clash(f, "payload", "fragment later",
			     "one of them: later fragments have a part of a payload only");
	return 0;
}

/* The key that the first of a rule's names was given by. */
static const char *name_key(const struct rule *r)
{
	const struct rule_field *row = rule_field(AX_FIELD_NAME);
	size_t i = 0;

	while (row->keys[i].part.lo != r->in[AX_FIELD_NAME].names[0].kind)
		i++;
	return row->keys[i].name;
}

static uint8_t name_proto(uint8_t kind)
{
	return kind == AX_NAME_DNS ? IPPROTO_UDP : IPPROTO_TCP;
}

/* Some of the protocols that the rule's names are in is one of the rule's. */
static bool can_have_names(const struct rule *r)
{
	const struct condition *names = &r->in[AX_FIELD_NAME], *proto = &r->in[AX_FIELD_PROTO];

	for (size_t i = 0; i < names->n; i++)
		if (!proto->n || has_value(proto, name_proto(names->names[i].kind)))
			return true;
	return false;
}

static int check_names(const struct rule *r, struct rule_fault *f)
{
	uint8_t proto;

	if (condition_is_empty(&r->in[AX_FIELD_NAME]))
		return 0;
	proto = name_proto(r->in[AX_FIELD_NAME].names[0].kind);
	if (r->verdict == AX_VERDICT_BALANCE) {
		char found[64];

		snprintf(found, sizeof(found), "%s with action balance", name_key(r));
		return fault_set(f, found,
				 "balance without it, since all packets of a flow have to go the "
				 "same way");
	}
	if (r->in[AX_FIELD_ICMP].n)
		return clash(f, name_key(r), "icmp", "one of them: ICMP has no such names");
	if (only_later(r))
		return clash(f, name_key(r), "fragment later",
			     "one of them: later fragments have a part of a payload only");
	if (!can_have_names(r))
		return fault_set(f, "a name with another protocol",
				 "proto %s, or no proto, with %s",
				 proto == IPPROTO_UDP ? "udp" : "tcp", name_key(r));
	return 0;
}

static int check_modifiers(const struct rule *r, uint64_t given, struct rule_fault *f)
{
	static const enum rule_key_number rewrites[] = {KEY_SMAC, KEY_DMAC, KEY_TO, KEY_TO_PORT,
							KEY_CHECKSUM};
	const struct condition *proto = &r->in[AX_FIELD_PROTO];
	char found[64];

	for (size_t i = 0; i < ARRAY_SIZE(rewrites); i++) {
		bool route = rewrites[i] == KEY_CHECKSUM;

		if (!is_given(given, rewrites[i]) || r->verdict == AX_VERDICT_REDIRECT ||
		    (route && r->verdict == AX_VERDICT_ROUTE))
			continue;
		snprintf(found, sizeof(found), "%s with action %s", rule_key(rewrites[i])->name,
			 ax_verdict_names[r->verdict]);
		return fault_set(f, found, "it with action redirect%s only",
				 route ? " or route" : "");
	}
	if (r->verdict == AX_VERDICT_BALANCE && !condition_is_empty(&r->in[AX_FIELD_STATE]))
		return fault_set(f, "state with action balance",
				 "balance without state, since no socket here knows its flows");
	if (r->verdict == AX_VERDICT_CHALLENGE &&
	    (!proto->n || !only_has(proto, IPPROTO_TCP, IPPROTO_TCP)))
		return fault_set(f, "challenge without proto tcp",
				 "proto tcp with it, since it is SYNs that are challenged");
	if (r->sample && !r->capture && !r->log)
		return fault_set(f, "sample without capture and log",
				 "it with capture or log, of which it makes fewer");
	if (r->trigger && (!proto->n || !only_has(proto, IPPROTO_UDP, IPPROTO_UDP)))
		return fault_set(f, "trigger without proto udp",
				 "proto udp with it, since triggers are datagrams");
	return 0;
}

int rule_find_fault(const struct rule *r, uint64_t given, struct rule_fault *f)
{
	int code;

	*f = (struct rule_fault){.rule = SIZE_MAX};
	if (!is_given(given, KEY_ACTION))
		return fault_set(f, "a rule without action", "action %s",
				 rule_key(KEY_ACTION)->want);
	code = check_headers(r, f);
	if (code == 0)
		code = check_families(r, f);
	if (code == 0)
		code = check_icmp(r, f);
	if (code == 0)
		code = check_flow(r, f);
	if (code == 0)
		code = check_payload(r, f);
	if (code == 0)
		code = check_names(r, f);
	if (code == 0)
		code = check_modifiers(r, given, f);
	if (code == 0)
		code = rule_check_learn(r, f);
	return code;
}
