/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was decided of connections, by the cookies of their ends. */
#ifndef AX_SPLICE_DECISIONS_H
#define AX_SPLICE_DECISIONS_H

#include "base/util.h"
#include "splice/reason.h"

/* How large the messages of a stream are. */
enum stream_size { STREAM_UNKNOWN, STREAM_COUNTED, STREAM_SMALL, STREAM_LARGE };

struct decision {
	uint64_t client, server;   /* cookies */
	uint64_t first_ns;	   /* when it was first seen */
	enum splice_reason reason; /* REASON_NONE: it was joined */
	unsigned look;		   /* the last one that saw it */
	enum stream_size stream;
	uint64_t stream_ns; /* since when that is so */
	struct decision *next;
};

#define DECISIONS_BUCKETS 1024

struct decisions {
	struct decision *buckets[DECISIONS_BUCKETS];
	size_t n;
};

/* Finds or makes one. NULL: out of memory. */
struct decision *decisions_get(struct decisions *d, uint64_t client, uint64_t server);
/* NULL: there is none. */
const struct decision *decisions_find(const struct decisions *d, uint64_t client, uint64_t server);
/* Forgets those that this look did not see. */
void decisions_sweep(struct decisions *d, unsigned look);
/* Some may become others. */
bool decisions_open(const struct decisions *d);
void decisions_free(struct decisions *d);

#endif
