/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Iterators over the TCP sockets of the network namespace of whoever reads them: one describes
 * connections that might be spliced, the other makes members of the sockets that are wanted, or
 * has members send by TCP. And who the agent is. */
#include <linux/errno.h>

#include "sock_ends.bpf.h"
#include "splice_kernel.bpf.h"
#include "splice_maps.bpf.h"
#include "splice_memory.bpf.h"
#include <bpf/bpf_core_read.h>

#define O_NONBLOCK  04000
#define SOL_SOCKET  1
#define SO_RCVLOWAT 18

#define SOL_TCP		  6
#define TCP_NOTSENT_LOWAT 25
#define SOCK_NOSPACE	  2 /* of socket flags: somebody waits for room */

/* Of a group whose sockets have a limit of their own: who reaches it gets nothing as a member, as
 * long as others hold all of it, where TCP gives each socket a page. */
static __always_inline bool has_socket_limit(const struct sock *sk)
{
	return bpf_core_field_exists(sk->sk_memcg) && sk->sk_memcg &&
	       group_limits_sockets(sk->sk_memcg);
}

/* Of somebody else: sockets of a user of the kernel's own, and those in other maps than ours. */
static __always_inline bool is_taken(const struct tcp_sock *tp, bool member)
{
	const struct sock *sk = (const void *)tp;

	if (BPF_CORE_READ_BITFIELD(tp, repair) ||
	    (!member && (sk->sk_user_data || has_socket_limit(sk))))
		return true;
	return bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp;
}

static __always_inline bool has_ulp(const struct tcp_sock *tp)
{
	return ((const struct inet_connection_sock *)tp)->icsk_ulp_ops;
}

static __always_inline __u32 flags_of(const struct tcp_sock *tp, bool member)
{
	const struct sock *sk = (const void *)tp;
	__u32 flags = member ? AX_SPLICE_MEMBER : 0;

	if (sk->sk_socket->file->f_flags & O_NONBLOCK)
		flags |= AX_SPLICE_NONBLOCK;
	if (has_ulp(tp))
		flags |= AX_SPLICE_ULP;
	if (is_taken(tp, member))
		flags |= AX_SPLICE_OTHER;
	return flags;
}

/* Both addresses are apps'; *app: the one at this end. */
static __always_inline bool is_between_apps(const struct ax_splice_conn *conn, __u32 *app)
{
	const struct ax_vip *local, *remote;

	if (gate)
		return true;
	local = bpf_map_lookup_elem(&vips, &conn->local.addr);
	if (!local || local->kind != AX_VIP_APP)
		return false;
	*app = local->id;
	remote = bpf_map_lookup_elem(&vips, &conn->remote.addr);
	return remote && remote->kind == AX_VIP_APP;
}

static __always_inline void describe(struct ax_splice_conn *conn, const struct tcp_sock *tp,
				     const struct ax_splice_end *end)
{
	conn->sk = (__u64)(long)tp;
	conn->netns = ((const struct sock_common *)tp)->skc_net.net->net_cookie;
	conn->flags = flags_of(tp, end && end->member);
	conn->write_seq = tp->write_seq;
	conn->snd_una = tp->snd_una;
	conn->rcv_nxt = tp->rcv_nxt;
	conn->copied_seq = tp->copied_seq;
	conn->held = ((const struct sock *)tp)->sk_backlog.rmem_alloc.counter;
	conn->data_segs_in = tp->data_segs_in;
	conn->data_segs_out = tp->data_segs_out;
	conn->bytes_sent = tp->bytes_sent;
	conn->bytes_received = tp->bytes_received;
	if (!end)
		return;
	conn->why = end->why;
	conn->since_empty = end->since_empty;
	if (end->parted)
		conn->flags |= AX_SPLICE_PARTED;
	conn->redirected = end->redirected;
	conn->redirected_bytes = end->redirected_bytes;
	conn->passed = end->passed;
	conn->passed_bytes = end->passed_bytes;
}

/* Its reader may take what it read of redirected data for all that is there (sk_msg.bpf.c). Setting
 * what is set wakes it if there is something to read; once more does no harm. */
static __always_inline void wake_reader(struct tcp_sock *tp)
{
	int lowat = ((const struct sock *)tp)->sk_rcvlowat;

	if (tp->rcv_nxt != tp->copied_seq)
		bpf_setsockopt(tp, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
}

/* One who could send nothing because memory was short waits for an edge that nobody makes:
 * tcp_bpf_sendmsg() leaves that to what is queued, and nothing is. */
static __always_inline bool is_stuck(const struct tcp_sock *tp)
{
	return ((const struct sock *)tp)->sk_socket->flags & (1UL << SOCK_NOSPACE) &&
	       tp->write_seq == tp->snd_una;
}

/* Setting what is set has a look at the room, and wakes who waits for it. */
static __always_inline void wake_writer(struct tcp_sock *tp)
{
	int lowat = (int)tp->notsent_lowat;

	bpf_setsockopt(tp, SOL_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

SEC("iter/tcp")
int ax_splice_conns(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct ax_splice_conn conn = {};
	struct ax_splice_end *end;
	struct ax_asked *a;
	struct tcp_sock *tp;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc); /* not for time-wait and request sockets */
	if (!tp)
		return 0;
	end = bpf_sk_storage_get(&splice_ends, tp, NULL, 0);
	if (skc->skc_state != BPF_TCP_ESTABLISHED && !end)
		return 0;
	ends_of(skc, &conn.local, &conn.remote);
	if (!is_between_apps(&conn, &conn.app))
		return 0;
	conn.cookie = bpf_get_socket_cookie(tp);
	a = bpf_sk_storage_get(&asked, tp, NULL, 0);
	if (a)
		conn.asked = a->peer;
	describe(&conn, tp, end);
	if (end && end->member) {
		wake_reader(tp);
		if (is_stuck(tp)) {
			conn.flags |= AX_SPLICE_STUCK;
			wake_writer(tp);
		}
	}
	bpf_seq_write(ctx->meta->seq, &conn, sizeof(conn));
	return 0;
}

/* Before Linux 6.5 a socket's spin lock is held here, and the map would take it again: the agent
 * does not run this there. */
static __always_inline int join(struct tcp_sock *tp, __u64 cookie, const struct ax_splice_wanted *w)
{
	struct ax_splice_end *end;
	int r;

	if (((const struct sock_common *)tp)->skc_state != BPF_TCP_ESTABLISHED)
		return -ENOTCONN;
	end = bpf_sk_storage_get(&splice_ends, tp, NULL, w->peer ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!end)
		return w->peer ? -ENOMEM : -ENOENT;
	if (!w->peer && !end->member)
		return -ENOENT;
	end->parted = !w->peer;
	if (end->parted)
		return 0;
	if (!end->member && (has_ulp(tp) || is_taken(tp, false)))
		return -EBUSY;
	end->peer = w->peer;
	end->peer_sk = w->peer_sk;
	if (end->member)
		return 0;
	/* Never in the place of another: what is unread of a member that is taken out is lost. */
	r = bpf_map_update_elem(&splice_members, &cookie, tp, BPF_NOEXIST);
	if (r) {
		if (r == -E2BIG)
			splice_counted(AX_SPLICE_FULL, 0);
		return r;
	}
	end->member = 1;
	splice_counted(AX_SPLICE_JOINED, 0);
	return 0;
}

SEC("iter/tcp")
int ax_splice_join(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct ax_splice_joined joined = {};
	struct ax_splice_wanted *w;
	struct tcp_sock *tp;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	joined.cookie = skc->skc_cookie.counter;
	w = bpf_map_lookup_elem(&splice_wanted, &joined.cookie);
	if (!w)
		return 0;
	joined.result = join(tp, joined.cookie, w);
	bpf_seq_write(ctx->meta->seq, &joined, sizeof(joined));
	return 0;
}

/* Run by the agent. */
SEC("syscall")
int ax_splice_agent(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ax_splice_ctl *c;
	__u32 zero = 0;

	(void)ctx;
	c = bpf_map_lookup_elem(&splice_ctl, &zero);
	if (!c)
		return -ENOENT;
	c->agent = (__u64)(long)task->group_leader;
	c->agent_since = task->group_leader->start_boottime;
	return 0;
}
