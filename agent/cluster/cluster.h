/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This node among others: it has its name and its apps in etcd, a part of the pool for its own, and
 * knows what the others wrote. All of it goes on with what is known when etcd is away.
 */
#ifndef AX_CLUSTER_CLUSTER_H
#define AX_CLUSTER_CLUSTER_H

#include <jansson.h>

#include "base/util.h"
#include "config/cluster.h"

struct agent;

/* Takes the section over; from now on apps get addresses of this node's blocks alone, which are
 * those that an agent before this one had since the machine was started. Nothing without a name in
 * it. -ENOMEM. */
int cluster_open(struct agent *a, const struct config_cluster *conf, struct error *e);
/* What packets of apps need before any are touched: to be called when the machine's network is
 * open, and before apps are adopted. */
void cluster_prepare(struct agent *a);
/* Begins to talk to etcd, when there is nothing left of an earlier agent that is not known. What is
 * wrong with the section is logged, and is in the status. */
void cluster_start(struct agent *a);
/* Memory only: what is in etcd stays as long as its lease. */
void cluster_close(struct agent *a);
/* Another way to etcd; what else is new needs a new agent. */
void cluster_reconfigure(struct agent *a);

/* Apps came or went, or listen somewhere else. */
void cluster_apps_changed(struct agent *a);
/* Somebody else than an app has got one out of the pool, or has found none there. */
void cluster_addresses_taken(struct agent *a);

/*
 * An app is to have these addresses (zero: none), which somebody has asked for: no other node may
 * have them. 0: there is nothing to wait for; 1: done() comes later, once, with 0 or -EADDRINUSE
 * and a sentence; else a negative errno with a sentence. Without etcd what is known has to do.
 */
typedef void (*cluster_claimed_fn)(void *arg, int err, const char *why);
int cluster_claim(struct agent *a, const struct ax_addr *const asked[2], const char *app,
		  cluster_claimed_fn done, void *arg, struct error *e);

/* Whether a declared service of this node may have an address that it asks for, as far as this node
 * knows: another node has it for nobody but a service of that name. 0, or -EADDRINUSE with a
 * sentence. (It is claimed when the service is there; what is found out then is in the status.) */
int cluster_service_address(struct agent *a, const struct ax_addr *addr, const char *service,
			    struct error *e);
/* The same of a service that has an address, or none (NULL): what it has is not looked at again. */
int cluster_service_moves(struct agent *a, const struct ax_addr *was, const struct ax_addr *addr,
			  const char *service, struct error *e);

/* --- the config of all nodes (configs.c) --- */

struct shared_source;

/* What holds here from before, as sections/shared_services.h has it. NULL: nothing. */
void cluster_config_holds(struct agent *a, const struct shared_source *source);
/* Stores a text that was judged as the next revision; of: the one that it is taken from, 0: none.
 * 0: done() comes later, once, with 0 and the revision, or with a negative errno and a sentence.
 * Else a negative errno with a sentence: nothing was stored. */
typedef void (*cluster_stored_fn)(void *arg, int err, int64_t revision, const char *why);
int cluster_config_store(struct agent *a, const char *text, int64_t of, cluster_stored_fn done,
			 void *arg, struct error *e);
/* The text of a revision (*revision 0: the one before that which holds, which it becomes), until
 * others come. NULL, with a sentence: there is none. */
const char *cluster_config_text(const struct agent *a, int64_t *revision, struct error *e);
/* The newest first. NULL: out of memory. */
json_t *cluster_config_history(const struct agent *a);

void cluster_due(struct agent *a, uint64_t now_ns);
uint64_t cluster_deadline(const struct agent *a);

/* --- lists (view.c); NULL: this node is in no cluster, or out of memory --- */
json_t *cluster_status(const struct agent *a);
json_t *cluster_nodes(const struct agent *a);
/* This node's name; NULL: it is in no cluster. */
const char *cluster_node(const struct agent *a);
/* Appends the apps of other nodes, in slices of a->reads. */
int cluster_put_apps(struct agent *a, json_t *list);
/* The same of where they listen. */
int cluster_put_servers(struct agent *a, json_t *list);

#endif
