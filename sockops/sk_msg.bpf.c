/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of sockets that are members (include/splicing.h): handed to the socket at the other end
 * of the connection, or passed to TCP, which is what always works. Nobody shall see that they were
 * handed on, so both sockets are looked at anew with each message: whatever they have set that only
 * TCP gets right makes it go by TCP.
 *
 * Order is kept because nothing is handed on while the other end has not read all that went by TCP,
 * and because what was handed on is read before what is in TCP's queue. An end that holds enough is
 * handed no more, and by TCP the sender meets its back-pressure.
 *
 * What goes by TCP behind what was handed on and waits is read by another call: the first one ends
 * short before it. Readers that wait for edges take a short read for the end of what is there
 * (epoll(7)), and both may have been one edge. So behind what waits messages are handed on that
 * otherwise would not be; where that cannot be, the agent is told, who wakes the reader again. No
 * program can: the reader is asleep and nothing comes any more. So where no agent runs, nothing is
 * handed on but behind what waits already.
 *
 * The other end is found by its cookie. The address of its socket serves for looking only, and what
 * is there may be another socket by now: its cookie tells.
 */
#define AX_SPLICE_MAP
#include <linux/in.h>

#include "endpoint.bpf.h"
#include "splice_call.bpf.h"
#include "splice_kernel.bpf.h"
#include "splice_maps.bpf.h"
#include "splice_memory.bpf.h"

#define O_NONBLOCK     04000
#define TCP_NAGLE_CORK 2
#define MESSAGE_COST   1024 /* the kernel's struct sk_msg, as it is allocated */
#define PAGES_LEFT     32   /* of a control group's limit */

const volatile bool gate = false;

char LICENSE[] SEC("license") = "GPL";

/* Lets a number be read through as a pointer to a kernel type, without a call (Linux 6.2). */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id__k) __ksym __weak;

/* What is looked at of the other end. */
struct other {
	__u64 cookie;
	__u64 flags; /* bits of enum sock_flags */
	__u64 ulp;
	__u32 state;
	__u32 copied_seq;
	__u32 file_flags;
	__u32 tsflags;
	int held; /* of its receive buffer */
	int rcvbuf;
	int lowat;
	int peek_off;
	bool inq;
	bool repair;
	bool poor; /* the control group that pays for what it holds has little left */
};

/* An address that nothing is at reads as 0: then the cookie is wrong. */
static __always_inline void look(struct other *o, const struct tcp_sock *tp, __u32 size)
{
	const struct sock_common *skc = (const void *)tp;
	const struct sock *sk = (const void *)tp;

	o->cookie = skc->skc_cookie.counter;
	o->state = skc->skc_state;
	o->flags = skc->skc_flags;
	o->peek_off = sk->sk_peek_off;
	o->held = sk->sk_backlog.rmem_alloc.counter;
	o->rcvbuf = sk->sk_rcvbuf;
	o->lowat = sk->sk_rcvlowat;
	o->tsflags = BPF_CORE_READ_BITFIELD(sk, sk_tsflags);
	o->file_flags = sk->sk_socket->file->f_flags;
	o->ulp = (__u64)((const struct inet_connection_sock *)tp)->icsk_ulp_ops;
	o->copied_seq = tp->copied_seq;
	o->inq = BPF_CORE_READ_BITFIELD(tp, recvmsg_inq);
	o->repair = BPF_CORE_READ_BITFIELD(tp, repair);
	if (bpf_core_field_exists(sk->sk_memcg) && sk->sk_memcg)
		o->poor = group_is_near_limit(sk->sk_memcg, size / PAGE + PAGES_LEFT);
}

static __always_inline void look_by_calls(struct other *o, const struct tcp_sock *tp)
{
	const struct sock_common *skc = (const void *)tp;
	const struct sock *sk = (const void *)tp;

	o->cookie = BPF_CORE_READ(skc, skc_cookie.counter);
	o->state = BPF_CORE_READ(skc, skc_state);
	o->flags = BPF_CORE_READ(skc, skc_flags);
	o->peek_off = BPF_CORE_READ(sk, sk_peek_off);
	o->held = BPF_CORE_READ(sk, sk_backlog.rmem_alloc.counter);
	o->rcvbuf = BPF_CORE_READ(sk, sk_rcvbuf);
	o->lowat = BPF_CORE_READ(sk, sk_rcvlowat);
	o->tsflags = BPF_CORE_READ_BITFIELD_PROBED(sk, sk_tsflags);
	o->file_flags = BPF_CORE_READ(sk, sk_socket, file, f_flags);
	o->ulp = (__u64)BPF_CORE_READ((const struct inet_connection_sock *)tp, icsk_ulp_ops);
	o->copied_seq = BPF_CORE_READ(tp, copied_seq);
	o->inq = BPF_CORE_READ_BITFIELD_PROBED(tp, recvmsg_inq);
	o->repair = BPF_CORE_READ_BITFIELD_PROBED(tp, repair);
}

/* Without one of these nothing can be known. (The verifier sees a constant.) */
static __always_inline bool is_layout_known(const struct tcp_sock *tp)
{
	const struct sock *sk = (const void *)tp;

	return bpf_core_field_exists(sk->sk_peek_off) &&
	       bpf_core_field_exists(sk->sk_backlog.rmem_alloc) &&
	       bpf_core_field_exists(sk->sk_rcvbuf) && bpf_core_field_exists(sk->sk_rcvlowat) &&
	       bpf_core_field_exists(sk->sk_tsflags) && bpf_core_field_exists(sk->sk_socket) &&
	       bpf_core_field_exists(sk->sk_max_pacing_rate) &&
	       bpf_core_field_exists(((const struct inet_connection_sock *)tp)->icsk_ulp_ops) &&
	       bpf_core_field_exists(tp->copied_seq) && bpf_core_field_exists(tp->write_seq) &&
	       bpf_core_field_exists(tp->recvmsg_inq) && bpf_core_field_exists(tp->repair) &&
	       bpf_core_field_exists(tp->nonagle) &&
	       bpf_core_field_exists(((const struct sock_common *)tp)->skc_prot->memory_pressure) &&
	       bpf_core_enum_value_exists(enum sock_flags, SOCK_URGINLINE) &&
	       bpf_core_enum_value_exists(enum sock_flags, SOCK_RCVTSTAMP) &&
	       bpf_core_enum_value_exists(enum sock_flags, SOCK_RCVTSTAMPNS) &&
	       bpf_core_enum_value_exists(enum sock_flags, SOCK_TIMESTAMPING_RX_SOFTWARE);
}

static __always_inline __u64 flag(unsigned int bit)
{
	return 1ULL << bit;
}

/*
 * Half of the buffer. TCP's own data needs room too: who reads what was handed on sends no window
 * update, and what arrives by TCP at a full buffer may be dropped. The window never is more than
 * about half of the buffer.
 *
 * The kernel counts bytes, and each message costs it a structure besides, which nobody counts:
 * small ones could take a thousand times their size. How many wait is not known, but how many there
 * were since none did.
 */
static __always_inline bool has_room(const struct ax_splice_end *end, const struct other *o,
				     __u32 size)
{
	__u64 held = o->held;

	if (o->held < 0 || size > (__u32)o->rcvbuf)
		return false;
	held += (__u64)end->since_empty * MESSAGE_COST;
	return 2 * held < (__u32)o->rcvbuf;
}

/* Whether something waits that was handed on; nothing of TCP's does when this is asked. */
static __always_inline bool is_behind(const struct other *o)
{
	return o->held > 0;
}

/* 0, or what at the other end makes a message go by TCP whatever it is behind. */
static __always_inline __u32 other_obstacle(const struct ax_splice_end *end, const struct other *o,
					    __u32 write_seq, __u32 size)
{
	if (!end->peer || o->cookie != end->peer)
		return AX_SPLICE_GONE;
	if (o->state != BPF_TCP_ESTABLISHED)
		return AX_SPLICE_STATE;
	if (o->copied_seq != write_seq)
		return AX_SPLICE_UNREAD;
	if (!has_room(end, o, size))
		return AX_SPLICE_NO_ROOM;
	if (o->ulp)
		return AX_SPLICE_IS_ULP;
	return o->repair ? AX_SPLICE_REPAIR : 0;
}

/* What only TCP gets right there. */
static __always_inline __u32 other_option(const struct other *o)
{
	if (!(o->file_flags & O_NONBLOCK))
		return AX_SPLICE_BLOCKING;
	if (o->lowat > 1)
		return AX_SPLICE_LOWAT;
	if (o->peek_off >= 0)
		return AX_SPLICE_PEEK_OFF;
	if (o->tsflags ||
	    o->flags & (flag(bpf_core_enum_value(enum sock_flags, SOCK_RCVTSTAMP)) |
			flag(bpf_core_enum_value(enum sock_flags, SOCK_RCVTSTAMPNS)) |
			flag(bpf_core_enum_value(enum sock_flags, SOCK_TIMESTAMPING_RX_SOFTWARE))))
		return AX_SPLICE_TIMESTAMP;
	if (o->flags & flag(bpf_core_enum_value(enum sock_flags, SOCK_URGINLINE)))
		return AX_SPLICE_OOBINLINE;
	return o->inq ? AX_SPLICE_INQ : 0;
}

/* The same at this end; the sender holds its lock. */
static __always_inline __u32 own_obstacle(const struct tcp_sock *tp)
{
	const struct sock_common *skc = (const void *)tp;

	if (skc->skc_state != BPF_TCP_ESTABLISHED)
		return AX_SPLICE_STATE;
	if (((const struct inet_connection_sock *)tp)->icsk_ulp_ops)
		return AX_SPLICE_IS_ULP;
	return BPF_CORE_READ_BITFIELD(tp, repair) ? AX_SPLICE_REPAIR : 0;
}

static __always_inline __u32 own_option(const struct tcp_sock *tp)
{
	const struct sock *sk = (const void *)tp;

	if (BPF_CORE_READ_BITFIELD(tp, nonagle) & TCP_NAGLE_CORK)
		return AX_SPLICE_CORK;
	if (BPF_CORE_READ_BITFIELD(sk, sk_tsflags))
		return AX_SPLICE_TIMESTAMP;
	return sk->sk_max_pacing_rate != ~0UL ? AX_SPLICE_PACED : 0;
}

/*
 * The task at that address may be another one by now: when it was started tells. And one that is
 * stopped, by SIGSTOP, a debugger or a frozen control group, wakes nobody until it goes on.
 */
static __always_inline bool is_agent_there(const struct ax_splice_ctl *c)
{
	const struct task_struct *task = (void *)c->agent;
	__u32 flags, status, frozen = 0;
	__u64 since;
	int ended;

	if (!bpf_core_field_exists(task->start_boottime))
		return false;
	if (bpf_rdonly_cast) {
		task = bpf_rdonly_cast((void *)c->agent,
				       bpf_core_type_id_kernel(struct task_struct));
		since = task->start_boottime;
		flags = task->flags;
		ended = task->exit_state;
		status = task->__state;
		if (bpf_core_field_exists(task->frozen))
			frozen = BPF_CORE_READ_BITFIELD(task, frozen);
	} else {
		since = BPF_CORE_READ(task, start_boottime);
		flags = BPF_CORE_READ(task, flags);
		ended = BPF_CORE_READ(task, exit_state);
		status = BPF_CORE_READ(task, __state);
		if (bpf_core_field_exists(task->frozen))
			frozen = BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
	}
	if (frozen || status & (TASK_STOPPED | TASK_TRACED))
		return false;
	return since && since == c->agent_since && !(flags & PF_EXITING) && !ended;
}

static __always_inline __u32 switched_off(const struct ax_splice_ctl *c,
					  const struct ax_splice_end *end)
{
	if (!c->redirect || end->parted)
		return AX_SPLICE_OFF;
	return gate || is_agent_there(c) ? 0 : AX_SPLICE_ALONE;
}

/* Where TCP waits or drops, redirecting would tell the sender ENOMEM. */
static __always_inline bool is_memory_short(const struct tcp_sock *tp)
{
	const struct sock_common *skc = (const void *)tp;
	const unsigned long *at = skc->skc_prot->memory_pressure;
	unsigned long since = 0;

	if (bpf_rdonly_cast) /* a pointer stands for the number: there is no structure of it */
		return ((const struct list_head *)bpf_rdonly_cast(
				at, bpf_core_type_id_kernel(struct list_head)))
			->next;
	return bpf_probe_read_kernel(&since, sizeof(since), at) || since;
}

/* 0, or why this message goes by TCP. */
static __always_inline __u32 obstacle(struct sk_msg_md *msg, struct bpf_sock *sk,
				      struct ax_splice_end *end, bool *behind)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	const struct ax_splice_ctl *c;
	struct other o = {};
	__u32 zero = 0, why;

	c = bpf_map_lookup_elem(&splice_ctl, &zero);
	if (!c)
		return AX_SPLICE_OFF;
	if (!tp || !is_layout_known(tp))
		return AX_SPLICE_UNKNOWN;
	if (bpf_rdonly_cast)
		look(&o,
		     bpf_rdonly_cast((void *)end->peer_sk,
				     bpf_core_type_id_kernel(struct tcp_sock)),
		     msg->size);
	else
		look_by_calls(&o, (void *)end->peer_sk);
	if (!o.held)
		end->since_empty = 0;
	why = other_obstacle(end, &o, tp->write_seq, msg->size);
	*behind = why != AX_SPLICE_UNREAD && is_behind(&o);
	why = why ? why : own_obstacle(tp);
	why = why ? why : o.poor || is_memory_short(tp) ? AX_SPLICE_MEMORY : 0;
	if (!*behind) {
		why = why ? why : switched_off(c, end);
		why = why ? why : other_option(&o);
		why = why ? why : own_option(tp);
	}
	return why ? why : call_obstacle(*behind);
}

/* Of the gate: the socket that has the mirrored addresses is the other end. */
static __noinline int find_other(struct sk_msg_md *msg, struct ax_splice_end *end)
{
	struct splice_tuple t = {.netns = bpf_get_netns_cookie(msg)};
	const struct ax_splice_wanted *w;

	if (!end)
		return 0;
	if (msg->family == AF_INET) {
		addr_set_v4(&t.remote.addr, msg->local_ip4);
		addr_set_v4(&t.local.addr, msg->remote_ip4);
	} else {
		for (int i = 0; i < 4; i++) {
			t.remote.addr.w[i] = msg->local_ip6[i];
			t.local.addr.w[i] = msg->remote_ip6[i];
		}
	}
	t.local.proto = t.remote.proto = IPPROTO_TCP;
	t.remote.port_be = bpf_htons(msg->local_port);
	t.local.port_be = bpf_htons(bpf_ntohl(msg->remote_port));
	w = bpf_map_lookup_elem(&splice_tuples, &t);
	if (w) {
		end->peer_sk = w->peer_sk;
		end->peer = w->peer;
	}
	return 0;
}

SEC("sk_msg")
int ax_splice_msg(struct sk_msg_md *msg)
{
	struct bpf_sock *sk = msg->sk;
	struct ax_splice_end *end;
	__u32 size = msg->size;
	bool behind = false;
	__u32 why;

	end = sk ? bpf_sk_storage_get(&splice_ends, sk, NULL, 0) : NULL;
	if (!end)
		return SK_PASS;
	if (gate && !end->peer)
		find_other(msg, end);
	why = obstacle(msg, sk, end, &behind);
	if (!why &&
	    bpf_msg_redirect_hash(msg, &splice_members, &end->peer, BPF_F_INGRESS) != SK_PASS)
		why = AX_SPLICE_GONE;
	if (why) {
		end->why = why;
		end->passed++;
		end->passed_bytes += size;
		splice_counted(AX_SPLICE_PASSED, size);
		splice_counted(why, size);
		if (behind || why == AX_SPLICE_MEMORY)
			splice_tell(AX_SPLICE_TOLD_UNREAD);
	} else {
		end->since_empty++;
		end->redirected++;
		end->redirected_bytes += size;
		splice_counted(AX_SPLICE_REDIRECTED, size);
	}
	return SK_PASS; /* a helper that failed has left the message to TCP */
}
