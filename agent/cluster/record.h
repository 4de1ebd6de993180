/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What nodes write of themselves into the registry, one key for each thing:
 *
 *   /ax/CLUSTER/pool		    the prefix that is cut into blocks
 *   /ax/CLUSTER/pool6		    the same of IPv6, where nodes have one
 *   /ax/CLUSTER/key		    the secret of `routes: translate`
 *   /ax/CLUSTER/nodes/NAME	    a node, under its lease
 *   /ax/CLUSTER/blocks/ADDRESS-LEN who has a block; under no lease: it is nobody else's while its
 *				    node is away
 *   /ax/CLUSTER/blocks6/ADDRESS-LEN the same of IPv6 (an ax that knows of none does not look there)
 *   /ax/CLUSTER/apps/NODE/ID	    an app, under its node's lease
 *   /ax/CLUSTER/addresses/ADDRESS  who has an address that was asked for and is of no block of his,
 *				    under his lease (of a service on several nodes: one of them)
 *   /ax/CLUSTER/config		    which revision of the config for all nodes holds
 *   /ax/CLUSTER/configs/REVISION   one of them; both under no lease
 *
 * Values are JSON objects with the schema's version "v". Members that are not known are left alone:
 * a newer version may add some. Whoever changes the meaning of one raises "v", and is not
 *understood by older versions, which say so.
 */
#ifndef AX_CLUSTER_RECORD_H
#define AX_CLUSTER_RECORD_H

#include "across.h"
#include "base/address.h"
#include "base/util.h"
#include "net/wireguard.h"
#include "registry/others.h"

#define RECORD_VERSION	  1
#define RECORD_NAME_MAX	  63
#define RECORD_KEY_MAX	  256	     /* bytes */
#define RECORD_VALUE_MAX  65536	     /* bytes; a longer one is refused */
#define RECORD_CONFIG_MAX (1u << 20) /* the same of a config */
#define RECORD_LABELS_MAX 4096
#define RECORD_PORTS_MAX  256 /* of an app; more are not told */
#define RECORD_STATES_MAX 64  /* of an app: services that say something of it; the same */

/* The numbers of an identity are the machine's and the instance's. */
#define RECORD_ID_LEN 32

struct record_node {
	char name[RECORD_NAME_MAX + 1];
	char id[RECORD_ID_LEN + 1]; /* hexadecimal: whose name it is, also after a new start */
	struct ax_addr address;
	struct ax_addr address6; /* by which blocks of IPv6 are reached; zero: by none */
	int64_t since;		 /* UNIX time of the agent's first start */
	char version[32];
	int64_t config;	      /* the revision of the cluster's config that holds there; 0: none */
	char config_why[160]; /* why not the newest one; "": it is, or nobody knows */
	bool clock_known;
	int64_t clock_s;    /* whole seconds that etcd's clock is ahead of its own at least */
	bool has_wireguard; /* it is reached by that: */
	uint8_t wireguard_key[WG_KEY_SIZE]; /* public */
	uint16_t wireguard_port;	    /* host byte order */
};

struct record_block {
	struct prefix prefix;
	char node[RECORD_NAME_MAX + 1];
	char id[RECORD_ID_LEN + 1];
};

struct record_address {
	struct ax_addr addr;
	char node[RECORD_NAME_MAX + 1], app[RECORD_NAME_MAX + 1];
	char id[RECORD_ID_LEN + 1]; /* the node's */
	bool service;		    /* `app` is no app, but a declared service */
};

struct record_config {
	int64_t revision;		/* from 1 */
	int64_t at;			/* UNIX time */
	int64_t of;			/* the revision that was taken up again; 0: it is new */
	char node[RECORD_NAME_MAX + 1]; /* on which it was applied */
	char id[RECORD_ID_LEN + 1];	/* at random */
	char *text;
	uint64_t read; /* of who keeps it: the full read that had it last */
};
void record_config_free(struct record_config *c);

struct record_app {
	char node[RECORD_NAME_MAX + 1], name[RECORD_NAME_MAX + 1];
	uint32_t id;		 /* of its node */
	struct ax_addr ip4, ip6; /* zero: none */
	bool host;		 /* network mode */
	int64_t since;		 /* UNIX time */
	char *labels;		 /* "k=v,.." */
	struct other_port *ports;
	size_t n_ports;
	struct other_state *states;
	size_t n_states;
	bool stopping;
	bool exported; /* other clusters have a name for it */
};
void record_app_free(struct record_app *a);

/* Text (malloc); NULL: out of memory. */
char *record_node_text(const struct record_node *n);
char *record_block_text(const struct record_block *b);
char *record_app_text(const struct record_app *a);
char *record_address_text(const struct record_address *a);
char *record_pool_text(const struct prefix *pool);
char *record_config_text(const struct record_config *c);
char *record_config_now_text(int64_t revision);
char *record_secret_text(const struct ax_across_key *k);

/* A key of WireGuard's as others show it, base64. */
#define RECORD_WG_KEY_MAX 45 /* bytes of the text, with its end */
char *record_wg_key_text(const uint8_t key[WG_KEY_SIZE], char text[RECORD_WG_KEY_MAX]);
/* -EINVAL: it is none. */
int record_wg_key_read(const char *text, uint8_t ret[WG_KEY_SIZE]);

/* Any bytes. -EINVAL, -EMSGSIZE (too long), -EOPNOTSUPP (a newer schema), -ENOMEM, with a sentence
 * that does not name the key. */
int record_node_read(const void *data, size_t len, struct record_node *ret, struct error *e);
int record_block_read(const void *data, size_t len, struct record_block *ret, struct error *e);
int record_app_read(const void *data, size_t len, struct record_app *ret, struct error *e);
int record_address_read(const void *data, size_t len, struct record_address *ret, struct error *e);
int record_pool_read(const void *data, size_t len, struct prefix *ret, struct error *e);
int record_config_read(const void *data, size_t len, struct record_config *ret, struct error *e);
int record_config_now_read(const void *data, size_t len, int64_t *revision, struct error *e);
int record_secret_read(const void *data, size_t len, struct ax_across_key *ret, struct error *e);

enum record_kind {
	RECORD_OTHER,
	RECORD_POOL,
	RECORD_POOL6,
	RECORD_NODE,
	RECORD_BLOCK,
	RECORD_APP,
	RECORD_ADDRESS,
	RECORD_CONFIG,
	RECORD_CONFIG_NOW,
	RECORD_SECRET
};

/* What a key (any bytes) is of; blocks of both families are RECORD_BLOCK. */
enum record_kind record_kind(const char *cluster, const void *key, size_t len);

/* "/ax/CLUSTER/" and the keys below it, into buf of RECORD_KEY_MAX. Returns it. */
char *record_root(const char *cluster, char *buf);
char *record_pool_key(const char *cluster, bool v4, char *buf);
char *record_secret_key(const char *cluster, char *buf);
char *record_node_key(const char *cluster, const char *node, char *buf);
char *record_block_key(const char *cluster, const struct prefix *p, char *buf);
char *record_app_key(const char *cluster, const char *node, uint32_t id, char *buf);
char *record_config_key(const char *cluster, int64_t revision, char *buf);
char *record_config_now_key(const char *cluster, char *buf);
char *record_address_key(const char *cluster, const struct ax_addr *addr, char *buf);

#endif
