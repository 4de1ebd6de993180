/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces that this agent, or one before it, put a list on: for the files of xdp_section.h. */
#ifndef AX_SECTIONS_MANAGED_H
#define AX_SECTIONS_MANAGED_H

#include "machine/instance.h"
#include "base/loop.h"
#include "base/strv.h"
#include "base/util.h"
#include "config/config.h"

struct agent;
struct xdp;

struct xdp_managed {
	struct xdp_managed *next;
	char *name;
	unsigned ifindex; /* where its list was put, or was to be put; 0: nowhere yet */
	size_t rules;
	bool triggers, failed;
	bool apps; /* are backends of its balancers */
	char why[sizeof(((struct error *)0)->text)];
	struct strv services;  /* that its balancers name */
	struct strv targets;   /* interfaces that its rules lead to */
	uint64_t target_state; /* when the list was put there */
	bool routes;	       /* by the host's interfaces, whichever there are */
	bool groups;	       /* its rules ask for the interface's group, */
	uint32_t group;	       /* which was this one then */
	struct xdp *x;	       /* open for its triggers, or NULL */
	struct loop_item ring; /* fd: x's */
	uint64_t due_ns;       /* 0: nothing is to be done */
	bool whole;	       /* then: all of it, not just backends */
	uint64_t built_ns;
};

struct xdp_section {
	struct xdp_managed *managed;
	struct loop_item links, timer; /* fd -1: the config has had no interfaces */
	bool apps;		       /* see app_backends.h */
	bool looks;		       /* links have changed, and will be looked at */
};

struct xdp_managed *managed_find(const struct agent *a, const char *name);

/* Finds or makes. NULL: out of memory. */
struct xdp_managed *managed_get(struct agent *a, const char *name);
void managed_free(struct agent *a, struct xdp_managed *m);

/* The record of their names, for the next agent. */
void managed_save(struct agent *a);

/* What an interface's list leads to, as a number that changes when one of them comes, goes or is
 * made anew. */
uint64_t managed_target_state(const struct xdp_managed *m);

/* The interface's group, if its list asks for it, else 0. */
uint32_t managed_group(const struct xdp_managed *m);

/* Whether its list leads to the interface of that name. */
bool managed_leads_to(const struct xdp_managed *m, const char *link);

/* Reads the triggers of its list, if it has any; closing is for good. */
int managed_ring_open(struct agent *a, struct xdp_managed *m, struct error *e);
void managed_ring_close(struct agent *a, struct xdp_managed *m);

/* Something is to be done for it so many ms from now (all of it, or its backends alone); the timer
 * is armed for the next of all. */
void managed_due_in(struct agent *a, struct xdp_managed *m, unsigned ms, bool whole);
void managed_arm(struct agent *a);
/* Its backends, or the group of its interface, have changed: at once, but not too often. */
void managed_due_soon(struct agent *a, struct xdp_managed *m);

/* --- managed_list.c: one list --- */

/* The config's list, with what it names. Paths of the config are relative to the config's
 * directory, whoever applied it: the next agent has to find the same. *l is initialised. */
int managed_read(const struct agent *a, const struct config_interface *c, struct rule_list *l,
		 struct error *e);

/* Puts a list on the interface if it has another one. */
int managed_put(struct agent *a, struct xdp_managed *m, struct rule_list *l, struct error *e);

const struct config_interface *interface_find(const struct config *c, const char *name);

/* --- managed_links.c: links that come and go --- */

int managed_watch(struct agent *a, struct error *e);
void managed_unwatch(struct agent *a);

/* Removes what was pinned for an interface that is not there any more. */
void managed_unpin(const struct instance *inst, const char *name);

#endif
