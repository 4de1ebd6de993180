// SPDX-License-Identifier: GPL-2.0-or-later
/* Flows as text: who sends to which port of whom. */
#include "rules/field.h"
#include "rules/priv.h"

#include <arpa/inet.h>
#include <netinet/in.h>

int set_flow_parse_port(const char *s, uint8_t *proto, __be16 *port_be)
{
	char digits[sizeof("65535")];
	const char *slash = strchr(s, '/');
	uint64_t port;

	if (!slash || (size_t)(slash - s) >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, s, (size_t)(slash - s));
	digits[slash - s] = '\0';
	if (value_number(digits, UINT16_MAX, &port) < 0)
		return -EINVAL;
	if (streq(slash + 1, "tcp"))
		*proto = IPPROTO_TCP;
	else if (streq(slash + 1, "udp"))
		*proto = IPPROTO_UDP;
	else
		return -EINVAL;
	*port_be = htons((uint16_t)port);
	return 0;
}

/* "10.0.0.2", or "[fd00::2]" */
static int parse_destination(char *s, struct ax_addr *ret)
{
	size_t len = strlen(s);

	if (*s != '[')
		return addr_parse(s, ret) < 0 || !addr_is_v4(ret) ? -EINVAL : 0;
	if (s[len - 1] != ']')
		return -EINVAL;
	s[len - 1] = '\0';
	return addr_parse(s + 1, ret) < 0 || addr_is_v4(ret) ? -EINVAL : 0;
}

int set_flow_parse(const char *s, struct ax_set_flow *ret)
{
	char copy[FLOW_STRLEN], *source = copy, *destination, *port;

	*ret = (struct ax_set_flow){0};
	if (strlen(s) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, s);
	destination = strchr(copy, '-');
	port = strrchr(copy, ':');
	if (!destination || !port || port < destination)
		return -EINVAL;
	*destination++ = '\0';
	*port++ = '\0';
	if (addr_parse(source, &ret->src) < 0 || parse_destination(destination, &ret->dst) < 0 ||
	    addr_is_v4(&ret->src) != addr_is_v4(&ret->dst))
		return -EINVAL;
	return set_flow_parse_port(port, &ret->proto, &ret->dport_be);
}

char *set_flow_format(const struct ax_set_flow *f, char *buf)
{
	char src[ADDR_STRLEN], dst[ADDR_STRLEN];

	snprintf(buf, FLOW_STRLEN, "%s-%s/%s", addr_format(&f->src, src),
		 addr_port_format(&f->dst, f->dport_be, dst),
		 f->proto == IPPROTO_TCP ? "tcp" : "udp");
	return buf;
}

int set_flow_add(const struct rule_field *row, struct condition *c, const char *item,
		 struct rule_fault *f)
{
	(void)row;
	(void)c;
	(void)item;
	(void)f;
	return -EINVAL;
}
