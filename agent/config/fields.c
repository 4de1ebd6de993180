// SPDX-License-Identifier: GPL-2.0-or-later
/* Readers of fields that several sections have. */
#include "base/values.h"
#include "config/read.h"
#include "config/spec.h"

#include <arpa/inet.h>

void read_port(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a port of 1 to 65535";
	const char *text = scalar_text(r, n, what);
	int port = text ? port_parse(text) : 0;

	if (port < 0)
		reject(r, n, "%s", what);
	else if (text)
		*(uint16_t *)to = (uint16_t)port;
}

void read_address_port(struct reader *r, const struct node *n,
		       const char *(*want)(const struct ax_addr *a), struct ax_addr *to,
		       uint16_t *port)
{
	static const char what[] = "an address or address:port ([address]:port for IPv6)";
	const char *text = scalar_text(r, n, what), *expected;
	__be16 port_be = 0;
	struct ax_addr a;

	if (!text)
		return;
	if (addr_parse(text, &a) < 0 && addr_port_parse(text, &a, &port_be) < 0)
		expected = what;
	else
		expected = want(&a);
	if (expected) {
		reject(r, n, "%s", expected);
		return;
	}
	*to = a;
	if (port_be)
		*port = ntohs(port_be);
}

bool read_addresses(struct reader *r, const struct node *n, struct ax_addr *ip4,
		    struct ax_addr *ip6)
{
	const char *text =
		scalar_text(r, n, "an address, or an IPv4 and an IPv6 address with a comma");
	const char *want = text ? want_vips(text, ip4, ip6) : NULL;

	if (want)
		reject(r, n, "%s", want);
	return text && !want;
}

void read_weight(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a whole number of 1 to 1000";
	const char *text = scalar_text(r, n, what);
	int weight = text ? port_parse(text) : 0; /* has the same form */

	if (text && (weight < 1 || weight > CONFIG_BACKEND_WEIGHT_MAX))
		reject(r, n, "%s", what);
	else if (text)
		*(uint32_t *)to = (uint32_t)weight;
}
