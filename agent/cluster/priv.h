/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef AX_CLUSTER_PRIV_H
#define AX_CLUSTER_PRIV_H

#include "across.h"
#include "cluster/cluster.h"
#include "cluster/record.h"
#include "etcd/etcd.h"
#include "net/neighbour.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/shared_source.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* A node whose agent says nothing for so long is taken for away. */
#define CLUSTER_TTL_S 10
/* After something that can be put right elsewhere: a name that is taken, an etcd that refuses. */
#define CLUSTER_RETRY_MS 3000
/* What a full read does not have any more is forgotten so much later: nodes write it again when
 * etcd has lost it. */
#define CLUSTER_FORGET_MS 30000

struct cluster;

/* The way to an address of a node's. */
struct node_hop {
	uint64_t look; /* of routes_sync(), that asked for it last; 0: none */
	int none;      /* a negative errno: there is none */
	struct next_hop to;
};

struct peer_node {
	struct record_node rec; /* its name alone, if it was never seen */
	struct cluster *of;
	bool up;		 /* its key is there */
	int64_t revision, lease; /* of its key */
	uint64_t read;		 /* the full read that had it last */
	uint64_t missing_ns;	 /* since when reads do not have it; 0: they do */
	int64_t seen;		 /* UNIX time when its key went; 0: it is there, or never was */
	int64_t gone_revision;	 /* that deleted it; 0: nobody told */
	int64_t at;		 /* UNIX time when an agent before this one knew it last; 0: this
				    one has it from etcd */
	uint64_t away_ns;	 /* since when it is; 0: it is not, or for long */
	size_t n_apps, n_blocks;
	struct node_hop hop, hop6; /* to its address, and to that for blocks of IPv6 */
	/* tunnel.c's */
	char no_peer[256];	  /* why it is no peer; "": it is, or is not to be */
	struct ax_addr told_addr; /* where it is, as the kernel was told last */
	uint16_t told_port;	  /* 0: it was not */
	int64_t handshake_s;	  /* as of the last look */
	uint64_t rx, tx;
};

struct peer_app {
	struct record_app rec;
	struct peer_node *node;
	unsigned refs;		 /* of the table, and of who makes a list */
	bool gone;		 /* out of the table: its node may be no more */
	char *name, *node_name;	 /* as they are called here; NULL: as in its record */
	struct remote *remote;	 /* as the programs are told of it; NULL: they are not */
	struct remote *remote6;	 /* the same of its IPv6 address */
	int64_t revision, lease; /* of its key */
	uint64_t hash;		 /* of its value */
	int64_t at;		 /* as of a node */
	uint64_t read, missing_ns;
	int64_t deleted;  /* the revision that deleted it; 0: it is there */
	uint64_t lost_ns; /* since when it is deleted, and known all the same: its node's lease
			     has ended */
	struct other_app other; /* how it is found; only if there is a way */
	/* translate.c's, of either address; NULL: the programs were told nothing */
	struct across_told *across[2];
};

/* How packets get there and come from there. */
struct block_way {
	unsigned ifindex; /* 0: they do not */
	char why[256];	  /* why not; "": nobody wants them to */
};

/* An interface that leads to nodes. */
struct node_link {
	unsigned ifindex;
	bool made;     /* the place for programs there */
	uint64_t look; /* that tried it last */
	uint64_t used; /* the last one that wanted it */
	int err;       /* 0: the program is there */
};

struct peer_block {
	struct record_block rec;
	struct peer_node *node;
	struct block_way way;
	int64_t at; /* as of a node */
	uint64_t read, missing_ns;
};

/* What is in etcd, as far as this node knows; this node's own too. */
struct peers {
	void *nodes, *apps, *blocks; /* tsearch(3) */
	struct peer_app **deleted;   /* by the news that is being read */
	size_t n_deleted;
	size_t n_nodes, n_apps, n_blocks;
	size_t bytes;	  /* of its apps, about */
	uint64_t read;	  /* counts full reads, those that failed, too */
	bool told_gone;	  /* since the last of them began a deletion was told */
	uint64_t refused; /* records that were not understood */
	char why[256];	  /* the last of them */
};

/* A block that is this node's. */
struct own_block {
	struct prefix prefix;
	bool lost; /* etcd has another owner: nothing more is given out of it */
	bool sure; /* etcd says so too */
};

/* An app of this node, as etcd has it. */
struct own_app {
	uint32_t id;
	char *text;	  /* "": not known */
	char *next;	  /* what it is to be; NULL: it is to go */
	bool sent;	  /* next is on its way */
	uint64_t paid_ns; /* what was written of it has had its time by then */
};

/* An address that an app or a declared service of this node has asked for, of no block of its own.
 */
struct own_address {
	struct ax_addr addr;
	char app[RECORD_NAME_MAX + 1]; /* the first that had it */
	bool service;		       /* that is a declared service */
	bool joined;		       /* it is another node's, for the service of that name */
	int64_t lease;		       /* under which etcd has it, or what it has was looked at;
					  0: it is to be asked for */
	uint64_t keep_until_ns;	       /* though nobody has it */
	uint64_t again_ns;	       /* not asked for before */
	bool used, asking, leaving;
	char refused[256]; /* another node has it, too; "": not that it is known */
};

/* An address that another node has claimed. */
struct holder {
	struct ax_addr addr;
	char node[RECORD_NAME_MAX + 1], name[RECORD_NAME_MAX + 1];
	bool service;  /* the name is a declared service's; else an app's */
	uint64_t read; /* the full read (read_anew) that had it last, or that was before it came */
	struct holder *next_gone;
};

struct cluster {
	struct agent *a;
	struct config_cluster conf;
	/* foreign.c's */
	struct cluster *home;	 /* whose peer this is; NULL: it is this node's own cluster */
	struct cluster *next;	 /* of a cluster and its peers, which come behind it */
	struct config_peer peer; /* of a peer, as the config has it; peer_conf's */
	struct config_cluster peer_conf;
	size_t apps_max, bytes_max;
	bool pool_wrong;		 /* its store does not have the pool that it is to have */
	char not_read[320];		 /* why it is not believed; "": it is, or nobody knows */
	uint64_t busy_ns, busy_since_ns; /* what it has cost */
	uint64_t complained_ns;

	char node[RECORD_NAME_MAX + 1], id[RECORD_ID_LEN + 1];
	char was_node[RECORD_NAME_MAX + 1]; /* the name before this agent; "": not known */
	struct ax_addr address, address6;
	char no_address6[200]; /* why there is none by which its IPv6 blocks are reached; "":
				  there is, or needs not be */
	int64_t since;	       /* UNIX time: the agent's first start since the machine's */
	char failed[512];      /* why there is no client; "": there is one */
	char wrong[320];       /* why this node is not registered; "": it is, or nobody knows yet */

	struct etcd *etcd;
	bool connected;	  /* as it was said last */
	bool clock_known; /* etcd_state() */
	int64_t clock_s;
	struct etcd_lease *lease;
	struct etcd_watch *watch;
	struct etcd_request *reading;
	int64_t lease_id;	 /* 0: none is held */
	uint64_t lease_since_ns; /* 0: an agent before this one had it */
	bool lease_lost;	 /* and what others are is yet to be looked through */
	bool registered, registering;
	bool current; /* all was read, and the watch tells of what is new */
	bool was_read;
	uint64_t read_anew; /* counts full reads without a watch */
	uint64_t reads;	    /* full ones that were completed */
	int64_t revision;   /* of the store, as of the last news */
	uint64_t known_ns;  /* when all was known last, if it is not now; 0: never */
	uint64_t look_at_ns;

	/* remember.c's */
	struct remembering *remembering; /* being written; NULL: it is not */
	bool remember_stale, remember_failed;
	uint64_t remember_at_ns, remember_rest_ns; /* not before */
	bool recalled;	/* what an agent before this one has left was read */
	bool by_memory; /* and is all that is known: etcd has not been read yet */
	size_t recalled_nodes, recalled_apps;
	uint64_t register_at_ns, read_at_ns; /* 0: not */

	struct peers peers;
	uint64_t forget_at_ns;

	struct own_block *blocks;
	size_t n_blocks;
	bool claiming, exhausted[2]; /* [1]: of IPv6 */
	struct prefix claim;	     /* what is claimed, or was last */
	uint64_t claim_at_ns;

	struct own_address *addresses; /* by address */
	size_t n_addresses;
	void *holders; /* tsearch(3) */
	struct address_ask *asks;
	bool releasing;
	uint64_t addresses_at_ns;

	struct own_app *apps; /* by id */
	size_t n_apps;
	bool publishing, dirty;
	uint64_t publish_at_ns, published_ns; /* not before; when it was looked at last */
	uint64_t send_at_ns;		      /* what had to wait may be written then */
	uint64_t look_took_ns;
	uint64_t writes;     /* transactions with apps in them */
	char unwritten[320]; /* why etcd does not take this node's apps; "": it does */

	bool ways_changed; /* maybe: all apps of others are looked at */
	uint64_t routes_at_ns, tell_at_ns;
	uint64_t routes_rest_ns; /* not before */
	uint64_t looks;		 /* counts those of routes_sync() */
	bool swept;		 /* what an agent before this one has left is gone */
	struct node_link *links; /* that have the program, or are to have it */
	size_t n_links;
	struct peer_app **telling; /* who is yet to be looked at */
	size_t n_telling;
	struct record_config *configs; /* by revision */
	size_t n_configs;
	int64_t config_now;		       /* the revision that is to hold; 0: none */
	int64_t config_mod;		       /* of the key that says so; 0: it is not there */
	uint64_t config_read;		       /* the full read (read_anew) that had it last */
	int64_t config_has;		       /* that holds here; 0: none */
	char config_id[RECORD_ID_LEN + 1];     /* the same one's */
	char config_failed[RECORD_ID_LEN + 1]; /* that could not be applied last, and why */
	char config_why[160];
	bool config_applying;
	uint64_t config_at_ns, config_again_ns; /* not before */
	struct config_store *storing;
	uint64_t node_at_ns; /* this node's key is written anew then */

	/* tunnel.c's */
	struct wg *wg;		 /* NULL: it was not asked yet */
	unsigned tunnel_ifindex; /* 0: there is no device */
	unsigned tunnel_mtu;
	bool tunnel_has_key;
	uint8_t tunnel_key[WG_KEY_SIZE]; /* this node's, public */
	uint64_t begin_at_ns;		 /* what was wrong is tried again */

	char untold[256]; /* why the programs could not be told of the last one; "": of all */
	bool tell_failed; /* of one since all began to be looked at */

	/* translate.c's */
	void *across_ports;					/* tsearch(3) */
	struct across_port *across_by_port[2][AX_ACROSS_PORTS]; /* of IPv4, of IPv6 */
	uint32_t across_cursor[2];				/* of the port that is tried next */
	uint64_t across_looks;
	bool across_full; /* it was said */
	struct ax_across_key across_now, across_before;
	bool across_there, across_deleted; /* etcd has one; somebody has deleted it */
	bool across_asking;
	uint64_t across_at_ns; /* it is asked for again then */
};

static inline struct etcd_bytes bytes_of(const char *text)
{
	return (struct etcd_bytes){text, strlen(text)};
}

/* cluster.c: moments of this machine's clocks. */
int64_t cluster_unix_of(uint64_t mono_ns);
uint64_t cluster_mono_of(int64_t unix_s); /* not 0, and not later than now */
/* A deadline moved. */
void cluster_at(struct cluster *c, uint64_t *deadline, uint64_t in_ms);

/* This node's own. */
static inline struct cluster *home_of(struct cluster *c)
{
	return c->home ? c->home : c;
}

/* --- foreign.c: other clusters, of which this node reads what they are --- */
/* Begins with those that are new in home's config, and ends with those that are none any more. */
void foreign_sync(struct cluster *home);
/* Memory only. */
void foreign_close(struct cluster *home);
/* Their pools are among a->nodes, if apps are routed to. */
void foreign_pools(const struct cluster *home);
/* The key with its pool (NULL: there is none) was read: pool_wrong, and not_read, say whether the
 * store is the cluster's. */
void foreign_pool_read(struct cluster *c, const struct etcd_kv *kv);
/* What came since then was worked on: whether it was too much of this node's time. */
bool foreign_spent(struct cluster *c, uint64_t began_ns);
/* Whether one more of what is wrong with it is to be said now. */
bool foreign_may_complain(struct cluster *c);
/* What an app of a peer is called here, in its name and node_name. -ENOMEM. */
int foreign_name(struct cluster *c, struct peer_app *app);
/* The labels by which policy knows all of a peer's apps. */
#define FOREIGN_LABEL	   "cluster="
#define FOREIGN_LABELS_MAX (sizeof(FOREIGN_LABEL) + RECORD_NAME_MAX)

/* --- node.c --- */
/* Whether what a record has for its owner is this node: a machine that was copied has the same id,
 * and another name, since that is in etcd once. */
bool node_is_own(const struct cluster *c, const char *node, const char *id);
/* Who this is: the config's words, or the machine's. -EINVAL with a sentence. */
void node_make_id(struct cluster *c); /* its number alone */
int node_identify(struct cluster *c, struct error *e);
/* Its IPv6 address may be another one by now: SLAAC takes its time, and changes it. */
void node_look(struct cluster *c);
void node_register(struct cluster *c);
/* The lease is another, or etcd says that the node's key is not this one's: all is written anew. */
void node_unregistered(struct cluster *c);

/* What it says of itself is another. */
void node_write(struct cluster *c);

/* --- configs.c --- */
int configs_put(struct cluster *c, const struct etcd_kv *kv, struct error *e);
int configs_now_put(struct cluster *c, const struct etcd_kv *kv, struct error *e);
void configs_deleted(struct cluster *c, const struct etcd_kv *kv);
/* A full read has ended. */
void configs_read(struct cluster *c);
/* What is to hold is applied, if it is another than what does. */
void configs_settle(struct cluster *c);
/* As addresses_stop(). */
void configs_stop(struct cluster *c, bool tell);
void configs_free(struct cluster *c);

/* --- watch.c --- */
void watch_begin(struct cluster *c);
void watch_end(struct cluster *c);
/* All that there is is looked through beside the watch: it may have lost a deletion. */
void watch_look(struct cluster *c);
/* The next time for that, unless there is an earlier one. */
void watch_look_soon(struct cluster *c);

/* --- peers.c --- */
void peers_put(struct cluster *c, const struct etcd_kv *kv);
void peers_delete(struct cluster *c, const struct etcd_kv *kv);
/* Of an agent before this one. */
struct remembered;
void peers_recall(struct cluster *c, const struct etcd_kv *kv, const struct remembered *was);
/* Whether the node is there, or may come back: its lease has ended not longer than dead-after ago.
 */
bool peers_up(const struct cluster *c, const struct peer_node *n);
/* One piece of news has ended: apps that were deleted together with their node's key are lost, and
 * known until dead-after; others are no more. */
void peers_settle(struct cluster *c);
/* Of a read while news come, which may be newer. */
void peers_seen(struct cluster *c, const struct etcd_kv *kv);
struct peer_node *peers_node(const struct peers *p, const char *name);
void peers_drop_app(struct cluster *c, struct peer_app *app);
void peers_drop_block(struct cluster *c, struct peer_block *b);
/* Its key is gone, deleted by that revision (0: nobody told); since 0: for long. */
void peers_node_away(struct cluster *c, struct peer_node *n, int64_t revision, uint64_t since_ns);
void peers_free(struct peers *p);
/* Memory only, but what the programs were told. */
void peers_drop_all(struct cluster *c);
struct peer_block *peers_block(const struct cluster *c, const struct prefix *p);
/* The one that an address is in; NULL: nobody has that. */
struct peer_block *peers_block_of(const struct cluster *c, const struct ax_addr *addr);
void peers_each_block(struct cluster *c, void (*f)(struct cluster *c, struct peer_block *b));
void peer_app_put(struct peer_app *app);

/* --- missing.c --- */
/* A full read of the store as it was at that revision has ended. */
void missing_read(struct cluster *c, int64_t revision);
/* Forgets what is missing for long enough. */
void missing_forget(struct cluster *c, uint64_t now_ns);

/* --- blocks.c --- */
/* What is this node's is what etcd says, and what it had before. */
void blocks_sync(struct cluster *c);
/* Claims another one if few addresses are left. */
void blocks_want(struct cluster *c);
/* A block and whether etcd gave it: the transaction that is asked. 0 or as etcd_txn(). */
int block_claim(struct etcd *e, const char *cluster, const struct record_block *b, int64_t lease,
		etcd_done_fn done, void *arg);
/* NULL: out of memory. */
struct own_block *block_add(struct cluster *c, const struct prefix *p);
/* The pool of that address's family (len 0: the cluster has none), and what this node gives out of
 * it. */
const struct prefix *cluster_pool(const struct cluster *c, const struct ax_addr *of);
struct pool *cluster_addresses(const struct cluster *c, const struct ax_addr *of);
/* Whether it is of one of its pools. */
bool cluster_contains(const struct cluster *c, const struct ax_addr *addr);
/* Blocks of a pool, of its first 2^20 addresses. */
unsigned block_len(const struct prefix *pool);
uint32_t block_count(const struct prefix *pool);
struct prefix block_nth(const struct prefix *pool, uint32_t i);
bool block_of_pool(const struct prefix *pool, const struct prefix *block);

/* --- addresses.c --- */
/* Apps or services have come or gone, or this node has another lease. */
void addresses_sync(struct cluster *c);
/* One is there. If it is this node's own, of an agent before this one, it is released when nobody
 * has the address. As record_address_read(). */
int addresses_put(struct cluster *c, const struct etcd_kv *kv, struct error *e);
/* A key of one is not there any more. */
void addresses_deleted(struct cluster *c, const struct etcd_kv *kv);
/* A full read has ended. */
void addresses_read(struct cluster *c);
/* There is no client any more; whoever waits is told, or not. */
void addresses_stop(struct cluster *c, bool tell);
/* Claims up to two addresses at once, whose keys have these revisions (0: there is none), of one
 * node; else the answer has what is there. 0 or as etcd_txn(). */
int address_claim(struct etcd *e, const char *cluster, const struct record_address *rec,
		  const int64_t *revision, size_t n, int64_t lease, etcd_done_fn done, void *arg);

/* --- holders.c: addresses that other nodes have claimed --- */
const struct holder *holders_find(const struct cluster *c, const struct ax_addr *addr);
/* -ENOMEM. */
int holders_put(struct cluster *c, const struct record_address *rec);
void holders_gone(struct cluster *c, const struct ax_addr *addr);
/* A full read has ended: what it did not have is gone. */
void holders_read(struct cluster *c);
void holders_free(struct cluster *c);

/* --- routes.c --- */
/* At the agent's start: what is not wanted any more is undone. */
void routes_open(struct agent *a);
/* Memory only. */
void routes_close(struct cluster *c);
/* Nodes or blocks have changed: routes_sync() is due. */
void routes_stale(struct cluster *c);
void routes_sync(struct cluster *c);
/* The next slice of the apps. */
void routes_tell(struct cluster *c);
/* An app is known, or is not any more. */
void routes_app(struct cluster *c, struct peer_app *app);
void routes_app_gone(struct cluster *c, struct peer_app *app);

/* Whether there is to be a way to it: it is another node's. */
bool is_others(const struct cluster *c, const struct peer_block *b);
/* The way to the node's address, or the one for blocks of IPv6; asked for once in a look. */
const struct node_hop *routes_hop(struct cluster *c, struct peer_node *n, bool six);

/* --- tunnel.c: the way through WireGuard --- */
bool tunnel_is_on(const struct cluster *c);
/* At the agent's start: a device that is not wanted any more goes. */
void tunnel_open(struct agent *a);
/* The device is there, with its key; nothing where the way is another. Nothing is left of it where
 * it cannot be, and it was not there before: a negative errno with a sentence. */
int tunnel_begin(struct cluster *c, struct error *e);
void tunnel_close(struct cluster *c); /* memory only */
/* Within a look: the kernel has the nodes that are up, and have blocks, as peers, and no others;
 * those that cannot be have no_peer. A negative errno with a sentence: there is no device. */
int tunnel_sync(struct cluster *c, struct error *e);
/* When each node's last handshake was, and what went there and came from there, is as it is now. */
void tunnel_stats(struct cluster *c);

/* --- translate.c: the way by translation (include/across.h) --- */
bool translate_is_on(const struct cluster *c);
/* At the agent's start, after that when this node knows who it is, and at the end (memory only). */
void translate_open(struct agent *a);
void translate_begin(struct cluster *c);
void translate_close(struct cluster *c);
/* This node's IPv6 address is another. */
void translate_moved(struct cluster *c);
/* All servers of this node are about to be looked at. */
void translate_look(struct cluster *c);
/* This node's port for one of them, at its address of that family; 0: there is none. */
uint16_t translate_port(struct cluster *c, const struct ax_addr *addr, uint16_t port);
/* What the programs know of an app of another node is what app->remote, remote6 and its record say
 * now. */
void translate_app(struct cluster *c, struct peer_app *app);
void translate_app_free(struct peer_app *app); /* memory only */
/* Makes the cluster's key, if there is none. */
void translate_want_key(struct cluster *c);
/* The key is there; as record_secret_read(). */
int translate_key_put(struct cluster *c, const struct etcd_kv *kv, struct error *e);
/* Somebody has deleted it: there is to be another one. */
void translate_key_deleted(struct cluster *c);
/* All is about to be read. */
void translate_read(struct cluster *c);

/* --- memory.c: what the next agent is to know, in the instance's run directory --- */
void memory_read(struct cluster *c);
void memory_write(const struct cluster *c);

/* --- remember.c: what of others the next agent is to know, in the same place --- */
/* Reads it, once. */
void remember_read(struct cluster *c);
/* It has changed. */
void remember(struct cluster *c);
void remember_due(struct cluster *c);
/* The agent ends: what is yet to be written is. */
void remember_end(struct cluster *c);
/* Nothing of it is kept. */
void remember_forget(struct cluster *c);

/* --- serving.c --- */
struct serving {
	uint32_t app; /* of this node */
	struct other_state state;
};
struct serving_list {
	struct serving *v; /* malloc'ed */
	size_t n, room;
};
/* What services say of this node's apps: who is checked, and what was found, and who drains.
 * -ENOMEM: some of it. */
int serving_read(struct agent *a, struct serving_list *l);
/* Of one app. Returns how many. */
size_t serving_of(const struct serving_list *l, uint32_t app,
		  struct other_state ret[RECORD_STATES_MAX]);

/* --- publish.c --- */
void publish(struct cluster *c);
/* An app of this node that etcd has. */
void publish_known(struct cluster *c, uint32_t id);
/* One that is known to etcd no more. */
void publish_lost(struct cluster *c, uint32_t id);
/* Nothing of it is in etcd, as far as is known. */
void publish_anew(struct cluster *c);
void publish_free(struct cluster *c);

#endif
