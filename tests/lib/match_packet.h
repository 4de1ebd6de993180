/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packets that tests of matching judge: what the parser would say of them, their fields' values
 * by number, and the same packet as the parser and as the builder have it. A new field of packets
 * is added here, and nowhere else in these tests.
 */
#ifndef AX_TESTS_MATCH_PACKET_H
#define AX_TESTS_MATCH_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rules/field.h"

/* A packet as the parser sees it. */
struct match_packet {
	bool ip, v4; /* v4: by its header, whatever the addresses look like */
	struct ax_addr src, dst;
	uint8_t proto;
	uint8_t fragment; /* enum ax_fragment */
	bool has_l4;	  /* ports, and TCP's flags */
	uint16_t sport, dport;
	uint8_t tcp_flags;
	bool has_icmp;
	uint8_t icmp_type, icmp_code;
	uint16_t vlan; /* AX_VLAN_NONE: untagged */
	uint32_t len;
	uint8_t mac[6];
	uint8_t ttl;
	uint8_t tos;	 /* or traffic class */
	uint16_t minute; /* of the week, in which it comes */
	uint8_t state;	 /* enum ax_state, as the host would say when it is asked */
	uint32_t mark;	 /* that it has if it leaves */
	size_t payload_len;
	uint8_t payload[AX_PAYLOAD_REACH]; /* its beginning; zero behind payload_len */
	uint8_t name_kind;		   /* enum ax_name_kind; 0: it carries no name */
	char name[AX_NAME_MAX + 2];	   /* as it says it, without a dot at the end */
};

/* The value of a field of numbers or bits, or what stands for packets without the field. */
uint32_t match_value_of(const struct match_packet *p, enum ax_field f);

/* Whether it has a payload that rules can ask about. */
bool match_has_payload(const struct match_packet *p);

/* Gives a packet that is what it will be otherwise the value of a field, if it can have one. */
void match_set_value(struct match_packet *p, enum ax_field f, uint32_t value);

/* Which struct packet there is depends on what is included before this. */
#ifdef AX_PARSE_BPF_H
/* As xdp/parse.bpf.h would have it. */
static inline struct packet match_parsed(const struct match_packet *m)
{
	return (struct packet){
		.src = m->src,
		.dst = m->dst,
		.sport_be = bpf_htons(m->sport),
		.dport_be = bpf_htons(m->dport),
		.vlan = m->vlan,
		.icmp = (__u16)(m->icmp_type << 8 | m->icmp_code),
		.proto = m->proto,
		.tcp_flags = m->tcp_flags,
		.fragment = m->fragment,
		.ttl = m->ip ? m->ttl : AX_TTL_NONE,
		.tos = m->tos,
		.state = AX_STATE_UNASKED,
		.v4 = m->v4,
		.later = m->fragment == AX_FRAGMENT_LATER,
		.has_l4 = m->has_l4,
		.has_icmp = m->has_icmp,
	};
}
#endif

#ifdef AX_PACKET_TEXT_H
/* As agent/packet/text.h builds it; without data. */
static inline void match_built(const struct match_packet *m, struct packet *p)
{
	packet_init(p);
	p->kind = m->ip ? PACKET_IP : PACKET_ARP;
	p->src = m->ip ? m->src : addr_from_v4(1);
	p->dst = m->ip ? m->dst : addr_from_v4(2);
	p->proto = m->proto;
	p->sport = m->sport;
	p->dport = m->dport;
	p->tcp_flags = m->tcp_flags;
	p->icmp_type = m->icmp_type;
	p->icmp_code = m->icmp_code;
	p->fragment = m->ip ? (enum ax_fragment)m->fragment : AX_FRAGMENT_NONE;
	p->offset = 1480;
	p->ttl = m->ttl;
	p->tos = m->tos;
	memcpy(p->smac, m->mac, sizeof(p->smac));
	if (m->vlan != AX_VLAN_NONE) {
		p->tags[0] = (struct packet_tag){m->vlan, 0x8100};
		p->n_tags = 1;
	}
}
#endif

#endif
