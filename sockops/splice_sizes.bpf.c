/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How large the messages are that programs send on some connections, which TCP does not tell: it
 * has made segments of them. Every send() of the machine comes by here, so this is attached for
 * moments only. */
#include "splice_kernel.bpf.h"
#include "splice_maps.bpf.h"

SEC("tp_btf/sock_send_length")
int ax_splice_sizes(__u64 *ctx)
{
	const struct sock_common *skc = (const void *)(long)ctx[0];
	__u64 cookie = skc->skc_cookie.counter;
	int sent = (int)ctx[1];
	struct ax_splice_size *size;

	if (sent <= 0)
		return 0;
	size = bpf_map_lookup_elem(&splice_sizes, &cookie);
	if (size) { /* who sends by several threads is counted about right */
		size->messages++;
		size->bytes += (__u32)sent;
	}
	return 0;
}
