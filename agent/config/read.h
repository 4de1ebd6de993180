/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that read the config share: its sections, and readers of fields that several of
 * them have. Private to this room. */
#ifndef AX_CONFIG_READ_H
#define AX_CONFIG_READ_H

#include "config/config.h"
#include "yaml/read.h"

struct expose_lines;
void expose_lines_free(struct expose_lines *l);

/* What they know of the whole config file: a reader's context. NULL: it is another file. */
struct config_reading {
	const struct node *root;
	struct registry names;	      /* of apps and services */
	struct registry addresses;    /* of apps and services */
	struct expose_lines *exposed; /* see exposes.c */
};

/* All of them, into an initialised config. -EINVAL with errors, -ENOMEM; the config is the caller's
 * to free in any case (parse.c). */
int config_read_root(const struct node *root, struct config *c, struct config_errors *errs);

/* --- sections; `to` is the struct config --- */

void read_agent(struct reader *r, const struct node *n, void *to);
void read_cluster(struct reader *r, const struct node *n, void *to);
void read_policy(struct reader *r, const struct node *n, void *to);
void read_apps(struct reader *r, const struct node *n, void *to);
void read_services(struct reader *r, const struct node *n, void *to);
void read_xdp(struct reader *r, const struct node *n, void *to);
void read_probes(struct reader *r, const struct node *n, void *to);

/* agent.pool.ipv6, and the cluster's; `to` is a struct prefix (agent.c) */
void read_pool6(struct reader *r, const struct node *n, void *to);

/* --- the whole file, when its entries are right (claims.c) --- */

void check_limits(struct reader *r, const struct node *root, const struct config *c);
/* Whether the pools have room for all; false: maybe not. */
bool pools_suffice(const struct config *c);
/* The pool is one: the cluster's (cluster.c). Before check_limits(). */
void finish_cluster(struct reader *r, const struct node *root, struct config *c);
/* Parts of it that its peers have, too. */
void read_cluster_name(struct reader *r, const struct node *n, void *to); /* char * */
void read_etcd_urls(struct reader *r, const struct node *n, void *to);	  /* struct strv */
/* PREFIX, or {ipv4: PREFIX, ipv6: PREFIX}. */
void read_cluster_pools(struct reader *r, const struct node *n, struct prefix *v4,
			struct prefix *v6);
void check_etcd_files(struct reader *r, const struct node *n, const struct strv *etcd,
		      const char *ca, const char *cert, const char *key);
/* Its peers (peers.c); `to` is the struct config_cluster. */
void read_peers(struct reader *r, const struct node *n, void *to);
void read_export(struct reader *r, const struct node *n, void *to);
void check_peers(struct reader *r, const struct node *n, const struct config_cluster *c);
void check_peer_pools(struct reader *r, const struct node *root, const struct config *c);
void config_peers_free(struct config_cluster *c);
int config_peers_copy(const struct config_cluster *from, struct config_cluster *to);
bool config_peers_eq(const struct config_cluster *a, const struct config_cluster *b);
/* Of rules (policy.c): what names of services stand for. */
void finish_policy(struct reader *r, const struct node *root, struct config *c);

/* --- names and addresses that nobody else may have (claims.c) --- */

enum owner { OWNER_APP, OWNER_SERVICE };

/* Takes a name for an app or service; apps may share one. */
void claim_name(struct reader *r, const struct node *n, const char *name, enum owner owner);
/* The addresses of an app or a service; apps may share one. */
void read_vips(struct reader *r, const struct node *n, enum owner owner, struct ax_addr *ip4,
	       struct ax_addr *ip6);

/* --- fields of several sections (fields.c) --- */

void read_command(struct reader *r, const struct node *n, void *to); /* struct strv */
void read_user(struct reader *r, const struct node *n, void *to);    /* char * */
void read_port(struct reader *r, const struct node *n, void *to);    /* uint16_t, host byte order */
/* "ADDRESS" or "ADDRESS:PORT", the address as `want` has it (want_unicast, want_server). *port
 * (host byte order) is left alone where none is written. */
void read_address_port(struct reader *r, const struct node *n,
		       const char *(*want)(const struct ax_addr *a), struct ax_addr *to,
		       uint16_t *port);
/* "A[,A6]" in either order. Returns whether it was good. */
bool read_addresses(struct reader *r, const struct node *n, struct ax_addr *ip4,
		    struct ax_addr *ip6);
void read_splice(struct reader *r, const struct node *n, void *to); /* enum splice_mode */
/* A list of ports that nobody else of the file exposes (exposes.c). */
void read_expose(struct reader *r, const struct node *n, void *to); /* struct expose_list */
/* A service's, and whether it has all that it needs (checks.c). */
void read_check(struct reader *r, const struct node *n, void *to); /* struct service_check */
void check_check(struct reader *r, const struct node *key, const struct config_service *s);
void read_zone(struct reader *r, const struct node *n, void *to); /* char * */
/* Where apps may go outside (fields.c), all of it, and parts of it: struct egress. */
void read_egress(struct reader *r, const struct node *n, void *to);
void read_egress_to(struct reader *r, const struct node *n, void *to);
void read_egress_source(struct reader *r, const struct node *n, void *to);
/* A backend's share: 1 to 1000. */
bool read_quic_id(struct reader *r, const struct node *n, uint16_t *ret); /* false: it is none */
void read_weight(struct reader *r, const struct node *n, void *to);	  /* uint32_t */

#endif
