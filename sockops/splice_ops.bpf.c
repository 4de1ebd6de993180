/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections that are established: the agent is told that there is something to look at, once
 * until it looks. For the gate they join at once. */
#include "ops_ends.bpf.h"
#include "splice_maps.bpf.h"

/* Both addresses are apps', and one of them is watched. */
static __always_inline bool is_worth_a_look(const struct bpf_sock_ops *ops)
{
	const struct ax_vip *local, *remote;
	struct ax_endpoint ep = {};
	__u32 every = 0;

	local_of(ops, &ep);
	local = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!local || local->kind != AX_VIP_APP)
		return false;
	remote_of(ops, &ep);
	remote = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!remote || remote->kind != AX_VIP_APP)
		return false;
	return bpf_map_lookup_elem(&splice_apps, &every) ||
	       bpf_map_lookup_elem(&splice_apps, &local->id) ||
	       bpf_map_lookup_elem(&splice_apps, &remote->id);
}

static __always_inline void tell(const struct bpf_sock_ops *ops)
{
	struct ax_splice_ctl *c;
	__u32 zero = 0;

	c = bpf_map_lookup_elem(&splice_ctl, &zero);
	if (c && !c->told_new && is_worth_a_look(ops))
		splice_tell(AX_SPLICE_TOLD_NEW);
}

static __always_inline void join_at_once(struct bpf_sock_ops *ops, const struct splice_tuple *t)
{
	struct bpf_sock *sk = ops->sk;
	struct ax_splice_wanted self = {};
	struct ax_splice_end *end;

	if (!sk)
		return;
	self.peer = bpf_get_socket_cookie(ops);
	self.peer_sk = (__u64)(long)bpf_skc_to_tcp_sock(sk);
	end = bpf_sk_storage_get(&splice_ends, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!end || !self.peer_sk)
		return;
	bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_STATE_CB_FLAG);
	if (bpf_map_update_elem(&splice_tuples, t, &self, BPF_ANY))
		return;
	if (bpf_sock_hash_update(ops, &splice_members, &self.peer, BPF_NOEXIST)) {
		splice_counted(AX_SPLICE_FULL, 0);
		return;
	}
	end->member = 1;
	splice_counted(AX_SPLICE_JOINED, 0);
}

static __noinline int gate_ops(struct bpf_sock_ops *ops)
{
	struct splice_tuple t = {};

	if (!ops)
		return 0;
	t.netns = bpf_get_netns_cookie(ops);
	local_of(ops, &t.local);
	remote_of(ops, &t.remote);
	if (ops->op != BPF_SOCK_OPS_STATE_CB)
		join_at_once(ops, &t);
	else if (ops->args[1] == BPF_TCP_CLOSE)
		bpf_map_delete_elem(&splice_tuples, &t);
	return 0;
}

SEC("sockops")
int ax_splice_ops(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		if (!gate) {
			tell(ops);
			break;
		}
		/* fall through */
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_STATE_CB:
		if (gate)
			gate_ops(ops);
		break;
	}
	return 1;
}
