/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programs of `ax trace exec`, `tcp` and others at work: whom they watch, and what they tell.
 */
#ifndef AX_PROBES_WATCH_WATCH_H
#define AX_PROBES_WATCH_WATCH_H

#include "trace_event.h"
#include "base/util.h"
#include "probes/watch/defaults.h"

struct watch_options {
	const uint32_t *pids; /* only these processes and those that they start */
	size_t n_pids;	      /* 0: all */
	bool alone;	      /* not those that they start */
	struct ax_scope scope;
	uint64_t apps; /* the cgroup that has those of apps, 0: there is none */
	uint32_t apps_level;
};

struct watch;
int watch_attach(struct watch *w, struct error *e);
/* Readable when much is waiting. Else nothing wakes a reader up: it looks every WATCH_POLL_MS. */
int watch_fd(const struct watch *w);
/* Calls f for each record (struct ax_watch_head, or a struct ax_exec_piece, which has the time 0).
 * Returns their number, or what f returned below 0. */
int watch_records(struct watch *w, int (*f)(void *arg, const void *record, size_t len), void *arg);
void watch_detach(struct watch *w);
void watch_free(struct watch *w);

struct watch_totals {
	uint64_t emitted, dropped;
	uint64_t cut;	     /* pieces of arguments and environments that are missing */
	uint64_t missed;     /* happened while the same CPU was busy with another one */
	uint64_t unfollowed; /* processes */
};
void watch_totals(struct watch *w, struct watch_totals *ret);
uint64_t watch_counter(const struct watch *w, enum ax_watch_counter counter);

/* Calls f for each line of a hash table of the programs, until it returns below 0, which is then
 * returned. */
int watch_each(const struct watch *w, const char *map,
	       int (*f)(void *arg, const void *key, const void *value), void *arg);
int watch_map(const struct watch *w, const char *name); /* its descriptor */

#endif
