// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/match_packet.h"

uint32_t match_value_of(const struct match_packet *p, enum ax_field f)
{
	switch (f) {
	case AX_FIELD_PROTO:
		return p->ip ? p->proto : AX_PROTO_NONE;
	case AX_FIELD_SPORT:
		return p->has_l4 ? p->sport : AX_PORT_NONE;
	case AX_FIELD_DPORT:
		return p->has_l4 ? p->dport : AX_PORT_NONE;
	case AX_FIELD_TCP_FLAGS:
		return p->has_l4 && p->proto == 6 ? p->tcp_flags : AX_TCP_FLAGS_NONE;
	case AX_FIELD_ICMP:
		if (!p->has_icmp)
			return AX_ICMP_NONE;
		return (p->v4 ? 0u : 1u << 16) | (uint32_t)p->icmp_type << 8 | p->icmp_code;
	case AX_FIELD_VLAN:
		return p->vlan;
	case AX_FIELD_FRAGMENT:
		return p->fragment;
	case AX_FIELD_LENGTH:
		return p->len > 65535 ? 65535 : p->len;
	case AX_FIELD_TTL:
		return p->ip ? p->ttl : AX_TTL_NONE;
	case AX_FIELD_DSCP:
		return p->ip ? p->tos >> 2 : AX_DSCP_NONE;
	case AX_FIELD_ECN:
		return p->ip ? p->tos & 3 : AX_ECN_NONE;
	case AX_FIELD_TIME:
		return p->minute;
	case AX_FIELD_STATE:
		return p->ip ? p->state : AX_STATE_NONE;
	case AX_FIELD_SRC: /* these are no numbers */
	case AX_FIELD_DST:
	case AX_FIELD_MAC:
	case AX_FIELD_PAYLOAD:
	case AX_FIELD_NAME:
	case AX_FIELD_FLOW: /* nothing has come to a set */
	case AX_FIELD_MARK:
	case AX_FIELDS:
		break;
	}
	return UINT32_MAX;
}

bool match_has_payload(const struct match_packet *p)
{
	if (!p->ip || p->fragment == AX_FRAGMENT_LATER)
		return false;
	if (p->proto == 6 || p->proto == 17)
		return p->has_l4;
	return p->has_icmp || p->proto != (p->v4 ? 1 : 58);
}

void match_set_value(struct match_packet *p, enum ax_field f, uint32_t value)
{
	switch (f) {
	case AX_FIELD_SPORT:
		p->sport = (uint16_t)value;
		break;
	case AX_FIELD_DPORT:
		p->dport = (uint16_t)value;
		break;
	case AX_FIELD_ICMP:
		p->icmp_type = (uint8_t)(value >> 8);
		p->icmp_code = (uint8_t)value;
		break;
	case AX_FIELD_TTL:
		p->ttl = (uint8_t)value;
		break;
	case AX_FIELD_DSCP:
		p->tos = (uint8_t)(value << 2 | (p->tos & 3));
		break;
	case AX_FIELD_ECN:
		p->tos = (uint8_t)((p->tos & ~3u) | (value & 3));
		break;
	case AX_FIELD_TIME:
		p->minute = (uint16_t)value;
		break;
	case AX_FIELD_STATE:
		p->state = (uint8_t)value;
		break;
	case AX_FIELD_SRC: /* these say what the packet is */
	case AX_FIELD_DST:
	case AX_FIELD_PROTO:
	case AX_FIELD_TCP_FLAGS:
	case AX_FIELD_VLAN:
	case AX_FIELD_FRAGMENT:
	case AX_FIELD_LENGTH:
	case AX_FIELD_MAC:
	case AX_FIELD_PAYLOAD:
	case AX_FIELD_NAME:
	case AX_FIELD_FLOW:
	case AX_FIELD_MARK:
	case AX_FIELDS:
		break;
	}
}
