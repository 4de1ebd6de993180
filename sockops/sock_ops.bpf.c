/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP state changes: servers come and go, connections are reported to who listens to events, and
 * held connects retry quickly. */
#include <linux/tcp.h>

#include "switch.bpf.h"
#include "across_ends.bpf.h"
#include "across_ops.bpf.h"
#include "asker.bpf.h"
#include "exposed.bpf.h"
#include "failing.bpf.h"
#include "flows.bpf.h"
#include "held.bpf.h"
#include "maker.bpf.h"
#include "open.bpf.h"
#include "ops_ends.bpf.h"
#include "payload.bpf.h"
#include "server.bpf.h"

#define TCP_SYN_RETRIES_MAX 127
#define RETRY_MS	    20
#define LAST_TRY_MS	    1100 /* after the wait, from Linux 6.15 on */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif
#define SOL_TCP_BPF 6

extern bool accepts_any; /* map `accepts` has entries */

/* The kernel counts time-outs in jiffies; the agent finds out how many make a second. */
const volatile __u32 jiffies_per_second = 250;

/* --- events --- */

/* Of a connection by an exposed port (include/expose.h): where the client has asked, and, where
 * that is the socket's own address, whose socket it is. */
static __noinline int tell_exposed(struct bpf_sock_ops *ctx, struct ax_event *ev)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_flow_key key = {};
	const struct ax_flow *f;
	const struct ax_app *app;
	struct bpf_sock *sk;

	if (!ctx || !ev || !c || !c->exposed)
		return 0;
	remote_of(ctx, &key.client);
	local_of(ctx, &key.peer);
	if (bpf_map_lookup_elem(&vips, &key.peer.addr)) {
		f = c->exposed & AX_EXPOSED_PACKETS ? flow_find(&key) : NULL;
		if (f && f->kind == AX_FLOW_EXPOSED)
			ev->asked = f->to;
		return 0;
	}
	sk = ctx->sk;
	if (!sk || !port_is_exposed(key.peer.port_be, IPPROTO_TCP))
		return 0;
	ev->asked = key.peer;
	app = app_of_maker(sk);
	if (app)
		ev->app = app->id;
	return 0;
}

/* Wakes the reader only when much is waiting; else its timer finds the records (notes: a wake-up
 * costs more than six times what the record does). */
static __noinline int event_send(struct bpf_sock_ops *ctx, __u32 type, __u32 app)
{
	const struct ax_ctl *c = ctl_get();
	struct tcp_sock *tp;
	struct ax_event *ev;
	struct bpf_sock *sk;
	struct ax_asked *a;
	__u64 *since;
	__u64 flags;

	if (!ctx || !c || !c->events)
		return 0;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev) {
		count(AX_COUNT_EVENTS_LOST);
		return 0;
	}
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = type;
	ev->app = app;
	ev->time_ns = bpf_ktime_get_boot_ns();
	local_of(ctx, &ev->local);
	if (type != AX_EVENT_LISTEN && type != AX_EVENT_UNLISTEN)
		remote_of(ctx, &ev->remote);
	sk = ctx->sk;
	if (sk) {
		a = bpf_sk_storage_get(&asked, sk, NULL, 0);
		if (a) {
			ev->asked = a->peer;
			across_ends(a, bpf_sk_storage_get(&across, sk, NULL, 0), &ev->local,
				    &ev->remote, &ev->asked);
		}
		since = bpf_sk_storage_get(&established, sk, NULL, 0);
		if (since && type == AX_EVENT_CLOSE)
			ev->duration_ns = ev->time_ns - *since;
	}
	if (!ev->asked.port_be && (type == AX_EVENT_ACCEPT || type == AX_EVENT_CLOSE))
		tell_exposed(ctx, ev);
	if (type == AX_EVENT_CLOSE) {
		ev->srtt_us = ctx->srtt_us >> 3; /* tcp_sock keeps eight times the value */
		tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
		if (tp) {
			ev->sent = payload_sent(tp, ctx->args[0]);
			ev->received = payload_received(tp);
		}
	}
	flags = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= c->event_wakeup
			? BPF_RB_FORCE_WAKEUP
			: BPF_RB_NO_WAKEUP;
	bpf_ringbuf_submit(ev, flags);
	return 0;
}

/* --- servers --- */

/*
 * listen() without bind(): the kernel has put the socket on the wildcard, at a port that nobody
 * has, and no hook has told of it. In the host's network namespace it is treated like one that
 * bind() has left there.
 */
static __noinline struct ax_asked *unbound(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct ax_app *app = app_of_maker(sk);
	const struct sock_common *skc;
	struct ax_asked *a;
	bool only6;

	if (!app || !(app->flags & AX_APP_HOST))
		return NULL;
	a = bpf_sk_storage_get(&asked, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!a) {
		count(AX_COUNT_ERROR);
		return NULL;
	}
	skc = (const struct sock_common *)bpf_skc_to_tcp_sock(sk);
	only6 = ctx->family == AF_INET6 && skc && is_v6only(skc);
	a->app = app->id;
	if (!only6) {
		__sync_fetch_and_or(&a->flags, AX_ASKED_ANY4);
		a->served[0].addr = app->vip4;
	}
	if (ctx->family == AF_INET6) {
		__sync_fetch_and_or(&a->flags, AX_ASKED_ANY6);
		a->served[1].addr = app->vip6;
	}
	return a;
}

static __always_inline bool is_unbound(const struct ax_netns_app *ns, const struct ax_asked *a,
				       const struct ax_endpoint *local)
{
	const __u32 known = AX_ASKED_BOUND | AX_ASKED_ANY4 | AX_ASKED_ANY6;

	return !ns->id && addr_is_wildcard(&local->addr) && !(a && (a->flags & known));
}

/* Runs in process context at listen(), but sockops programs may not ask for the current cgroup: the
 * namespace tells who listens, in the host's it is who has bound the socket. */
static __always_inline struct ax_asked *listener(struct bpf_sock_ops *ctx,
						 const struct ax_endpoint *local, struct serving *s)
{
	struct ax_netns_app *ns = netns_of(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct ax_asked *a;

	if (!ns || !sk)
		return NULL;
	a = bpf_sk_storage_get(&asked, sk, NULL, 0);
	if (is_unbound(ns, a, local))
		a = unbound(ctx, sk);
	if (!serving_of(ns, a, a ? a->app : 0, ctx->family, &local->addr, s))
		return NULL;
	if (!a)
		a = bpf_sk_storage_get(&asked, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!a)
		count(AX_COUNT_ERROR);
	return a;
}

/* A place among the sockets that share a port: others that do are found when this one is closed,
 * and it when they are. By bpf_loop(): Linux 6.1 would judge each turn of a loop. */
struct place {
	struct bpf_sock_ops *ctx;
	struct ax_app_endpoint at;
	bool taken;
};

static long take_listener(__u32 i, struct place *p)
{
	p->at.ep.pad = (__u8)i;
	p->taken = !bpf_sock_hash_update(p->ctx, &listeners, &p->at.ep, BPF_NOEXIST);
	return p->taken;
}

static long take_loopback(__u32 i, struct place *p)
{
	p->at.ep.pad = (__u8)i;
	p->taken = !bpf_sock_hash_update(p->ctx, &loopback_listeners, &p->at, BPF_NOEXIST);
	return p->taken;
}

/* sk_lookup finds it by the endpoint. A global function, as is bring_loopback(): the verifier
 * judges it once, and not for each way to it. */
__weak __noinline int bring(struct bpf_sock_ops *ctx, const struct ax_endpoint *at)
{
	struct place p = {.ctx = ctx}; /* keys are on the stack to Linux 6.1 */
	struct ax_vip *vip;

	if (!ctx || !at || !at->port_be)
		return 0;
	p.at.ep = *at;
	vip = bpf_map_lookup_elem(&vips, &p.at.ep.addr);
	if (!vip || !(vip->flags & AX_VIP_LOCAL))
		return 0;
	bpf_loop(AX_LISTENERS_MAX, take_listener, &p, 0);
	if (!p.taken)
		count(AX_COUNT_SERVERS_REFUSED);
	return 0;
}

__weak __noinline int bring_loopback(struct bpf_sock_ops *ctx, const struct ax_endpoint *ep,
				     __u32 app)
{
	struct place p = {.ctx = ctx, .at.app = app};

	if (!ctx || !ep || !ep->port_be)
		return 0;
	p.at.ep = *ep;
	bpf_loop(AX_LISTENERS_MAX, take_loopback, &p, 0);
	if (!p.taken)
		count(AX_COUNT_SERVERS_REFUSED);
	return 0;
}

/* Of a host-mode app, to which bind() has left the wildcard: sk_lookup keeps others away. */
static __always_inline void on_wildcard(struct bpf_sock_ops *ctx, const struct ax_endpoint *local,
					const struct ax_asked *a)
{
	if ((a->flags & (AX_ASKED_ANY4 | AX_ASKED_ANY6)) && addr_is_wildcard(&local->addr))
		bring_loopback(ctx, local, 0);
}

static __noinline int listen_begin(struct bpf_sock_ops *ctx)
{
	struct ax_endpoint ep = {};
	struct ax_asked *a;
	struct serving s;

	if (!ctx)
		return 0;
	local_of(ctx, &ep);
	a = listener(ctx, &ep, &s);
	if (!a)
		return 0;
	on_wildcard(ctx, &ep, a);
	serve(a, &ep, &s);
	bring(ctx, &a->served[0]);
	bring(ctx, &a->served[1]);
	serve_from_now(a);
	bring_loopback(ctx, &a->served[2], s.app);
	bring_loopback(ctx, &a->served[3], s.app);
	bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG);
	if (held_any) /* maybe for this one */
		tell_held();
	if (!addr_is_loopback(&s.first))
		event_send(ctx, AX_EVENT_LISTEN, s.app);
	return 0;
}

static __noinline int listen_end(struct bpf_sock_ops *ctx)
{
	struct ax_asked *a;
	struct bpf_sock *sk;

	if (!ctx)
		return 0;
	sk = ctx->sk;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	if (!a)
		return 0;
	if (a->served[0].port_be && !addr_is_loopback(&a->served[0].addr))
		event_send(ctx, AX_EVENT_UNLISTEN, a->app);
	serve_till_now(a);
	serve_end(a);
	return 0;
}

/* --- connections --- */

static __noinline bool accepted_counts(struct bpf_sock_ops *ctx)
{
	struct ax_flow_key flow = {};

	if (!ctx)
		return false;
	remote_of(ctx, &flow.client);
	local_of(ctx, &flow.peer);
	return open_accepted(ctx, &flow);
}

/* For apps that end when nobody connects any more. (What has come to one in host mode by a port of
 * the host has that as its end; by which interface it came is not known here.) */
static __noinline int accept_count(struct bpf_sock_ops *ctx)
{
	struct ax_endpoint local = {};
	const struct ax_netns_app *ns;
	const struct ax_exposed *x;
	struct ax_server *s;
	__u64 *n;
	__u32 app;

	if (!ctx)
		return 0;
	local_of(ctx, &local);
	across_accept(ctx, &local);
	if (!accepts_any)
		return 0;
	s = bpf_map_lookup_elem(&servers, &local);
	if (!s) {
		ns = netns_of(ctx);
		x = ns && !ns->id ? exposed_at(&local, 0) : NULL; /* (0: the host's) */
		if (!x)
			return 0;
		local = x->to;
		s = bpf_map_lookup_elem(&servers, &local);
	}
	if (!s)
		return 0;
	app = s->app;
	n = bpf_map_lookup_elem(&accepts, &app);
	if (n)
		__sync_fetch_and_add(n, 1);
	return 0;
}

/* A socket that has connected, and met a SYN that came the other way (its own, if it has connected
 * to itself), is told of as one that was accepted. No accepted one has a storage yet. */
static __always_inline __u32 how_established(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ||
	    (sk && bpf_sk_storage_get(&asked, sk, NULL, 0)))
		return AX_EVENT_CONNECT;
	return AX_EVENT_ACCEPT;
}

static __always_inline void connection(struct bpf_sock_ops *ctx, __u32 type)
{
	bool counts = type == AX_EVENT_CONNECT || (outside_counts && accepted_counts(ctx));
	const struct ax_ctl *c = ctl_get();
	struct bpf_sock *sk;
	__u64 now;

	if (!c || !c->events) {
		/* an accepted socket has its listener's flags: it must not pay for them */
		if (!counts && ctx->bpf_sock_ops_cb_flags)
			bpf_sock_ops_cb_flags_set(ctx, 0);
		return;
	}
	bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG);
	sk = ctx->sk;
	if (sk) {
		now = bpf_ktime_get_boot_ns();
		bpf_sk_storage_get(&established, sk, &now, BPF_SK_STORAGE_GET_F_CREATE);
	}
	event_send(ctx, type, 0);
}

/* --- connections whose SYN says whose they are (AX_ASKED_OWN) --- */

static __always_inline void own_key(const struct bpf_sock_ops *ctx, struct ax_flow_key *ret)
{
	local_of(ctx, &ret->client);
	remote_of(ctx, &ret->peer);
}

/* Tells sk_lookup whose SYN is coming. */
static __always_inline void own_syn(struct bpf_sock_ops *ctx, const struct ax_asked *a)
{
	struct ax_flow_key key;
	__u32 app = a->app;

	own_key(ctx, &key);
	/* it is also told when that is over: the next one from there may be anybody's; and before
	 * the SYN is made once more: others may have pushed out what was said of the first one */
	if (bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG))
		return;
	if (bpf_map_update_elem(&own_conns, &key, &app, BPF_ANY))
		count(AX_COUNT_ERROR);
}

static __noinline int own_again(struct bpf_sock_ops *ctx)
{
	struct ax_asked *a;
	struct bpf_sock *sk;

	if (!ctx)
		return 0;
	sk = ctx->sk;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	if (a && a->flags & AX_ASKED_OWN)
		own_syn(ctx, a);
	return 0;
}

static __noinline int own_answered(struct bpf_sock_ops *ctx)
{
	struct ax_flow_key key;
	struct ax_asked *a;
	struct bpf_sock *sk;

	if (!ctx)
		return 0;
	sk = ctx->sk;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	if (!a || !(a->flags & AX_ASKED_OWN))
		return 0;
	__sync_fetch_and_and(&a->flags, ~AX_ASKED_OWN);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RTO_CB_FLAG);
	own_key(ctx, &key);
	bpf_map_delete_elem(&own_conns, &key);
	return 0;
}

/* --- who asks the agent's DNS from a port of its own --- */

/* Tells the DNS whose SYN is coming. */
static __noinline int asker_syn(struct bpf_sock_ops *ctx)
{
	struct ax_endpoint source = {};
	struct bpf_sock *sk;
	struct ax_asked *a;

	if (!ctx)
		return 0;
	sk = ctx->sk;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	/* it is also told when that is over: the next one with that port may be anybody */
	if (!a || bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG))
		return 0;
	local_of(ctx, &source);
	asker_at(a, &source, a->dns_app);
	return 0;
}

static __noinline int asker_end(struct bpf_sock_ops *ctx)
{
	struct ax_asked *a;
	struct bpf_sock *sk;

	if (!ctx)
		return 0;
	sk = ctx->sk;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	if (a)
		forget_asker(a);
	return 0;
}

static __noinline int failed(struct bpf_sock_ops *ctx)
{
	return failing_end(ctx);
}

static __always_inline void connection_state(struct bpf_sock_ops *ctx, __u32 state)
{
	open_state(ctx, state);
	if (failing_any && state == BPF_TCP_CLOSE)
		failed(ctx);
	if (state == BPF_TCP_CLOSE)
		event_send(ctx, AX_EVENT_CLOSE, 0);
}

/* What connect() has set for a wait (end_with_wait()) is not for the connection. */
static __always_inline void connected(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct ax_asked *a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	int none = 0;

	if (!a || !(a->flags & AX_ASKED_TIMEOUT))
		return;
	__sync_fetch_and_and(&a->flags, ~AX_ASKED_TIMEOUT);
	bpf_setsockopt(ctx, SOL_TCP_BPF, TCP_USER_TIMEOUT, &none, sizeof(none));
}

static __always_inline void established_as(struct bpf_sock_ops *ctx, __u32 type)
{
	if (type == AX_EVENT_CONNECT) {
		across_said(ctx);
		connected(ctx);
	} else if (accepts_any || ctx->local_port >= AX_ACROSS_FIRST) {
		accept_count(ctx);
	}
	connection(ctx, type);
}

/* TCP is to give up so long after the wait, unless the app has a time-out of its own. */
static __always_inline void end_in_time(struct bpf_sock_ops *ctx, struct ax_asked *a, int after_ms)
{
	__u64 now = bpf_ktime_get_ns();
	int ms = 0;

	if (a->hold_until_ns <= now || (a->flags & AX_ASKED_TIMEOUT))
		return;
	bpf_getsockopt(ctx, SOL_TCP_BPF, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	if (ms)
		return;
	ms = (int)((a->hold_until_ns - now) / 1000000) + 1 + after_ms;
	if (bpf_setsockopt(ctx, SOL_TCP_BPF, TCP_USER_TIMEOUT, &ms, sizeof(ms)) == 0)
		__sync_fetch_and_or(&a->flags, AX_ASKED_TIMEOUT);
}

/*
 * The agent sends a held SYN again when somebody listens. Besides, and when no agent runs, TCP
 * tries after RETRY_MS, then at doubling intervals, and from Linux 6.15 on at least every second:
 * before that the next try may come long after the wait is over, and TCP gives up with it instead.
 * Where a service leads to nobody nothing refuses the last try, either. Returns the first time-out
 * in jiffies, or -1 for the kernel's own.
 */
static __always_inline int first_timeout(struct bpf_sock_ops *ctx)
{
	int retries = TCP_SYN_RETRIES_MAX, max_ms = 1000;
	__u32 jiffies = jiffies_per_second * RETRY_MS / 1000;
	struct bpf_sock *sk = ctx->sk;
	struct ax_asked *a;

	if (!sk)
		return -1;
	a = bpf_sk_storage_get(&asked, sk, NULL, 0);
	if (!a)
		return -1;
	if (a->flags & AX_ASKED_COUNT)
		open_syn(ctx, a);
	if (a->flags & AX_ASKED_OWN)
		own_syn(ctx, a);
	if (failing_any && a->peer.port_be)
		failing_syn(ctx, a);
	if (a->dns_app)
		asker_syn(ctx);
	if (a->flags & AX_ASKED_ACROSS)
		across_syn(ctx);
	if (!a->hold_until_ns)
		return -1;
	bpf_setsockopt(ctx, SOL_TCP_BPF, TCP_SYNCNT, &retries, sizeof(retries));
	if (bpf_setsockopt(ctx, SOL_TCP_BPF, TCP_RTO_MAX_MS, &max_ms, sizeof(max_ms)))
		end_in_time(ctx, a, 0);
	else if (a->flags & AX_ASKED_SERVICE)
		end_in_time(ctx, a, LAST_TRY_MS);
	return jiffies ? (int)jiffies : 1;
}

SEC("sockops")
int ax_sock_ops(struct bpf_sock_ops *ctx)
{
	int reply = -1;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TIMEOUT_INIT:
		reply = first_timeout(ctx);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		own_again(ctx);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		across_reserve(ctx);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		across_write(ctx);
		break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		listen_begin(ctx);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		established_as(ctx, how_established(ctx));
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[0] == BPF_TCP_SYN_SENT)
			own_answered(ctx);
		if (ctx->args[1] == BPF_TCP_CLOSE)
			asker_end(ctx);
		if (ctx->args[0] == BPF_TCP_LISTEN)
			listen_end(ctx);
		else
			connection_state(ctx, ctx->args[1]);
		break;
	}
	ctx->reply = reply;
	return 1;
}
