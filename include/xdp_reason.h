/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What packets are counted for besides rules, by number. How to add one: agent/rules/reason.h. */
#ifndef AX_XDP_REASON_H
#define AX_XDP_REASON_H

/* What a packet can be that rules cannot judge, or that has a policy of its own; and for what else
 * a packet may be counted under a name. */
enum ax_reason {
	AX_REASON_NONE,
	/* Odd packets, each with a policy (enum ax_policy). In the order in which they are told. */
	AX_REASON_RUNT,		    /* no whole Ethernet, VLAN, IPv4 or IPv6 header */
	AX_REASON_TOO_MANY_TAGS,    /* more than AX_TAGS_MAX VLAN tags */
	AX_REASON_BAD_VERSION,	    /* the IP version is not the ethertype's */
	AX_REASON_BAD_HEADER,	    /* IPv4 header length below 20 or above the packet's */
	AX_REASON_BAD_LENGTH,	    /* IP length below its header's or above the frame's */
	AX_REASON_MAPPED_ADDRESS,   /* IPv4-mapped address in an IPv6 header */
	AX_REASON_TOO_MANY_HEADERS, /* more than AX_IPV6_HEADERS_MAX extension headers, or cut off
				     */
	AX_REASON_SHORT_FRAGMENT,   /* a first fragment that does not hold the TCP or UDP header, or
				       a later one that would overwrite it */
	AX_REASON_SHORT_L4,	    /* TCP, UDP or ICMP header does not fit the IP length */
	AX_REASON_BAD_TCP,	    /* TCP header length below 20 or above what is there */
	AX_REASON_BAD_UDP,	    /* UDP length below 8 or above the IP payload */
	AX_REASON_SPLIT,	    /* a header lies beyond the first buffer of a jumbo frame */
	AX_REASON_IP_OPTIONS,	    /* an IPv4 header with options; judged by the rules as such */
	AX_REASON_LATER_FRAGMENT,   /* has no ports; judged by the rules as such */
	AX_REASON_TUNNEL,	    /* IP in IP; judged by its outer header */
	/* What is let through though the default is to drop. */
	AX_REASON_ARP,
	AX_REASON_NEIGHBOUR,  /* neighbour and router discovery */
	AX_REASON_MLD,	      /* and IGMP */
	AX_REASON_ICMP_ERROR, /* about a packet of a flow that the rules let through */
	AX_REASON_EXPOSED,    /* to a port that an app or service exposes */
	AX_REASON_POLICIES,   /* those below have no policy */
	AX_REASON_RATE_LIMITED = AX_REASON_POLICIES,
	AX_REASON_CAPTURE_LOST, /* the reader was too slow, or there is none: nothing captured */
	AX_REASON_NO_BACKEND,	/* a balancer without a backend: dropped */
	AX_REASON_NO_ROUTE,	/* to the chosen backend: dropped */
	AX_REASON_NO_NEIGHBOUR, /* its link-layer address is not known yet: dropped */
	AX_REASON_TTL,		/* balanced packet at the end of its life: dropped */
	AX_REASON_TOO_BIG,	/* for the tunnel to the backend: answered with an ICMP error */
	AX_REASON_FLOWS_FULL,	/* not entered in the flow table: chosen by hash alone; NAT: dropped
				 */
	AX_REASON_NO_PORT,	/* NAT: no free port was found: dropped */
	AX_REASON_QUIC_ID,	/* its connection id, not its addresses, chose the backend */
	AX_REASON_QUIC_UNKNOWN, /* its connection id is of no backend that is there */
	AX_REASON_REWRITE_FAILED, /* the rule's rewrite does not fit this packet: dropped */
	AX_REASON_TRIGGER_LOST,	  /* the agent was too slow, or there is none */
	AX_REASON_ROUTED,	  /* sent where its route leads */
	/* What `route` leaves to the kernel, as if there was no list. */
	AX_REASON_ROUTE_LOCAL,	     /* for this host, or for many: no unicast route leads there */
	AX_REASON_ROUTE_UNREACHABLE, /* its route is an error (blackhole, unreachable, prohibit) */
	AX_REASON_ROUTE_OFF,	     /* the interface does not forward */
	AX_REASON_ROUTE_NEIGHBOUR,   /* the next hop's link-layer address is to be asked for */
	AX_REASON_ROUTE_TTL,	     /* its last router is this one */
	AX_REASON_ROUTE_MTU,	     /* too big for the way */
	AX_REASON_ROUTE_SOURCE,	     /* what comes from there should not come in here */
	AX_REASON_ROUTE_DEVICE,	     /* to an interface that takes no frames of XDP, or ax's own */
	AX_REASON_ROUTE_OTHER,	     /* what only the kernel knows how to route, or whether */
	/* What `challenge` does. */
	AX_REASON_CHALLENGED,	 /* a SYN was answered with a cookie */
	AX_REASON_CHALLENGE_MET, /* the cookie came back: the kernel makes the connection */
	AX_REASON_BAD_COOKIE,	 /* of no connection, and without a cookie that is right: dropped */
	AX_REASON_CHALLENGE_IDLE,  /* a SYN that the kernel wants no cookie for: left to it */
	AX_REASON_CHALLENGE_OTHER, /* for no listening socket here, or not plain: left to the kernel
				    */
	AX_REASONS
};

/* What happens to odd packets of a class. */
enum ax_policy {
	AX_POLICY_RULES, /* as the rules say, judged by what is known */
	AX_POLICY_PASS,
	AX_POLICY_DROP,
};

#endif
