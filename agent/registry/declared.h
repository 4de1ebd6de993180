/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declared apps, entries of the config's `apps:`. One that does not run has its addresses all the
 * same, so that its name resolves and a connect may wait for it. */
#ifndef AX_REGISTRY_DECLARED_H
#define AX_REGISTRY_DECLARED_H

#include "app.h"
#include "allot/policy.h"
#include "config/config.h"

struct agent;

struct declared {
	struct config_app *conf; /* the config's */
	struct ax_addr ip4, ip6;
	uint32_t party;	      /* AX_PARTY_NONE: it has neither name nor addresses either */
	unsigned failures;    /* starts in a row that came to nothing */
	uint64_t retry_at_ns; /* it could not be started, and is not until then; 0: it may be */
	bool unexposed;	      /* its ports could not be had, or no address that they lead to */
};

/* All of them, in the config's order, and how many. */
const struct declared *declared_all(const struct agent *a, size_t *n);

/* By the app's name, or NULL. */
struct declared *declared_find(struct agent *a, const char *name);

/* The config's app of that key, or NULL. */
const struct config_app *declared_key(struct agent *a, const char *key);

/* The running app that was started from that key, or NULL. */
struct app *app_of_config(struct agent *a, const char *key);

/* For its party. */
struct policy_who declared_who(const struct declared *d);

/* Gives back its name, addresses and labels; its entry stays until the next declared_set(). */
void declared_remove(struct agent *a, struct declared *d);

/* The config's apps are these now, in their order: entries that stay keep what they have, new ones
 * get addresses and labels. -ENOMEM, and nothing was changed; else 0, and *failed has the first
 * thing that could not be had, if it has no error yet. */
int declared_set(struct agent *a, struct config *next, struct error *failed, struct error *e);

/* Those that could have no address get one if there is one by now. */
void declared_retry(struct agent *a);

/* Entries without labels of their own take other defaults. The first error, of which *e tells. */
int declared_relabel(struct agent *a, const struct labels *defaults, struct error *e);

void declared_free_all(struct agent *a);

#endif
