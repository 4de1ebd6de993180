// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace tcp: connections from their first state to their last. Most states change in whatever
 * process the packet interrupted, so whose a socket is is seen where it connects or listens, and
 * kept with it; what it accepts inherits that.
 */
#include "watch.bpf.h"
#include "endpoint.bpf.h"
#include "service.h"

#define AF_INET	   2
#define AF_INET6   10
#define TCP	   6
#define SOCK_DONE  2 /* bit of sk_flags: the peer's FIN has come */
#define PF_KTHREAD 0x00200000

enum {
	ESTABLISHED = 1,
	SYN_SENT,
	SYN_RECV,
	FIN_WAIT1,
	FIN_WAIT2,
	TIME_WAIT,
	CLOSE,
	CLOSE_WAIT,
	LAST_ACK,
	LISTEN,
	CLOSING,
	NEW_SYN_RECV,
};

const volatile struct {
	__u32 live;
} wanted;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr___kernel {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr___kernel skc_v6_daddr;
	struct in6_addr___kernel skc_v6_rcv_saddr;
	unsigned long skc_flags;
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	int sk_err;
	struct sock_cgroup_data sk_cgrp_data;
};
struct inet_sock {
	__be16 inet_sport;
};
struct tcp_sock {
	__u64 bytes_received;
	__u64 bytes_acked;
	__u32 srtt_us;
	__u32 total_retrans;
};
struct socket {
	struct sock *sk;
};
struct file;
struct bpf_iter_meta;
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};
struct task_struct___flags {
	unsigned int flags;
};
#pragma clang attribute pop

/* Of a socket that is watched. */
struct owner {
	__u64 begin_ns;
	__u64 established_ns;
	__u32 pid;
	__u32 tid;
	__u32 ppid;
	__u32 uid;
	__u32 flags; /* enum ax_tcp_flag */
	char comm[AX_EVENT_COMM];
};
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct owner);
} owners SEC(".maps");
/* The socket switch's, if it is at work: the service that was asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_asked);
} asked SEC(".maps");

/* --- whose it is --- */

static __always_inline bool in_cgroup(struct sock *sk)
{
	struct cgroup *c;

	if (!watch.scope.n)
		return true;
	c = cgroup_above(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), watch.scope.level);
	return c && scope_has(&watch.scope, BPF_CORE_READ(c, kn, id));
}

static __always_inline bool in_tree(__u32 tgid)
{
	return !watch.tree || bpf_map_lookup_elem(&tree, &tgid);
}

static __always_inline void owned_by_current(struct owner *o)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();

	o->pid = id >> 32;
	o->tid = (__u32)id;
	o->ppid = task->real_parent->tgid;
	o->uid = (__u32)bpf_get_current_uid_gid();
	bpf_get_current_comm(o->comm, sizeof(o->comm));
}

static __always_inline bool current_is_kernel(void)
{
	struct task_struct___flags *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, flags) & PF_KTHREAD;
}

/* Of connect() and listen(), which the process itself has called. */
static __always_inline struct owner *begin(struct sock *sk, __u32 flags)
{
	struct owner *o;

	if (!in_tree(bpf_get_current_pid_tgid() >> 32) || !in_cgroup(sk))
		return NULL;
	o = bpf_sk_storage_get(&owners, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o)
		return NULL;
	owned_by_current(o);
	o->flags = flags;
	o->begin_ns = bpf_ktime_get_ns();
	o->established_ns = 0;
	return o;
}

/* One that was there before, or that a listener accepted that was. */
static __always_inline struct owner *begin_unknown(struct sock *sk, __u32 flags)
{
	struct owner *o;

	if (watch.tree || !in_cgroup(sk))
		return NULL;
	o = bpf_sk_storage_get(&owners, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o)
		return NULL;
	o->flags = flags;
	o->begin_ns = bpf_ktime_get_ns();
	return o;
}

/* Who closes is who used it: of several processes with one listener, the one that accepted. */
static __always_inline bool is_close(int from, int to)
{
	return (from == ESTABLISHED && to == FIN_WAIT1) || (from == CLOSE_WAIT && to == LAST_ACK);
}

static __always_inline struct owner *owner_of(struct sock *sk, int from, int to)
{
	struct owner *o;

	if (to == SYN_SENT)
		return begin(sk, AX_TCP_ACTIVE);
	if (to == LISTEN)
		return begin(sk, 0);
	o = bpf_sk_storage_get(&owners, sk, NULL, 0);
	if (!o)
		o = begin_unknown(sk, from == SYN_RECV && to == ESTABLISHED ? 0 : AX_TCP_OLD);
	if (!o)
		return NULL;
	if (to == ESTABLISHED) {
		o->established_ns = bpf_ktime_get_ns();
		if (!(o->flags & AX_TCP_ACTIVE)) { /* what it has is its listener's */
			o->begin_ns = o->established_ns;
			o->flags = 0;
		}
	}
	if (is_close(from, to) && !(o->flags & AX_TCP_ACTIVE) && !current_is_kernel())
		owned_by_current(o);
	return o;
}

/* --- what is told --- */

static __always_inline void pair_of(struct sock *sk, struct ax_tcp_event *e)
{
	struct inet_sock *inet = (void *)sk;

	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		addr_set_v4(&e->local.addr, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		addr_set_v4(&e->remote.addr, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	} else {
		BPF_CORE_READ_INTO(&e->local.addr.w, sk,
				   __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32);
		BPF_CORE_READ_INTO(&e->remote.addr.w, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
	}
	/* skc_num is 0 again when a socket is closed */
	e->local.port_be = BPF_CORE_READ(inet, inet_sport);
	e->remote.port_be = BPF_CORE_READ(sk, __sk_common.skc_dport);
	e->local.proto = e->remote.proto = TCP;
}

/* The kernel's numbers count SYN and FIN as a byte each. */
static __always_inline void amounts_of(struct sock *sk, struct ax_tcp_event *e)
{
	struct tcp_sock *tp = (void *)sk;
	int from = e->from;

	e->sent = BPF_CORE_READ(tp, bytes_acked);
	e->received = BPF_CORE_READ(tp, bytes_received);
	e->srtt_us = BPF_CORE_READ(tp, srtt_us) >> 3; /* it keeps eight times the value */
	e->retransmits = BPF_CORE_READ(tp, total_retrans);
	e->error = BPF_CORE_READ(sk, sk_err);
	if (BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DONE) {
		e->flags |= AX_TCP_FIN_SEEN;
		if (e->received)
			e->received--;
	}
	if (e->flags & AX_TCP_ACTIVE && e->sent)
		e->sent--;
	if ((from == FIN_WAIT2 || from == TIME_WAIT || from == CLOSING ||
	     (from == LAST_ACK && !e->error)) &&
	    e->sent)
		e->sent--;
}

static __always_inline void tell(struct sock *sk, const struct owner *o, const struct ax_asked *a,
				 __u32 type, int from, int to)
{
	struct ax_tcp_event *e = watch_reserve(sizeof(*e));

	if (!e)
		return;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = bpf_ktime_get_ns();
	e->head.type = type;
	watch_app(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), e->head.app);
	e->head.pid = o->pid;
	e->head.tid = o->tid;
	e->head.ppid = o->ppid;
	e->head.uid = o->uid;
	__builtin_memcpy(e->head.comm, o->comm, sizeof(e->head.comm));
	e->flags = o->flags;
	e->sock = (__u64)sk;
	e->from = (__u8)from;
	e->to = (__u8)to;
	e->duration_ns = e->head.time_ns - o->begin_ns;
	if (o->established_ns && o->flags & AX_TCP_ACTIVE)
		e->connect_ns = o->established_ns - o->begin_ns;
	pair_of(sk, e);
	if (a)
		e->asked = a->peer;
	amounts_of(sk, e);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/inet_sock_set_state")
int ax_tcp(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int from = (int)ctx[1], to = (int)ctx[2];
	struct ax_asked *a;
	struct owner *o;

	/* a listener's copy becomes a connection when the handshake is done */
	if (sk->sk_protocol != TCP || from == to || to == SYN_RECV)
		return 0;
	o = owner_of(sk, from, to);
	if (!o)
		return 0;
	a = bpf_sk_storage_get(&asked, sk, NULL, 0);
	if (to == CLOSE && from != LISTEN)
		tell(sk, o, a, AX_WATCH_TCP_END, from, to);
	else if (wanted.live)
		tell(sk, o, a, AX_WATCH_TCP_STATE, from, to);
	if (to == CLOSE) /* the socket may be used again */
		bpf_sk_storage_delete(&owners, sk);
	return 0;
}

/* --- what is there before, and at the end --- */

static __always_inline struct sock *tcp_of(struct file *file)
{
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;
	struct sock *sk = socket ? socket->sk : NULL;
	int family;

	if (!sk || sk->sk_protocol != TCP)
		return NULL;
	family = sk->__sk_common.skc_family;
	return family == AF_INET || family == AF_INET6 ? sk : NULL;
}

SEC("iter/task_file")
int ax_tcp_before(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct sock *sk = task ? tcp_of(ctx->file) : NULL;
	struct owner *o;

	if (!sk || sk->__sk_common.skc_state == CLOSE || !in_tree(task->tgid) || !in_cgroup(sk))
		return 0;
	o = bpf_sk_storage_get(&owners, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o || o->begin_ns) /* the first one stays */
		return 0;
	o->begin_ns = bpf_ktime_get_ns();
	o->flags = AX_TCP_OLD;
	o->pid = task->tgid;
	o->tid = task->pid;
	o->ppid = task->real_parent->tgid;
	BPF_CORE_READ_STR_INTO(&o->comm, task, comm);
	return 0;
}

static __always_inline void tell_open(struct sock *sk)
{
	int state = sk->__sk_common.skc_state;
	struct owner *o;

	if (state == CLOSE || state == LISTEN)
		return;
	o = bpf_sk_storage_get(&owners, sk, NULL, 0);
	if (!o)
		return;
	o->flags |= AX_TCP_OPEN;
	tell(sk, o, bpf_sk_storage_get(&asked, sk, NULL, 0), AX_WATCH_TCP_END, state, state);
	bpf_sk_storage_delete(&owners, sk); /* it is found again by other processes that have it */
}

SEC("iter/task_file")
int ax_tcp_open(struct bpf_iter__task_file *ctx)
{
	struct sock *sk = ctx->task ? tcp_of(ctx->file) : NULL;

	if (sk)
		tell_open(sk);
	return 0;
}

/* Those that no process has any more, whose last bytes are still on their way. */
SEC("iter/tcp")
int ax_tcp_orphans(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct sock *sk;

	if (!skc)
		return 0;
	sk = (void *)bpf_skc_to_tcp_sock(skc); /* not for time-wait and request sockets */
	if (sk)
		tell_open(sk);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
