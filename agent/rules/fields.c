// SPDX-License-Identifier: GPL-2.0-or-later
/* The rows of the fields, with how the items of their lists are read and written. */
#include "rules/field.h"
#include "rules/priv.h"

#include <netinet/in.h>

/* What goes between one value and the next. */
void field_separate(struct field_text *to)
{
	if (to->n++)
		putc(',', to->f);
}

/* --- addresses --- */

static int add_prefix(const struct rule_field *row, struct condition *c, const char *item,
		      struct rule_fault *f)
{
	struct prefix p;
	int r = value_prefix(item, &p, f);

	(void)row;
	if (r == 0)
		r = array_grow(&c->items, c->n, sizeof(p));
	if (r == 0)
		c->prefixes[c->n++] = p;
	return r;
}

static void write_prefix(struct field_text *to, const struct rule_field *row, const void *item)
{
	char buf[ADDR_STRLEN];

	(void)row;
	field_separate(to);
	fputs(prefix_format(item, buf), to->f);
}

static int add_mac(const struct rule_field *row, struct condition *c, const char *item,
		   struct rule_fault *f)
{
	struct rule_mac mac;
	int r = value_mac(item, mac.b);

	(void)row;
	(void)f;
	if (r == 0)
		r = array_grow(&c->items, c->n, sizeof(mac));
	if (r == 0)
		c->macs[c->n++] = mac;
	return r;
}

static void write_mac(struct field_text *to, const struct rule_field *row, const void *item)
{
	(void)row;
	field_separate(to);
	value_write_mac(to->f, ((const struct rule_mac *)item)->b);
}

/* --- numbers --- */

int field_add_range(struct condition *c, const struct range *range)
{
	if (array_grow(&c->items, c->n, sizeof(*range)) < 0)
		return -ENOMEM;
	c->ranges[c->n++] = *range;
	return 0;
}

/* "22" or "8000-8099" */
static int add_number(const struct rule_field *row, struct condition *c, const char *item,
		      struct rule_fault *f)
{
	struct range range;

	(void)f;
	if (value_range(item, row->last, false, &range) < 0)
		return -EINVAL;
	return field_add_range(c, &range);
}

/* Also by the name of a service. */
static int add_port(const struct rule_field *row, struct condition *c, const char *item,
		    struct rule_fault *f)
{
	struct range range;
	int r = value_port(item, &range, f);

	(void)row;
	return r < 0 ? r : field_add_range(c, &range);
}

static void put_range(struct field_text *to, uint32_t lo, uint32_t hi)
{
	field_separate(to);
	if (lo == hi)
		fprintf(to->f, "%u", lo);
	else
		fprintf(to->f, "%u-%u", lo, hi);
}

static void write_number(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	(void)row;
	put_range(to, r->lo, r->hi);
}

/* Also "1500-": up to the greatest one. */
static int add_open(const struct rule_field *row, struct condition *c, const char *item,
		    struct rule_fault *f)
{
	struct range range;

	(void)f;
	if (value_range(item, row->last, true, &range) < 0)
		return -EINVAL;
	return field_add_range(c, &range);
}

static void write_open(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	if (r->lo == r->hi || r->hi != row->last) {
		put_range(to, r->lo, r->hi);
		return;
	}
	field_separate(to);
	fprintf(to->f, "%u-", r->lo);
}

static int add_proto(const struct rule_field *row, struct condition *c, const char *item,
		     struct rule_fault *f)
{
	int proto = rule_parse_proto(item);

	if (proto < 0)
		return add_number(row, c, item, f);
	return field_add_range(c, &(struct range){(uint32_t)proto, (uint32_t)proto});
}

/* Neighbours are written by their names when all have one. */
static bool has_names(const struct range *r)
{
	for (uint32_t p = r->lo; p <= r->hi; p++)
		if (!rule_proto_name((uint8_t)p))
			return false;
	return true;
}

static void write_proto(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	if (!has_names(r)) {
		write_number(to, row, item);
		return;
	}
	for (uint32_t p = r->lo; p <= r->hi; p++) {
		field_separate(to);
		fputs(rule_proto_name((uint8_t)p), to->f);
	}
}

static int add_vlan(const struct rule_field *row, struct condition *c, const char *item,
		    struct rule_fault *f)
{
	struct range range = {AX_VLAN_NONE, AX_VLAN_NONE};

	(void)row;
	(void)f;
	if (!streq(item, "none") && value_range(item, AX_VLAN_NONE - 1, false, &range) < 0)
		return -EINVAL;
	return field_add_range(c, &range);
}

static void write_vlan(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	(void)row;
	if (r->lo < AX_VLAN_NONE)
		put_range(to, r->lo, r->hi < AX_VLAN_NONE ? r->hi : AX_VLAN_NONE - 1);
	if (r->hi == AX_VLAN_NONE) {
		field_separate(to);
		fputs("none", to->f);
	}
}

static const char *const fragment_names[] = {
	[AX_FRAGMENT_NONE] = "none",
	[AX_FRAGMENT_FIRST] = "first",
	[AX_FRAGMENT_LATER] = "later",
};

static int add_fragment(const struct rule_field *row, struct condition *c, const char *item,
			struct rule_fault *f)
{
	int i = value_word(item, fragment_names, ARRAY_SIZE(fragment_names));

	(void)row;
	(void)f;
	if (i < 0)
		return -EINVAL;
	return field_add_range(c, &(struct range){(uint32_t)i, (uint32_t)i});
}

static void write_fragment(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	(void)row;
	for (uint32_t v = r->lo; v <= r->hi; v++) {
		field_separate(to);
		fputs(fragment_names[v], to->f);
	}
}

static const char *const state_names[] = {
	[AX_STATE_ESTABLISHED] = "established",
	[AX_STATE_NEW] = "new",
	[AX_STATE_RELATED] = "related",
	[AX_STATE_INVALID] = "invalid",
};

const char *rule_state_name(enum ax_state state)
{
	return state < ARRAY_SIZE(state_names) ? state_names[state] : NULL;
}

static int add_state(const struct rule_field *row, struct condition *c, const char *item,
		     struct rule_fault *f)
{
	int i = value_word(item, state_names, ARRAY_SIZE(state_names));

	(void)row;
	(void)f;
	if (i < 0)
		return -EINVAL;
	return field_add_range(c, &(struct range){(uint32_t)i, (uint32_t)i});
}

static void write_state(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	(void)row;
	for (uint32_t v = r->lo; v <= r->hi; v++) {
		field_separate(to);
		fputs(state_names[v], to->f);
	}
}

static int add_icmp(const struct rule_field *row, struct condition *c, const char *item,
		    struct rule_fault *f)
{
	struct range range;

	(void)row;
	(void)f;
	return icmp_parse(item, false, &range) < 0 ? -EINVAL : field_add_range(c, &range);
}

static int add_icmp6(const struct rule_field *row, struct condition *c, const char *item,
		     struct rule_fault *f)
{
	struct range range;

	(void)row;
	(void)f;
	return icmp_parse(item, true, &range) < 0 ? -EINVAL : field_add_range(c, &range);
}

/* A whole type, or one code, from lo on. Returns the last index that it covers. */
static uint32_t write_icmp_item(FILE *f, uint32_t lo, uint32_t hi)
{
	bool whole = lo % ICMP_CODES == 0 && hi - lo >= ICMP_CODES - 1;
	uint32_t last = whole ? lo + ICMP_CODES - 1 : lo;
	uint32_t type = lo % ICMP_V6 / ICMP_CODES;
	const char *name = icmp_name(lo, last);

	if (name)
		fputs(name, f);
	else if (whole)
		fprintf(f, "%u", type);
	else
		fprintf(f, "%u/%u", type, lo % ICMP_CODES);
	return last;
}

static void write_icmp(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	(void)row;
	for (uint32_t lo = r->lo; lo <= r->hi; lo++) {
		field_separate(to);
		lo = write_icmp_item(to->f, lo, r->hi);
	}
}

/* --- bits --- */

static const char *const tcp_flag_names[8] = {/* by their bit */
					      "fin", "syn", "rst", "psh",
					      "ack", "urg", "ece", "cwr"};

static int add_flag(const struct rule_field *row, struct condition *c, const char *item,
		    struct rule_fault *f)
{
	bool unset = item[0] == '!';
	int i = value_word(item + unset, tcp_flag_names, ARRAY_SIZE(tcp_flag_names));
	uint8_t bit;

	(void)row;
	if (i < 0)
		return -EINVAL;
	if (!c->n && array_grow(&c->items, 0, sizeof(*c->bits)) < 0)
		return -ENOMEM;
	if (!c->n)
		c->bits[c->n++] = (struct rule_bits){0};
	bit = (uint8_t)(1 << i);
	if ((c->bits->mask & bit) && !(c->bits->value & bit) != unset)
		return fault_set(f, NULL, "%s either with or without the !", tcp_flag_names[i]);
	c->bits->mask |= bit;
	if (!unset)
		c->bits->value |= bit;
	return 0;
}

static void write_flags(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct rule_bits *b = item;

	(void)row;
	for (unsigned i = 0; i < ARRAY_SIZE(tcp_flag_names); i++) {
		if (!(b->mask & 1u << i))
			continue;
		field_separate(to);
		fprintf(to->f, "%s%s", b->value & 1u << i ? "" : "!", tcp_flag_names[i]);
	}
}

/* --- the rows --- */

static const struct field_header ports = {
	.protos = {IPPROTO_TCP, IPPROTO_UDP},
	.other = "a protocol that has no ports",
	.want_proto = "proto tcp or udp or both, or no proto, with ports",
	.want_icmp = "one of them: ICMP has no ports",
	.want_later = "one of them: later fragments have no ports",
};
static const struct field_header flows = {
	.protos = {IPPROTO_TCP, IPPROTO_UDP},
	.other = "a protocol that has no ports",
	.want_proto = "proto tcp or udp or both, or no proto, with flow",
	.want_icmp = "one of them: ICMP has no ports",
	.want_later = "one of them: later fragments have no ports",
};
static const struct field_header tcp = {
	.protos = {IPPROTO_TCP, IPPROTO_TCP},
	.other = "another protocol than tcp",
	.want_proto = "proto tcp, or no proto, with flags",
	.want_icmp = "one of them: ICMP has no flags",
	.want_later = "one of them: later fragments have no TCP header",
};

#define WANT_PREFIXES "prefixes such as 10.0.0.0/8 or fd00::/8, or @SET"
#define WANT_PORTS    "ports of 0 to 65535 such as 22, 8000-8099, ssh or @SET"
#define WANT_FLAGS                                                                             \
	"TCP flags: fin, syn, rst, psh, ack, urg, ece or cwr, with ! before it one that must " \
	"not be set"
#define WANT_ICMP                                                                       \
	"echo-request, echo-reply, unreachable, frag-needed, time-exceeded, redirect, " \
	"parameter-problem, TYPE or TYPE/CODE of 0 to 255"
#define WANT_ICMP6                                                               \
	"echo-request, echo-reply, unreachable, packet-too-big, time-exceeded, " \
	"parameter-problem, router-solicitation, router-advertisement, "         \
	"neighbour-solicitation, neighbour-advertisement, TYPE or TYPE/CODE of 0 to 255"

const struct rule_field rule_fields[RULE_FIELDS] = {
	{
		.number = AX_FIELD_SRC,
		.kind = FIELD_ADDRESS,
		.layer = LAYER_IP,
		.keys = {{"src", WANT_PREFIXES, .add = add_prefix, .write = write_prefix}},
		.sets = true,
	},
	{
		.number = AX_FIELD_DST,
		.kind = FIELD_ADDRESS,
		.layer = LAYER_IP,
		.keys = {{"dst", WANT_PREFIXES, .add = add_prefix, .write = write_prefix}},
		.sets = true,
	},
	{
		.number = AX_FIELD_PROTO,
		.kind = FIELD_NUMBER,
		.layer = LAYER_IP,
		.keys = {{"proto",
			  "protocols such as tcp, udp, icmp, icmp6, or numbers of 0 to 255",
			  .add = add_proto, .write = write_proto}},
		.size = AX_PROTO_NONE + 1,
		.last = AX_PROTO_NONE - 1,
	},
	{
		.number = AX_FIELD_SPORT,
		.kind = FIELD_NUMBER,
		.layer = LAYER_TRANSPORT,
		.keys = {{"sport", WANT_PORTS, .add = add_port, .write = write_number}},
		.sets = true,
		.size = AX_PORT_NONE + 1,
		.last = AX_PORT_NONE - 1,
		.header = &ports,
	},
	{
		.number = AX_FIELD_DPORT,
		.kind = FIELD_NUMBER,
		.layer = LAYER_TRANSPORT,
		.keys = {{"dport", WANT_PORTS, .add = add_port, .write = write_number}},
		.sets = true,
		.size = AX_PORT_NONE + 1,
		.last = AX_PORT_NONE - 1,
		.header = &ports,
	},
	{
		.number = AX_FIELD_FLOW,
		.kind = FIELD_FLOW,
		.layer = LAYER_TRANSPORT,
		.keys = {{"flow", WANT_FLOW, .add = set_flow_add}},
		.sets = true,
		.size = AX_FLOW_VALUES,
		.last = AX_FLOW_VALUES - 1,
		.header = &flows,
	},
	{
		.number = AX_FIELD_TCP_FLAGS,
		.kind = FIELD_BITS,
		.layer = LAYER_TRANSPORT,
		.keys = {{"flags", WANT_FLAGS, .add = add_flag, .write = write_flags}},
		.size = AX_TCP_FLAGS_NONE + 1,
		.last = AX_TCP_FLAGS_NONE - 1,
		.header = &tcp,
	},
	{
		.number = AX_FIELD_ICMP,
		.kind = FIELD_NUMBER,
		.layer = LAYER_TRANSPORT,
		.keys = {{"icmp",
			  WANT_ICMP,
			  {0, ICMP_V6 - 1},
			  .add = add_icmp,
			  .write = write_icmp},
			 {"icmp6",
			  WANT_ICMP6,
			  {ICMP_V6, AX_ICMP_NONE - 1},
			  .add = add_icmp6,
			  .write = write_icmp}},
		.size = AX_ICMP_NONE + 1,
		.last = AX_ICMP_NONE - 1,
	},
	{
		.number = AX_FIELD_VLAN,
		.kind = FIELD_NUMBER,
		.layer = LAYER_FRAME,
		.keys = {{"vlan", "VLAN ids of 0 to 4095 such as 100 or 200-299, or none",
			  .add = add_vlan, .write = write_vlan}},
		.size = AX_VLAN_NONE + 1,
		.last = AX_VLAN_NONE, /* "untagged" is a value of its own */
	},
	{
		.number = AX_FIELD_FRAGMENT,
		.kind = FIELD_NUMBER,
		.layer = LAYER_IP,
		.keys = {{"fragment", "none, first or later", .add = add_fragment,
			  .write = write_fragment}},
		.size = AX_FRAGMENTS,
		.last = AX_FRAGMENT_LATER,
	},
	{
		.number = AX_FIELD_LENGTH,
		.kind = FIELD_NUMBER,
		.layer = LAYER_FRAME,
		.keys = {{"length", "lengths of 0 to 65535 bytes such as 64, 0-64 or 1500-",
			  .add = add_open, .write = write_open}},
		.size = 65536,
		.last = 65535,
	},
	{
		.number = AX_FIELD_TTL,
		.kind = FIELD_NUMBER,
		.layer = LAYER_IP,
		.keys = {{"ttl", "TTLs or hop limits of 0 to 255 such as 1, 1-5 or 64-",
			  .add = add_open, .write = write_open}},
		.size = AX_TTL_NONE + 1,
		.last = AX_TTL_NONE - 1,
	},
	{
		.number = AX_FIELD_DSCP,
		.kind = FIELD_NUMBER,
		.layer = LAYER_IP,
		.keys = {{"dscp", WANT_DSCP, .add = dscp_add, .write = dscp_write}},
		.size = AX_DSCP_NONE + 1,
		.last = AX_DSCP_NONE - 1,
	},
	{
		.number = AX_FIELD_ECN,
		.kind = FIELD_NUMBER,
		.layer = LAYER_IP,
		.keys = {{"ecn", WANT_ECN, .add = ecn_add, .write = ecn_write}},
		.size = AX_ECN_NONE + 1,
		.last = AX_ECN_NONE - 1,
	},
	{
		.number = AX_FIELD_TIME,
		.kind = FIELD_NUMBER,
		.layer = LAYER_FRAME,
		.keys = {{"time", WANT_TIME, .add = time_add, .write_all = time_write}},
		.size = AX_TIME_MINUTES,
		.last = AX_TIME_MINUTES - 1,
	},
	{
		.number = AX_FIELD_STATE,
		.kind = FIELD_NUMBER,
		.layer = LAYER_IP,
		.keys = {{"state", "established, new, related or invalid", .add = add_state,
			  .write = write_state}},
		.size = AX_STATES,
		.last = AX_STATE_INVALID,
		.unasked = AX_STATE_UNASKED,
	},
	{
		.number = AX_FIELD_MAC,
		.kind = FIELD_MAC,
		.layer = LAYER_FRAME,
		.keys = {{"mac", WANT_MAC, .add = add_mac, .write = write_mac}},
	},
	{
		.number = AX_FIELD_MARK,
		.kind = FIELD_MARK,
		.layer = LAYER_FRAME,
		.keys = {{"mark", WANT_MARK, .add = mark_add, .write = mark_write}},
		.size = AX_MARK_VALUES,
		.last = AX_MARK_VALUES - 1,
	},
	{
		.number = AX_FIELD_PAYLOAD,
		.kind = FIELD_PAYLOAD,
		.layer = LAYER_IP,
		.keys = {{"payload", WANT_PAYLOAD, .add = payload_add, .write = payload_write}},
		.size = AX_PAYLOAD_VALUES,
		.last = AX_PAYLOAD_VALUES - 1,
	},
	{
		.number = AX_FIELD_NAME,
		.kind = FIELD_NAME,
		.layer = LAYER_IP,
		.keys = {{"dns-name",
			  WANT_NAMES,
			  {AX_NAME_DNS, AX_NAME_DNS},
			  .add = dns_name_add,
			  .write = name_write},
			 {"tls-sni",
			  WANT_NAMES,
			  {AX_NAME_TLS, AX_NAME_TLS},
			  .add = tls_sni_add,
			  .write = name_write},
			 {"http-host",
			  WANT_NAMES,
			  {AX_NAME_HTTP, AX_NAME_HTTP},
			  .add = http_host_add,
			  .write = name_write}},
	},
	{
		.number = RULE_FIELD_GROUP,
		.kind = FIELD_GROUP,
		.layer = LAYER_FRAME,
		.keys = {{"interface-group", WANT_GROUP, .add = group_add, .write = group_write}},
	},
};
