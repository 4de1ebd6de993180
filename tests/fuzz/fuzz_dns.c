// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as a query, by UDP and by TCP: what comes back is either nothing or an answer that
 * fits, carries the query's ID and can be read. The same bytes, cut in two, as an upstream's answer
 * to a query, and as a resolv.conf.
 */
#include <ldns/ldns.h>

#include "dns/message.h"
#include "tests/lib/dns_zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int cond)
{
	if (!cond)
		abort();
}

static void check_answer(const uint8_t *query, const uint8_t *out, size_t len, size_t limit)
{
	ldns_pkt *pkt = NULL;

	check(len >= DNS_HEADER_LEN && len <= limit);
	check(dns_get16(out) == dns_get16(query) && out[2] & 0x80);
	check(ldns_wire2pkt(&pkt, out, len) == LDNS_STATUS_OK);
	ldns_pkt_free(pkt);
}

static void ask(const uint8_t *query, size_t len, size_t max_udp)
{
	static uint8_t out[65535];
	struct dns_zone zone = test_zone("ax.internal");
	char name[DNS_NAME_MAX];
	bool alone;
	int n;

	zone.ns4 = test_addr("127.0.0.9");
	n = dns_answer(&zone, query, len, out, sizeof(out), max_udp);
	/* what may be waited for is a question, and nobody's name */
	if (dns_may_come(&zone, query, len, name, &alone))
		check(*name && n >= 0 && (alone ? n == 0 : n > 0 && (out[3] & 15) == 3));
	if (n > 0) {
		check_answer(query, out, (size_t)n, max_udp ? max_udp : sizeof(out));
	} else if (n == 0) {
		/* what is forwarded can be answered with an error, in 512 bytes */
		n = dns_answer_error(query, len, LDNS_RCODE_SERVFAIL, out, 512);
		check(n > 0);
		check_answer(query, out, (size_t)n, 512);
		check(dns_is_answer_to(query, len, out, (size_t)n));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_upstream u[3];
	size_t half = size / 2;
	char *text;

	ask(data, size, DNS_UDP_MAX);
	ask(data, size, 0);
	dns_asks_single_label(data, size);
	dns_is_answer_to(data, half, data + half, size - half);
	text = strndup((const char *)data, size);
	if (!text)
		return 0;
	check(dns_upstreams_from_resolv_conf(text, u, ARRAY_SIZE(u)) <= ARRAY_SIZE(u));
	free(text);
	return 0;
}
