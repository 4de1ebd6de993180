/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the loaders of the programs have in common: each of them knows its own skeleton. */
#ifndef AX_PROBES_WATCH_PRIV_H
#define AX_PROBES_WATCH_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/watch/watch.h"

/* What a loader hands over: what X__open() returned, or what has that in it. */
struct watch_parts {
	void *skel;
	void (*destroy)(void *skel); /* NULL: as X__destroy() does it */
	struct bpf_object_skeleton *skeleton;
	struct ax_watch_config *config; /* in the skeleton's read-only data */
	/* What the programs cannot attach to by themselves; NULL: there is none. It ends first. */
	int (*attach)(void *skel, struct error *e);
	void (*detach)(void *skel); /* may be called twice */
};

/* Decides with whom the programs are concerned, loads them, and takes the parts over (also when it
 * fails). Programs that are not to be loaded are marked so before. */
int watch_load(const struct watch_parts *p, const struct watch_options *o, struct watch **ret,
	       struct error *e);
void watch_parts_destroy(const struct watch_parts *p);
/* To be returned if X__open() failed with errno; command: "exec" of "ax trace exec". */
int watch_not_opened(const char *command, struct error *e);
struct bpf_object *watch_object(const struct watch *w);
/* What was handed over. */
void *watch_skeleton(struct watch *w);
/* Keeps libbpf from printing; returns what printed before. */
libbpf_print_fn_t watch_quiet(void);

#endif
