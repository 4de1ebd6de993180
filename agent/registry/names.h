/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has which name: apps, also of other nodes, services and declared apps may share one. */
#ifndef AX_REGISTRY_NAMES_H
#define AX_REGISTRY_NAMES_H

#include "base/util.h"

struct agent;
struct app;
struct declared;
struct other_app;
struct service;

struct name {
	char *text;
	struct app *app; /* the first running one of that name */
	struct service *service;
	struct declared *declared;
	struct other_app *others; /* apps of other nodes, see others.h */
	size_t n_others;
	struct name *stale_next;
	bool stale; /* in the list of those */
	bool held;  /* by who took it out of that */
};

struct name *name_find(struct agent *a, const char *text);

/* Finds or makes. NULL: out of memory. */
struct name *name_get(struct agent *a, const char *text);

/* Frees it when nobody has that name any more. */
void name_put(struct agent *a, struct name *n);

/* In the order of their text. */
void name_each(struct agent *a, void (*f)(void *arg, const struct name *n), void *arg);

void name_free_all(struct agent *a);

#endif
