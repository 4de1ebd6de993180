// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <netinet/in.h>

#include "base/near.h"
#include "packet/text.h"
#include "rules/rule.h"

#define ND_LEN	      24 /* the target and an option with the link-layer address */
#define ND_SOLICIT    135
#define FLAG_SYN      (1u << 1)
#define LATER_MAX     65528
#define ECHO_REQUEST  8
#define ECHO_REQUEST6 128

const char *const packet_flag_names[8] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

void packet_init(struct packet *p)
{
	static const uint8_t smac[6] = {2, [5] = 1}, dmac[6] = {2, [5] = 2};

	*p = (struct packet){.sport = PACKET_PORT,
			     .ttl = PACKET_TTL,
			     .tcp_flags = FLAG_SYN,
			     .fragment = AX_FRAGMENT_NONE};
	memcpy(p->smac, smac, 6);
	memcpy(p->dmac, dmac, 6);
}

void packet_free(struct packet *p)
{
	if (p->quoted)
		packet_free(p->quoted);
	free(p->quoted);
	free(p->data);
	p->quoted = NULL;
	p->data = NULL;
}

/* --- words --- */

enum token {
	TOKEN_END,
	TOKEN_WORD,
	TOKEN_TEXT, /* in quotes */
	TOKEN_TO,   /* > */
	TOKEN_OPEN,
	TOKEN_CLOSE,
};

/* What was given, by which later checks tell it from a default. */
enum given {
	GIVEN_SPORT = 1 << 0,
	GIVEN_DPORT = 1 << 1,
	GIVEN_FLAGS = 1 << 2,
	GIVEN_TYPE = 1 << 3,
	GIVEN_DATA = 1 << 4,
	GIVEN_LEN = 1 << 5,
	GIVEN_MAC = 1 << 6,
	GIVEN_FRAG = 1 << 7,
	GIVEN_TTL = 1 << 8,
	GIVEN_QUOTE = 1 << 9,
	GIVEN_REPLY = 1 << 10,
	GIVEN_DSCP = 1 << 11,
	GIVEN_ECN = 1 << 12,
};

struct parser {
	const char *at;
	enum token token;
	char *text; /* of the token, NUL-terminated, but quoted ones may hold more NULs */
	size_t len;
	bool quoting; /* what is parsed stands in an ICMP error */
	bool nd;
	unsigned given;
	size_t want_len; /* of the payload, with GIVEN_LEN */
	struct error *e;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of a quoted text; -1 when an escape is not understood. */
static int quoted_byte(const char **at)
{
	static const char names[] = "nrt\\'", codes[] = "\n\r\t\\'";
	const char *named;
	char c = *(*at)++;
	int high, low;

	if (c != '\\')
		return (unsigned char)c;
	c = *(*at)++;
	if (c == 'x' && (high = hex_digit((*at)[0])) >= 0 && (low = hex_digit((*at)[1])) >= 0) {
		*at += 2;
		return high << 4 | low;
	}
	named = c ? strchr(names, c) : NULL;
	return named ? codes[named - names] : -1;
}

static int next_quoted(struct parser *p)
{
	p->token = TOKEN_TEXT;
	p->at++;
	while (*p->at && *p->at != '\'') {
		int c = p->at[0] == '\\' && !p->at[1] ? -1 : quoted_byte(&p->at);

		if (c < 0)
			return error_set(p->e, -EINVAL,
					 "in a packet's '...' stands a backslash before n, r, t, "
					 "another backslash, a quote, or x and two hex digits");
		p->text[p->len++] = (char)c;
	}
	if (!*p->at)
		return error_set(p->e, -EINVAL, "the packet's text in '...' has no end");
	p->at++;
	return 0;
}

/* Reads the next token into p->text, which is as long as the whole packet's text. */
static int next(struct parser *p)
{
	int r = 0;

	p->len = 0;
	p->at += strspn(p->at, " \t\r\n");
	if (*p->at == '\'') {
		r = next_quoted(p);
	} else if (*p->at && strchr(">()", *p->at)) {
		p->token = *p->at == '>' ? TOKEN_TO : *p->at == '(' ? TOKEN_OPEN : TOKEN_CLOSE;
		p->text[p->len++] = *p->at++;
	} else {
		p->len = strcspn(p->at, " \t\r\n>()'");
		p->token = p->len ? TOKEN_WORD : TOKEN_END;
		memcpy(p->text, p->at, p->len);
		p->at += p->len;
	}
	p->text[p->len] = 0;
	return r;
}

static int expected(struct parser *p, const char *what)
{
	if (p->token == TOKEN_END)
		return error_set(p->e, -EINVAL, "the packet ends where %s is expected", what);
	return error_set(p->e, -EINVAL, "in the packet, '%.60s' is not %s", p->text, what);
}

static int next_word(struct parser *p, const char *what)
{
	int r = next(p);

	if (r)
		return r;
	return p->token == TOKEN_WORD ? 0 : expected(p, what);
}

static int parse_number(const char *s, unsigned base, unsigned max, unsigned *ret)
{
	unsigned long n = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		int digit = hex_digit(*s);

		if (digit < 0 || (unsigned)digit >= base)
			return -EINVAL;
		n = n * base + (unsigned)digit;
		if (n > max)
			return -EINVAL;
	}
	*ret = (unsigned)n;
	return 0;
}

static int next_number(struct parser *p, unsigned min, unsigned max, unsigned *ret)
{
	char what[64];
	int r;

	snprintf(what, sizeof(what), "a number of %u to %u", min, max);
	r = next_word(p, what);
	if (r)
		return r;
	return parse_number(p->text, 10, max, ret) || *ret < min ? expected(p, what) : 0;
}

/* --- options --- */

static int parse_flags(struct parser *p, struct packet *pkt)
{
	static const char what[] =
		"TCP flags joined by commas: fin, syn, rst, psh, ack, urg, ece, cwr, or none";
	char *word, *rest;
	int r = next_word(p, what);

	if (r)
		return r;
	pkt->tcp_flags = 0;
	if (streq(p->text, "none"))
		return 0;
	for (rest = p->text; (word = strsep(&rest, ","));) {
		unsigned i = 0;

		while (i < 8 && !streq(word, packet_flag_names[i]))
			i++;
		if (i == 8)
			return error_set(p->e, -EINVAL, "in the packet, '%.60s' is not %s", word,
					 what);
		pkt->tcp_flags |= (uint8_t)(1u << i);
	}
	return 0;
}

/* The words for types are those of rules. */
static int parse_type(struct parser *p, struct packet *pkt)
{
	static const char what[] = "one ICMP type, like echo-request, 3 or 3/4";
	bool v6 = pkt->proto == IPPROTO_ICMPV6;
	struct rule rule = {0};
	const struct condition *icmp = &rule.in[AX_FIELD_ICMP];
	uint64_t given = 0;
	bool single;
	int r;

	r = next_word(p, what);
	if (r)
		return r;
	r = rule_set(&rule, &given, v6 ? "icmp6" : "icmp", p->text, p->e);
	single = !r && icmp->n == 1 && icmp->ranges->lo >> 8 == icmp->ranges->hi >> 8;
	if (single) {
		pkt->icmp_type = (uint8_t)(icmp->ranges->lo >> 8);
		pkt->icmp_code = (uint8_t)icmp->ranges->lo;
	}
	rule_free(&rule);
	return single ? 0 : expected(p, what);
}

static int parse_frag(struct parser *p, struct packet *pkt)
{
	static const char what[] = "a fragment: first, later, or later=N with N a multiple of 8";
	unsigned offset = PACKET_LATER_OFFSET;
	int r = next_word(p, what);

	if (r)
		return r;
	if (streq(p->text, "first")) {
		pkt->fragment = AX_FRAGMENT_FIRST;
		return 0;
	}
	if (starts_with(p->text, "later="))
		r = parse_number(p->text + strlen("later="), 10, LATER_MAX, &offset);
	else if (!streq(p->text, "later"))
		r = -EINVAL;
	if (r || offset % 8 || !offset)
		return expected(p, what);
	pkt->fragment = AX_FRAGMENT_LATER;
	pkt->offset = offset;
	return 0;
}

static int parse_ttl(struct parser *p, struct packet *pkt)
{
	unsigned n;
	int r = next_number(p, 0, 255, &n);

	if (!r)
		pkt->ttl = (uint8_t)n;
	return r;
}

static int parse_dscp(struct parser *p, struct packet *pkt)
{
	static const char what[] = "a codepoint: ef, af11, cs1 ... or a number of 0 to 63";
	int r = next_word(p, what), dscp = r ? r : dscp_parse(p->text);

	if (r || dscp < 0)
		return r ? r : expected(p, what);
	pkt->tos = (uint8_t)(dscp << 2 | (pkt->tos & 3));
	return 0;
}

static int parse_ecn(struct parser *p, struct packet *pkt)
{
	static const char what[] = "not-ect, ect0, ect1 or ce";
	int r = next_word(p, what), ecn = r ? r : ecn_parse(p->text);

	if (r || ecn < 0)
		return r ? r : expected(p, what);
	pkt->tos = (uint8_t)((pkt->tos & ~3) | ecn);
	return 0;
}

static int parse_len(struct parser *p, struct packet *pkt)
{
	unsigned n;
	int r = next_number(p, 0, PACKET_LEN_MAX, &n);

	(void)pkt;
	p->want_len = r ? 0 : n;
	return r;
}

static int set_data(struct parser *p, struct packet *pkt, const void *data, size_t len)
{
	if (len > PACKET_LEN_MAX)
		return error_set(p->e, -EINVAL, "a packet's data has at most %d bytes",
				 PACKET_LEN_MAX);
	pkt->data = malloc(len + 1);
	if (!pkt->data)
		return error_set(p->e, -ENOMEM, "out of memory");
	memcpy(pkt->data, data, len);
	pkt->len = len;
	return 0;
}

static int parse_data(struct parser *p, struct packet *pkt)
{
	static const char what[] = "data: 'TEXT', or hex: and pairs of hex digits";
	autofree uint8_t *bytes = NULL;
	struct error why;
	size_t len;
	int r = next(p);

	if (r)
		return r;
	if (p->token == TOKEN_TEXT)
		return set_data(p, pkt, p->text, p->len);
	if (p->token != TOKEN_WORD || !starts_with(p->text, "hex:"))
		return expected(p, what);
	r = packet_parse_hex(p->text + strlen("hex:"), &bytes, &len, &why);
	if (r == -EINVAL)
		return expected(p, what);
	return r ? error_set(p->e, r, "out of memory") : set_data(p, pkt, bytes, len);
}

static int next_mac(struct parser *p, uint8_t mac[6])
{
	static const char what[] = "a MAC address like 02:00:00:00:00:01";
	const char *s;
	int r = next_word(p, what);

	if (r)
		return r;
	s = p->text;
	for (int i = 0; i < 6; i++) {
		int high = hex_digit(s[0]), low = high < 0 ? -1 : hex_digit(s[1]);

		if (low < 0 || s[2] != (i < 5 ? ':' : 0))
			return expected(p, what);
		mac[i] = (uint8_t)(high << 4 | low);
		s += 3;
	}
	return 0;
}

static int next_to(struct parser *p)
{
	int r = next(p);

	if (r)
		return r;
	return p->token == TOKEN_TO ? 0 : expected(p, "a > between source and destination");
}

static int parse_mac(struct parser *p, struct packet *pkt)
{
	int r = next_mac(p, pkt->smac);

	r = r ? r : next_to(p);
	return r ? r : next_mac(p, pkt->dmac);
}

static int parse_reply(struct parser *p, struct packet *pkt)
{
	(void)p;
	pkt->reply = true;
	return 0;
}

static int parse_packet(struct parser *p, struct packet *pkt);

static int parse_quote(struct parser *p, struct packet *pkt)
{
	struct parser inner;
	int r = next(p);

	if (r)
		return r;
	if (p->token != TOKEN_OPEN)
		return expected(p, "a packet in parentheses");
	pkt->quoted = malloc(sizeof(*pkt->quoted));
	if (!pkt->quoted)
		return error_set(p->e, -ENOMEM, "out of memory");
	packet_init(pkt->quoted);
	inner = (struct parser){.at = p->at, .text = p->text, .quoting = true, .e = p->e};
	r = parse_packet(&inner, pkt->quoted);
	p->at = inner.at;
	if (r || inner.token == TOKEN_CLOSE)
		return r;
	return error_set(p->e, -EINVAL, "the quoted packet has no ) at its end");
}

/* --- what goes together --- */

static bool has_ports(const struct packet *pkt)
{
	return (pkt->proto == IPPROTO_TCP || pkt->proto == IPPROTO_UDP) &&
	       pkt->fragment != AX_FRAGMENT_LATER;
}

static bool is_error(const struct packet *pkt)
{
	static const uint8_t types4[] = {3, 4, 5, 11, 12};

	if (pkt->proto == IPPROTO_ICMPV6)
		return pkt->icmp_type < 128;
	return memchr(types4, pkt->icmp_type, sizeof(types4)) != NULL;
}

/* Which options make sense with what the packet is; NULL: they do. */
static const char *objection(const struct parser *p, const struct packet *pkt)
{
	bool ip = pkt->kind == PACKET_IP && !p->nd, ports = ip && has_ports(pkt);
	bool icmp = ip && (pkt->proto == IPPROTO_ICMP || pkt->proto == IPPROTO_ICMPV6);
	bool later = pkt->fragment == AX_FRAGMENT_LATER;

	if ((p->given & (GIVEN_SPORT | GIVEN_DPORT)) && later)
		return "a later fragment has no ports";
	if ((p->given & (GIVEN_SPORT | GIVEN_DPORT)) && !ports)
		return "only TCP and UDP have ports";
	if (ports && !(p->given & GIVEN_DPORT))
		return "TCP and UDP need the destination's port, like 10.0.0.2:80 or [fd00::2]:80";
	if ((p->given & GIVEN_FLAGS) && (!ports || pkt->proto != IPPROTO_TCP))
		return "flags are for TCP, and not for its later fragments";
	if ((p->given & (GIVEN_TYPE | GIVEN_QUOTE)) && (!icmp || later))
		return "'type' and 'quoting' are for icmp and icmp6, and not for later fragments";
	if ((p->given & GIVEN_QUOTE) && !is_error(pkt))
		return "only an ICMP error quotes a packet: 'type' 3, 4, 5, 11 or 12 of icmp, 1 to "
		       "127 of icmp6";
	if ((p->given & GIVEN_QUOTE) && (p->given & (GIVEN_DATA | GIVEN_LEN)))
		return "what an ICMP error quotes is its payload: 'data' and 'len' cannot be given";
	if ((p->given & GIVEN_REPLY) && pkt->kind != PACKET_ARP)
		return "'reply' is for arp";
	if ((p->given & ~(unsigned)(GIVEN_MAC | GIVEN_REPLY)) && !ip)
		return "arp and nd take no option but 'mac', and arp 'reply'";
	if ((p->given & GIVEN_MAC) && p->quoting)
		return "a quoted packet has no MAC addresses";
	if (pkt->quoted && addr_is_v4(&pkt->src) != addr_is_v4(&pkt->quoted->src))
		return "icmp quotes an IPv4 packet, icmp6 an IPv6 one";
	if ((p->given & GIVEN_LEN) && p->want_len < pkt->len)
		return "'len' is less than the data has";
	return NULL;
}

static int fill_payload(struct parser *p, struct packet *pkt)
{
	size_t len = p->nd ? ND_LEN : p->want_len;
	uint8_t *data;

	if (!p->nd && !(p->given & GIVEN_LEN))
		return 0;
	data = realloc(pkt->data, len + 1);
	if (!data)
		return error_set(p->e, -ENOMEM, "out of memory");
	pkt->data = data;
	memset(data + pkt->len, 0, len - pkt->len);
	pkt->len = len;
	if (p->nd) {
		memcpy(data, pkt->dst.b, 16);
		data[16] = 1; /* source link-layer address, */
		data[17] = 1; /* eight bytes */
		memcpy(data + 18, pkt->smac, 6);
	}
	return 0;
}

static int finish(struct parser *p, struct packet *pkt)
{
	const char *why = objection(p, pkt);

	if (why)
		return error_set(p->e, -EINVAL, "%s packet makes no sense: %s",
				 p->quoting ? "the quoted" : "the", why);
	return fill_payload(p, pkt);
}

/* --- the packet --- */

/* ADDRESS or ADDRESS:PORT; an IPv6 address with a port has brackets. */
static int next_end(struct parser *p, struct ax_addr *addr, uint16_t *port, unsigned given)
{
	static const char what[] = "an address like 10.0.0.1, 10.0.0.1:80, fd00::1 or [fd00::1]:80";
	char *colon, *first;
	unsigned n;
	int r = next_word(p, what);

	if (r)
		return r;
	colon = strrchr(p->text, ':');
	first = strchr(p->text, ':');
	if (colon && (p->text[0] == '[' ? colon > p->text && colon[-1] == ']' : colon == first)) {
		if (parse_number(colon + 1, 10, 65535, &n))
			return expected(p, what);
		*colon = 0;
		*port = (uint16_t)n;
		p->given |= given;
	}
	return addr_parse(p->text, addr) ? expected(p, what) : 0;
}

static int parse_tag(struct parser *p, struct packet *pkt)
{
	static const char what[] = "a VLAN's number, 0 to 4095, like 100 or 100:88a8";
	unsigned id, tpid = PACKET_TPID;
	char *word, *rest;
	int r = next_word(p, what);

	if (r)
		return r;
	if (pkt->n_tags == PACKET_TAGS_MAX)
		return error_set(p->e, -EINVAL, "a packet has at most %d VLAN tags",
				 PACKET_TAGS_MAX);
	rest = p->text;
	word = strsep(&rest, ":");
	r = parse_number(word, 10, 4095, &id);
	if (!r && rest)
		r = parse_number(rest, 16, 0xffff, &tpid);
	/* any other would not be taken for a tag */
	if (r || (tpid != 0x8100 && tpid != 0x88a8 && tpid != 0x9100))
		return error_set(p->e, -EINVAL, "in the packet, '%.20s%s%.20s' is not %s", word,
				 rest ? ":" : "", rest ? rest : "", what);
	pkt->tags[pkt->n_tags++] = (struct packet_tag){(uint16_t)id, (uint16_t)tpid};
	return 0;
}

static int parse_proto(struct parser *p, struct packet *pkt)
{
	int proto;

	if (p->token == TOKEN_WORD && streq(p->text, "arp") && !p->quoting) {
		static const uint8_t everyone[6] = {255, 255, 255, 255, 255, 255};

		pkt->kind = PACKET_ARP;
		memcpy(pkt->dmac, everyone, 6);
		return 0;
	}
	if (p->token == TOKEN_WORD && streq(p->text, "nd") && !p->quoting) {
		p->nd = true;
		pkt->proto = IPPROTO_ICMPV6;
		pkt->icmp_type = ND_SOLICIT;
		pkt->ttl = 255;
		return 0;
	}
	proto = p->token == TOKEN_WORD ? rule_parse_proto(p->text) : -EINVAL;
	if (proto < 0)
		return expected(p, "a protocol: tcp, udp, icmp, icmp6, another one's name or "
				   "number, arp or nd");
	pkt->proto = (uint8_t)proto;
	pkt->icmp_type = proto == IPPROTO_ICMPV6 ? ECHO_REQUEST6 : ECHO_REQUEST;
	return 0;
}

static bool is_extension(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_AH || proto == IPPROTO_DSTOPTS;
}

static int parse_ends(struct parser *p, struct packet *pkt)
{
	int r = next_end(p, &pkt->src, &pkt->sport, GIVEN_SPORT);
	bool v4, v6;

	r = r ? r : next_to(p);
	r = r ? r : next_end(p, &pkt->dst, &pkt->dport, GIVEN_DPORT);
	if (r)
		return r;
	v4 = addr_is_v4(&pkt->src);
	v6 = !v4;
	if (v4 != addr_is_v4(&pkt->dst))
		return error_set(p->e, -EINVAL,
				 "a packet's addresses are both IPv4 or both IPv6 ones");
	if ((pkt->kind == PACKET_ARP && v6) ||
	    (pkt->kind == PACKET_IP && pkt->proto == IPPROTO_ICMP && v6))
		return error_set(p->e, -EINVAL,
				 "arp and icmp have IPv4 addresses: for IPv6 there "
				 "are nd and icmp6");
	if (v6 && is_extension(pkt->proto))
		return error_set(p->e, -EINVAL,
				 "protocol %u is a header of IPv6 that has another "
				 "one behind it: such packets are given as bytes",
				 pkt->proto);
	if (pkt->kind == PACKET_IP && pkt->proto == IPPROTO_ICMPV6 && v4)
		return error_set(p->e, -EINVAL,
				 "nd and icmp6 have IPv6 addresses: for IPv4 there "
				 "are arp and icmp");
	return 0;
}

static const struct {
	const char *name;
	unsigned given;
	int (*parse)(struct parser *p, struct packet *pkt);
} options[] = {
	{"flags", GIVEN_FLAGS, parse_flags},   {"type", GIVEN_TYPE, parse_type},
	{"quoting", GIVEN_QUOTE, parse_quote}, {"reply", GIVEN_REPLY, parse_reply},
	{"frag", GIVEN_FRAG, parse_frag},      {"ttl", GIVEN_TTL, parse_ttl},
	{"data", GIVEN_DATA, parse_data},      {"len", GIVEN_LEN, parse_len},
	{"mac", GIVEN_MAC, parse_mac},	       {"dscp", GIVEN_DSCP, parse_dscp},
	{"ecn", GIVEN_ECN, parse_ecn},
};

static int unknown_option(struct parser *p)
{
	const char *names[ARRAY_SIZE(options)], *near = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		names[i] = options[i].name;
	if (p->token == TOKEN_WORD)
		near = nearest_word(p->text, names, ARRAY_SIZE(names));
	if (near)
		return error_set(p->e, -EINVAL,
				 "in the packet, '%.60s' is not known: did you mean '%s'?", p->text,
				 near);
	return expected(p,
			"an option: flags, type, quoting, reply, frag, ttl, dscp, ecn, data, len "
			"or mac");
}

static int parse_option(struct parser *p, struct packet *pkt)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(options) &&
	       (p->token != TOKEN_WORD || !streq(p->text, options[i].name)))
		i++;
	if (i == ARRAY_SIZE(options))
		return unknown_option(p);
	if (p->given & options[i].given)
		return error_set(p->e, -EINVAL, "in the packet, '%s' stands twice",
				 options[i].name);
	p->given |= options[i].given;
	return options[i].parse(p, pkt);
}

/* Up to the end of the text or to a closing parenthesis, which is left in p->token. */
static int parse_packet(struct parser *p, struct packet *pkt)
{
	int r = next(p);

	while (!r && p->token == TOKEN_WORD && streq(p->text, "vlan") && !p->quoting) {
		r = parse_tag(p, pkt);
		r = r ? r : next(p);
	}
	r = r ? r : parse_proto(p, pkt);
	r = r ? r : parse_ends(p, pkt);
	r = r ? r : next(p);
	while (!r && p->token != TOKEN_END && !(p->quoting && p->token == TOKEN_CLOSE)) {
		r = parse_option(p, pkt);
		r = r ? r : next(p);
	}
	return r ? r : finish(p, pkt);
}

int packet_parse(const char *text, struct packet *pkt, struct error *e)
{
	autofree char *buf = malloc(strlen(text) + 1);
	struct parser p = {.at = text, .text = buf, .e = e};
	int r;

	packet_init(pkt);
	if (!buf)
		return error_set(e, -ENOMEM, "out of memory");
	r = parse_packet(&p, pkt);
	if (r)
		packet_free(pkt);
	return r;
}

int packet_text_parse(const char *text, uint8_t **frame, size_t *len, struct error *e)
{
	struct packet p;
	int r = packet_parse(text, &p, e);

	if (r)
		return r;
	r = packet_build(&p, frame, len);
	packet_free(&p);
	if (r == -EMSGSIZE)
		return error_set(e, -EINVAL, "the packet is longer than IP allows");
	return r ? error_set(e, r, "out of memory") : 0;
}

int packet_parse_hex(const char *text, uint8_t **frame, size_t *len, struct error *e)
{
	autofree uint8_t *buf = malloc(strlen(text) / 2 + 1);
	size_t n = 0;

	if (!buf)
		return error_set(e, -ENOMEM, "out of memory");
	while (*(text += strspn(text, " \t\r\n:.,"))) {
		int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

		if (text[0] == '0' && (text[1] | 0x20) == 'x') {
			text += 2;
			continue;
		}
		if (low < 0)
			return error_set(e, -EINVAL,
					 "'%.20s' are not two hex digits: write a packet's bytes "
					 "like 0a0b0c or 0a:0b:0c",
					 text);
		buf[n++] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	*len = n;
	*frame = take_ptr(&buf);
	return 0;
}
