/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What holds of rules, balancers and lists unless something else is written. */
#ifndef AX_RULES_DEFAULTS_H
#define AX_RULES_DEFAULTS_H

#include "xdp.h"

/* --- lists --- */

#define LIST_ACTION AX_VERDICT_PASS /* of packets that no rule matches: `default` */

/* What is done with odd packets: `classes`. A class and its policy become one row in reason.c. */
#define POLICY_RUNT		AX_POLICY_DROP
#define POLICY_TOO_MANY_TAGS	AX_POLICY_DROP /* of VLANs: more than AX_TAGS_MAX */
#define POLICY_BAD_VERSION	AX_POLICY_DROP
#define POLICY_BAD_HEADER	AX_POLICY_DROP
#define POLICY_BAD_LENGTH	AX_POLICY_DROP
#define POLICY_MAPPED_ADDRESS	AX_POLICY_DROP
#define POLICY_TOO_MANY_HEADERS AX_POLICY_DROP
#define POLICY_SHORT_FRAGMENT	AX_POLICY_DROP
#define POLICY_SHORT_L4		AX_POLICY_DROP
#define POLICY_BAD_TCP		AX_POLICY_DROP
#define POLICY_BAD_UDP		AX_POLICY_DROP
#define POLICY_SPLIT		AX_POLICY_DROP
#define POLICY_IP_OPTIONS	AX_POLICY_RULES
#define POLICY_LATER_FRAGMENT	AX_POLICY_RULES
#define POLICY_TUNNEL		AX_POLICY_RULES
/* Packets without which a list that drops by default would cut the host off. */
#define POLICY_ARP	  AX_POLICY_PASS
#define POLICY_NEIGHBOUR  AX_POLICY_PASS
#define POLICY_MLD	  AX_POLICY_PASS
#define POLICY_ICMP_ERROR AX_POLICY_PASS
/* Who exposes a port does not decide what a list of the whole interface's lets in. */
#define POLICY_EXPOSED AX_POLICY_RULES

/* --- rules --- */

#define RATE_BURST_PART 10    /* a burst is this part of a second's packets or bytes, */
#define RATE_BYTES_MIN	10000 /* but no fewer bytes than some whole frames */
#define TRIGGER_RATE	50    /* packets a second that a rule with `trigger` takes */
#define RATE_PREFIX4	32    /* per=src: each address has a rate of its own; */
#define RATE_PREFIX6	128
#define RATE_NETWORK6	64 /* per=src/24: the IPv6 prefix length that goes with it */

/* --- balancers --- */

#define GUE_PORT       6080
#define BACKEND_WEIGHT 1

#endif
