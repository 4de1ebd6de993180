/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent tells the programs at run time, and what they count. */
#ifndef AX_CTL_H
#define AX_CTL_H

#include <linux/types.h>
#include "addr.h"
#include "app.h"

/* Map `ctl`: one entry. */
struct ax_ctl {
	struct ax_addr host4; /* the instance's own addresses (AX_VIP_HOST) */
	struct ax_addr host6;
	struct ax_addr anchor6; /* /96 prefix on lo: where a v6-only wildcard bind of an app without
				   an IPv6 address goes, and what it sends to itself by ::1; its
				   last word is ax_app.anchor */
	__be16 dns_port_be;	/* of the agent's DNS on host4 and host6; 0: no DNS */
	__u16 exposed;		/* enum ax_exposed_kind: what there is in map `exposed` */
	__u32 host_access;	/* 1: programs outside ax may reach VIPs */
	__u32 events;		/* 1: somebody reads map `events` */
	__u32 event_wakeup;	/* wake the reader when this many bytes wait */
	__u32 service_ifindex;	/* device of services with private backends, 0: none */
	__u32 ephemeral_first;	/* host byte order; ports from here on are given to clients */
	__u32 rule_set;		/* the one that holds, 0 or 1: no more than one byte ever changes */
	/* AX_VIP_BALANCER, zero: no balancer sends to apps; and by which device it sends there: the
	 * other end of the services' */
	__u32 balancer_ifindex;
	struct ax_addr balancer4;
	struct ax_addr balancer6;
};
_Static_assert(sizeof(struct ax_ctl) == 112, "struct ax_ctl is a map value");

/* Map `counters`: per-CPU array of __u64, by this index. Names: agent/datapath/counters.c. */
enum ax_counter {
	AX_COUNT_CONNECT,	   /* connects that the switch looked at */
	AX_COUNT_TRANSLATED,	   /* to a service, put through to a backend */
	AX_COUNT_DENIED_LABELS,	   /* no shared label */
	AX_COUNT_DENIED_RULE,	   /* a deny rule */
	AX_COUNT_NO_BACKEND,	   /* a service without backends */
	AX_COUNT_NO_EGRESS,	   /* to the outside, by an app without egress */
	AX_COUNT_HELD,		   /* connects that waited for a server */
	AX_COUNT_BIND_REFUSED,	   /* bind() to another app's address */
	AX_COUNT_FABRIC_SOURCE,	   /* packets whose source was not the app's address */
	AX_COUNT_FABRIC_DENIED,	   /* packets that policy refused */
	AX_COUNT_FABRIC_MALFORMED, /* packets that are too short for their headers */
	AX_COUNT_EVENTS_LOST,	   /* events that found the ring buffer full */
	AX_COUNT_ERROR,		   /* a helper or map failed where it should not */
	AX_COUNT_SERVERS_REFUSED,  /* servers that were not recorded: the app has too many */
	AX_COUNT_ACROSS_CAME,	   /* connections of other nodes' apps that said whose they are */
	AX_COUNT_ACROSS_PLAIN,	   /* that came from a node without saying so */
	AX_COUNT_ACROSS_FORGED,	   /* that said so, and it was not true */
	AX_COUNT_ACROSS_FULL,	   /* between a private app and other nodes, and it has too many */
	AX_COUNT_ACROSS_REFUSED,   /* to other nodes' apps, and translation cannot do that */
	AX_COUNTERS
};

#endif
