/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts: who may talk to whom, decided in one place for sockets and for packets. BPF only. */
#ifndef AX_VERDICT_BPF_H
#define AX_VERDICT_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "app.h"
#include "ctl.h"
#include "maps.bpf.h"
#include "refusal_errno.bpf.h"

/* 0, REFUSED_RULE or REFUSED_LABELS of two parties; nothing is counted. A global function: the
 * verifier looks at it once, and not again for each backend that is tried. */
__weak __noinline int party_verdict(__u32 from, __u32 to)
{
	const struct ax_party *client = bpf_map_lookup_elem(&parties, &from);
	const struct ax_party *server = bpf_map_lookup_elem(&parties, &to);
	const struct ax_ctl *c = bpf_map_lookup_elem(&ctl, &(__u32){0});
	__u64 rules, allow, shared = 0;

	if (!client || !server || !c)
		return REFUSED_LABELS;
	/* read once: client, server and verdict are of one set of rules */
	if (*(const volatile __u32 *)&c->rule_set) {
		rules = client->rules[1].from & server->rules[1].to;
		allow = c->rule_allow[1];
	} else {
		rules = client->rules[0].from & server->rules[0].to;
		allow = c->rule_allow[0];
	}
	if (rules)
		return (rules & -rules) & allow ? 0 : REFUSED_RULE;
	for (int i = 0; i < AX_LABEL_WORDS; i++)
		shared |= client->labels[i] & server->labels[i];
	return shared ? 0 : REFUSED_LABELS;
}

/*
 * The same for a datagram, which may be an answer: a server need not share a label with a client
 * that an allow rule lets in. A deny rule holds for answers too, since nothing tells them apart.
 */
static __always_inline int party_verdict_datagram(__u32 from, __u32 to)
{
	int r = party_verdict(from, to);

	return r == REFUSED_LABELS ? party_verdict(to, from) : r;
}

#endif
