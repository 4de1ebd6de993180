/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config's section cluster:, which this node shares with others through etcd. */
#ifndef AX_CONFIG_CLUSTER_H
#define AX_CONFIG_CLUSTER_H

#include "base/address.h"
#include "base/strv.h"
#include "base/util.h"

/* The ways between nodes. */
enum cluster_routes {
	CLUSTER_ROUTES_NONE,
	CLUSTER_ROUTES_DIRECT,
	CLUSTER_ROUTES_TRANSLATE,
	CLUSTER_ROUTES_WIREGUARD,
};

/* Another cluster, whose apps have names and ways here: NAME.CLUSTER. */
struct config_peer {
	char *name;
	struct strv etcd;
	char *ca, *cert, *key; /* as the cluster's own */
	struct prefix pool;    /* its own: it speaks for no other addresses */
	struct prefix pool6;   /* the same of IPv6; len 0: none */
};
bool config_peer_eq(const struct config_peer *a, const struct config_peer *b);

struct config_cluster {
	char *name;		 /* NULL: this node is in none, and nothing else here is set */
	struct strv etcd;	 /* http(s)://HOST[:PORT], without a path */
	char *ca;		 /* file of certificates; NULL: the system's */
	char *cert, *key;	 /* files, both or none */
	char *node;		 /* this node's name; NULL: the machine's */
	struct ax_addr address;	 /* by which others reach it; zero: the only one that it has */
	struct ax_addr address6; /* the same for blocks of IPv6 */
	struct prefix pool;	 /* cut into blocks; the pool that apps get addresses from */
	struct prefix pool6;	 /* the same of IPv6; len 0: none */
	enum cluster_routes routes;
	uint16_t wireguard_port; /* of this node, host byte order */
	uint32_t dead_after_ms;	 /* apps of a node that is away are backends for so long */
	bool prefer_local;	 /* those of others only where this node has none */
	struct config_peer *peers;
	size_t n_peers;
	bool export_all;    /* apps of this node that peers have names for: all, or these */
	struct strv export; /* names */
};
void config_cluster_free(struct config_cluster *c);
int config_cluster_copy(const struct config_cluster *from, struct config_cluster *to);
bool config_cluster_eq(const struct config_cluster *a, const struct config_cluster *b);
bool config_cluster_exports(const struct config_cluster *c, const char *app);
/* Whether a name that apps of a peer have (NAME.CLUSTER) is of one of these. */
bool config_cluster_has_peer_of(const struct config_cluster *c, const char *name);
/* Whether all is the same that only a new agent can change: all but the ways to etcds, and to what
 * peers. */
bool config_cluster_same_node(const struct config_cluster *a, const struct config_cluster *b);

#endif
