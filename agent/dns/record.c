// SPDX-License-Identifier: GPL-2.0-or-later
/* The resource records that the zone answers with. */
#include "dns/message.h"

/* Owns the fields from here on; NULL ones (no memory) too. */
static void add(struct dns_reply *r, ldns_pkt_section section, const ldns_rdf *owner,
		ldns_rr_type type, ldns_rdf **fields, size_t n)
{
	ldns_rr *rr = ldns_rr_new();
	ldns_rdf *name = ldns_rdf_clone(owner);
	bool ok = rr && name;

	if (ok) {
		ldns_rr_set_owner(rr, name);
		ldns_rr_set_type(rr, type);
		ldns_rr_set_class(rr, LDNS_RR_CLASS_IN);
		ldns_rr_set_ttl(rr, DNS_TTL_S);
	} else {
		ldns_rdf_deep_free(name);
	}
	for (size_t i = 0; i < n; i++) {
		if (ok && fields[i] && ldns_rr_push_rdf(rr, fields[i]))
			continue;
		ldns_rdf_deep_free(fields[i]);
		ok = false;
	}
	if (ok && ldns_pkt_push_rr(r->pkt, section, rr))
		return;
	ldns_rr_free(rr);
	r->failed = true;
}

void dns_add_address(struct dns_reply *r, ldns_pkt_section s, const ldns_rdf *owner,
		     const struct ax_addr *addr)
{
	bool v4 = addr_is_v4(addr);
	ldns_rdf *f = v4 ? ldns_rdf_new_frm_data(LDNS_RDF_TYPE_A, 4, &addr->w[3])
			 : ldns_rdf_new_frm_data(LDNS_RDF_TYPE_AAAA, 16, addr->b);

	add(r, s, owner, v4 ? LDNS_RR_TYPE_A : LDNS_RR_TYPE_AAAA, &f, 1);
}

void dns_add_srv(struct dns_reply *r, const ldns_rdf *owner, uint16_t port, const ldns_rdf *target)
{
	ldns_rdf *f[] = {
		ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, 0), /* priority */
		ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, 0), /* weight */
		ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, port),
		ldns_rdf_clone(target),
	};

	add(r, LDNS_SECTION_ANSWER, owner, LDNS_RR_TYPE_SRV, f, ARRAY_SIZE(f));
}

void dns_add_name(struct dns_reply *r, const ldns_rdf *owner, ldns_rr_type type,
		  const ldns_rdf *target)
{
	ldns_rdf *f = ldns_rdf_clone(target);

	add(r, LDNS_SECTION_ANSWER, owner, type, &f, 1);
}

/* RFC 8482, section 4.2: what ANY gets instead of everything. */
void dns_add_hinfo(struct dns_reply *r, const ldns_rdf *owner)
{
	static const char cpu[] = "\7RFC8482";
	ldns_rdf *f[] = {
		ldns_rdf_new_frm_data(LDNS_RDF_TYPE_STR, sizeof(cpu) - 1, cpu),
		ldns_rdf_new_frm_data(LDNS_RDF_TYPE_STR, 1, ""),
	};

	add(r, LDNS_SECTION_ANSWER, owner, LDNS_RR_TYPE_HINFO, f, ARRAY_SIZE(f));
}

void dns_add_soa(struct dns_reply *r, ldns_pkt_section s, const ldns_rdf *owner, const char *domain)
{
	ldns_rdf *f[] = {
		dns_name_below("ns.dns", domain),
		dns_name_below("hostmaster", domain),
		ldns_native2rdf_int32(LDNS_RDF_TYPE_INT32, 1),		/* serial */
		ldns_native2rdf_int32(LDNS_RDF_TYPE_PERIOD, 3600),	/* refresh */
		ldns_native2rdf_int32(LDNS_RDF_TYPE_PERIOD, 600),	/* retry */
		ldns_native2rdf_int32(LDNS_RDF_TYPE_PERIOD, 86400),	/* expire */
		ldns_native2rdf_int32(LDNS_RDF_TYPE_PERIOD, DNS_TTL_S), /* of negative answers */
	};

	add(r, s, owner, LDNS_RR_TYPE_SOA, f, ARRAY_SIZE(f));
}

ldns_rdf *dns_name_below(const char *name, const char *domain)
{
	char text[LDNS_MAX_DOMAINLEN + 1];
	int n = snprintf(text, sizeof(text), "%s.%s.", name, domain);

	return n < 0 || (size_t)n >= sizeof(text) ? NULL : ldns_dname_new_frm_str(text);
}
