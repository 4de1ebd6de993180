/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members that could send nothing because memory was short: of the machine's TCP, or of the control
 * group that pays. They are told EAGAIN, and with nothing queued there is nobody who would wake
 * them when it is there again: the agent is told, whose look does (splice_conns.bpf.c). The kernel
 * comes by here with the sender's socket locked, and only when it refuses memory to some socket. */
#include "splice_kernel.bpf.h"
#include "splice_maps.bpf.h"

#define SK_MEM_SEND 0

SEC("tp_btf/sock_exceed_buf_limit")
int ax_splice_stuck(__u64 *ctx)
{
	struct sock *sk = (void *)(long)ctx[0];
	const struct ax_splice_end *end;

	if ((int)ctx[3] != SK_MEM_SEND || !sk)
		return 0;
	end = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);
	if (end && end->member)
		splice_tell(AX_SPLICE_TOLD_UNREAD);
	return 0;
}
