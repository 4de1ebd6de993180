/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the ways of a node to its cluster's etcd and to the other nodes are what they should be.
 */
#ifndef AX_CHECKUP_CHECKUP_H
#define AX_CHECKUP_CHECKUP_H

#include "base/address.h"
#include "base/finding.h"
#include "etcd/etcd.h"

struct checkup_way {
	struct prefix prefix; /* a block of the node */
	bool there;
	const char *why; /* the agent has none; NULL: it has */
};

struct checkup_node {
	const char *name, *state; /* as control.h has it */
	struct ax_addr addr;	  /* zero: not known */
	struct ax_addr addr6;	  /* for its blocks of IPv6; zero: none */
	bool clock_known;
	int64_t clock_s; /* as struct record_node has it */
	const struct checkup_way *ways;
	size_t n_ways;
	bool is_peer;		 /* of this node, in WireGuard */
	uint16_t wireguard_port; /* its own, host byte order */
	int64_t handshake_s;	 /* UNIX time of the last one; 0: never */
};

/* Another cluster whose apps have names here. */
struct checkup_peer {
	const char *name, *state, *why, *member; /* as control.h has it; NULL: none */
};

/* What the agent knows; nothing of it is kept. */
struct checkup_cluster {
	const char *state, *why, *member, *lease; /* as control.h has it; NULL: none */
	const char *untold, *unwritten, *no_address6;
	bool routed;			 /* the nodes' blocks are */
	const char *tunnel;		 /* WireGuard's device, by which they are; NULL: by none */
	bool ways;			 /* there are to be ways to apps of other nodes */
	const struct etcd_options *etcd; /* endpoints and files */
	bool clock_known;
	int64_t clock_s;
	const struct checkup_node *nodes; /* the other ones */
	size_t n_nodes;
	const struct checkup_peer *peers;
	size_t n_peers;
};

/* Has WireGuard try a handshake with each node that is its peer, if the last one is not good any
 * more; whether it came about the agent knows some moments later. False: nobody was asked. */
bool checkup_wake(const struct checkup_cluster *c);

/* node: what the finding is about, NULL: this one. */
typedef void (*checkup_fn)(void *arg, const struct checkup_node *node, const struct finding *f);

/* Returns how many findings are bad, or a negative errno with a sentence. Some 10 seconds where
 * somebody does not answer. */
int checkup_cluster(const struct checkup_cluster *c, checkup_fn report, void *arg, struct error *e);

#endif
