/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Both ends of a connection that is translated between nodes: the client's SYN says whose it is,
 * and what is accepted gets the names by which its apps know it. BPF only. */
#ifndef AX_ACROSS_OPS_BPF_H
#define AX_ACROSS_OPS_BPF_H

#include <linux/tcp.h>

#include "across.bpf.h"
#include "count.bpf.h"
#include "ops_ends.bpf.h"

#define TCP_FLAG_SYN_BPF 0x02

/* The SYN is about to be made. (Whoever sets flags before this one sets his alone.) */
static __always_inline void across_syn(struct bpf_sock_ops *ctx)
{
	bpf_sock_ops_cb_flags_set(ctx,
				  ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* Established: nothing more is said. */
static __always_inline void across_said(struct bpf_sock_ops *ctx)
{
	__u32 flags = ctx->bpf_sock_ops_cb_flags;

	if (flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)
		bpf_sock_ops_cb_flags_set(ctx, flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

static __always_inline void across_reserve(struct bpf_sock_ops *ctx)
{
	if (ctx->skb_tcp_flags & TCP_FLAG_SYN_BPF)
		bpf_reserve_hdr_opt(ctx, sizeof(struct ax_across_option), 0);
}

/* (A private app's has no storage: only room is left, what is in it the fabric says,
 * xdp/across_client.bpf.h.) */
static __noinline __attribute__((unused)) int across_write(struct bpf_sock_ops *ctx)
{
	struct ax_across_option opt = {.kind = AX_ACROSS_KIND,
				       .len = sizeof(opt),
				       .exid_be = bpf_htons(AX_ACROSS_EXID),
				       .version = AX_ACROSS_VERSION};
	const struct ax_across_ctl *c = across_get();
	struct ax_across_mac m = {.version = AX_ACROSS_VERSION};
	struct ax_endpoint end;
	const struct tcphdr *th;
	struct ax_across *x;
	struct bpf_sock *sk;
	struct ax_asked *a;
	__u64 mac;

	if (!ctx || !c || !c->now.id || !(ctx->skb_tcp_flags & TCP_FLAG_SYN_BPF))
		return 0;
	sk = ctx->sk;
	x = sk ? bpf_sk_storage_get(&across, sk, NULL, 0) : NULL;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	th = ctx->skb_data;
	if (!a || (const void *)(th + 1) > ctx->skb_data_end)
		return 0;
	if (!x) {
		bpf_store_hdr_opt(ctx, &opt, sizeof(opt), 0);
		return 0;
	}
	m.seq_be = th->seq;
	local_of(ctx, &end);
	m.client = end.addr;
	m.client_port_be = end.port_be;
	remote_of(ctx, &end);
	m.to_port_be = end.port_be;
	m.server = a->real_peer.addr;
	m.server_port_be = a->real_peer.port_be;
	m.number_be = opt.number_be = bpf_htonl(x->number);
	m.key_id = opt.key_id = (__u8)c->now.id;
	mac = across_mac(&m, c->now.k[0], c->now.k[1]);
	__builtin_memcpy(opt.mac, &mac, sizeof(opt.mac));
	bpf_store_hdr_opt(ctx, &opt, sizeof(opt), 0);
	return 0;
}

/* Accepted: true, and *local is the server's endpoint, if it came across. */
static __noinline __attribute__((unused)) int across_accept(struct bpf_sock_ops *ctx,
							    struct ax_endpoint *local)
{
	const struct ax_across_ctl *c = across_get();
	struct ax_across_came *came;
	struct ax_flow_key key = {};
	struct ax_endpoint *served;
	struct ax_across *x;
	struct bpf_sock *sk;
	struct ax_asked *a;

	if (!ctx || !c || !local)
		return false;
	local_of(ctx, &key.peer);
	if (!is_across(c, &key.peer))
		return false;
	served = across_served_at(&key.peer);
	sk = ctx->sk;
	if (!served || !sk)
		return false;
	a = bpf_sk_storage_get(&asked, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	x = bpf_sk_storage_get(&across, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!a || !x) {
		count(AX_COUNT_ERROR);
		return false;
	}
	x->self = *served;
	*local = *served;
	__sync_fetch_and_or(&a->flags, AX_ASKED_ACROSS);
	remote_of(ctx, &key.client);
	came = bpf_map_lookup_elem(&across_came, &key);
	if (!came)
		return true;
	a->peer.addr = came->client;
	a->peer.port_be = key.client.port_be;
	a->peer.proto = IPPROTO_TCP;
	bpf_map_delete_elem(&across_came, &key);
	return true;
}

#endif
