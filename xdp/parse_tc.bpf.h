/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser for programs on tc, which the verifier looks at once. BPF only. */
#ifndef AX_PARSE_TC_BPF_H
#define AX_PARSE_TC_BPF_H

#include <linux/bpf.h>

#include "parse.bpf.h"

/* A global function: the many ways through the parser end in one, and what is in *p is unknown to
 * the verifier after it. Returns enum parse_result. */
__weak __noinline int parse_tc(struct __sk_buff *skb, struct packet *p)
{
	return p ? parse_packet((void *)(long)skb->data, (void *)(long)skb->data_end, p)
		 : PARSE_MALFORMED;
}

#endif
