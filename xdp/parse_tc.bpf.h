/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser for programs on tc, which the verifier looks at once. BPF only. */
#ifndef AX_PARSE_TC_BPF_H
#define AX_PARSE_TC_BPF_H

#include <linux/bpf.h>

#include "parse.bpf.h"

/* A global function: the many ways through the parser end in one, and what is in *p is unknown to
 * the verifier after it. To Linux 6.1 it has to be all written before it as well. Returns enum
 * parse_result. */
__weak __noinline int parse_tc(struct __sk_buff *skb, struct packet *p)
{
	return p ? parse_packet((void *)(long)skb->data, (void *)(long)skb->data_end, p)
		 : PARSE_MALFORMED;
}

#define HEADERS_MAX 256 /* of a packet, as far as they are looked at */

/* The headers of a packet that was just made lie in its linear part; one that arrived from
 * elsewhere may have to be pulled there. */
static __always_inline int parse_skb(struct __sk_buff *skb, struct packet *p)
{
	int r = parse_tc(skb, p);

	if (r == PARSE_OK &&
	    (p->has_l4 || p->later || (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP)))
		return r;
	if (r == PARSE_NOT_IP)
		return r;
	/* (a length of 0 would mean the linear part, which is there already) */
	bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);
	return parse_tc(skb, p);
}

#endif
