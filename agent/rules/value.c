// SPDX-License-Identifier: GPL-2.0-or-later
/* What single values of rules are. */
#include "base/near.h"
#include "base/quote.h"
#include "rules/priv.h"

#include <ctype.h>
#include <net/if.h>
#include <stdarg.h>

/* --- faults --- */

const char *fault_quote(const char *s, size_t len, char *buf)
{
	autofree char *quoted = quote_text(s, len);

	snprintf(buf, QUOTED_LEN, "%s", quoted ? quoted : "a value");
	return buf;
}

int fault_set(struct rule_fault *f, const char *found, const char *fmt, ...)
{
	va_list ap;

	if (found)
		snprintf(f->found, sizeof(f->found), "%s", found);
	va_start(ap, fmt);
	vsnprintf(f->want, sizeof(f->want), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int value_each(const char *value, size_t max, struct rule_fault *f,
	       int (*each)(void *arg, char *item, struct rule_fault *f), void *arg)
{
	autofree char *copy = strdup(value);
	char *rest = copy, *item, quoted[QUOTED_LEN];
	int r = copy ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && (item = strsep(&rest, ",")); i++) {
		f->item = i;
		if (i == max) {
			char found[64];

			snprintf(found, sizeof(found), "more than %zu values", max);
			return fault_set(f, found, "at most %zu%s", max,
					 max == RULE_LIST_MAX ? "; a set (@NAME) takes more" : "");
		}
		r = each(arg, item, f);
		if (r == -EINVAL && !*f->found)
			snprintf(f->found, sizeof(f->found), "%s",
				 fault_quote(item, strlen(item), quoted));
	}
	return r;
}

/* --- words and numbers --- */

int value_number(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*s || (s[0] == '0' && s[1]))
		return -EINVAL;
	for (; *s; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (*s < '0' || *s > '9' || digit > max || n > (max - digit) / 10)
			return -EINVAL;
		n = n * 10 + digit;
	}
	*ret = n;
	return 0;
}

int value_range(const char *s, uint32_t max, bool open, struct range *ret)
{
	const char *dash = strchr(s, '-');
	char first[sizeof("4294967295")];
	uint64_t lo, hi;
	size_t len = dash ? (size_t)(dash - s) : strlen(s);

	if (len >= sizeof(first))
		return -EINVAL;
	memcpy(first, s, len);
	first[len] = '\0';
	if (value_number(first, max, &lo) < 0)
		return -EINVAL;
	hi = dash ? max : lo;
	if (dash && !(open && !dash[1]) && value_number(dash + 1, max, &hi) < 0)
		return -EINVAL;
	if (hi < lo)
		return -EINVAL;
	*ret = (struct range){(uint32_t)lo, (uint32_t)hi};
	return 0;
}

bool value_is_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= RULE_NAME_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:") ==
		       len;
}

/* As the kernel has it (dev_valid_name()), without what no terminal shows. */
bool value_is_interface(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len >= IF_NAMESIZE || streq(s, ".") || streq(s, ".."))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isascii(s[i]) || !isgraph((unsigned char)s[i]) || s[i] == '/' || s[i] == ':')
			return false;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int value_mac(const char *s, uint8_t mac[6])
{
	uint8_t bytes[6];

	if (strlen(s) != 17)
		return -EINVAL;
	for (size_t i = 0; i < 6; i++) {
		int high = hex_digit(s[3 * i]), low = hex_digit(s[3 * i + 1]);

		if (high < 0 || low < 0 || (i < 5 && s[3 * i + 2] != ':'))
			return -EINVAL;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(mac, bytes, 6);
	return 0;
}

void value_write_mac(FILE *f, const uint8_t m[6])
{
	fprintf(f, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

int value_bool(const char *s, bool *ret)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(s, words[i]) == 0) {
			*ret = i & 1;
			return 0;
		}
	}
	return -EINVAL;
}

int value_word(const char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && streq(s, words[i]))
			return (int)i;
	return -1;
}

const char *value_hint(const char *word, const char *const *words, size_t n, char buf[96])
{
	const char *near = nearest_word(word, words, n);

	buf[0] = '\0';
	if (near)
		snprintf(buf, 96, "; did you mean \"%s\"?", near);
	return buf;
}

/* --- prefixes --- */

int value_prefix(const char *s, struct prefix *ret, struct rule_fault *f)
{
	char right[ADDR_STRLEN];
	int r = prefix_parse(s, ret);
	struct prefix p;

	if (r == -ERANGE && prefix_without_host_bits(s, &p) == 0)
		return fault_set(f, NULL, "a prefix without host bits: %s",
				 prefix_format(&p, right));
	return r;
}

int prefix_cmp(const struct prefix *a, const struct prefix *b)
{
	int c = addr_cmp(&a->addr, &b->addr);

	return c ? c : (a->len > b->len) - (a->len < b->len);
}

/* --- protocols --- */

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{"tcp", 6},    {"udp", 17},	 {"icmp", 1},	{"icmp6", 58}, {"igmp", 2},
	{"ipip", 4},   {"ipv6", 41},	 {"gre", 47},	{"esp", 50},   {"ah", 51},
	{"sctp", 132}, {"dccp", 33},	 {"ospf", 89},	{"eigrp", 88}, {"vrrp", 112},
	{"pim", 103},  {"udplite", 136}, {"l2tp", 115}, {"mpls", 137}, {"icmpv6", 58},
};

const char *rule_proto_name(uint8_t proto)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].number == proto)
			return protocols[i].name;
	return NULL;
}

int rule_parse_proto(const char *s)
{
	uint64_t n;

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (streq(s, protocols[i].name))
			return protocols[i].number;
	return value_number(s, UINT8_MAX, &n) == 0 ? (int)n : -EINVAL;
}

/* --- ports --- */

/* By the names of IANA's registry, and dns. It is not /etc/services, so that a
 * rule means the same on every machine. */
static const struct {
	const char *name;
	uint16_t port;
} services[] = {
	{"bgp", 179},
	{"bootpc", 68},
	{"bootps", 67},
	{"chargen", 19},
	{"dhcpv6-client", 546},
	{"dhcpv6-server", 547},
	{"discard", 9},
	{"dns", 53},
	{"domain", 53},
	{"domain-s", 853},
	{"echo", 7},
	{"etcd-client", 2379},
	{"etcd-server", 2380},
	{"ftp", 21},
	{"ftp-data", 20},
	{"git", 9418},
	{"http", 80},
	{"http-alt", 8080},
	{"https", 443},
	{"imap", 143},
	{"imaps", 993},
	{"ipp", 631},
	{"ipsec-nat-t", 4500},
	{"isakmp", 500},
	{"kerberos", 88},
	{"ldap", 389},
	{"ldaps", 636},
	{"mdns", 5353},
	{"memcached", 11211},
	{"mqtt", 1883},
	{"ms-sql-s", 1433},
	{"ms-wbt-server", 3389},
	{"mysql", 3306},
	{"nfs", 2049},
	{"ntp", 123},
	{"openvpn", 1194},
	{"pop3", 110},
	{"pop3s", 995},
	{"postgresql", 5432},
	{"radius", 1812},
	{"redis", 6379},
	{"rsync", 873},
	{"rtsp", 554},
	{"sip", 5060},
	{"sip-tls", 5061},
	{"smtp", 25},
	{"smtps", 465},
	{"snmp", 161},
	{"snmptrap", 162},
	{"socks", 1080},
	{"ssdp", 1900},
	{"ssh", 22},
	{"stun", 3478},
	{"submission", 587},
	{"sunrpc", 111},
	{"syslog", 514},
	{"telnet", 23},
	{"tftp", 69},
	{"vxlan", 4789},
	{"wireguard", 51820},
	{"xmpp-client", 5222},
};

int value_port(const char *s, struct range *ret, struct rule_fault *f)
{
	const char *names[ARRAY_SIZE(services)];
	char hint[96];

	if (value_range(s, UINT16_MAX, false, ret) == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		names[i] = services[i].name;
		if (!streq(s, names[i]))
			continue;
		*ret = (struct range){services[i].port, services[i].port};
		return 0;
	}
	if (!islower((unsigned char)s[0]))
		return -EINVAL;
	return fault_set(f, NULL, "the number of the port, which has no name here%s",
			 value_hint(s, names, ARRAY_SIZE(names), hint));
}

/* --- ICMP --- */

static const struct {
	const char *name;
	bool v6;
	uint8_t type;
	int code; /* -1: all of them */
} icmp_names[] = {
	{"echo-request", false, 8, -1},
	{"echo-reply", false, 0, -1},
	{"unreachable", false, 3, -1},
	{"frag-needed", false, 3, 4},
	{"time-exceeded", false, 11, -1},
	{"redirect", false, 5, -1},
	{"parameter-problem", false, 12, -1},
	{"echo-request", true, 128, -1},
	{"echo-reply", true, 129, -1},
	{"unreachable", true, 1, -1},
	{"packet-too-big", true, 2, -1},
	{"time-exceeded", true, 3, -1},
	{"parameter-problem", true, 4, -1},
	{"router-solicitation", true, 133, -1},
	{"router-advertisement", true, 134, -1},
	{"neighbour-solicitation", true, 135, -1},
	{"neighbour-advertisement", true, 136, -1},
};

static struct range icmp_range(bool v6, uint32_t type, int code)
{
	uint32_t first = (v6 ? ICMP_V6 : 0) + type * ICMP_CODES;

	if (code < 0)
		return (struct range){first, first + ICMP_CODES - 1};
	return (struct range){first + (uint32_t)code, first + (uint32_t)code};
}

int icmp_parse(const char *s, bool v6, struct range *ret)
{
	const char *slash = strchr(s, '/');
	char type_text[4];
	uint64_t type, code = 0;
	size_t len = slash ? (size_t)(slash - s) : strlen(s);

	for (size_t i = 0; i < ARRAY_SIZE(icmp_names); i++) {
		if (icmp_names[i].v6 == v6 && streq(s, icmp_names[i].name)) {
			*ret = icmp_range(v6, icmp_names[i].type, icmp_names[i].code);
			return 0;
		}
	}
	if (len >= sizeof(type_text))
		return -EINVAL;
	memcpy(type_text, s, len);
	type_text[len] = '\0';
	if (value_number(type_text, UINT8_MAX, &type) < 0 ||
	    (slash && value_number(slash + 1, UINT8_MAX, &code) < 0))
		return -EINVAL;
	*ret = icmp_range(v6, (uint32_t)type, slash ? (int)code : -1);
	return 0;
}

const char *icmp_name(uint32_t lo, uint32_t hi)
{
	for (size_t i = 0; i < ARRAY_SIZE(icmp_names); i++) {
		struct range r =
			icmp_range(icmp_names[i].v6, icmp_names[i].type, icmp_names[i].code);

		if (r.lo == lo && r.hi == hi)
			return icmp_names[i].name;
	}
	return NULL;
}

/* --- arrays --- */

int array_grow(void *array, size_t n, size_t size)
{
	void *items = *(void **)array;

	if (n & (n - 1)) /* neither 0 nor a power of two: there is room */
		return 0;
	items = realloc(items, (n ? 2 * n : 1) * size);
	if (!items)
		return -ENOMEM;
	*(void **)array = items;
	return 0;
}

void *array_new(size_t n, size_t size)
{
	size_t capacity = 1;

	while (capacity < n)
		capacity *= 2;
	return n ? calloc(capacity, size) : NULL;
}
