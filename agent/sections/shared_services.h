/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all nodes of the cluster have besides their own configs (config/shared.h): its services, but
 * for those whose names this node's config has or `ax service` has added, and its rules, behind the
 * node's own. It is recorded in the instance's directory for the next agent, which may be there
 * before etcd is.
 */
#ifndef AX_SECTIONS_SHARED_SERVICES_H
#define AX_SECTIONS_SHARED_SERVICES_H

#include "base/strv.h"
#include "base/util.h"
#include "registry/shared_source.h"

struct agent;
struct config;
struct config_service;

/* Of an earlier agent, beside that config: for the rules alone, which are told first. */
void shared_read(struct agent *a, const struct config *next);
/* Declares its services, as far as it goes. After the config's. */
void shared_load(struct agent *a);
void shared_free(struct agent *a); /* memory only */

/* Which one holds; NULL: none. */
const struct shared_source *shared_source(const struct agent *a);
/* NULL: the cluster has none of that name, or this node has its own. */
const struct config_service *shared_find(const struct agent *a, const char *name);
/* Names that this node has its own services of. NULL: none. */
const struct strv *shared_overridden(const struct agent *a);

/* Within works alone, as an apply. */

/* Whether this node could take it over: nobody else has its names and addresses. 0, or a negative
 * errno with a sentence. */
int shared_check(struct agent *a, const struct config *next, struct error *e);
/* It holds from now on, and is recorded; or nothing has changed. struct hooks.shared_config. */
int shared_apply(struct agent *a, const struct shared_source *source, struct error *e);
/* The node's own services are others: some of the cluster's give way, or come back. */
void shared_settle(struct agent *a);
/* Declares those that could not be before. */
void shared_retry(struct agent *a);

#endif
