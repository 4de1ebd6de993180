// SPDX-License-Identifier: GPL-2.0-or-later
/* What no key of a rule can know alone: conditions and actions that do not go together. */
#include "rules/priv.h"

#include <netinet/in.h>

static bool is_given(uint32_t given, enum rule_key key)
{
	return given & 1u << key;
}

/* Every value of the ranges is one of the two. */
static bool only_has(const struct ranges *r, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < r->n; i++)
		for (uint64_t v = r->v[i].lo; v <= r->v[i].hi; v++)
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

static int check_ports(const struct rule *r, struct rule_fault *f)
{
	const struct {
		const char *key;
		bool used;
	} keys[] = {
		{"sport", r->sport.n || r->sport.sets.n},
		{"dport", r->dport.n || r->dport.sets.n},
		{"to-port", r->rewrite & AX_REWRITE_DPORT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!keys[i].used)
			continue;
		if (!only_has(&r->proto, IPPROTO_TCP, IPPROTO_UDP))
			return clash(f, keys[i].key, "a protocol that has no ports",
				     "proto tcp or udp or both, or no proto, with ports");
		if (r->icmp.n)
			return clash(f, keys[i].key, "icmp", "one of them: ICMP has no ports");
		if (r->fragment.n && only_has(&r->fragment, AX_FRAGMENT_LATER, AX_FRAGMENT_LATER))
			return clash(f, keys[i].key, "fragment later",
				     "one of them: later fragments have no ports");
	}
	return 0;
}

static int check_flags(const struct rule *r, struct rule_fault *f)
{
	if (!r->flags_mask)
		return 0;
	if (!only_has(&r->proto, IPPROTO_TCP, IPPROTO_TCP))
		return clash(f, "flags", "another protocol than tcp",
			     "proto tcp, or no proto, with flags");
	if (r->icmp.n)
		return clash(f, "flags", "icmp", "one of them: ICMP has no flags");
	if (r->fragment.n && only_has(&r->fragment, AX_FRAGMENT_LATER, AX_FRAGMENT_LATER))
		return clash(f, "flags", "fragment later",
			     "one of them: later fragments have no TCP header");
	return 0;
}

enum family { FAMILY_ANY, FAMILY_4, FAMILY_6 };

/* Which family alone its addresses are of; what a set holds is not known here. */
static enum family addrs_family(const struct rule_addrs *a)
{
	enum family all = FAMILY_ANY;

	if (a->sets.n)
		return FAMILY_ANY;
	for (size_t i = 0; i < a->n; i++) {
		enum family one =
			a->v[i].len >= 96 && addr_is_v4(&a->v[i].addr) ? FAMILY_4 : FAMILY_6;

		if (all != FAMILY_ANY && all != one)
			return FAMILY_ANY;
		all = one;
	}
	return all;
}

static enum family icmp_family(const struct ranges *r)
{
	if (!r->n)
		return FAMILY_ANY;
	if (r->v[r->n - 1].hi < ICMP_V6)
		return FAMILY_4;
	return r->v[0].lo >= ICMP_V6 ? FAMILY_6 : FAMILY_ANY;
}

static int check_families(const struct rule *r, struct rule_fault *f)
{
	const struct {
		const char *what[3];
		enum family family;
	} all[] = {
		{{"", "IPv4 src", "IPv6 src"}, addrs_family(&r->src)},
		{{"", "IPv4 dst", "IPv6 dst"}, addrs_family(&r->dst)},
		{{"", "icmp", "icmp6"}, icmp_family(&r->icmp)},
		{{"", "IPv4 to", "IPv6 to"},
		 !(r->rewrite & AX_REWRITE_DST) ? FAMILY_ANY
		 : addr_is_v4(&r->to)		? FAMILY_4
						: FAMILY_6},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		for (size_t j = i + 1; j < ARRAY_SIZE(all); j++)
			if (all[i].family && all[j].family && all[i].family != all[j].family)
				return clash(
					f, all[i].what[all[i].family], all[j].what[all[j].family],
					"one address family in a rule, since a packet has one");
	return 0;
}

static int check_icmp(const struct rule *r, struct rule_fault *f)
{
	enum family family = icmp_family(&r->icmp);

	if (!r->icmp.n)
		return 0;
	if (!only_has(&r->proto, family == FAMILY_6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
		      family == FAMILY_4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return clash(f, family == FAMILY_6 ? "icmp6" : "icmp", "another protocol",
			     family == FAMILY_6	  ? "proto icmp6, or no proto, with icmp6"
			     : family == FAMILY_4 ? "proto icmp, or no proto, with icmp"
						  : "proto icmp,icmp6, or no proto, with both");
	if (r->fragment.n && only_has(&r->fragment, AX_FRAGMENT_LATER, AX_FRAGMENT_LATER))
		return clash(f, "icmp", "fragment later",
			     "one of them: later fragments have no ICMP header");
	return 0;
}

static int check_modifiers(const struct rule *r, uint32_t given, struct rule_fault *f)
{
	static const enum rule_key rewrites[] = {KEY_SMAC, KEY_DMAC, KEY_TO, KEY_TO_PORT,
						 KEY_CHECKSUM};
	char found[64];

	for (size_t i = 0; i < ARRAY_SIZE(rewrites); i++) {
		if (!is_given(given, rewrites[i]) || r->verdict == AX_VERDICT_REDIRECT)
			continue;
		snprintf(found, sizeof(found), "%s with action %s", rule_key_names[rewrites[i]],
			 ax_verdict_names[r->verdict]);
		return fault_set(f, found, "it with action redirect only");
	}
	if (r->sample && !r->capture && !r->log)
		return fault_set(f, "sample without capture and log",
				 "it with capture or log, of which it makes fewer");
	if (r->trigger && (!r->proto.n || !only_has(&r->proto, IPPROTO_UDP, IPPROTO_UDP)))
		return fault_set(f, "trigger without proto udp",
				 "proto udp with it, since triggers are datagrams");
	return 0;
}

int rule_find_fault(const struct rule *r, uint32_t given, struct rule_fault *f)
{
	int code;

	*f = (struct rule_fault){.rule = SIZE_MAX};
	if (!is_given(given, KEY_ACTION))
		return fault_set(f, "a rule without action", "action %s",
				 rule_key_wants[KEY_ACTION]);
	code = check_ports(r, f);
	if (code == 0)
		code = check_flags(r, f);
	if (code == 0)
		code = check_families(r, f);
	if (code == 0)
		code = check_icmp(r, f);
	if (code == 0)
		code = check_modifiers(r, given, f);
	return code;
}
