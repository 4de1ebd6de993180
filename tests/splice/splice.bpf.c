// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The two ways in which sockets can be in a sockhash: as members whose program passes everything
 * on, and with messages redirected to the other end while that keeps what TCP promises: an end
 * that holds more than its receive buffer gets no more, and order is kept because nothing is
 * redirected while the other end has not read what went by TCP.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "splice.h"

#define AF_INET 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	struct {
		struct {
			int counter;
		} rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
};
struct tcp_sock {
	unsigned int copied_seq;
	unsigned int write_seq;
};
#pragma clang attribute pop

const volatile _Bool redirect;

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 4096);
	__type(key, struct splice_key);
	__type(value, __u64);
} members SEC(".maps");

/* The kernel's address of each member's tcp_sock: a number, only ever read through. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct splice_key);
	__type(value, __u64);
} socks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SPLICE_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

SEC("sockops")
int join(struct bpf_sock_ops *ops)
{
	struct splice_key key = {.netns = bpf_get_netns_cookie(ops)};
	struct bpf_sock *sk;
	__u64 tp;

	if (ops->op == BPF_SOCK_OPS_STATE_CB && ops->args[1] != BPF_TCP_CLOSE)
		return 1;
	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_STATE_CB)
		return 1;
	key.local_port = ops->local_port;
	key.remote_port = bpf_ntohl(ops->remote_port);
	if (ops->family == AF_INET) {
		key.local[3] = ops->local_ip4;
		key.remote[3] = ops->remote_ip4;
	} else {
		for (int i = 0; i < 4; i++) {
			key.local[i] = ops->local_ip6[i];
			key.remote[i] = ops->remote_ip6[i];
		}
	}
	if (ops->op == BPF_SOCK_OPS_STATE_CB) {
		bpf_map_delete_elem(&socks, &key);
		return 1;
	}
	sk = ops->sk;
	if (!sk)
		return 1;
	tp = (__u64)(long)bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_STATE_CB_FLAG);
	if (bpf_map_update_elem(&socks, &key, &tp, BPF_ANY) == 0 &&
	    bpf_sock_hash_update(ops, &members, &key, BPF_ANY) == 0)
		count(SPLICE_JOINED);
	return 1;
}

/* Whether the other end has read all that went by TCP, and has room. */
static __always_inline _Bool may_redirect(const struct splice_key *own,
					  const struct splice_key *peer)
{
	__u64 *own_tp = bpf_map_lookup_elem(&socks, own);
	__u64 *peer_tp = bpf_map_lookup_elem(&socks, peer);
	struct tcp_sock *mine, *theirs;

	if (!own_tp || !peer_tp)
		return 0;
	mine = (void *)(long)*own_tp;
	theirs = (void *)(long)*peer_tp;
	return BPF_CORE_READ((struct sock *)theirs, sk_backlog.rmem_alloc.counter) <=
		       BPF_CORE_READ((struct sock *)theirs, sk_rcvbuf) &&
	       BPF_CORE_READ(theirs, copied_seq) == BPF_CORE_READ(mine, write_seq);
}

SEC("sk_msg")
int pass(struct sk_msg_md *msg)
{
	struct splice_key own = {.netns = bpf_get_netns_cookie(msg)}, peer = own;

	if (!redirect) {
		count(SPLICE_PASSED);
		return SK_PASS;
	}
	own.local_port = peer.remote_port = msg->local_port;
	own.remote_port = peer.local_port = bpf_ntohl(msg->remote_port);
	if (msg->family == AF_INET) {
		own.local[3] = peer.remote[3] = msg->local_ip4;
		own.remote[3] = peer.local[3] = msg->remote_ip4;
	} else {
		for (int i = 0; i < 4; i++) {
			own.local[i] = peer.remote[i] = msg->local_ip6[i];
			own.remote[i] = peer.local[i] = msg->remote_ip6[i];
		}
	}
	if (may_redirect(&own, &peer) &&
	    bpf_msg_redirect_hash(msg, &members, &peer, BPF_F_INGRESS) == SK_PASS)
		count(SPLICE_REDIRECTED);
	else
		count(SPLICE_PASSED);
	return SK_PASS; /* also after a failure: then it goes by TCP */
}

char LICENSE[] SEC("license") = "GPL";
