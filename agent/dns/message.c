// SPDX-License-Identifier: GPL-2.0-or-later
/* Queries to answers: headers, EDNS and sizes. What a name means is in zone.c. */
#include "dns/message.h"

#define RCODE_BADVERS 16 /* RFC 6891: its upper bits travel in the OPT record */

static void question_free(struct dns_question *q)
{
	ldns_rr_free(q->rr);
	ldns_rdf_deep_free(q->lower);
}

static void buffer_free(ldns_buffer **b)
{
	if (*b)
		ldns_buffer_free(*b);
}

static void pkt_free(ldns_pkt **p)
{
	ldns_pkt_free(*p);
}

static void rr_free(ldns_rr **rr)
{
	ldns_rr_free(*rr);
}

void dns_labels_of(const ldns_rdf *name, struct dns_labels *ret)
{
	const uint8_t *p = ldns_rdf_data(name);
	size_t len = ldns_rdf_size(name);

	ret->n = 0;
	for (size_t at = 0; at < len && p[at] && ret->n < DNS_LABELS_MAX; at += 1u + p[at])
		ret->l[ret->n++] = p + at;
}

static int question_read(const uint8_t *msg, size_t len, size_t *pos, ldns_rr **ret)
{
	*ret = NULL;
	*pos = DNS_HEADER_LEN;
	if (ldns_wire2rr(ret, msg, len, pos, LDNS_SECTION_QUESTION) == LDNS_STATUS_OK)
		return 0;
	*ret = NULL;
	return -EINVAL;
}

static int edns_read(struct dns_question *q, const ldns_rr *opt)
{
	uint32_t ttl = ldns_rr_ttl(opt);

	if (q->edns || ldns_rdf_size(ldns_rr_owner(opt)) != 1)
		return -EINVAL; /* one, and its owner is the root */
	q->edns = true;
	q->udp_size = (uint16_t)ldns_rr_get_class(opt);
	q->edns_version = (uint8_t)(ttl >> 16);
	q->dnssec_ok = ttl & 0x8000;
	return 0;
}

/*
 * The question and, of what follows, the OPT record. Records are read one by one: ldns_wire2pkt()
 * loses memory when OPT or TSIG come twice, and follows any number of records and pointers.
 */
static int question_parse(const uint8_t *msg, size_t len, struct dns_question *q)
{
	unsigned additional = dns_get16(msg + 10);
	size_t pos;
	int r;

	/* Nothing but OPT and TSIG belongs behind a question. */
	if (dns_get16(msg + 4) != 1 || dns_get16(msg + 6) || dns_get16(msg + 8) || additional > 2)
		return -EINVAL;
	r = question_read(msg, len, &pos, &q->rr);
	if (r < 0)
		return r;
	while (additional--) {
		CLEANUP(rr_free) ldns_rr *rr = NULL;

		if (ldns_wire2rr(&rr, msg, len, &pos, LDNS_SECTION_ADDITIONAL) != LDNS_STATUS_OK) {
			rr = NULL;
			return -EINVAL;
		}
		if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_OPT && edns_read(q, rr) < 0)
			return -EINVAL;
	}
	q->type = ldns_rr_get_type(q->rr);
	q->lower = ldns_rdf_clone(ldns_rr_owner(q->rr));
	if (!q->lower)
		return -ENOMEM;
	ldns_dname2canonical(q->lower);
	dns_labels_of(q->lower, &q->name);
	return 0;
}

static int reply_init(struct dns_reply *r, const uint8_t *query, const struct dns_question *q)
{
	ldns_rr *rr;

	r->pkt = ldns_pkt_new();
	if (!r->pkt)
		return -ENOMEM;
	ldns_pkt_set_id(r->pkt, dns_get16(query));
	ldns_pkt_set_qr(r->pkt, true);
	ldns_pkt_set_opcode(r->pkt, (ldns_pkt_opcode)(query[2] >> 3 & 15));
	ldns_pkt_set_rd(r->pkt, query[2] & 1);
	ldns_pkt_set_cd(r->pkt, query[3] & 0x10);
	ldns_pkt_set_ra(r->pkt, true);
	if (!q->lower)
		return 0; /* it could not be read: there is none to repeat */
	rr = ldns_rr_clone(q->rr);
	if (!rr || !ldns_pkt_push_rr(r->pkt, LDNS_SECTION_QUESTION, rr)) {
		ldns_rr_free(rr);
		return -ENOMEM;
	}
	if (q->edns) {
		ldns_pkt_set_edns_udp_size(r->pkt, DNS_UDP_MAX);
		ldns_pkt_set_edns_do(r->pkt, q->dnssec_ok);
	}
	return 0;
}

static bool section_pop(ldns_pkt *pkt, ldns_pkt_section s, ldns_rr_list *list)
{
	uint16_t n = ldns_pkt_section_count(pkt, s);

	if (!n)
		return false;
	ldns_rr_free(ldns_rr_list_pop_rr(list));
	ldns_pkt_set_section_count(pkt, s, (uint16_t)(n - 1));
	return true;
}

/* Drops the least wanted record; only a missing answer is worth a second try by TCP. */
static bool reply_shorten(ldns_pkt *pkt)
{
	if (section_pop(pkt, LDNS_SECTION_ADDITIONAL, ldns_pkt_additional(pkt)) ||
	    section_pop(pkt, LDNS_SECTION_AUTHORITY, ldns_pkt_authority(pkt)))
		return true;
	if (!section_pop(pkt, LDNS_SECTION_ANSWER, ldns_pkt_answer(pkt)))
		return false;
	ldns_pkt_set_tc(pkt, true);
	return true;
}

static int reply_write(const struct dns_reply *r, uint8_t *out, size_t limit)
{
	if (r->failed)
		return -ENOMEM;
	do {
		CLEANUP(buffer_free) ldns_buffer *b = ldns_buffer_new(LDNS_MIN_BUFLEN);
		size_t len;

		if (!b || ldns_pkt2buffer_wire(b, r->pkt) != LDNS_STATUS_OK)
			return -ENOMEM;
		len = ldns_buffer_position(b);
		if (len <= limit) {
			memcpy(out, ldns_buffer_begin(b), len);
			return (int)len;
		}
	} while (reply_shorten(r->pkt));
	return -EMSGSIZE;
}

static size_t reply_limit(const struct dns_question *q, size_t out_size, size_t max_udp)
{
	size_t limit = LDNS_MAX_PACKETLEN;

	if (max_udp) {
		limit = q->edns && q->udp_size > 512 ? q->udp_size : 512;
		if (limit > DNS_UDP_MAX)
			limit = DNS_UDP_MAX;
		if (limit > max_udp)
			limit = max_udp;
	}
	return limit < out_size ? limit : out_size;
}

/* What is wrong with a query before its name is looked at; LDNS_RCODE_NOERROR: nothing. */
static ldns_pkt_rcode query_check(const struct dns_question *q, struct dns_reply *r)
{
	if (q->edns_version) {
		ldns_pkt_set_edns_extended_rcode(r->pkt, RCODE_BADVERS >> 4);
		return (ldns_pkt_rcode)(RCODE_BADVERS & 15);
	}
	if (ldns_rr_get_class(q->rr) != LDNS_RR_CLASS_IN)
		return LDNS_RCODE_NOTIMPL;
	/* Transfers are many messages, which nobody gets from here or through here. */
	if (q->type == LDNS_RR_TYPE_AXFR || q->type == LDNS_RR_TYPE_IXFR)
		return LDNS_RCODE_REFUSED;
	return LDNS_RCODE_NOERROR;
}

int dns_answer(const struct dns_zone *zone, const uint8_t *query, size_t len, uint8_t *out,
	       size_t out_size, size_t max_udp)
{
	CLEANUP(question_free) struct dns_question q = {};
	CLEANUP(pkt_free) ldns_pkt *pkt = NULL;
	struct dns_reply r = {};
	ldns_pkt_rcode rcode = LDNS_RCODE_NOERROR;
	int err;

	if (len < DNS_HEADER_LEN || query[2] & 0x80)
		return -EBADMSG;
	if (query[2] & 0x78) {
		rcode = LDNS_RCODE_NOTIMPL;
	} else {
		err = question_parse(query, len, &q);
		if (err == -ENOMEM)
			return err;
		if (err < 0)
			rcode = LDNS_RCODE_FORMERR;
	}
	err = reply_init(&r, query, &q);
	pkt = r.pkt;
	if (err < 0)
		return err;
	if (q.lower && rcode == LDNS_RCODE_NOERROR) {
		rcode = query_check(&q, &r);
		if (rcode == LDNS_RCODE_NOERROR && !q.edns_version) {
			if (!dns_zone_answer(zone, &q, &r))
				return 0;
			rcode = ldns_pkt_get_rcode(pkt);
		}
	}
	ldns_pkt_set_rcode(pkt, (uint8_t)rcode);
	return reply_write(&r, out, reply_limit(&q, out_size, max_udp));
}

int dns_answer_error(const uint8_t *query, size_t len, ldns_pkt_rcode rcode, uint8_t *out,
		     size_t out_size)
{
	CLEANUP(question_free) struct dns_question q = {};
	CLEANUP(pkt_free) ldns_pkt *pkt = NULL;
	struct dns_reply r = {};
	int err;

	if (len < DNS_HEADER_LEN)
		return -EBADMSG;
	err = question_parse(query, len, &q);
	if (err < 0)
		return err == -ENOMEM ? err : -EBADMSG;
	err = reply_init(&r, query, &q);
	pkt = r.pkt;
	if (err < 0)
		return err;
	ldns_pkt_set_rcode(pkt, (uint8_t)rcode);
	return reply_write(&r, out, reply_limit(&q, out_size, 0));
}

bool dns_may_come(const struct dns_zone *zone, const uint8_t *query, size_t len,
		  char name[DNS_NAME_MAX], bool *alone)
{
	CLEANUP(question_free) struct dns_question q = {};

	/* a plain query: whatever else it is gets its answer at once */
	return len >= DNS_HEADER_LEN && !(query[2] & 0xf8) && question_parse(query, len, &q) == 0 &&
	       !q.edns_version && ldns_rr_get_class(q.rr) == LDNS_RR_CLASS_IN &&
	       q.type != LDNS_RR_TYPE_AXFR && q.type != LDNS_RR_TYPE_IXFR &&
	       dns_zone_may_come(zone, &q, name, alone);
}

bool dns_asks_single_label(const uint8_t *query, size_t len)
{
	CLEANUP(question_free) struct dns_question q = {};

	return len >= DNS_HEADER_LEN && question_parse(query, len, &q) == 0 && q.name.n == 1;
}

bool dns_is_answer_to(const uint8_t *query, size_t len, const uint8_t *answer, size_t answer_len)
{
	CLEANUP(rr_free) ldns_rr *asked = NULL;
	CLEANUP(rr_free) ldns_rr *answered = NULL;
	size_t pos;

	if (len < DNS_HEADER_LEN || answer_len < DNS_HEADER_LEN || !(answer[2] & 0x80) ||
	    dns_get16(query) != dns_get16(answer))
		return false;
	/* Servers that could not or would not read the question may leave it out. */
	if (!dns_get16(answer + 4)) {
		ldns_pkt_rcode rcode = (ldns_pkt_rcode)(answer[3] & 15);

		return rcode != LDNS_RCODE_NOERROR && rcode != LDNS_RCODE_NXDOMAIN;
	}
	return dns_get16(answer + 4) == 1 && question_read(query, len, &pos, &asked) == 0 &&
	       question_read(answer, answer_len, &pos, &answered) == 0 &&
	       ldns_rr_get_type(asked) == ldns_rr_get_type(answered) &&
	       ldns_rr_get_class(asked) == ldns_rr_get_class(answered) &&
	       ldns_dname_compare(ldns_rr_owner(asked), ldns_rr_owner(answered)) == 0;
}
