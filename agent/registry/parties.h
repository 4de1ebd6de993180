/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs are told of who may talk to whom. */
#ifndef AX_REGISTRY_PARTIES_H
#define AX_REGISTRY_PARTIES_H

#include "party.h"
#include "base/labels.h"

struct agent;
struct app;
struct config_rule;
struct declared;
struct policy_who;

/* The party of such an app with these labels. 0 or a negative errno with a sentence, and *party is
 * AX_PARTY_NONE. */
int party_ref(struct agent *a, const struct labels *l, const struct policy_who *who,
	      uint32_t *party, struct error *e);
/* To be called when no app and no address is told with it any more. *party is AX_PARTY_NONE then.
 */
void party_unref(struct agent *a, uint32_t *party);
/* The same of one that was taken for an app of another node. */
void party_unref_other(struct agent *a, uint32_t *party);

/* The app, or the declared one, has got addresses: a rule may name them. */
int party_of_address(struct agent *a, struct app *app, struct error *e);
int party_of_declared(struct agent *a, struct declared *d, const struct labels *defaults,
		      struct error *e);

/* These rules hold from one moment to the next, for everybody at once. May let
 * others come in before that (work.h). */
int parties_apply(struct agent *a, const struct config_rule *rules, size_t n, struct error *e);

/* How often that rule decided, or would have, since it is in the config. */
int parties_hits(struct agent *a, unsigned rule, struct ax_rule_hits *ret);

/* Of an earlier agent: its parties and the rules that hold, until they are released when all who
 * run are known. */
int parties_adopt(struct agent *a);
void parties_release(struct agent *a);

/* What the programs are told: that an app has no party is not that it is the world. */
static inline uint32_t party_told(uint32_t party)
{
	return party == AX_PARTY_NONE ? AX_PARTY_NOBODY : party;
}

#endif
