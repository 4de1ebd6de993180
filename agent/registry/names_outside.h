/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the DNS that rules speak of: who may ask for which, and what the answers make of the
 * addresses in them. */
#ifndef AX_REGISTRY_NAMES_OUTSIDE_H
#define AX_REGISTRY_NAMES_OUTSIDE_H

#include "base/address.h"
#include "base/util.h"

struct agent;
struct app;

/* Returns 0 or a negative errno. */
int names_outside_open(struct agent *a);
void names_outside_close(struct agent *a);
/* What an earlier agent had learnt, before the rules are told. */
int names_outside_adopt(struct agent *a);

/* Whether rules let the app ask for that name; unsaid: what they do if they say nothing. */
bool names_outside_may_ask(struct agent *a, const struct app *app, const char *name, bool unsaid);
/* Whether they say anything of names. */
bool names_outside_judged(struct agent *a, const struct app *app);
/* The app has asked for that name, and that is one of its addresses: rules about the name hold for
 * it from now on, for so long. */
void names_outside_learn(struct agent *a, const struct app *app, const char *name,
			 const struct ax_addr *addr, uint32_t ttl_s);

/* When addresses are to be forgotten (CLOCK_MONOTONIC; 0: never), and doing it. */
uint64_t names_outside_deadline(const struct agent *a);
void names_outside_due(struct agent *a);

#endif
