/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The few kernel structures that the programs read, as CO-RE subsets: libbpf finds each member's
 * offset in the running kernel's BTF. (A full vmlinux.h and <linux/bpf.h> exclude each other.)
 */
#ifndef AX_KERNEL_BPF_H
#define AX_KERNEL_BPF_H

#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* (the part after ___ is no part of the name to libbpf; <linux/in6.h> has the plain one) */
struct in6_addr___kernel {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_reuse : 4;
	unsigned char skc_reuseport : 1;
	unsigned char skc_ipv6only : 1;
	unsigned char skc_net_refcnt : 1;
	int skc_bound_dev_if;
	unsigned long skc_flags;   /* bits of enum sock_flags */
	struct sock *skc_listener; /* in its place, of one whose handshake has not ended */
	struct proto *skc_prot;
	struct {
		struct net *net;
	} skc_net;
	struct {
		__s64 counter;
	} skc_cookie; /* 0: nobody has asked for it */
	struct in6_addr___kernel skc_v6_daddr;
	struct in6_addr___kernel skc_v6_rcv_saddr;
};

struct proto {
	unsigned long *memory_pressure; /* 0 there: there is enough */
};

struct net {
	__u64 net_cookie;
};

/* (it begins with a struct sock, and that with a struct sock_common) */
struct tcp_sock {
	__u64 bytes_received; /* a FIN counts */
	__u64 bytes_sent;     /* these two: payload, each time that it is sent, and but the first */
	__u64 bytes_retrans;
	__u32 snd_una; /* sequence numbers */
	__u32 snd_nxt;
	__u32 write_seq;
	__u32 rcv_nxt;
	__u32 copied_seq; /* what was read */
	__u32 data_segs_in;
	__u32 data_segs_out;
	__u32 srtt_us;
	__u32 notsent_lowat;
	__u8 nonagle : 4; /* TCP_NAGLE_* */
	__u8 recvmsg_inq : 1;
	__u8 repair : 1;
	__u8 fastopen_connect : 1;
	bool is_mptcp;	    /* only with CONFIG_MPTCP */
	void *fastopen_req; /* data that the SYN is to have */
};

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_map;
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock_common *sk; /* a struct sock, which begins with it */
	void *value;
};
struct udp_sock;
struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct udp_sock *udp_sk;
};
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	unsigned int uid;
};

#pragma clang attribute pop

/* IPV6_V6ONLY is not to be had from bpf_getsockopt(); CO-RE reads the bit. */
static __always_inline bool is_v6only(const struct sock_common *skc)
{
	return BPF_CORE_READ_BITFIELD(skc, skc_ipv6only);
}

/* Its SYN has no room for one option more: what fast open or MPTCP say there. */
static __always_inline bool has_full_syn(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, fastopen_connect) || tp->fastopen_req ||
	       (bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp);
}

#endif
