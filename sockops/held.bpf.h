/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects that wait: what hooks and the agent tell each other. BPF only. */
#ifndef AX_HELD_BPF_H
#define AX_HELD_BPF_H

#include <linux/types.h>

extern __u32 held_any;	/* 1: a SYN was held since the agent looked last, or is held yet */
extern __u32 held_told; /* 1: the agent is told, and has not looked since */

#endif
