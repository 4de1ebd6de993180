/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects that wait: what hooks and the agent tell each other. BPF only. */
#ifndef AX_HELD_BPF_H
#define AX_HELD_BPF_H

#include <linux/types.h>

#include "maps.bpf.h"

extern __u32 held_any;	/* 1: a SYN was held since the agent looked last, or is held yet */
extern __u32 held_told; /* 1: the agent is told, and has not looked since */

/* The agent is to look. It is told once, until it does. */
static __always_inline void tell_held(void)
{
	struct ax_event *ev;

	if (held_told)
		return;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev)
		return; /* TCP tries again */
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_AWAITED;
	held_told = 1;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
}

#endif
