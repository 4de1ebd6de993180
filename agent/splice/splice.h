/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splicing: which local connections are handed from socket to socket. The words of the config and
 * what the kernel does (gate.h) decide whether anything of this is there at all; then connections
 * that the programs tell of are looked at after a while, and again with growing pauses until their
 * fate is known. What was joined stays joined, whatever happens to the agent, but sends by TCP
 * when it is wanted no more, and while no agent runs.
 */
#ifndef AX_SPLICE_SPLICE_H
#define AX_SPLICE_SPLICE_H

#include "event.h"
#include "splice/gate.h"
#include "splice/reason.h"
#include "splicing.h"

struct agent;

/* Memory, and the gate's result if it is kept. 0 or a negative errno. */
int splice_open(struct agent *a);
void splice_close(struct agent *a); /* what was joined stays */
/* The config or the apps are others: has the gate run if somebody needs it, loads the programs or
 * takes them off. To be called when the agent is ready, and after each change. */
void splice_update(struct agent *a);
/* For the loop. */
void splice_on_gate(struct agent *a);
void splice_on_events(struct agent *a);
void splice_on_timer(struct agent *a);
void splice_on_beat(struct agent *a);

/* --- what is told of it --- */

/* A moment's view of all connections; NULL: out of memory. */
struct splice_view *splice_view_open(struct agent *a);
void splice_view_close(struct splice_view *v);
/* A connection's end: *bytes (that it sent from socket to socket) if it is spliced; else why not.
 */
enum splice_reason splice_view_of(const struct splice_view *v, const struct ax_conn *c,
				  uint64_t *bytes);

/* Whether programs are loaded, and their counters then. */
bool splice_counters(struct agent *a, struct ax_splice_counted ret[AX_SPLICE_COUNTS]);

#endif
