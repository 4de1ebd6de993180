/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who was refused, or would have been: one entry for all tries of one to reach another. */
#ifndef AX_SEEN_H
#define AX_SEEN_H

#include <linux/types.h>
#include "addr.h"

/*
 * Map `seen`. An app has AX_SEEN_SLOTS at most, in sets of AX_SEEN_WAYS: what it asks for chooses
 * the set, and in that the one that was seen last the longest ago gives way. So who asks for very
 * much pushes out its own. App 0: whoever is no app.
 */
#define AX_SEEN_WAYS  8
#define AX_SEEN_SETS  16
#define AX_SEEN_SLOTS (AX_SEEN_WAYS * AX_SEEN_SETS)
#define AX_SEEN_MAX   65536
struct ax_seen_key {
	__u32 app;
	__u32 slot;
};
_Static_assert(sizeof(struct ax_seen_key) == 8, "struct ax_seen_key is a map key");

enum ax_seen_why {
	AX_SEEN_RULE = 1,    /* a rule refused it */
	AX_SEEN_AUDIT,	     /* a rule would have */
	AX_SEEN_LABELS,	     /* no label in common */
	AX_SEEN_EGRESS,	     /* the app may not leave */
	AX_SEEN_HOST_ACCESS, /* programs outside may not come in */
};

enum ax_seen_hook { AX_SEEN_AT_CONNECT, AX_SEEN_AT_SK_LOOKUP, AX_SEEN_AT_FABRIC, AX_SEEN_HOOKS };

struct ax_seen {
	__u64 count;		 /* 0: it is being written */
	__u64 first_ns, last_ns; /* CLOCK_BOOTTIME */
	struct ax_addr from;
	struct ax_endpoint to; /* port 0: not known */
	__u32 rule_low;	       /* see AX_SEEN_RULE_ID() */
	__u16 why;	       /* enum ax_seen_why */
	__u16 hook;	       /* enum ax_seen_hook */
	__u32 rule_high;
};
_Static_assert(sizeof(struct ax_seen) == 72, "struct ax_seen is a map value");
/* The rule's id (struct ax_rule_mark), 0: none. Numbers are others when a rule comes or goes. */
#define AX_SEEN_RULE_ID(s) ((__u64)(s)->rule_high << 32 | (s)->rule_low)

#endif
