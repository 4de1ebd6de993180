/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the loaders of the programs have in common: each of them knows its own skeleton. */
#ifndef AX_PROBES_WATCH_PRIV_H
#define AX_PROBES_WATCH_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/watch/watch.h"

/* What a loader hands over: it is destroyed by `destroy`. */
struct watch_parts {
	void *skel;
	void (*destroy)(void *skel);
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *obj;
	struct ax_watch_config *config; /* in the skeleton's read-only data */
};

/* Decides with whom the programs are concerned, loads them, and takes the parts over (also when it
 * fails). Programs that are not to be loaded are marked so before. */
int watch_load(const struct watch_parts *p, const struct watch_options *o, struct watch **ret,
	       struct error *e);
struct bpf_object *watch_object(struct watch *w);

#endif
