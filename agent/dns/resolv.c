// SPDX-License-Identifier: GPL-2.0-or-later
/* The two files of the system that DNS needs: resolv.conf (as text) and services. */
#include <ctype.h>
#include "dns/message.h"

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The address of one "nameserver ADDRESS" line of `len` bytes. */
static bool nameserver_line(const char *line, size_t len, struct ax_addr *ret)
{
	static const char key[] = "nameserver";
	const char *end = line + len;
	char text[ADDR_STRLEN];
	size_t n = 0;

	while (line < end && blank(*line))
		line++;
	if ((size_t)(end - line) <= sizeof(key) - 1 || memcmp(line, key, sizeof(key) - 1) != 0)
		return false;
	line += sizeof(key) - 1;
	if (!blank(*line))
		return false;
	while (line < end && blank(*line))
		line++;
	while (line < end && !blank(*line) && *line != '#' && *line != ';') {
		if (n == sizeof(text) - 1)
			return false;
		text[n++] = *line++;
	}
	text[n] = 0;
	return addr_parse(text, ret) == 0;
}

size_t dns_upstreams_from_resolv_conf(const char *text, struct dns_upstream *ret, size_t max)
{
	size_t n = 0;

	while (*text && n < max) {
		size_t len = strcspn(text, "\n");

		if (nameserver_line(text, len, &ret[n].addr))
			ret[n++].port_be = htons(DNS_PORT);
		text += len + (text[len] == '\n');
	}
	return n;
}

/* "name port/proto alias ..." */
static int service_line(char *line, const char *name, const char *proto)
{
	static const char sep[] = " \t\r\n";
	char *save, *word, *port;
	bool match;

	line[strcspn(line, "#")] = 0;
	word = strtok_r(line, sep, &save);
	port = strtok_r(NULL, "/", &save);
	if (!word || !port)
		return -ENOENT;
	match = strcasecmp(word, name) == 0;
	word = strtok_r(NULL, sep, &save);
	if (!word || !streq(word, proto))
		return -ENOENT;
	while (!match && (word = strtok_r(NULL, sep, &save)))
		match = strcasecmp(word, name) == 0;
	port += strspn(port, sep);
	return match ? port_parse(port) : -ENOENT;
}

/*
 * Not getservbyname(): NSS may ask a server over the network, which would hold up the one thread
 * that everything runs in, and a static binary would have to load NSS modules.
 */
int dns_service_port(const char *name, uint8_t proto)
{
	autofile FILE *f = fopen("/etc/services", "re");
	autofree char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) >= 0) {
		int port = service_line(line, name, proto == IPPROTO_TCP ? "tcp" : "udp");

		if (port > 0)
			return port;
	}
	return -ENOENT;
}
