/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UDP sockets that apps in host mode have connected to somebody before a rule forbids that: they
 * are ended, so that their programs connect anew, and are told. (What those of private apps send is
 * judged where it leaves them.) */
#ifndef AX_REGISTRY_FORBIDDEN_H
#define AX_REGISTRY_FORBIDDEN_H

#include "base/util.h"
#include "net/sock_diag.h"

struct datapath;

struct forbidden {
	struct datapath *dp;	 /* NULL: nothing is looked at */
	struct sock_conns found; /* sockets in the host's network namespace */
	int ended;		 /* how many, or a negative errno */
};

/* All of these by a thread. What the rules that hold forbid, though it is connected: whoever
 * answers has asked nobody, say, and a change of the rules is no reason to end it. */
void forbidden_note(struct forbidden *before);
/* When other rules hold, and no program goes by the former ones any more. */
void forbidden_end(struct forbidden *before);
void forbidden_free(struct forbidden *f);

#endif
