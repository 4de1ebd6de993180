/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A question to program ax_explain (sockops/explain.bpf.c): its packet, in and out. */
#ifndef AX_QUESTION_H
#define AX_QUESTION_H

#include <linux/types.h>
#include "addr.h"

enum ax_question_flag {
	AX_QUESTION_APP = 1 << 0,     /* an app asks; else whoever has the address `from` */
	AX_QUESTION_BACKEND = 1 << 1, /* `to` is tried as a backend of a service */
};

/* Rules by their number plus one, 0: none. */
struct ax_question {
	__u64 cgroup;	 /* of the app that asks, 0: it does not run, and has: */
	__u32 party;	 /* index in `parties` */
	__u32 app_flags; /* enum ax_app_flag */
	struct ax_addr from;
	struct ax_endpoint to;
	__u32 flags; /* enum ax_question_flag */
	/* what it says: */
	__s32 code;	/* 0, or a negative errno */
	__u32 rule;	/* the one that decides, */
	__u32 audit;	/* the first that would have, and only counts, */
	__u32 log;	/* the first that tells of it */
	__u32 no_label; /* 1: no rule decides, and both have no label in common */
};
_Static_assert(sizeof(struct ax_question) == 80, "struct ax_question is a packet");

#endif
