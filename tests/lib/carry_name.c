// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/carry_name.h"

#include <stdio.h>
#include <string.h>

struct bytes {
	uint8_t *b;
	size_t n;
};

static void put(struct bytes *to, const void *from, size_t n)
{
	memcpy(to->b + to->n, from, n);
	to->n += n;
}

/* A query for an address. */
static void put_dns(struct bytes *to, const char *name)
{
	static const uint8_t head[] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
	static const uint8_t end[] = {0, 0, 1, 0, 1};

	put(to, head, sizeof(head));
	while (*name) {
		uint8_t len = (uint8_t)strcspn(name, ".");

		put(to, &len, 1);
		put(to, name, len);
		name += len + (name[len] == '.');
	}
	put(to, end, sizeof(end));
}

static void put_be16(struct bytes *to, size_t value)
{
	const uint8_t b[] = {(uint8_t)(value >> 8), (uint8_t)value};

	put(to, b, sizeof(b));
}

/* A hello that offers nothing but the name. */
static void put_tls(struct bytes *to, const char *name)
{
	static const uint8_t version[] = {3, 3}, random[32] = {1, 2, 3};
	static const uint8_t none[] = {0, 0, 2, 0x13, 1, 1, 0}; /* session, cipher, compression */
	size_t len = strlen(name), all = 2 + 32 + sizeof(none) + 2 + 9 + len;

	put(to, "\x16\x03\x01", 3);
	put_be16(to, all + 4);
	put(to, "\x01", 2); /* and the upper byte of its length */
	put_be16(to, all);
	put(to, version, sizeof(version));
	put(to, random, sizeof(random));
	put(to, none, sizeof(none));
	put_be16(to, 9 + len);
	put_be16(to, 0);
	put_be16(to, 5 + len);
	put_be16(to, 3 + len);
	put(to, "", 1);
	put_be16(to, len);
	put(to, name, len);
}

static void put_http(struct bytes *to, const char *name)
{
	to->n += (size_t)sprintf((char *)to->b + to->n, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", name);
}

size_t carry_name(enum ax_name_kind kind, const char *name, uint8_t to[CARRIED_MAX])
{
	struct bytes all = {.b = to};

	if (kind == AX_NAME_DNS)
		put_dns(&all, name);
	else if (kind == AX_NAME_TLS)
		put_tls(&all, name);
	else if (kind == AX_NAME_HTTP)
		put_http(&all, name);
	return all.n;
}
