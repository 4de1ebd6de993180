/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes that have a name: they stay when the process that attached them ends, like the files of
 * tracefs. All state is pinned below <bpffs>/<instance>-trace/<name>/, what was asked for as a text
 * with it; no agent is needed. Changes are serialised by a lock.
 */
#ifndef AX_PROBES_NAMED_NAMED_H
#define AX_PROBES_NAMED_NAMED_H

#include "config/config.h"
#include "machine/instance.h"

struct session;

struct named {
	struct config_probe probe; /* as it was asked for; `enabled` too */
	bool by_config;
	bool enabled; /* as it is */
	int64_t made; /* UNIX seconds: counts and records are since then */
	/* Why it does not see what it was asked for any more, "": it does. */
	char stale[160];
	/* A file that it was attached to was written over, so that it was detached. */
	bool overwritten;
	struct session *session; /* for reading */
	uint64_t directory;	 /* its number in the bpf filesystem */
};
void named_free(struct named *n);

/* What became of a request, for people. */
struct named_outcome {
	bool changed;
	bool anew; /* what had been counted is gone, since it does not fit any more */
};

/* Sorted; none, if there never were any. */
int named_list(const struct instance *inst, struct strv *names, struct error *e);
/* Also looks at the files that it is attached to, and detaches it if one of them was written over:
 * a breakpoint in the midst of other code ends programs. -ENOENT; -EPROTO: another version of ax
 * made it, or one that was killed meanwhile. */
int named_open(const struct instance *inst, const char *name, struct named *ret, struct error *e);

/* It was neither removed nor begun anew since it was opened. */
bool named_is_same(const struct instance *inst, const struct named *n);

/* -EEXIST. `p` has passed config_probe_check(). */
int named_add(const struct instance *inst, const struct config_probe *p, struct error *e);
/* What is enabled already is attached again: to the file that is there now, to the app that runs
 * now. Counts and records go on, if they still fit. */
int named_enable(const struct instance *inst, const char *name, struct named_outcome *o,
		 struct error *e);
int named_disable(const struct instance *inst, const char *name, struct error *e);
/* Counts and records begin anew. */
int named_reset(const struct instance *inst, const char *name, struct error *e);
int named_remove(const struct instance *inst, const char *name, struct error *e);

/* As an entry of the config is to be: what has not changed since stays as it is, also when somebody
 * disabled it meanwhile. -EEXIST: somebody added one of that name by hand. */
int named_apply(const struct instance *inst, const struct config_probe *p, struct named_outcome *o,
		struct error *e);
/* Removes what a config had and this one has not; calls gone() for each. */
int named_apply_others(const struct instance *inst, const struct config *c,
		       void (*gone)(void *arg, const char *name), void *arg, struct error *e);
/* Everything of the instance. */
int named_flush(const struct instance *inst, struct error *e);

#endif
