// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/address.h"

#include <arpa/inet.h>

#define V4_PREFIX_BITS 96 /* ::ffff:0:0/96, where the mapped addresses live */

static const struct ax_addr mapped_prefix = {.b = {[10] = 0xff, [11] = 0xff}};

bool addr_is_v4(const struct ax_addr *a)
{
	return memcmp(a, &mapped_prefix, V4_PREFIX_BITS / 8) == 0;
}

int addr_cmp(const struct ax_addr *a, const struct ax_addr *b)
{
	return memcmp(a, b, sizeof(*a));
}

struct ax_addr addr_from_v4(__be32 v4)
{
	struct ax_addr a = mapped_prefix;

	a.w[3] = v4;
	return a;
}

struct ax_addr addr_from_v6(const struct in6_addr *v6)
{
	struct ax_addr a;

	memcpy(&a, v6, sizeof(a));
	return a;
}

/* Without brackets. */
static int parse_bare(const char *s, struct ax_addr *ret)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, s, &v4) == 1)
		*ret = addr_from_v4(v4.s_addr);
	else if (inet_pton(AF_INET6, s, &v6) == 1)
		*ret = addr_from_v6(&v6);
	else
		return -EINVAL;
	return 0;
}

/* The `len` bytes at s as a string of its own; no address is longer than the buffer. */
static int cut(const char *s, size_t len, char buf[INET6_ADDRSTRLEN])
{
	if (len >= INET6_ADDRSTRLEN)
		return -EINVAL;
	memcpy(buf, s, len);
	buf[len] = '\0';
	return 0;
}

/* "[v6]" of the given length; a bracketed IPv4 address is nothing that anybody writes. */
static int parse_bracketed(const char *s, size_t len, struct ax_addr *ret)
{
	char buf[INET6_ADDRSTRLEN];

	if (len < 2 || s[0] != '[' || s[len - 1] != ']' || cut(s + 1, len - 2, buf) < 0 ||
	    !strchr(buf, ':'))
		return -EINVAL;
	return parse_bare(buf, ret);
}

int addr_parse(const char *s, struct ax_addr *ret)
{
	return s[0] == '[' ? parse_bracketed(s, strlen(s), ret) : parse_bare(s, ret);
}

/* A decimal number without sign, space or leading zero. */
static int parse_number(const char *s, unsigned max)
{
	unsigned n = 0;

	if (!*s || (s[0] == '0' && s[1]))
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		n = n * 10 + (unsigned)(*s - '0');
		if (n > max)
			return -EINVAL;
	}
	return (int)n;
}

/* The byte of a netmask of `len` bits at index i. */
static uint8_t mask_byte(unsigned len, unsigned i)
{
	if (len >= (i + 1) * 8)
		return 0xff;
	return len <= i * 8 ? 0 : (uint8_t)(0xff00 >> (len - i * 8));
}

/* Host bits and all. */
static int read_prefix(const char *s, struct prefix *ret)
{
	const char *slash = strchr(s, '/');
	char buf[INET6_ADDRSTRLEN];
	unsigned base;
	int len;

	if (cut(s, slash ? (size_t)(slash - s) : strlen(s), buf) < 0 ||
	    parse_bare(buf, &ret->addr) < 0)
		return -EINVAL;
	/* what the length counts from depends on how the address is written */
	base = strchr(buf, ':') ? 0 : V4_PREFIX_BITS;
	len = slash ? parse_number(slash + 1, 128 - base) : (int)(128 - base);
	if (len < 0)
		return len;
	ret->len = base + (unsigned)len;
	return 0;
}

int prefix_parse(const char *s, struct prefix *ret)
{
	struct prefix p;
	int r = read_prefix(s, &p);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < sizeof(p.addr); i++)
		if (p.addr.b[i] & ~mask_byte(p.len, i))
			return -ERANGE;
	*ret = p;
	return 0;
}

int prefix_without_host_bits(const char *s, struct prefix *ret)
{
	struct prefix p;
	int r = read_prefix(s, &p);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < sizeof(p.addr); i++)
		p.addr.b[i] &= mask_byte(p.len, i);
	*ret = p;
	return 0;
}

bool prefix_contains(const struct prefix *p, const struct ax_addr *a)
{
	for (unsigned i = 0; i < sizeof(p->addr); i++)
		if ((p->addr.b[i] ^ a->b[i]) & mask_byte(p->len, i))
			return false;
	return true;
}

bool prefix_eq(const struct prefix *a, const struct prefix *b)
{
	return a->len == b->len && addr_eq(&a->addr, &b->addr);
}

bool prefix_overlaps(const struct prefix *a, const struct prefix *b)
{
	return a->len <= b->len ? prefix_contains(a, &b->addr) : prefix_contains(b, &a->addr);
}

int port_parse(const char *s)
{
	int port = parse_number(s, UINT16_MAX);

	return port == 0 ? -EINVAL : port;
}

int addr_port_parse(const char *s, struct ax_addr *addr, __be16 *port_be)
{
	const char *colon = strrchr(s, ':');
	char buf[INET6_ADDRSTRLEN];
	struct ax_addr a;
	size_t len;
	int port;

	if (!colon)
		return -EINVAL;
	len = (size_t)(colon - s);
	port = port_parse(colon + 1);
	if (port < 0)
		return port;
	if (s[0] == '[') {
		if (parse_bracketed(s, len, &a) < 0)
			return -EINVAL;
	} else if (cut(s, len, buf) < 0 || strchr(buf, ':') || parse_bare(buf, &a) < 0) {
		/* without brackets nobody can tell an IPv6 address's last group from a port */
		return -EINVAL;
	}
	*addr = a;
	*port_be = htons((uint16_t)port);
	return 0;
}

char *addr_format(const struct ax_addr *a, char *buf)
{
	if (addr_is_v4(a))
		inet_ntop(AF_INET, &a->w[3], buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, a, buf, INET6_ADDRSTRLEN);
	return buf;
}

char *prefix_format(const struct prefix *p, char *buf)
{
	bool v4 = addr_is_v4(&p->addr) && p->len >= V4_PREFIX_BITS;
	char addr[INET6_ADDRSTRLEN];

	snprintf(buf, ADDR_STRLEN, "%s/%u", addr_format(&p->addr, addr),
		 v4 ? p->len - V4_PREFIX_BITS : p->len);
	return buf;
}

char *addr_port_format(const struct ax_addr *a, __be16 port_be, char *buf)
{
	char addr[INET6_ADDRSTRLEN];

	snprintf(buf, ADDR_STRLEN, addr_is_v4(a) ? "%s:%u" : "[%s]:%u", addr_format(a, addr),
		 ntohs(port_be));
	return buf;
}

socklen_t addr_to_sockaddr(const struct ax_addr *a, __be16 port_be, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (addr_is_v4(a)) {
		sin->sin_family = AF_INET;
		sin->sin_port = port_be;
		sin->sin_addr.s_addr = a->w[3];
		return sizeof(*sin);
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = port_be;
	memcpy(&sin6->sin6_addr, a, sizeof(*a));
	return sizeof(*sin6);
}

int addr_from_sockaddr(const struct sockaddr *sa, struct ax_addr *a, __be16 *port_be)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

	switch (sa->sa_family) {
	case AF_INET:
		*a = addr_from_v4(sin->sin_addr.s_addr);
		*port_be = sin->sin_port;
		return 0;
	case AF_INET6:
		*a = addr_from_v6(&sin6->sin6_addr);
		*port_be = sin6->sin6_port;
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

/* --- which addresses are right --- */

static bool is_loopback(const struct ax_addr *a)
{
	return addr_is_v4(a) ? a->b[12] == IN_LOOPBACKNET : IN6_IS_ADDR_LOOPBACK(a->b);
}

const char *want_unicast(const struct ax_addr *a)
{
	bool v4 = addr_is_v4(a);
	uint32_t host = ntohl(a->w[3]);

	if (addr_is_zero(a) || (v4 && host == INADDR_ANY))
		return "a unicast address, not the unspecified one";
	if (is_loopback(a))
		return "a unicast address, not a loopback one";
	if (v4 ? IN_MULTICAST(host) : IN6_IS_ADDR_MULTICAST(a->b))
		return "a unicast address, not a multicast one";
	if (v4 && host == INADDR_BROADCAST)
		return "a unicast address, not the broadcast one";
	if (!v4 && IN6_IS_ADDR_LINKLOCAL(a->b)) /* means nothing without an interface */
		return "a unicast address, not a link-local one";
	return NULL;
}

const char *want_server(const struct ax_addr *a)
{
	return is_loopback(a) ? NULL : want_unicast(a);
}
