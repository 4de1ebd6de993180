/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The errno that an app gets for each refusal, and its counter. BPF only. */
#ifndef AX_REFUSAL_ERRNO_BPF_H
#define AX_REFUSAL_ERRNO_BPF_H

#include <linux/errno.h>

#include "count.bpf.h"
#include "ctl.h"

/* What connect() or sendmsg() fails with, as ax-run(8) promises it. Each is counted apart. */
enum refusal {
	REFUSED_LABELS = -ECONNREFUSED,	    /* no label in common */
	REFUSED_RULE = -EACCES,		    /* a deny rule */
	REFUSED_NO_BACKEND = -EHOSTUNREACH, /* a service that has none */
	REFUSED_NO_EGRESS = -ENETUNREACH,   /* to the outside, by an app that may not */
};

/* Counts it and gives it back. */
static __always_inline int refused(int r)
{
	count(r == REFUSED_RULE		? AX_COUNT_DENIED_RULE
	      : r == REFUSED_NO_BACKEND ? AX_COUNT_NO_BACKEND
	      : r == REFUSED_NO_EGRESS	? AX_COUNT_NO_EGRESS
					: AX_COUNT_DENIED_LABELS);
	return r;
}

#endif
