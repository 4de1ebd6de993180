/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Health checks: `check:` in the config. Every target of a group is connected to once in `every`;
 * http asks for a path besides, and exec runs a command instead. A target counts as up until `fall`
 * checks in a row failed, and as down until `rise` succeeded.
 *
 * Groups are services and targets their backends, but nothing here knows that: whoever opens this
 * is told when a target's state changes, and opens the sockets, since only he knows the way.
 */
#ifndef AX_HEALTH_HEALTH_H
#define AX_HEALTH_HEALTH_H

#include "base/address.h"
#include "base/loop.h"
#include "config/config.h"
#include "health/try.h"

struct health;	     /* all checks of an agent */
struct health_group; /* those of one service */

struct health_target {
	struct ax_addr addr;
	uint16_t port; /* host byte order */
	uint32_t app;  /* id, 0: a fixed address */
};

#define HEALTH_NO_WAY (-4096) /* no errno */

struct health_ops {
	/* A non-blocking socket to connect to the target with, bound if need be, or a negative
	 * errno. -EAGAIN: not yet, this turn is left out; HEALTH_NO_WAY: there is none to it, it
	 * counts as up; another is the agent's own trouble, which says nothing about the target: it
	 * stays what it is, is shown as not checked unless it is down, and the log says why. */
	int (*open)(void *arg, const struct health_target *t);
	/* exec: starts the command. 0, or as open(). */
	int (*start)(void *arg, const struct health_target *t, const struct service_check *c,
		     const char *name, struct health_command *ret);
	/* Up became down or the other way round; why: the last failure, for a target that is down.
	 * May change or free the group's targets, or the group. */
	void (*changed)(void *arg, void *owner, const struct health_target *t, bool down,
			const char *why);
	/* There is no way to the target any more, and was one so far; was_down: it counts as up
	 * from now on. The same holds. */
	void (*no_way)(void *arg, void *owner, const struct health_target *t, bool was_down);
	const char *why_no_way; /* the sentence for it, which lives as long as the checks */
	void *arg;
};

/* What an earlier agent knew to be down is so from the start, until its checks say otherwise: it is
 * a record of the instance's cgroup (its path, which has to outlive the checks). NULL: no memory.
 */
struct health *health_open(int epoll, const char *cgroup, const struct health_ops *ops);

/* All groups of the earlier agent are there now: what else it knew is forgotten. */
void health_loaded(struct health *h);

/* Memory only: the next agent is to know what was found. */
void health_close(struct health *h);

/* A group without targets; owner and name (copied) are for the callbacks, the record and http's
 * host. NULL: no memory. */
struct health_group *health_group_new(struct health *h, void *owner, const char *name);

/* Ends the group's checks, and forgets what they found. */
void health_group_free(struct health_group *g);

/* The group's targets are these now, checked in this way: new ones begin, others end. With another
 * check than before all begin anew. */
void health_group_set(struct health_group *g, const struct service_check *how,
		      const struct health_target *t, size_t n);

struct health_seen {
	bool checked, down;
	const char *why; /* the last check failed, or there is none; lives as long as its target */
};

/* What is known of a target. *place remembers where the last one was found: targets that are asked
 * for in the order of health_group_set() are found at once. NULL at first. */
struct health_seen health_look(const struct health_group *g, const struct health_target *t,
			       const void **place);

/* Connections to that address (port: host byte order) have failed: who is checked for it, and how
 * often that may be, is checked at once. */
void health_failed(struct health *h, const struct ax_addr *addr, uint16_t port, unsigned n,
		   int error);
/* Whether any check asks for failed connections to that address. */
bool health_is_watched(const struct health *h, const struct ax_addr *addr, uint16_t port);

/* How many commands run. */
size_t health_running(const struct health *h);
/* Whether the process was a check's; status: as waitpid() has it. */
bool health_reap(struct health *h, int pid, int status);

/* For the loop: LOOP_HEALTH and LOOP_HEALTH_TIMER. */
void health_on_socket(struct health *h, struct loop_item *item);
void health_on_timer(struct health *h);

#endif
