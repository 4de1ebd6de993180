/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Iterator over the members, for the gate: who has put sockets among them by their descriptors does
 * not know the kernel's addresses of these, by which the other ends are looked at. */
#include "sock_ends.bpf.h"
#include "splice_kernel.bpf.h"
#include "splice_maps.bpf.h"

SEC("iter/sockmap")
int ax_splice_members(struct bpf_iter__sockmap *ctx)
{
	struct ax_splice_wanted self = {};
	struct sock *sk = ctx->sk;
	struct splice_tuple t = {};
	struct ax_splice_end *end;

	if (!sk)
		return 0;
	end = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);
	if (!end || end->member)
		return 0;
	t.netns = ((const struct sock_common *)sk)->skc_net.net->net_cookie;
	ends_of((const struct sock_common *)sk, &t.local, &t.remote);
	self.peer = bpf_get_socket_cookie(sk);
	self.peer_sk = (__u64)(long)sk;
	if (bpf_map_update_elem(&splice_tuples, &t, &self, BPF_ANY))
		return 0;
	end->member = 1;
	splice_counted(AX_SPLICE_JOINED, 0);
	return 0;
}
