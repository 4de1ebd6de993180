/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding the option that says whose SYN it is (include/across.h). BPF only. */
#ifndef AX_ACROSS_OPTION_BPF_H
#define AX_ACROSS_OPTION_BPF_H

#include <linux/bpf.h>

#include "across.bpf.h"

#define OPTIONS_MAX 40

/* By bpf_loop(): Linux 6.1 would judge each turn of a loop. */
struct walk {
	struct __sk_buff *skb;
	__u32 at, left; /* of TCP's options: where they are behind the IP header's begin */
	struct ax_across_option opt; /* if found, then it is at `at` */
	__u16 found;		     /* 1; 2: there is one that is too short or too long */
};

static long next_option(__u32 i, struct walk *w)
{
	__u8 head[4];

	(void)i;
	if (!w->left || bpf_skb_load_bytes_relative(w->skb, w->at, head, 1, BPF_HDR_START_NET) ||
	    !head[0])
		return 1;
	if (head[0] == 1) { /* padding */
		w->at++;
		w->left--;
		return 0;
	}
	if (w->left < 2 || bpf_skb_load_bytes_relative(w->skb, w->at, head, 2, BPF_HDR_START_NET) ||
	    head[1] < 2 || head[1] > w->left)
		return 1;
	if (head[0] == AX_ACROSS_KIND && head[1] >= 4 &&
	    !bpf_skb_load_bytes_relative(w->skb, w->at, head, 4, BPF_HDR_START_NET) &&
	    head[2] == AX_ACROSS_EXID >> 8 && head[3] == (AX_ACROSS_EXID & 0xff)) {
		w->found = 2;
		if (head[1] == sizeof(w->opt) &&
		    !bpf_skb_load_bytes_relative(w->skb, w->at, &w->opt, sizeof(w->opt),
						 BPF_HDR_START_NET))
			w->found = 1;
		return 1;
	}
	w->at += head[1];
	w->left -= head[1];
	return 0;
}

static __always_inline void find_option(struct walk *w)
{
	bpf_loop(OPTIONS_MAX, next_option, w, 0);
}

#endif
