/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The zone that the DNS tests and the fuzz target ask, and the queries they ask it. */
#ifndef AX_TESTS_DNS_ZONE_H
#define AX_TESTS_DNS_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dns/dns.h"

#define LONG_NAME "a-name-of-sixty-bytes-so-that-sixteen-ports-of-it-do-not-fit"

struct ax_addr test_addr(const char *text);

/* web, four, six and LONG_NAME in a domain, which is not copied. */
struct dns_zone test_zone(const char *domain);

struct test_query {
	uint8_t b[600];
	size_t len;
};

/* Big-endian, at the end. */
void test_put16(struct test_query *q, unsigned v);

/* The wire form of a dotted name without a dot at its end; "" is the root. */
void test_put_name(struct test_query *q, const char *name);

/* A question of one name; type is a number of LDNS_RR_TYPE_. */
struct test_query test_query(uint16_t id, const char *name, unsigned type);

/* EDNS: the size of answers that are taken, its version, and the bit DO. */
void test_add_opt(struct test_query *q, unsigned size, unsigned version, bool dnssec);

#endif
