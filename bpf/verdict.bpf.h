/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts: who may talk to whom, decided in one place for sockets and for packets. BPF only. */
#ifndef AX_VERDICT_BPF_H
#define AX_VERDICT_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "app.h"
#include "ctl.h"
#include "refusal_errno.bpf.h"

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
