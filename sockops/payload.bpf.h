/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Payload of a TCP socket: the kernel's own counts have SYN and FIN among the bytes. */
#ifndef AX_PAYLOAD_BPF_H
#define AX_PAYLOAD_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "kernel.bpf.h"

#define SOCK_DONE_BIT 1 /* enum sock_flags: the other end's FIN was taken */

/* Whether write_seq counts our FIN. */
static __always_inline bool has_ended(__u32 state)
{
	return state == BPF_TCP_FIN_WAIT1 || state == BPF_TCP_FIN_WAIT2 ||
	       state == BPF_TCP_CLOSING || state == BPF_TCP_LAST_ACK;
}

/* Bytes that the other end has acknowledged. state: BPF_TCP_*. */
static __always_inline __u64 payload_sent(const struct tcp_sock *tp, __u32 state)
{
	__u64 sent = tp->bytes_sent - tp->bytes_retrans;
	__u32 flying = tp->snd_nxt - tp->snd_una;

	if (flying && has_ended(state) && tp->snd_nxt == tp->write_seq)
		flying--; /* the FIN is on its way */
	return sent > flying ? sent - flying : 0;
}

static __always_inline __u64 payload_received(const struct tcp_sock *tp)
{
	const struct sock_common *skc = (const struct sock_common *)tp;

	return tp->bytes_received - (skc->skc_flags >> SOCK_DONE_BIT & 1);
}

#endif
