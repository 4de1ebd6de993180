/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which two sockets are the ends of one connection, and whether its traffic is worth splicing.
 * Looks at records only. */
#ifndef AX_SPLICE_PAIRS_H
#define AX_SPLICE_PAIRS_H

#include "base/util.h"
#include "splice/reason.h"
#include "splicing.h"

/* A connection joins when it has had so many segments with data each way, */
#define PAIRS_SEGMENTS_MIN 16
/* and no more bytes than this for each: requests and answers, not a stream whose reader says
 * little, which overtakes what is handed over. (Answers of 64 KiB gain, one each 128 KiB does not.)
 */
#define PAIRS_BYTES_MAX (96u << 10)

struct pair {
	const struct ax_splice_conn *client, *server; /* the client: who asked for a service, else
							 the one with the greater port */
	enum splice_reason reason;		      /* REASON_NONE: they are each other's */
};

/*
 * Pairs of mirrored addresses and ports whose sequence numbers fit each other: what one end has
 * received lies in what the other one has sent, but for what moved between two records. owns():
 * whether the network namespace is that of the app whose address it says is its own; else the pair
 * is REASON_STRANGER. `v` is sorted anew. ret has room for n. How many there are; ends without
 * another one are in none.
 */
size_t pairs_find(struct ax_splice_conn *v, size_t n,
		  bool (*owns)(void *arg, const struct ax_splice_conn *c), void *arg,
		  struct pair *ret);

/* The record of an end, of those that pairs_find() has sorted; NULL. */
const struct ax_splice_conn *pairs_end(const struct ax_splice_conn *v, size_t n,
				       const struct ax_endpoint *local,
				       const struct ax_endpoint *remote);

/* Its ends hand each other data. */
bool pair_is_joined(const struct pair *p);
/* Something that was handed on may be unread. */
bool pair_holds(const struct pair *p);
/* What stands in the way as far as the two records say. */
enum splice_reason pair_fits(const struct pair *p);

#endif
