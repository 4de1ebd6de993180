/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections between apps of two nodes that are translated (`routes: translate`): they go from one
 * node's address to the other's of the same family, at a port that the server's node keeps for that
 * server, and who the client is says an option of the SYN.
 */
#ifndef AX_ACROSS_H
#define AX_ACROSS_H

#include <linux/types.h>
#include "addr.h"

/* A node's ports for the servers of its apps, above those that kernels give to clients; those at
 * its IPv6 address are others. */
#define AX_ACROSS_FIRST 61001
#define AX_ACROSS_LAST	65535
#define AX_ACROSS_PORTS (AX_ACROSS_LAST - AX_ACROSS_FIRST + 1)

/* Kind 253 is for experiments, which an ExID tells from each other (RFC 6994): 20 of the 40 bytes
 * of a SYN's options are left by the kernel, in words of four. */
#define AX_ACROSS_KIND	  253
#define AX_ACROSS_EXID	  0x6178 /* "ax" */
#define AX_ACROSS_VERSION 1

struct ax_across_option {
	__u8 kind, len;
	__be16 exid_be;
	__u8 version;
	__u8 key_id;
	__be32 number_be; /* the app's in the registry, of the node whose address the SYN is from */
	__u8 mac[8];	  /* of struct ax_across_mac */
} __attribute__((packed));
_Static_assert(sizeof(struct ax_across_option) == 18, "it has to fit in a SYN");

/* What SipHash-2-4 is computed of. The SYN's number is in it: what was overheard is good for that
 * SYN alone. And whom the client has asked: if that server's port is another's by now, it is
 * refused. */
struct ax_across_mac {
	struct ax_addr client; /* its node's address */
	struct ax_addr server; /* the app's own one */
	__be16 client_port_be; /* the SYN's */
	__be16 to_port_be;     /* the SYN's, too */
	__be16 server_port_be; /* the app's */
	__u8 version, key_id;
	__be32 seq_be;
	__be32 number_be;
};
_Static_assert(sizeof(struct ax_across_mac) == 48, "whole words of 8 bytes");

/* A cluster's key. While all of its nodes are told of a new one, the former holds as well. */
struct ax_across_key {
	__u64 k[2]; /* its bytes as two little-endian numbers */
	__u32 id;   /* 1 to 255; 0: there is none */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_across_key) == 24, "struct ax_across_key is part of a map value");

/* Map `across_ctl`: one entry. */
struct ax_across_ctl {
	/* this node's addresses; zero: nothing of that family is translated */
	struct ax_addr node, node6;
	struct ax_across_key now, before;
};
_Static_assert(sizeof(struct ax_across_ctl) == 80, "struct ax_across_ctl is a map value");

/*
 * Map `across_nodes`: addresses of other nodes -> 1, and of those that are none any more -> 0.
 * Map `across_to`: struct ax_endpoint of another node's app -> that of its node where it is served.
 * Map `across_served`: this node's port (__u32, host byte order), or with AX_ACROSS_SIX that of its
 * IPv6 address -> struct ax_endpoint of its app.
 * Map `across_apps`: who a client is.
 */
#define AX_ACROSS_SIX 0x10000
struct ax_across_app {
	struct ax_addr node; /* its address of the family that the app's is of */
	__u32 number;	     /* in the registry */
};
_Static_assert(sizeof(struct ax_across_app) == 20, "struct ax_across_app is a map key");

/* Map `across_came` (LRU): struct ax_flow_key of a SYN, as it came, with an option that is right ->
 * whose it is. Until it is established; a SYN without option takes the entry away. */
struct ax_across_came {
	struct ax_addr client; /* the app's own address */
	__u32 ifindex;	       /* by which it came */
};
_Static_assert(sizeof(struct ax_across_came) == 20, "struct ax_across_came is a map value");

/*
 * Connections of apps in a network namespace of their own: their packets are translated on this
 * node, at the app's device and where they come in, so that the app sees its own address and its
 * peer's. Map `across_flows`, an entry for each direction: how the one side has both ends -> how
 * the other has them. What happens is noted in that of the nodes' side.
 */
struct ax_across_ends {
	struct ax_endpoint
		own; /* this machine's: the app's, or the node's address with some port */
	struct ax_endpoint other;
};
_Static_assert(sizeof(struct ax_across_ends) == 40, "struct ax_across_ends is a map key");

struct ax_across_flow {
	struct ax_across_ends as;
	__u32 app;
	__u32 slot;
	__u32 seen;    /* in 2^30 ns of CLOCK_MONOTONIC */
	__u32 ifindex; /* by which the other node is reached */
	__u8 state;    /* enum ax_flow_state */
	__u8 serves;   /* the app is the server */
	__u16 pad;
};
_Static_assert(sizeof(struct ax_across_flow) == 60, "struct ax_across_flow is a map value");

/* Each app has places of its own, so that nobody takes another's. Map `across_slots`: what has one
 * -> its ends on the nodes' side. */
#define AX_ACROSS_SLOTS	    4096
#define AX_ACROSS_FLOWS_MAX 131072 /* of all apps */

struct ax_across_slot {
	__u32 app;
	__u32 slot;
};
_Static_assert(sizeof(struct ax_across_slot) == 8, "struct ax_across_slot is a map key");

/* Socket storage `across`, of those with AX_ASKED_ACROSS that an app in host mode has: how this end
 * is known to apps. */
struct ax_across {
	struct ax_endpoint self; /* port 0: as the kernel has it */
	__u32 number;		 /* to be said in the SYN */
};
_Static_assert(sizeof(struct ax_across) == 24, "struct ax_across is a map value");

#endif
