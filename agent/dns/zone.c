// SPDX-License-Identifier: GPL-2.0-or-later
/* What the names of the zone mean: addresses, SRV, PTR, and the zone's own records. */
#include <ctype.h>
#include "dns/message.h"

static void rdf_free(ldns_rdf **f)
{
	ldns_rdf_deep_free(*f);
}

static bool label_is(const uint8_t *label, const char *text)
{
	size_t len = strlen(text);

	return label[0] == len && memcmp(label + 1, text, len) == 0;
}

/* The label as a string of at most 63 bytes; false when it has bytes that no app's name has. */
static bool label_text(const uint8_t *label, char *text)
{
	for (unsigned i = 1; i <= label[0]; i++) {
		if (!isalnum(label[i]) && label[i] != '-' && label[i] != '_')
			return false;
	}
	memcpy(text, label + 1, label[0]);
	text[label[0]] = 0;
	return true;
}

/* Which protocol "_tcp" or "_udp" stands for, 0: neither. */
static uint8_t label_proto(const uint8_t *label)
{
	return label_is(label, "_tcp") ? IPPROTO_TCP : label_is(label, "_udp") ? IPPROTO_UDP : 0;
}

/* How many labels q's name has above `domain`, -1 when it does not end in it. */
static int labels_above(const struct dns_question *q, const char *domain)
{
	CLEANUP(rdf_free) ldns_rdf *d = ldns_dname_new_frm_str(domain);
	struct dns_labels l;
	size_t above;

	if (!d)
		return -1;
	dns_labels_of(d, &l);
	if (q->name.n < l.n)
		return -1;
	above = q->name.n - l.n;
	for (size_t i = 0; i < l.n; i++) {
		const uint8_t *a = q->name.l[above + i];

		if (a[0] != l.l[i][0] || memcmp(a, l.l[i], 1u + a[0]) != 0)
			return -1;
	}
	return (int)above;
}

/* Every negative answer, and one without the type asked for, carries the SOA of what encloses the
 * name: the last `n` of its labels. */
static void add_authority(struct dns_reply *r, const struct dns_question *q, size_t n,
			  const char *domain)
{
	CLEANUP(rdf_free)
	ldns_rdf *owner = ldns_dname_clone_from(q->lower, (uint16_t)(q->name.n - n));

	if (!owner) {
		r->failed = true;
		return;
	}
	dns_add_soa(r, LDNS_SECTION_AUTHORITY, owner, domain);
}

static void add_addresses(struct dns_reply *r, ldns_pkt_section s, const ldns_rdf *owner,
			  ldns_rr_type type, const struct dns_name_info *info)
{
	if ((type == LDNS_RR_TYPE_A || type == LDNS_RR_TYPE_ANY) && !addr_is_zero(&info->ip4))
		dns_add_address(r, s, owner, &info->ip4);
	if ((type == LDNS_RR_TYPE_AAAA || type == LDNS_RR_TYPE_ANY) && !addr_is_zero(&info->ip6))
		dns_add_address(r, s, owner, &info->ip6);
}

/* The port that a service label ("_8080", "_http") asks for; 0: all of them. */
static uint16_t wanted_port(const uint8_t *label, uint8_t proto)
{
	char text[DNS_NAME_MAX];
	int port;

	if (!label_text(label, text) || text[0] != '_')
		return 0;
	port = port_parse(text + 1);
	if (port < 0)
		port = dns_service_port(text + 1, proto);
	return port < 0 ? 0 : (uint16_t)port;
}

static void answer_srv(const struct dns_zone *zone, const struct dns_question *q, const char *name,
		       const struct dns_name_info *info, struct dns_reply *r)
{
	CLEANUP(rdf_free) ldns_rdf *target = dns_name_below(name, zone->domain);
	uint8_t proto = label_proto(q->name.l[1]);
	uint16_t port = wanted_port(q->name.l[0], proto);
	bool found = false;

	if (!target) {
		r->failed = true;
		return;
	}
	for (size_t i = 0; i < info->n_srv; i++) {
		if (info->srv[i].proto != proto || (port && info->srv[i].port != port))
			continue;
		dns_add_srv(r, ldns_rr_owner(q->rr), info->srv[i].port, target);
		found = true;
	}
	if (found)
		add_addresses(r, LDNS_SECTION_ADDITIONAL, target, LDNS_RR_TYPE_ANY, info);
}

/* What a name below the domain, or one by itself, is. */
enum name_kind {
	NAME_UNKNOWN,
	NAME_HOST,    /* has addresses */
	NAME_SERVICE, /* _port._proto.host */
	NAME_EMPTY,   /* exists only because names below it do */
};

struct name {
	enum name_kind kind;
	char host[DNS_NAME_MAX];
	size_t labels; /* of the host */
	struct dns_name_info info;
};

/* A name of one label or of two as a string; false when it is none, or too long. */
static bool host_text(const uint8_t *const *l, size_t n, char text[DNS_NAME_MAX])
{
	char last[DNS_NAME_MAX];
	size_t len;

	if (!label_text(l[0], text) || n == 1)
		return n == 1;
	len = strlen(text);
	if (!label_text(l[1], last) || len + 1 + strlen(last) >= DNS_NAME_MAX)
		return false;
	text[len] = '.';
	strcpy(text + len + 1, last);
	return true;
}

/* What these labels are above a host's. */
static enum name_kind kind_above(const struct dns_zone *zone, const uint8_t *const *l, size_t n,
				 struct name *ret)
{
	if (n == 0)
		return NAME_HOST;
	if (n == 1 && label_proto(l[0]))
		return NAME_EMPTY;
	if (n != 2 || !label_proto(l[1]) || l[0][0] < 2 || l[0][1] != '_')
		return NAME_UNKNOWN;
	if (zone->ports)
		zone->ports(zone->arg, ret->host, &ret->info);
	return NAME_SERVICE;
}

static enum name_kind name_find(const struct dns_zone *zone, const struct dns_question *q, size_t n,
				struct name *ret)
{
	const uint8_t *const *l = q->name.l;
	enum name_kind kind = NAME_UNKNOWN;

	for (size_t own = 1; own <= 2 && own <= n && !kind; own++)
		if (n <= own + 2 && host_text(l + n - own, own, ret->host) &&
		    zone->lookup(zone->arg, ret->host, &ret->info)) {
			ret->labels = own;
			kind = kind_above(zone, l, n - own, ret);
		}
	if (!kind && n == 1 && zone->encloses && label_text(l[0], ret->host) &&
	    zone->encloses(zone->arg, ret->host))
		kind = NAME_EMPTY;
	return kind;
}

/* ns.dns.<domain>, the server itself: no cluster is called dns. */
static enum name_kind name_own(const struct dns_zone *zone, const struct dns_question *q, size_t n,
			       struct name *ret)
{
	const uint8_t *const *l = q->name.l;

	if (n == 1 && label_is(l[0], "dns"))
		return NAME_EMPTY;
	if (n != 2 || !label_is(l[0], "ns") || !label_is(l[1], "dns"))
		return NAME_UNKNOWN;
	ret->info = (struct dns_name_info){.ip4 = zone->ns4, .ip6 = zone->ns6};
	return NAME_HOST;
}

static void answer_name(const struct dns_zone *zone, const struct dns_question *q,
			const struct name *name, struct dns_reply *r)
{
	const ldns_rdf *owner = ldns_rr_owner(q->rr);

	if (q->type == LDNS_RR_TYPE_ANY)
		dns_add_hinfo(r, owner);
	else if (name->kind == NAME_HOST)
		add_addresses(r, LDNS_SECTION_ANSWER, owner, q->type, &name->info);
	else if (name->kind == NAME_SERVICE && q->type == LDNS_RR_TYPE_SRV)
		answer_srv(zone, q, name->host, &name->info, r);
}

static void answer_apex(const struct dns_zone *zone, const struct dns_question *q,
			struct dns_reply *r)
{
	struct dns_name_info own = {.ip4 = zone->ns4, .ip6 = zone->ns6};
	const ldns_rdf *owner = ldns_rr_owner(q->rr);
	CLEANUP(rdf_free) ldns_rdf *ns = NULL;

	if (q->type == LDNS_RR_TYPE_SOA)
		dns_add_soa(r, LDNS_SECTION_ANSWER, owner, zone->domain);
	else if (q->type == LDNS_RR_TYPE_ANY)
		dns_add_hinfo(r, owner);
	if (q->type != LDNS_RR_TYPE_SOA && q->type != LDNS_RR_TYPE_NS)
		return;
	ns = dns_name_below("ns.dns", zone->domain);
	if (!ns) {
		r->failed = true;
		return;
	}
	if (q->type == LDNS_RR_TYPE_NS)
		dns_add_name(r, owner, LDNS_RR_TYPE_NS, ns);
	add_addresses(r, LDNS_SECTION_ADDITIONAL, ns, LDNS_RR_TYPE_ANY, &own);
}

/* A name in the domain (the last `suffix` labels of it), all of which is ours. */
static void answer_domain(const struct dns_zone *zone, const struct dns_question *q, size_t above,
			  struct dns_reply *r)
{
	struct name name = {};

	if (above == 0) {
		answer_apex(zone, q, r);
	} else {
		name.kind = name_find(zone, q, above, &name);
		if (name.kind == NAME_UNKNOWN)
			name.kind = name_own(zone, q, above, &name);
		if (name.kind == NAME_UNKNOWN)
			ldns_pkt_set_rcode(r->pkt, LDNS_RCODE_NXDOMAIN);
		else
			answer_name(zone, q, &name, r);
	}
	if (!ldns_pkt_ancount(r->pkt))
		add_authority(r, q, q->name.n - above, zone->domain);
}

/* "web", "_http._tcp.web" and "web.west" by themselves; ours only while the app is known. */
static bool answer_single(const struct dns_zone *zone, const struct dns_question *q,
			  struct dns_reply *r)
{
	struct name name = {};

	name.kind = name_find(zone, q, q->name.n, &name);
	if (name.kind == NAME_UNKNOWN || !name.labels)
		return false;
	answer_name(zone, q, &name, r);
	if (!ldns_pkt_ancount(r->pkt))
		add_authority(r, q, name.labels, zone->domain);
	return true;
}

/* The address of d.c.b.a.in-addr.arpa, in decimal without leading zeros. */
static bool reverse4(const struct dns_question *q, struct ax_addr *ret)
{
	union {
		uint8_t b[4];
		__be32 v4;
	} u;

	for (int i = 0; i < 4; i++) {
		const uint8_t *l = q->name.l[i];
		unsigned v = 0;

		if (l[0] > 3 || (l[0] > 1 && l[1] == '0'))
			return false;
		for (unsigned j = 1; j <= l[0]; j++) {
			if (!isdigit(l[j]))
				return false;
			v = v * 10 + (unsigned)(l[j] - '0');
		}
		if (v > 255)
			return false;
		u.b[3 - i] = (uint8_t)v;
	}
	*ret = addr_from_v4(u.v4);
	return true;
}

/* The address of 32 nibbles below ip6.arpa, the lowest first. */
static bool reverse6(const struct dns_question *q, struct ax_addr *ret)
{
	static const char digits[16] = "0123456789abcdef";

	*ret = (struct ax_addr){};
	for (int i = 0; i < 32; i++) {
		const uint8_t *l = q->name.l[i];
		const char *d = l[0] == 1 ? memchr(digits, l[1], sizeof(digits)) : NULL;

		if (!d)
			return false;
		ret->b[15 - i / 2] |= (uint8_t)((d - digits) << (i % 2 * 4));
	}
	return true;
}

static bool answer_reverse(const struct dns_zone *zone, const struct dns_question *q,
			   struct dns_reply *r)
{
	bool v4 = labels_above(q, "in-addr.arpa") == 4;
	char name[DNS_NAME_MAX] = "";
	CLEANUP(rdf_free) ldns_rdf *target = NULL;
	struct ax_addr addr;
	bool known;

	if (v4 ? !reverse4(q, &addr) : labels_above(q, "ip6.arpa") != 32 || !reverse6(q, &addr))
		return false;
	known = zone->reverse(zone->arg, &addr, name);
	if (!known && !addr_is_zero(&addr) &&
	    (addr_eq(&addr, &zone->ns4) || addr_eq(&addr, &zone->ns6))) {
		known = true;
		strcpy(name, "ns.dns");
	}
	if (!known && !zone->owns(zone->arg, &addr))
		return false;
	if (!known) {
		ldns_pkt_set_rcode(r->pkt, LDNS_RCODE_NXDOMAIN);
	} else if (q->type == LDNS_RR_TYPE_PTR || q->type == LDNS_RR_TYPE_ANY) {
		target = dns_name_below(name, zone->domain);
		if (target)
			dns_add_name(r, ldns_rr_owner(q->rr), LDNS_RR_TYPE_PTR, target);
		else
			r->failed = true;
	}
	if (!ldns_pkt_ancount(r->pkt))
		add_authority(r, q, 2, zone->domain);
	return true;
}

bool dns_zone_ready(const struct dns_zone *zone, const char *name)
{
	struct dns_name_info info;

	return zone->ready ? zone->ready(zone->arg, name) : zone->lookup(zone->arg, name, &info);
}

bool dns_zone_may_come(const struct dns_zone *zone, const struct dns_question *q,
		       char name[DNS_NAME_MAX], bool *alone)
{
	int above = labels_above(q, zone->domain);
	size_t n = above >= 0 ? (size_t)above : q->name.n;

	*alone = above < 0;
	if (n != 1 && (n != 3 || !label_proto(q->name.l[1])))
		return false;
	/* "dns" is the zone's own */
	return label_text(q->name.l[n - 1], name) && !streq(name, "dns") &&
	       !streq(name, "localhost") && !dns_zone_ready(zone, name);
}

bool dns_zone_answer(const struct dns_zone *zone, const struct dns_question *q, struct dns_reply *r)
{
	int above = labels_above(q, zone->domain);

	ldns_pkt_set_aa(r->pkt, true);
	if (above >= 0) {
		answer_domain(zone, q, (size_t)above, r);
		return true;
	}
	return answer_reverse(zone, q, r) || answer_single(zone, q, r);
}
