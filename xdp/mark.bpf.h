/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the marks that a list's rules ask for (struct ax_mark) a packet that leaves has. */
#ifndef AX_MARK_BPF_H
#define AX_MARK_BPF_H

#include "context.bpf.h"
#include "rules.bpf.h"

/* Bits, without a branch on what is compared: each would double the paths that the verifier
 * follows. */
static __always_inline __u16 marks_of(const struct __sk_buff *skb)
{
	__u64 mark = skb->mark, has = 0;

	for (__u32 n = 0; n < AX_MARKS_MAX && n < layout.marks_n; n++) {
		__u64 other = (mark ^ layout.mark[n].value) & layout.mark[n].mask;

		opaque(other);
		has |= ((other - 1) >> 63) << n; /* of 32 bits 0 alone is below 1 */
	}
	return (__u16)has;
}

#endif
