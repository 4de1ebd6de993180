// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>

#include "config/expose.h"

static const char expected[] =
	"HOSTPORT:PORT, maybe with an address or an interface before and /udp behind it, such as "
	"8080:80, 127.0.0.1:8080:80, \"[::1]:8080:80\", eth0:53:53/udp or 8080-8089:80-89";

/* --- lists --- */

void expose_list_free(struct expose_list *l)
{
	free(l->v);
	*l = (struct expose_list){0};
}

int expose_list_copy(const struct expose_list *from, struct expose_list *to)
{
	*to = (struct expose_list){0};
	if (!from->n)
		return 0;
	to->v = calloc(from->n, sizeof(*to->v));
	if (!to->v)
		return -ENOMEM;
	memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
	return 0;
}

bool expose_eq(const struct expose *a, const struct expose *b)
{
	return addr_eq(&a->addr, &b->addr) && a->family == b->family && a->proto == b->proto &&
	       a->host_port == b->host_port && a->port == b->port && streq(a->device, b->device);
}

bool expose_list_eq(const struct expose_list *a, const struct expose_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!expose_eq(&a->v[i], &b->v[i]))
			return false;
	return true;
}

static int add(struct expose_list *l, const struct expose *x)
{
	struct expose *more = reallocarray(l->v, l->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->v = more;
	l->v[l->n++] = *x;
	return 0;
}

/* --- text --- */

static bool take_proto(char *s, uint8_t *proto)
{
	char *slash = strchr(s, '/');

	*proto = IPPROTO_TCP;
	if (!slash)
		return true;
	*slash = 0;
	if (streq(slash + 1, "udp"))
		*proto = IPPROTO_UDP;
	return *proto == IPPROTO_UDP || streq(slash + 1, "tcp");
}

/* "80" or "80-89" */
static bool parse_range(char *s, int *first, int *last)
{
	char *dash = strchr(s, '-');

	if (dash)
		*dash = 0;
	*first = port_parse(s);
	*last = dash ? port_parse(dash + 1) : *first;
	return *first > 0 && *last >= *first;
}

static bool is_device(const char *s)
{
	size_t len = strlen(s);

	if (!len || len > EXPOSE_DEVICE_MAX || streq(s, ".") || streq(s, ".."))
		return false;
	for (; *s; s++)
		if (!isgraph((unsigned char)*s) || strchr("/:[]\"'\\", *s))
			return false;
	return true;
}

/* A wildcard says its family alone. */
static bool parse_where(char *s, struct expose *x)
{
	size_t len = strlen(s);

	if (s[0] == '[') {
		if (s[len - 1] != ']')
			return false;
		s[len - 1] = 0;
		s++;
		if (!strchr(s, ':') || addr_parse(s, &x->addr))
			return false;
	} else if (strchr(s, ':')) {
		return false; /* IPv6 without brackets: which of its colons is which? */
	} else if (addr_parse(s, &x->addr)) {
		if (!is_device(s) || isdigit((unsigned char)s[0]))
			return false;
		snprintf(x->device, sizeof(x->device), "%.*s", EXPOSE_DEVICE_MAX, s);
		return true;
	}
	x->family = addr_is_v4(&x->addr) ? AF_INET : AF_INET6;
	if (x->addr.w[3] == 0 && (x->family == AF_INET || addr_is_zero(&x->addr)))
		memset(&x->addr, 0, sizeof(x->addr));
	return true;
}

/* The last colon of the text, cut off there; NULL: there is none. */
static char *cut(char *s)
{
	char *colon = strrchr(s, ':');

	if (!colon || strchr(colon, ']'))
		return NULL;
	*colon = 0;
	return colon + 1;
}

/* Fills what one item says; its ports are the first ones of n. */
static bool parse(const char *s, struct expose *x, int *n)
{
	int host_first, host_last, first, last;
	char copy[EXPOSE_STRLEN], *ports, *host;

	if (strlen(s) >= sizeof(copy))
		return false;
	strcpy(copy, s);
	if (!take_proto(copy, &x->proto))
		return false;
	ports = cut(copy);
	if (!ports)
		return false;
	host = cut(copy);
	if (host && (!*copy || !parse_where(copy, x)))
		return false;
	if (!parse_range(host ? host : copy, &host_first, &host_last) ||
	    !parse_range(ports, &first, &last) || host_last - host_first != last - first)
		return false;
	x->host_port = (uint16_t)host_first;
	x->port = (uint16_t)first;
	*n = last - first + 1;
	return true;
}

const char *want_expose(const char *s, struct expose_list *l, int *r)
{
	struct expose x = {0};
	size_t before = l->n;
	int n;

	*r = 0;
	if (!parse(s, &x, &n))
		return expected;
	if (l->n + (size_t)n > CONFIG_EXPOSE_MAX)
		return "at most " CONFIG_EXPOSE_MAX_TEXT " exposed ports of one app or service";
	for (int i = 0; i < n && !*r; i++) {
		for (size_t k = 0; k < before; k++)
			if (expose_clashes(&l->v[k], &x)) {
				l->n = before;
				return "each port of the host once";
			}
		*r = add(l, &x);
		x.host_port++;
		x.port++;
	}
	if (*r)
		l->n = before;
	return NULL;
}

int spec_parse_expose(const char *s, struct expose_list *l, struct error *e)
{
	int r;
	const char *want = want_expose(s, l, &r);

	if (r)
		return error_set(e, r, "out of memory");
	return want ? error_set(e, -EINVAL, "exposed port \"%.80s\" is not valid: use %s", s, want)
		    : 0;
}

bool expose_clashes(const struct expose *x, const struct expose *y)
{
	if (x->host_port != y->host_port || x->proto != y->proto)
		return false;
	if (x->family && y->family && x->family != y->family)
		return false;
	if (*x->device && *y->device)
		return streq(x->device, y->device);
	if (*x->device || *y->device)
		return true;
	return addr_is_zero(&x->addr) || addr_is_zero(&y->addr) || addr_eq(&x->addr, &y->addr);
}

const char *expose_proto(const struct expose *x)
{
	return x->proto == IPPROTO_UDP ? "udp" : "tcp";
}

char *expose_format(const struct expose *x, char buf[EXPOSE_STRLEN])
{
	char where[ADDR_STRLEN + 4] = "", text[ADDR_STRLEN];

	if (*x->device)
		snprintf(where, sizeof(where), "%s:", x->device);
	else if (addr_is_zero(&x->addr) && x->family)
		snprintf(where, sizeof(where), x->family == AF_INET ? "0.0.0.0:" : "[::]:");
	else if (x->family)
		snprintf(where, sizeof(where),
			 x->family == AF_INET ? "%s:" : "[%s]:", addr_format(&x->addr, text));
	snprintf(buf, EXPOSE_STRLEN, "%s%u:%u/%s", where, x->host_port, x->port, expose_proto(x));
	return buf;
}
