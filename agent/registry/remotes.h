/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of apps on other nodes, as the programs are told of them: what labels and names say of
 * them holds here as it does there. */
#ifndef AX_REGISTRY_REMOTES_H
#define AX_REGISTRY_REMOTES_H

#include "base/address.h"
#include "base/labels.h"

struct agent;

struct remote {
	struct remote *next, **at; /* in the agent's list */
	struct ax_addr addr;
	char name[64];
	struct labels labels;
	unsigned ifindex; /* by which packets of its node come in */
	bool across;	  /* it is reached by translation, no packet has its address */
	uint32_t id;	  /* no local app has it */
	uint32_t party;	  /* AX_PARTY_NONE: its labels could not be kept, nobody may talk to it */
	bool told;	  /* the programs know it, with its party; else remote_put() tries again */
};

/* What is to be told of an address. */
struct remote_app {
	const struct ax_addr *addr;
	const char *name;
	const char *labels; /* "k=v,.." */
	unsigned ifindex;
	bool across;
};

/* *r is NULL, or what was told before of the same address or another one, and is so no more. 0 or a
 * negative errno with a sentence: then *r is as it can be. */
int remote_put(struct agent *a, const struct remote_app *app, struct remote **r, struct error *e);
/* NULL is allowed. */
void remote_drop(struct agent *a, struct remote *r);
/* Rules have changed: to the party where it belongs now. Without room for that it has none, which
 * is no error. */
int remote_party(struct agent *a, struct remote *r, struct error *e);
/* Memory only. */
void remote_free_all(struct agent *a);

#endif
