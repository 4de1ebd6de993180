// SPDX-License-Identifier: GPL-2.0-or-later
/* What an upstream's answer says of the name that was asked for: for those who want to know which
 * addresses belong to it. Answers come from elsewhere: whatever they hold, only the records are
 * taken that the question leads to. */
#include <arpa/inet.h>

#include "dns/message.h"
#include "base/domain.h"

#define RECORDS_MAX 512 /* that are looked at */
#define CNAMES_MAX  16	/* in a row */

struct records {
	ldns_rr *v[RECORDS_MAX];
	size_t n;
};

static void records_free(struct records *r)
{
	for (size_t i = 0; i < r->n; i++)
		ldns_rr_free(r->v[i]);
}

static void rr_free(ldns_rr **rr)
{
	ldns_rr_free(*rr);
}

/* Bytes that need no look at what stands around them: no dot within a label, no zero. */
static bool name_of(const ldns_rdf *rdf, char ret[DOMAIN_STRLEN])
{
	char text[DOMAIN_STRLEN];
	struct dns_labels l;
	size_t at = 0;

	dns_labels_of(rdf, &l);
	for (size_t i = 0; i < l.n; i++) {
		size_t len = l.l[i][0];

		if (at + len + 1 >= sizeof(text) || memchr(l.l[i] + 1, '.', len) ||
		    memchr(l.l[i] + 1, 0, len))
			return false;
		memcpy(text + at, l.l[i] + 1, len);
		at += len;
		text[at++] = '.';
	}
	text[at] = 0;
	return at && !want_domain(text, false, ret);
}

bool dns_asked_name(const uint8_t *query, size_t len, char ret[DOMAIN_STRLEN])
{
	CLEANUP(rr_free) ldns_rr *rr = NULL;
	size_t pos = DNS_HEADER_LEN;

	if (len < DNS_HEADER_LEN || dns_get16(query + 4) != 1)
		return false;
	if (ldns_wire2rr(&rr, query, len, &pos, LDNS_SECTION_QUESTION) != LDNS_STATUS_OK) {
		rr = NULL;
		return false;
	}
	return ldns_rr_get_class(rr) == LDNS_RR_CLASS_IN && name_of(ldns_rr_owner(rr), ret);
}

static bool wanted(const ldns_rr *rr)
{
	ldns_rr_type t = ldns_rr_get_type(rr);

	return ldns_rr_get_class(rr) == LDNS_RR_CLASS_IN && ldns_rr_rd_count(rr) == 1 &&
	       (t == LDNS_RR_TYPE_A || t == LDNS_RR_TYPE_AAAA || t == LDNS_RR_TYPE_CNAME);
}

/* A broken record ends it: those before it are good. */
static void read_records(const uint8_t *msg, size_t len, size_t pos, struct records *ret)
{
	unsigned n = dns_get16(msg + 6);

	for (unsigned i = 0; i < n && ret->n < RECORDS_MAX; i++) {
		ldns_rr *rr = NULL;

		if (ldns_wire2rr(&rr, msg, len, &pos, LDNS_SECTION_ANSWER) != LDNS_STATUS_OK)
			return;
		if (wanted(rr))
			ret->v[ret->n++] = rr;
		else
			ldns_rr_free(rr);
	}
}

/* The name behind all CNAMEs that lead from `name`; *ttl is the shortest on the way. */
static const ldns_rdf *follow(const struct records *r, const ldns_rdf *name, uint32_t *ttl)
{
	for (int hops = 0; hops < CNAMES_MAX; hops++) {
		const ldns_rr *next = NULL;

		for (size_t i = 0; i < r->n && !next; i++)
			if (ldns_rr_get_type(r->v[i]) == LDNS_RR_TYPE_CNAME &&
			    ldns_dname_compare(ldns_rr_owner(r->v[i]), name) == 0)
				next = r->v[i];
		if (!next)
			return name;
		if (ldns_rr_ttl(next) < *ttl)
			*ttl = ldns_rr_ttl(next);
		name = ldns_rr_rdf(next, 0);
	}
	return NULL;
}

static bool address_of(const ldns_rr *rr, struct ax_addr *ret)
{
	const ldns_rdf *rdf = ldns_rr_rdf(rr, 0);
	struct in6_addr v6;
	__be32 v4;

	if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_A && ldns_rdf_size(rdf) == sizeof(v4)) {
		memcpy(&v4, ldns_rdf_data(rdf), sizeof(v4));
		*ret = addr_from_v4(v4);
		return true;
	}
	if (ldns_rr_get_type(rr) != LDNS_RR_TYPE_AAAA || ldns_rdf_size(rdf) != sizeof(v6))
		return false;
	memcpy(&v6, ldns_rdf_data(rdf), sizeof(v6));
	*ret = addr_from_v6(&v6);
	return true;
}

size_t dns_answer_addresses(const uint8_t *msg, size_t len, char name[DOMAIN_STRLEN],
			    struct dns_learnt *ret, size_t max)
{
	CLEANUP(rr_free) ldns_rr *asked = NULL;
	CLEANUP(records_free) struct records r = {.n = 0};
	size_t pos = DNS_HEADER_LEN, n = 0;
	uint32_t ttl = UINT32_MAX;
	const ldns_rdf *owner;

	if (len < DNS_HEADER_LEN || !(msg[2] & 0x80) || (msg[3] & 15) || dns_get16(msg + 4) != 1)
		return 0;
	if (ldns_wire2rr(&asked, msg, len, &pos, LDNS_SECTION_QUESTION) != LDNS_STATUS_OK) {
		asked = NULL;
		return 0;
	}
	if (!name_of(ldns_rr_owner(asked), name))
		return 0;
	read_records(msg, len, pos, &r);
	owner = follow(&r, ldns_rr_owner(asked), &ttl);
	for (size_t i = 0; owner && i < r.n && n < max; i++) {
		uint32_t own = ldns_rr_ttl(r.v[i]);

		if (ldns_dname_compare(ldns_rr_owner(r.v[i]), owner) == 0 &&
		    address_of(r.v[i], &ret[n].addr))
			ret[n++].ttl_s = own < ttl ? own : ttl;
	}
	return n;
}
