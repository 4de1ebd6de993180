/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When connections are looked at again. Looks at numbers only. */
#ifndef AX_SPLICE_PAUSE_H
#define AX_SPLICE_PAUSE_H

#include "base/util.h"

/* A connection of requests and answers lives longer than the first pause; while there are some of
 * which it is not known, pauses double up to the last. They also do, less far, while connections
 * come and go that never join. */
#define PAUSE_FIRST_MS 300
#define PAUSE_CHURN_MS 1200
#define PAUSE_LAST_MS  5000
/* For readers and writers to be woken: the first time, at most while they go on telling, and at
 * most while they just are. */
#define WAKE_FIRST_MS 20
#define WAKE_LAST_MS  320
#define WAKE_QUIET_MS 1000

struct pauses {
	unsigned open_ms; /* the last one for those of which it is not known */
	unsigned wake_ms; /* and for those that are to be woken */
	unsigned vain;	  /* looks in a row of which new connections told, and none joined */
};

/* What a look had been told before it, and what it saw. */
struct look_seen {
	bool told_new, told_unread;
	bool joined;  /* there are some */
	bool young;   /* one fits but for its age */
	bool open;    /* some may become others, or were not seen whole */
	bool streams; /* are counted */
	bool unread;  /* a member may sleep before what it has not read, or before room */
};

/* In how many ms the next look is due: of the earliest that anything asks for. 0: of none. */
unsigned pause_after_look(struct pauses *p, const struct look_seen *s);
/* A new connection was told of. churn: it was so as soon as somebody listened. */
unsigned pause_when_new(struct pauses *p, bool churn);
/* Somebody who may be asleep was. */
unsigned pause_when_unread(struct pauses *p);
/* What was handed on is read before the programs are closed. */
unsigned pause_when_leaving(struct pauses *p);

#endif
