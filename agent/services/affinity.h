/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients that keep their backend: the programs remember them, and the agent forgets them. */
#ifndef AX_SERVICES_AFFINITY_H
#define AX_SERVICES_AFFINITY_H

#include <stddef.h>
#include <stdint.h>

struct agent;
struct service;

/* The service was written: from now on its clients are looked at now and then. */
void affinity_sync(struct agent *a, const struct service *s);
/* a->affinity_at_ns has come: clients whose time-out is over are forgotten, by a work. */
void affinity_due(struct agent *a, uint64_t now_ns);

/* How many clients the services' lists have, counted once for many. */
struct affinity_tally {
	uint32_t *n; /* NULL: not counted yet */
	size_t lists;
};
void affinity_tally_free(struct affinity_tally *t);
/* Of that service, by both families and all its ports. */
uint32_t affinity_clients(struct agent *a, const struct service *s, struct affinity_tally *t);

#endif
