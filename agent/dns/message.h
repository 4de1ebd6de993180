/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the DNS files share about messages: the parsed question and the answer in the making. */
#ifndef AX_DNS_MESSAGE_H
#define AX_DNS_MESSAGE_H

#include "base/domain.h"
#include "dns/dns.h"
/* After stdbool.h: without it ldns makes bool a signed char, in this file alone. */
#include <ldns/ldns.h>

#define DNS_HEADER_LEN 12
#define DNS_LABELS_MAX 128 /* 255 bytes hold 127 labels and the root */

/* A name's labels, each a length byte and its bytes, pointing into somebody's wire-format name. */
struct dns_labels {
	const uint8_t *l[DNS_LABELS_MAX];
	size_t n;
};
void dns_labels_of(const ldns_rdf *name, struct dns_labels *ret);

struct dns_question {
	ldns_rr *rr;	 /* as it was asked: the answer echoes its case */
	ldns_rdf *lower; /* its name in lower case, into which `name` points */
	struct dns_labels name;
	ldns_rr_type type;
	bool edns;
	bool dnssec_ok;
	uint8_t edns_version;
	uint16_t udp_size;
};

struct dns_reply {
	ldns_pkt *pkt;
	bool failed; /* no memory for a part of it */
};

/* Answers from the zone into an empty reply. False: the name is not the zone's, forward it. */
bool dns_zone_answer(const struct dns_zone *zone, const struct dns_question *q,
		     struct dns_reply *r);

/* Records, all of class IN; they set r->failed when there is no memory. `below` is a domain
 * without dots at the ends. */
void dns_add_address(struct dns_reply *r, ldns_pkt_section s, const ldns_rdf *owner,
		     const struct ax_addr *addr);
void dns_add_srv(struct dns_reply *r, const ldns_rdf *owner, uint16_t port, const ldns_rdf *target);
void dns_add_name(struct dns_reply *r, const ldns_rdf *owner, ldns_rr_type type,
		  const ldns_rdf *target);
void dns_add_hinfo(struct dns_reply *r, const ldns_rdf *owner);
void dns_add_soa(struct dns_reply *r, ldns_pkt_section s, const ldns_rdf *owner,
		 const char *domain);
/* NULL: no memory, or not a name. */
ldns_rdf *dns_name_below(const char *name, const char *domain);

bool dns_zone_ready(const struct dns_zone *zone, const char *name);
/* Whether the query asks for what an app may yet be called, which none that is ready is. *alone:
 * without a domain, so that others may know it. */
bool dns_may_come(const struct dns_zone *zone, const uint8_t *query, size_t len,
		  char name[DNS_NAME_MAX], bool *alone);
bool dns_zone_may_come(const struct dns_zone *zone, const struct dns_question *q,
		       char name[DNS_NAME_MAX], bool *alone);

/* The port that a service name such as "http" stands for, -ENOENT when it is not known. */
int dns_service_port(const char *name, uint8_t proto);

/* The name that a query asks for, as want_domain() makes it. False: it is none that can be written
 * so. */
bool dns_asked_name(const uint8_t *query, size_t len, char ret[DOMAIN_STRLEN]);
/* The addresses that an answer gives for the name it was asked for, by way of its CNAMEs. Returns
 * how many are in ret. */
size_t dns_answer_addresses(const uint8_t *msg, size_t len, char name[DOMAIN_STRLEN],
			    struct dns_learnt *ret, size_t max);

/* An answer without records to a query that dns_answer() wanted forwarded. Returns as it does. */
int dns_answer_error(const uint8_t *query, size_t len, ldns_pkt_rcode rcode, uint8_t *out,
		     size_t out_size);
/* True when the query asks for a name of one label. */
bool dns_asks_single_label(const uint8_t *query, size_t len);
/* True when `answer` is a response to this very query (ID and question). */
bool dns_is_answer_to(const uint8_t *query, size_t len, const uint8_t *answer, size_t answer_len);

static inline uint16_t dns_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}
static inline void dns_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

#endif
