/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at the connections of all namespaces. Private to this room. */
#ifndef AX_SPLICE_LOOK_H
#define AX_SPLICE_LOOK_H

#include "datapath/splice.h"
#include "splice/decisions.h"
#include "splice/facts.h"
#include "splice/gate.h"
#include "splice/pairs.h"
#include "splice/pause.h"
#include "splice/shares.h"

struct agent;
struct app;
struct work;

/* An app of which connections are joined. Its programs may become others. */
struct watched {
	uint32_t app;
	enum splice_fact fact; /* of them, when */
	uint64_t print;	       /* this was facts_print() */
	bool changed;	       /* it is another one now */
};

struct splicing {
	struct gate *gate;
	struct splice *programs; /* NULL: nobody wants any */
	struct loop_item events, timer, beat;
	struct decisions decisions;
	struct facts *facts;
	struct watched *watched;
	size_t n_watched;
	unsigned told; /* since the last look: enum ax_splice_told */
	struct pauses pauses;
	unsigned look;
	uint64_t listened_ns; /* since when programs tell of new ones */
	size_t joined;	      /* pairs, by the last look */
	bool young;	      /* one fits but for its age */
	bool partial;	      /* not all could be seen, or one end of a connection only */
	bool counting;	      /* messages of streams, since: */
	uint64_t counting_ns;
	bool uncounted; /* they cannot be: said once */
	uint64_t full;	/* sockets that found too many of their app's */
	bool unread;	/* a member had not read all that went by TCP, or was stuck */
	bool holds;	/* or what was handed on */
	bool leaving;	/* nobody wants any more: the programs are closed when nothing is held */
	bool looking;	/* a work is under way */
	unsigned busy;	/* works that others may come between, and that use the programs */
	bool outdated;	/* splice_update() was called meanwhile */
	bool stopped;	/* what an earlier agent left, too */
	bool failed;	/* the programs could not be loaded: said once */
};

/* Between these the programs stay loaded, whatever others want. */
void splice_hold(struct splicing *sp);
void splice_release(struct agent *a);

/* Records of all connections, with a descriptor for each namespace. */
struct census {
	struct ax_splice_conn *conns;
	size_t n, max;
	struct {
		uint64_t cookie;
		int fd; /* -1: the host's */
	} * spaces;
	size_t n_spaces;
};
/* Part of a work, w: others may come in. */
int census_take(struct agent *a, struct work *w, struct census *c);
void census_free(struct census *c);

/* The app whose address it is; NULL: nobody's. */
const struct app *app_of_endpoint(struct agent *a, const struct ax_endpoint *ep);
/* For pairs_find(); arg is the agent. */
bool census_owns(void *arg, const struct ax_splice_conn *c);
/* What is asked for a connection between these. server NULL: what is known without. */
enum splice_mode mode_of(struct agent *a, const struct ax_endpoint *asked, const struct app *client,
			 const struct app *server);

/* Looks, joins what is to be joined, and keeps why the rest is not. Part of a work. */
void look(struct agent *a, struct splicing *sp);
/* Finds out which of the watched apps have changed; true: some did. Part of a work. */
bool look_at_programs(struct agent *a, struct splicing *sp);

#endif
