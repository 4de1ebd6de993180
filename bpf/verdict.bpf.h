/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verdicts: who may talk to whom, decided in one place for sockets and for packets, and the errno
 * that an app gets for each refusal. BPF only.
 */
#ifndef AX_VERDICT_BPF_H
#define AX_VERDICT_BPF_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

#include "app.h"
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

/* 0, REFUSED_RULE or REFUSED_LABELS; nothing is counted. */
static __always_inline int party_may(const struct ax_party *client, const struct ax_party *server,
				     const struct ax_ctl *c)
{
	__u64 rules = client->from & server->to;

	if (rules && c)
		return (rules & -rules) & c->rule_allow ? 0 : REFUSED_RULE;
	for (int i = 0; i < AX_LABEL_WORDS; i++)
		if (client->labels[i] & server->labels[i])
			return 0;
	return REFUSED_LABELS;
}

/*
 * The same for a datagram, which may be an answer: a server need not share a label with a client
 * that an allow rule lets in. A deny rule holds for answers too, since nothing tells them apart.
 */
static __always_inline int party_may_datagram(const struct ax_party *from,
					      const struct ax_party *to, const struct ax_ctl *c)
{
	int r = party_may(from, to, c);

	return r == REFUSED_LABELS ? party_may(to, from, c) : r;
}

#endif
