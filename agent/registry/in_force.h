/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules that hold: the config's, those that were added among them (config/added_rules.h), and
 * those that egress lists become (config/egress.h). */
#ifndef AX_REGISTRY_IN_FORCE_H
#define AX_REGISTRY_IN_FORCE_H

#include "config/egress.h"

struct agent;
struct app;

/* Those of c, of all apps that run, and of the others. As parties_apply(); after it, apps are told
 * what that makes of them. */
int in_force_apply(struct agent *a, const struct config *c, const struct egress_of *others,
		   size_t n, struct error *e);
/* Whether there is room for those of c and of `shared`, instead of the config and the cluster's.
 * Changes nothing. 0, or as egress_rules(). */
int in_force_room(struct agent *a, const struct config *c, const struct config *shared,
		  struct error *e);
/* Whether a rule of the config, or an added one, names that service, or an app of that name. */
bool in_force_names(const struct agent *a, const char *service);
/* Whether they know that list. */
bool in_force_has(const struct agent *a, const struct egress *e);
/* What they say of an app that has its party, its labels and addresses. */
void in_force_note(struct agent *a, struct app *app);
void in_force_free(struct agent *a);

#endif
