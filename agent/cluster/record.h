/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What nodes write of themselves into the registry, one key for each thing:
 *
 *   /ax/CLUSTER/pool		    the prefix that is cut into blocks
 *   /ax/CLUSTER/nodes/NAME	    a node, under its lease
 *   /ax/CLUSTER/blocks/ADDRESS-LEN who has a block; under no lease: it is nobody else's while its
 *				    node is away
 *   /ax/CLUSTER/apps/NODE/ID	    an app, under its node's lease
 *   /ax/CLUSTER/addresses/ADDRESS  who has an address that was asked for and is of no block of his,
 *				    under his lease
 *
 * Values are JSON objects with the schema's version "v". Members that are not known are left alone:
 * a newer version may add some. Whoever changes the meaning of one raises "v", and is not
 *understood by older versions, which say so.
 */
#ifndef AX_CLUSTER_RECORD_H
#define AX_CLUSTER_RECORD_H

#include "base/address.h"
#include "base/util.h"
#include "registry/others.h"

#define RECORD_VERSION	  1
#define RECORD_NAME_MAX	  63
#define RECORD_KEY_MAX	  256	/* bytes */
#define RECORD_VALUE_MAX  65536 /* bytes; a longer one is refused */
#define RECORD_LABELS_MAX 4096
#define RECORD_PORTS_MAX  256 /* of an app; more are not told */
#define RECORD_STATES_MAX 64  /* of an app: services that say something of it; the same */

/* The numbers of an identity are the machine's and the instance's. */
#define RECORD_ID_LEN 32

struct record_node {
	char name[RECORD_NAME_MAX + 1];
	char id[RECORD_ID_LEN + 1]; /* hexadecimal: whose name it is, also after a new start */
	struct ax_addr address;
	int64_t since; /* UNIX time of the agent's first start */
	char version[32];
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
};

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
};
void record_app_free(struct record_app *a);

/* Text (malloc); NULL: out of memory. */
char *record_node_text(const struct record_node *n);
char *record_block_text(const struct record_block *b);
char *record_app_text(const struct record_app *a);
char *record_address_text(const struct record_address *a);
char *record_pool_text(const struct prefix *pool);

/* Any bytes. -EINVAL, -EMSGSIZE (too long), -EOPNOTSUPP (a newer schema), -ENOMEM, with a sentence
 * that does not name the key. */
int record_node_read(const void *data, size_t len, struct record_node *ret, struct error *e);
int record_block_read(const void *data, size_t len, struct record_block *ret, struct error *e);
int record_app_read(const void *data, size_t len, struct record_app *ret, struct error *e);
int record_address_read(const void *data, size_t len, struct record_address *ret, struct error *e);
int record_pool_read(const void *data, size_t len, struct prefix *ret, struct error *e);

enum record_kind {
	RECORD_OTHER,
	RECORD_POOL,
	RECORD_NODE,
	RECORD_BLOCK,
	RECORD_APP,
	RECORD_ADDRESS
};

/* What a key (any bytes) is of. */
enum record_kind record_kind(const char *cluster, const void *key, size_t len);

/* "/ax/CLUSTER/" and the keys below it, into buf of RECORD_KEY_MAX. Returns it. */
char *record_root(const char *cluster, char *buf);
char *record_pool_key(const char *cluster, char *buf);
char *record_node_key(const char *cluster, const char *node, char *buf);
char *record_block_key(const char *cluster, const struct prefix *p, char *buf);
char *record_app_key(const char *cluster, const char *node, uint32_t id, char *buf);
char *record_address_key(const char *cluster, const struct ax_addr *addr, char *buf);

#endif
