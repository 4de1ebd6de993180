// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules: their keys, what fits together, and their life. */
#include "rules/priv.h"

#include <netinet/in.h>

const char *const rule_key_names[RULE_KEYS] = {
	[KEY_NAME] = "name",
	[KEY_SRC] = "src",
	[KEY_DST] = "dst",
	[KEY_PROTO] = "proto",
	[KEY_SPORT] = "sport",
	[KEY_DPORT] = "dport",
	[KEY_FLAGS] = "flags",
	[KEY_ICMP] = "icmp",
	[KEY_ICMP6] = "icmp6",
	[KEY_VLAN] = "vlan",
	[KEY_FRAGMENT] = "fragment",
	[KEY_LENGTH] = "length",
	[KEY_MAC] = "mac",
	[KEY_ACTION] = "action",
	[KEY_SMAC] = "smac",
	[KEY_DMAC] = "dmac",
	[KEY_TO] = "to",
	[KEY_TO_PORT] = "to-port",
	[KEY_CHECKSUM] = "checksum",
	[KEY_CAPTURE] = "capture",
	[KEY_RATE] = "rate",
	[KEY_SAMPLE] = "sample",
	[KEY_LOG] = "log",
	[KEY_TRIGGER] = "trigger",
};

#define WANT_PREFIXES "prefixes such as 10.0.0.0/8 or fd00::/8, or @SET"
#define WANT_PORTS    "ports of 0 to 65535 such as 22, 8000-8099 or @SET"
#define WANT_MAC      "an Ethernet address such as 02:00:00:00:00:01"
#define WANT_BOOL     "yes or no"

const char *const rule_key_wants[RULE_KEYS] = {
	[KEY_NAME] = "a name of 1 to 63 letters, digits and . _ - : that is neither a number nor "
		     "\"default\"",
	[KEY_SRC] = WANT_PREFIXES,
	[KEY_DST] = WANT_PREFIXES,
	[KEY_PROTO] = "protocols such as tcp, udp, icmp, icmp6, or numbers of 0 to 255",
	[KEY_SPORT] = WANT_PORTS,
	[KEY_DPORT] = WANT_PORTS,
	[KEY_FLAGS] = "TCP flags: fin, syn, rst, psh, ack, urg, ece or cwr, with ! before it one "
		      "that must not be set",
	[KEY_ICMP] = "echo-request, echo-reply, unreachable, frag-needed, time-exceeded, redirect, "
		     "parameter-problem, TYPE or TYPE/CODE of 0 to 255",
	[KEY_ICMP6] = "echo-request, echo-reply, unreachable, packet-too-big, time-exceeded, "
		      "parameter-problem, router-solicitation, router-advertisement, "
		      "neighbour-solicitation, neighbour-advertisement, TYPE or TYPE/CODE of 0 to "
		      "255",
	[KEY_VLAN] = "VLAN ids of 0 to 4095 such as 100 or 200-299, or none",
	[KEY_FRAGMENT] = "none, first or later",
	[KEY_LENGTH] = "lengths of 0 to 65535 bytes such as 64, 0-64 or 1500-",
	[KEY_MAC] = WANT_MAC,
	[KEY_ACTION] = "pass, drop, reflect, redirect IFACE, cpu N or balance NAME",
	[KEY_SMAC] = "a single Ethernet address such as 02:00:00:00:00:01",
	[KEY_DMAC] = WANT_MAC,
	[KEY_TO] = "an IPv4 or IPv6 address of one host",
	[KEY_TO_PORT] = "a port of 1 to 65535",
	[KEY_CHECKSUM] = "recompute",
	[KEY_CAPTURE] = "BYTES[,ring][,slot=NAME][,frame] with 1 to 9216 bytes",
	[KEY_RATE] = "a rate such as 1000pps or 10mbit, then burst=N and per=src if wanted",
	[KEY_SAMPLE] = "a number of 1 to 1000000000: one packet of so many",
	[KEY_LOG] = WANT_BOOL,
	[KEY_TRIGGER] = WANT_BOOL,
};

const char *rule_key_name(size_t i)
{
	return i < RULE_KEYS ? rule_key_names[i] : NULL;
}

bool rule_key_is_list(enum rule_key key)
{
	return (key >= KEY_SRC && key <= KEY_MAC) || key == KEY_CAPTURE || key == KEY_RATE;
}

/* --- names and lists of values --- */

static int set_name(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	if (!value_is_name(value) || streq(value, "default") ||
	    strspn(value, "0123456789") == strlen(value))
		return -EINVAL;
	r->name = strdup(value);
	return r->name ? 0 : -ENOMEM;
}

/* "@NAME" */
static int add_set(struct strv *sets, const char *item, struct rule_fault *f)
{
	if (!value_is_name(item + 1))
		return fault_set(f, NULL, "@ and a set's name: letters, digits and . _ - :");
	return strv_add(sets, item + 1);
}

static int add_prefix(void *arg, char *item, struct rule_fault *f)
{
	struct rule_addrs *a = arg;
	struct prefix p;
	int r;

	if (item[0] == '@')
		return add_set(&a->sets, item, f);
	r = value_prefix(item, &p, f);
	if (r == 0)
		r = array_grow(&a->v, a->n, sizeof(*a->v));
	if (r == 0)
		a->v[a->n++] = p;
	return r;
}

static int add_proto(void *arg, char *item, struct rule_fault *f)
{
	int proto = rule_parse_proto(item);
	struct range range;

	(void)f;
	if (proto >= 0)
		return ranges_add(arg, (uint32_t)proto, (uint32_t)proto);
	if (value_range(item, UINT8_MAX, false, &range) < 0)
		return -EINVAL;
	return ranges_add(arg, range.lo, range.hi);
}

static int add_port(void *arg, char *item, struct rule_fault *f)
{
	struct ranges *ports = arg;
	struct range range;

	if (item[0] == '@')
		return add_set(&ports->sets, item, f);
	if (value_range(item, UINT16_MAX, false, &range) < 0)
		return -EINVAL;
	return ranges_add(ports, range.lo, range.hi);
}

static int add_vlan(void *arg, char *item, struct rule_fault *f)
{
	struct range range;

	(void)f;
	if (streq(item, "none"))
		return ranges_add(arg, AX_VLAN_NONE, AX_VLAN_NONE);
	if (value_range(item, AX_VLAN_NONE - 1, false, &range) < 0)
		return -EINVAL;
	return ranges_add(arg, range.lo, range.hi);
}

static int add_length(void *arg, char *item, struct rule_fault *f)
{
	struct range range;

	(void)f;
	if (value_range(item, UINT16_MAX, true, &range) < 0)
		return -EINVAL;
	return ranges_add(arg, range.lo, range.hi);
}

static int add_fragment(void *arg, char *item, struct rule_fault *f)
{
	int i = value_word(item, fragment_names, ARRAY_SIZE(fragment_names));

	(void)f;
	return i < 0 ? -EINVAL : ranges_add(arg, (uint32_t)i, (uint32_t)i);
}

static int add_icmp(void *arg, char *item, struct rule_fault *f)
{
	struct range range;

	(void)f;
	if (icmp_parse(item, false, &range) < 0)
		return -EINVAL;
	return ranges_add(arg, range.lo, range.hi);
}

static int add_icmp6(void *arg, char *item, struct rule_fault *f)
{
	struct range range;

	(void)f;
	if (icmp_parse(item, true, &range) < 0)
		return -EINVAL;
	return ranges_add(arg, range.lo, range.hi);
}

static int add_flag(void *arg, char *item, struct rule_fault *f)
{
	bool unset = item[0] == '!';
	int i = value_word(item + unset, tcp_flag_names, ARRAY_SIZE(tcp_flag_names));
	struct rule *r = arg;
	uint8_t bit;

	if (i < 0)
		return -EINVAL;
	bit = (uint8_t)(1 << i);
	if ((r->flags_mask & bit) && !(r->flags_value & bit) != unset)
		return fault_set(f, NULL, "%s either with or without the !", tcp_flag_names[i]);
	r->flags_mask |= bit;
	if (!unset)
		r->flags_value |= bit;
	return 0;
}

static int add_mac(void *arg, char *item, struct rule_fault *f)
{
	struct rule *r = arg;
	struct rule_mac mac;
	int code = value_mac(item, mac.b);

	(void)f;
	if (code == 0)
		code = array_grow(&r->mac, r->n_mac, sizeof(*r->mac));
	if (code == 0)
		r->mac[r->n_mac++] = mac;
	return code;
}

static int read_ranges(struct ranges *to, const char *value, struct rule_fault *f,
		       int (*each)(void *arg, char *item, struct rule_fault *f))
{
	int r = value_each(value, RULE_LIST_MAX, f, each, to);

	if (r == 0)
		ranges_join(to);
	return r;
}

/* --- single values --- */

static int read_mac(struct rule *r, uint16_t flag, uint8_t to[6], const char *value)
{
	if (value_mac(value, to) < 0)
		return -EINVAL;
	if (flag == AX_REWRITE_SMAC && (to[0] & 1)) /* a group sends nothing */
		return -EINVAL;
	r->rewrite |= flag;
	return 0;
}

static int set_to(struct rule *r, const char *value)
{
	struct ax_addr a;
	uint32_t host;

	if (addr_parse(value, &a) < 0)
		return -EINVAL;
	host = ntohl(a.w[3]);
	if (addr_is_v4(&a) ? host == INADDR_ANY || host == INADDR_BROADCAST || IN_MULTICAST(host)
			   : addr_is_zero(&a) || IN6_IS_ADDR_MULTICAST(a.b))
		return -EINVAL;
	r->to = a;
	r->rewrite |= AX_REWRITE_DST;
	return 0;
}

static int set_to_port(struct rule *r, const char *value)
{
	int port = port_parse(value);

	if (port < 0)
		return port;
	r->to_port = (uint16_t)port;
	r->rewrite |= AX_REWRITE_DPORT;
	return 0;
}

static int set_checksum(struct rule *r, const char *value)
{
	if (!streq(value, "recompute"))
		return -EINVAL;
	r->checksum = true;
	return 0;
}

static int set_sample(struct rule *r, const char *value)
{
	uint64_t n;

	if (value_number(value, 1000000000, &n) < 0 || n == 0)
		return -EINVAL;
	r->sample = (uint32_t)n;
	return 0;
}

static int set_condition(struct rule *r, enum rule_key key, const char *v, struct rule_fault *f)
{
	switch (key) {
	case KEY_SRC:
		return value_each(v, RULE_LIST_MAX, f, add_prefix, &r->src);
	case KEY_DST:
		return value_each(v, RULE_LIST_MAX, f, add_prefix, &r->dst);
	case KEY_PROTO:
		return read_ranges(&r->proto, v, f, add_proto);
	case KEY_SPORT:
		return read_ranges(&r->sport, v, f, add_port);
	case KEY_DPORT:
		return read_ranges(&r->dport, v, f, add_port);
	case KEY_FLAGS:
		return value_each(v, RULE_LIST_MAX, f, add_flag, r);
	case KEY_ICMP:
		return read_ranges(&r->icmp, v, f, add_icmp);
	case KEY_ICMP6:
		return read_ranges(&r->icmp, v, f, add_icmp6);
	case KEY_VLAN:
		return read_ranges(&r->vlan, v, f, add_vlan);
	case KEY_FRAGMENT:
		return read_ranges(&r->fragment, v, f, add_fragment);
	case KEY_LENGTH:
		return read_ranges(&r->length, v, f, add_length);
	default:
		return value_each(v, RULE_LIST_MAX, f, add_mac, r);
	}
}

static int set_field(struct rule *r, enum rule_key key, const char *v, struct rule_fault *f)
{
	switch (key) {
	case KEY_NAME:
		return set_name(r, v, f);
	case KEY_ACTION:
		return rule_parse_action(r, v, f);
	case KEY_SMAC:
		return read_mac(r, AX_REWRITE_SMAC, r->smac, v);
	case KEY_DMAC:
		return read_mac(r, AX_REWRITE_DMAC, r->dmac, v);
	case KEY_TO:
		return set_to(r, v);
	case KEY_TO_PORT:
		return set_to_port(r, v);
	case KEY_CHECKSUM:
		return set_checksum(r, v);
	case KEY_CAPTURE:
		return rule_parse_capture(r, v, f);
	case KEY_RATE:
		return rule_parse_rate(r, v, f);
	case KEY_SAMPLE:
		return set_sample(r, v);
	case KEY_LOG:
		return value_bool(v, &r->log);
	case KEY_TRIGGER:
		return value_bool(v, &r->trigger);
	default:
		return set_condition(r, key, v, f);
	}
}

int rule_set_value(struct rule *r, enum rule_key key, const char *value, struct rule_fault *f)
{
	char quoted[QUOTED_LEN];
	int code;

	*f = (struct rule_fault){.rule = SIZE_MAX};
	code = set_field(r, key, value, f);
	if (code == -EINVAL && !*f->found)
		snprintf(f->found, sizeof(f->found), "%s",
			 fault_quote(value, strlen(value), quoted));
	if (code == -EINVAL && !*f->want)
		snprintf(f->want, sizeof(f->want), "%s", rule_key_wants[key]);
	return code;
}

static int unknown_key(const char *key, struct error *e)
{
	char quoted[QUOTED_LEN], hint[96];

	return error_set(e, -ENOENT,
			 "%s is no key of a rule: use name, src, dst, proto, sport, dport, flags, "
			 "icmp, icmp6, vlan, fragment, length, mac, action, smac, dmac, to, "
			 "to-port, checksum, capture, rate, sample, log or trigger%s",
			 fault_quote(key, strlen(key), quoted),
			 value_hint(key, rule_key_names, RULE_KEYS, hint));
}

int rule_set(struct rule *r, uint32_t *given, const char *key, const char *value, struct error *e)
{
	int i = value_word(key, rule_key_names, RULE_KEYS);
	struct rule_fault f;
	int code;

	if (i < 0)
		return unknown_key(key, e);
	if (*given & 1u << i)
		return error_set(e, -EEXIST, "%s is there twice: give each key once%s", key,
				 rule_key_is_list((enum rule_key)i) ? ", several values with commas"
								    : "");
	code = rule_set_value(r, (enum rule_key)i, value, &f);
	if (code == -EINVAL)
		return error_set(e, code, "%s %s is not valid: use %s", key, f.found, f.want);
	if (code < 0)
		return error_set(e, code, "there is no memory for the rule");
	*given |= 1u << i;
	return 0;
}

int rule_check(const struct rule *r, uint32_t given, struct error *e)
{
	struct rule_fault f;
	int code = rule_find_fault(r, given, &f);

	if (code < 0)
		return error_set(e, code, "%s is not valid: use %s", f.found, f.want);
	return 0;
}

/* The words of an action that takes one more. */
static bool takes_target(const char *action)
{
	return streq(action, "redirect") || streq(action, "cpu") || streq(action, "balance");
}

/* One key and its value. Returns how many words it took. */
static int parse_pair(const char *const *words, size_t n, struct rule *r, uint32_t *given,
		      struct error *e)
{
	autofree char *joined = NULL;
	const char *key = words[0];
	int i = value_word(key, rule_key_names, RULE_KEYS), code;

	if (i < 0)
		return unknown_key(key, e);
	if (n < 2)
		return error_set(e, -EINVAL, "%s has no value: use %s", key, rule_key_wants[i]);
	if (i == KEY_ACTION && n > 2 && takes_target(words[1])) {
		if (asprintf(&joined, "%s %s", words[1], words[2]) < 0)
			return error_set(e, -ENOMEM, "there is no memory for the rule");
		code = rule_set(r, given, key, joined, e);
		return code < 0 ? code : 3;
	}
	code = rule_set(r, given, key, words[1], e);
	return code < 0 ? code : 2;
}

int rule_parse(const char *const *words, size_t n, struct rule *r, struct error *e)
{
	uint32_t given = 0;
	int code = 0;

	*r = (struct rule){0};
	for (size_t i = 0; i < n && code >= 0; i += (size_t)code) {
		code = parse_pair(words + i, n - i, r, &given, e);
		if (code < 0)
			break;
	}
	if (code >= 0)
		code = rule_check(r, given, e);
	if (code < 0)
		rule_free(r);
	return code < 0 ? code : 0;
}

bool rule_catches_all(const struct rule *r)
{
	const struct ranges *all[] = {&r->proto, &r->sport,    &r->dport, &r->icmp,
				      &r->vlan,	 &r->fragment, &r->length};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->n || all[i]->sets.n)
			return false;
	return !r->src.n && !r->src.sets.n && !r->dst.n && !r->dst.sets.n && !r->flags_mask &&
	       !r->n_mac;
}

/* --- their life --- */

static void addrs_free(struct rule_addrs *a)
{
	free(a->v);
	strv_free(&a->sets);
	*a = (struct rule_addrs){0};
}

static int addrs_copy(const struct rule_addrs *from, struct rule_addrs *to)
{
	struct rule_addrs copy = {.v = array_new(from->n, sizeof(*from->v)), .n = from->n};

	if ((from->n && !copy.v) || strv_copy(&from->sets, &copy.sets) < 0) {
		free(copy.v);
		return -ENOMEM;
	}
	if (from->n)
		memcpy(copy.v, from->v, from->n * sizeof(*from->v));
	*to = copy;
	return 0;
}

static bool addrs_eq(const struct rule_addrs *a, const struct rule_addrs *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (prefix_cmp(&a->v[i], &b->v[i]) != 0)
			return false;
	return strv_eq(&a->sets, &b->sets);
}

void rule_free(struct rule *r)
{
	struct ranges *all[] = {&r->proto, &r->sport,	 &r->dport, &r->icmp,
				&r->vlan,  &r->fragment, &r->length};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		ranges_free(all[i]);
	addrs_free(&r->src);
	addrs_free(&r->dst);
	free(r->name);
	free(r->mac);
	free(r->target);
	free(r->slot);
	*r = (struct rule){0};
}

static int copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static int copy_parts(const struct rule *from, struct rule *to)
{
	const struct {
		const struct ranges *from;
		struct ranges *to;
	} all[] = {
		{&from->proto, &to->proto},   {&from->sport, &to->sport},
		{&from->dport, &to->dport},   {&from->icmp, &to->icmp},
		{&from->vlan, &to->vlan},     {&from->fragment, &to->fragment},
		{&from->length, &to->length},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (ranges_copy(all[i].from, all[i].to) < 0)
			return -ENOMEM;
	if (addrs_copy(&from->src, &to->src) < 0 || addrs_copy(&from->dst, &to->dst) < 0 ||
	    copy_text(from->name, &to->name) < 0 || copy_text(from->target, &to->target) < 0 ||
	    copy_text(from->slot, &to->slot) < 0)
		return -ENOMEM;
	if (!from->n_mac)
		return 0;
	to->mac = array_new(from->n_mac, sizeof(*to->mac));
	if (!to->mac)
		return -ENOMEM;
	memcpy(to->mac, from->mac, from->n_mac * sizeof(*to->mac));
	return 0;
}

int rule_copy(const struct rule *from, struct rule *to)
{
	struct rule copy = *from;

	/* what the copy must not share */
	copy.proto = copy.sport = copy.dport = copy.icmp = (struct ranges){0};
	copy.vlan = copy.fragment = copy.length = (struct ranges){0};
	copy.src = copy.dst = (struct rule_addrs){0};
	copy.name = copy.target = copy.slot = NULL;
	copy.mac = NULL;
	if (copy_parts(from, &copy) < 0) {
		rule_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

static bool text_eq(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static bool conditions_eq(const struct rule *a, const struct rule *b)
{
	return addrs_eq(&a->src, &b->src) && addrs_eq(&a->dst, &b->dst) &&
	       ranges_eq(&a->proto, &b->proto) && ranges_eq(&a->sport, &b->sport) &&
	       ranges_eq(&a->dport, &b->dport) && ranges_eq(&a->icmp, &b->icmp) &&
	       ranges_eq(&a->vlan, &b->vlan) && ranges_eq(&a->fragment, &b->fragment) &&
	       ranges_eq(&a->length, &b->length) && a->flags_mask == b->flags_mask &&
	       a->flags_value == b->flags_value && a->n_mac == b->n_mac &&
	       (!a->n_mac || memcmp(a->mac, b->mac, a->n_mac * sizeof(*a->mac)) == 0);
}

bool rule_eq(const struct rule *a, const struct rule *b)
{
	return text_eq(a->name, b->name) && conditions_eq(a, b) && a->verdict == b->verdict &&
	       text_eq(a->target, b->target) && a->cpu == b->cpu && a->rewrite == b->rewrite &&
	       memcmp(a->smac, b->smac, 6) == 0 && memcmp(a->dmac, b->dmac, 6) == 0 &&
	       addr_eq(&a->to, &b->to) && a->to_port == b->to_port && a->checksum == b->checksum &&
	       a->capture == b->capture && a->capture_ring == b->capture_ring &&
	       a->capture_frame == b->capture_frame && text_eq(a->slot, b->slot) &&
	       a->rate == b->rate && a->rate_bits == b->rate_bits && a->burst == b->burst &&
	       a->per_source == b->per_source && a->per4 == b->per4 && a->per6 == b->per6 &&
	       a->sample == b->sample && a->log == b->log && a->trigger == b->trigger;
}
