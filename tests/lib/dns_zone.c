// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/dns_zone.h"

#include <arpa/inet.h>
#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct ax_addr test_addr(const char *text)
{
	struct ax_addr a = {};

	if (addr_parse(text, &a) < 0)
		abort();
	return a;
}

static bool test_lookup(void *arg, const char *name, struct dns_name_info *ret)
{
	(void)arg;
	*ret = (struct dns_name_info){};
	if (streq(name, "web")) {
		ret->ip4 = test_addr("10.9.0.1");
		ret->ip6 = test_addr("fd00::1");
		ret->srv[0] = (struct dns_srv){IPPROTO_TCP, 80};
		ret->srv[1] = (struct dns_srv){IPPROTO_TCP, 8080};
		ret->srv[2] = (struct dns_srv){IPPROTO_UDP, 5353};
		ret->n_srv = 3;
	} else if (streq(name, "web.west")) {
		ret->ip4 = test_addr("10.9.0.7");
		ret->srv[0] = (struct dns_srv){IPPROTO_TCP, 80};
		ret->n_srv = 1;
	} else if (streq(name, "four")) {
		ret->ip4 = test_addr("10.9.0.4");
	} else if (streq(name, "six")) {
		ret->ip6 = test_addr("fd00::6");
	} else if (streq(name, LONG_NAME)) {
		ret->ip4 = test_addr("10.9.0.5");
		for (ret->n_srv = 0; ret->n_srv < ARRAY_SIZE(ret->srv); ret->n_srv++)
			ret->srv[ret->n_srv] =
				(struct dns_srv){IPPROTO_TCP, (uint16_t)(1000 + ret->n_srv)};
	} else {
		return false;
	}
	return true;
}

static bool test_encloses(void *arg, const char *label)
{
	(void)arg;
	return streq(label, "west");
}

static bool test_reverse(void *arg, const struct ax_addr *addr, char name[DNS_NAME_MAX])
{
	static const char *const known[][2] = {
		{"10.9.0.1", "web"}, {"fd00::1", "web"}, {"10.9.0.4", "four"}, {"fd00::6", "six"}};

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct ax_addr a = test_addr(known[i][0]);

		if (!addr_eq(addr, &a))
			continue;
		strcpy(name, known[i][1]);
		return true;
	}
	return false;
}

static bool test_owns(void *arg, const struct ax_addr *addr)
{
	struct ax_addr v4 = test_addr("10.9.0.0"), v6 = test_addr("fd00::");

	(void)arg;
	return memcmp(addr, &v4, 14) == 0 || memcmp(addr, &v6, 8) == 0;
}

struct dns_zone test_zone(const char *domain)
{
	return (struct dns_zone){.domain = domain,
				 .lookup = test_lookup,
				 .encloses = test_encloses,
				 .reverse = test_reverse,
				 .owns = test_owns};
}

void test_put16(struct test_query *q, unsigned v)
{
	q->b[q->len++] = (uint8_t)(v >> 8);
	q->b[q->len++] = (uint8_t)v;
}

void test_put_name(struct test_query *q, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		q->b[q->len++] = (uint8_t)n;
		memcpy(q->b + q->len, name, n);
		q->len += n;
		name += n + (name[n] == '.');
	}
	q->b[q->len++] = 0;
}

struct test_query test_query(uint16_t id, const char *name, unsigned type)
{
	struct test_query q = {};

	test_put16(&q, id);
	test_put16(&q, 0x0100); /* RD */
	test_put16(&q, 1);
	test_put16(&q, 0);
	test_put16(&q, 0);
	test_put16(&q, 0);
	test_put_name(&q, name);
	test_put16(&q, type);
	test_put16(&q, LDNS_RR_CLASS_IN);
	return q;
}

void test_add_opt(struct test_query *q, unsigned size, unsigned version, bool dnssec)
{
	q->b[11]++;
	test_put_name(q, "");
	test_put16(q, LDNS_RR_TYPE_OPT);
	test_put16(q, size);
	test_put16(q, version);
	test_put16(q, dnssec ? 0x8000 : 0);
	test_put16(q, 0);
}
