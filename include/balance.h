/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The balancer's part of a compiled rule list (xdp.h), and its flow tables.
 *
 * A packet's backend is that of its flow, if the flow table knows it and the backend still belongs
 * to the balancer and is not down; else Maglev's choice, a slot of the ring by a hash of the
 * packet's addresses, ports and protocol, or of its client's address alone (AX_BALANCE_BY_SRC). The
 * hash has no secret, so that several machines with the same backends make the same choice.
 *
 * What has no ports (later fragments, other protocols) is placed by addresses and protocol alone,
 * and so are first fragments, which must go where the later ones go; the flow table has no say in
 * it. ICMP errors go where the flow goes that they are about.
 *
 * The flow table is bounded. When it is full, the kernel's LRU makes room by forgetting flows that
 * have not been seen for long: these are placed by Maglev again, which is the same backend as long
 * as the backends have not changed. A CPU enters AX_FLOWS_PER_WINDOW new flows in a window of time
 * at most (125,000 a second), so that a flood neither takes all of its time nor pushes out flows
 * faster than they are used. What comes above that is placed by Maglev without being remembered
 * (AX_REASON_FLOWS_FULL); with NAT, which cannot do without memory, it is dropped under the same
 * reason.
 *
 * Tagged frames are answered on the interface that they came by, with the same tags; when the way
 * to the backend leads through another interface they are dropped (AX_REASON_NO_ROUTE).
 *
 * A backend that is this machine itself gets the packet as it is, unless NAT would have to change
 * it, which is dropped (AX_REASON_NO_ROUTE): the answer would never come by an XDP program.
 *
 * Apps of ax on this machine are reached by NAT as others are, only that no route is asked for:
 * what is for them leaves by one end of a pair of devices, and enters this machine by the other,
 * where fabric.bpf.c hands it to private ones. They see it come from an address that leads to this
 * pair (AX_VIP_BALANCER), so that what they answer leaves by it again, and is turned back by a list
 * without rules at its end.
 *
 * What was found out about a flow, its backend, port and next hop, is used without another look for
 * an eighth of a second on a CPU, as long as the rule list stays the same (struct fast in
 * xdp/rules.bpf.h).
 *
 * In generic mode GRO has to be off on the interface: what it has joined is one packet here, and
 * too big for most ways.
 *
 * Routes are the kernel's own. It gives none to a packet that comes by an interface on which
 * forwarding is off (net.ipv4.conf.IFACE.forwarding, net.ipv6.conf.IFACE.forwarding).
 */
#ifndef AX_BALANCE_H
#define AX_BALANCE_H

#include <linux/types.h>
#include "addr.h"

#define AX_MAGLEV_SLOTS 65537 /* a prime, as the algorithm needs */
#define AX_REALS_MAX	4096  /* backends of all balancers of an interface */
/* Their numbers: those of a list and of the one whose place it takes count at the same time. */
#define AX_REAL_NUMBERS	 (2 * AX_REALS_MAX)
#define AX_BALANCE_FLOWS (1 << 18)

#define AX_FLOWS_WINDOWS    8 /* a second has so many */
#define AX_FLOWS_PER_WINDOW (125000 / AX_FLOWS_WINDOWS)

enum ax_balance_mode { AX_BALANCE_NAT, AX_BALANCE_IPIP, AX_BALANCE_GUE };
/* What new flows are placed by: all that makes them one, or only who asks. */
enum ax_balance_affinity { AX_BALANCE_BY_FLOW, AX_BALANCE_BY_SRC };

struct ax_balancer {
	__u32 ring;  /* arena offset of __u16[AX_MAGLEV_SLOTS]: numbers of backends; 0: none */
	__u32 ring6; /* the same of its IPv6 backends, for IPv6 packets */
	__u32 mode;  /* enum ax_balance_mode */
	__be16 gue_port_be;
	__u16 affinity; /* enum ax_balance_affinity */
	__u32 quic;   /* arena offset of struct ax_quic[quic_n], by the number in connection ids */
	__u32 quic_n; /* 0: none of its backends has one */
};
_Static_assert(sizeof(struct ax_balancer) == 24, "struct ax_balancer is part of the arena");

/*
 * QUIC: the connection ids that a backend gives to its clients have its number, so that their
 * packets get there from wherever they come. It stands where draft-ietf-quic-load-balancers has the
 * server id of 2 bytes without encryption: in the second and third byte of the id, network byte
 * order; those whose first byte is AX_QUIC_UNROUTABLE or above have none. It is looked at in
 * packets with a short header and in those of the handshake (of versions 1 and 2), which have an id
 * that the server chose, not in Initial and 0-RTT packets, whose id may be the client's own.
 *
 * A number without a backend, or whose backend is down, is as none. A flow that the number brings
 * elsewhere than the flow table says has an entry of its own there (AX_ENTRY_BY_ID).
 */
#define AX_QUIC_UNROUTABLE 0xe0
#define AX_QUIC_NUMBERS	   (1 << 16)
#define AX_QUIC_NOBODY	   0xffff
struct ax_quic {
	__u16 real, real6; /* the backend's number, for IPv4 and IPv6 packets; AX_QUIC_NOBODY */
};
_Static_assert(sizeof(struct ax_quic) == 4, "struct ax_quic is part of the arena");

enum ax_real_flag {
	AX_REAL_PRESENT = 1 << 0, /* it belongs to a balancer of this list */
	AX_REAL_DRAIN = 1 << 1,	  /* keeps its flows, gets no new ones */
	AX_REAL_DOWN = 1 << 2,	  /* loses its flows too */
	AX_REAL_APP = 1 << 3,	  /* NAT: an app of this machine, see ax_layout.apps */
};
/* A backend, at its number, which is kept while it is in the list, over all generations. */
struct ax_real {
	struct ax_addr addr;
	struct ax_addr source; /* outer source, or NAT's; zero: there is no way to the backend */
	__be16 port_be;	       /* NAT; 0: the packet's */
	__u16 flags;	       /* enum ax_real_flag */
	__u32 balancer;
};
_Static_assert(sizeof(struct ax_real) == 40, "struct ax_real is part of the arena");

/* Map `real_counts` (per CPU), by the backend's number. */
struct ax_real_count {
	__u64 packets; /* to the backend */
	__u64 bytes;
	__u64 flows; /* new ones */
};
_Static_assert(sizeof(struct ax_real_count) == 24, "struct ax_real_count is a map value");

/* Time stamps are jiffies, of which ax_layout.hz make a second: the only clock that costs nothing
 * to read. */

/* Maps `flows4`, `flows6` (LRU): a client's flow -> its backend. */
enum ax_balance_entry {
	AX_ENTRY_WHOLE,
	AX_ENTRY_FRAGMENTS, /* NAT: the port of first fragments, which may have a backend of their
			      own */
	AX_ENTRY_BY_ID,	    /* of packets whose connection id names a backend */
};
struct ax_flow4 {
	__be32 client, service;
	__be16 client_port_be, service_port_be;
	__u8 proto;
	__u8 kind; /* enum ax_balance_entry */
	__u16 pad;
};
_Static_assert(sizeof(struct ax_flow4) == 16, "struct ax_flow4 is a map key");
struct ax_flow6 {
	struct ax_addr client, service;
	__be16 client_port_be, service_port_be;
	__u8 proto;
	__u8 kind;
	__u16 pad;
};
_Static_assert(sizeof(struct ax_flow6) == 40, "struct ax_flow6 is a map key");
struct ax_flow_real {
	__u16 real;	/* number of the backend */
	__be16 port_be; /* NAT's source port, or GUE's */
	__u32 checked;	/* NAT: when its entry in `nat` was last found to be there */
};
_Static_assert(sizeof(struct ax_flow_real) == 8, "struct ax_flow_real is a map value");

/*
 * NAT gives each flow a source port that no other flow to the same backend and port has, from
 * [AX_NAT_PORT, AX_NAT_PORT + AX_NAT_PORTS). They lie below the ports that the kernel gives to
 * this machine's own connections (net.ipv4.ip_local_port_range, 32768 to 60999 unless changed).
 * Where that range was made to begin below 32768, reserve ours:
 * sysctl net.ipv4.ip_local_reserved_ports=1024-32767.
 *
 * A port is taken from a former flow when that was closed for AX_NAT_CLOSED, or idle for what its
 * state allows. When none of AX_NAT_TRIES ports is to be had so, the one is taken that has been
 * idle for longest of those that are half-open (of a new client's SYN: of the first AX_NAT_ENOUGH
 * of them, which keeps a flood cheap): TCP whose handshake has not ended, datagrams that
 * were not answered. Anybody can make these, without being at the address that he says; flows that
 * are open are left alone, and the packet is dropped (AX_REASON_NO_PORT) when there is nothing
 * else.
 */
#define AX_NAT_PORT  1024
#define AX_NAT_PORTS 31744
#define AX_NAT_TRIES 24
#define AX_NAT_ENOUGH \
	8 /* half-open flows among which a new client's SYN takes the oldest one's port */
/* In seconds. */
#define AX_NAT_CLOSED	1    /* the longest closed one is taken */
#define AX_NAT_IDLE_TCP 7440 /* RFC 5382 */
#define AX_NAT_IDLE_UDP 120  /* RFC 4787 */
#define AX_NAT_OPENING	60   /* half-open */
#define AX_NAT_CLOSING	240  /* one side has closed: RFC 5382's for connections in transition */
/* How often a flow makes sure of its port: each second has so many times. */
#define AX_NAT_CHECKS 2

enum ax_nat_state {
	AX_NAT_FIN_CLIENT = 1 << 0,
	AX_NAT_FIN_REAL = 1 << 1,
	AX_NAT_FINS = AX_NAT_FIN_CLIENT | AX_NAT_FIN_REAL,
	AX_NAT_RESET = 1 << 2,
	AX_NAT_SYN_REAL = 1 << 3, /* the backend has answered a client's SYN */
	AX_NAT_OPEN = 1 << 4,	  /* the client is where it says, or the backend believes so */
};

/* Maps `nat` and `nat_opening` (LRU), one of each for all interfaces of an instance, as answers may
 * come in by another one than questions: what a backend answers to -> the client and what it asked
 * for. TCP is in `nat` once it is open, and all that anybody can begin, without being at the
 * address that he says, in the other one: half-open TCP, and datagrams. More of these than there is
 * room for, as several backends have ports for, so push out none of those that are open. */
struct ax_nat_key {
	struct ax_addr real, source;
	__be16 real_port_be, source_port_be;
	__u8 proto;
	__u8 pad[3];
};
_Static_assert(sizeof(struct ax_nat_key) == 40, "struct ax_nat_key is a map key");
struct ax_nat {
	struct ax_addr client, service;
	__be16 client_port_be, service_port_be;
	__u32 seen;    /* time stamp of the last packet, half a second old at most */
	__u32 ifindex; /* where the client's packets come in */
	/* From and to whom they come there. Answers go back that way if routing knows no way or
	 * not the neighbour's address. */
	__u8 mac[12];
	__u8 state; /* enum ax_nat_state */
	/* TCP's, while it is half-open: the lower 24 bits of what the client acknowledges if it has
	 * got the backend's answer, which nobody has who sends in its name (network byte order). */
	__u8 proof[3];
};
_Static_assert(sizeof(struct ax_nat) == 60, "struct ax_nat is a map value");

/* Map `nat_fragments` (LRU), also the instance's: the later fragments of a backend's answer have no
 * ports, but the first one's identification. */
#define AX_NAT_FRAGMENTS 8192
#define AX_NAT_FAMILIES	 2 /* entries of map `nat_sources`, see xdp/rules.bpf.h */
struct ax_nat_fragment {
	struct ax_addr real, source;
	__be32 id;
	__u32 proto;
};
_Static_assert(sizeof(struct ax_nat_fragment) == 40, "struct ax_nat_fragment is a map key");

#endif
