/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the hooks on sockets share: who the caller is, whom it may reach, and which backend a
 * connection to a service goes to. Errors are negative errno; a hook turns them into its verdict.
 */
#ifndef AX_SWITCH_BPF_H
#define AX_SWITCH_BPF_H

#include <linux/errno.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>

#include "choose.bpf.h"
#include "count.bpf.h"
#include "endpoint.bpf.h"
#include "flows.bpf.h"
#include "home.bpf.h"
#include "maps.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"
#include "verifier.bpf.h"

#define CGROUP_DEPTH_MAX 16 /* app's own cgroups below its app cgroup */

static __always_inline const struct ax_ctl *ctl_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&ctl, &zero);
}

/* A process may have moved into a cgroup of its own below the app's (systemd, container tools). */
static __noinline struct ax_app *ancestor_app(void)
{
	for (int level = 1; level < CGROUP_DEPTH_MAX; level++) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);
		struct ax_app *app;

		if (!id)
			return NULL;
		app = bpf_map_lookup_elem(&apps, &id);
		if (app)
			return app;
	}
	return NULL;
}

static __always_inline struct ax_app *current_app(void)
{
	__u64 id = bpf_get_current_cgroup_id();
	struct ax_app *app = bpf_map_lookup_elem(&apps, &id);

	return app ? app : ancestor_app();
}

/* --- addresses --- */

static __always_inline bool listening(const struct ax_endpoint *ep)
{
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, &ep->addr);

	return vip && server_of(ep, vip);
}

/* The app itself, on a loopback address of the host's network namespace. */
static __always_inline bool listening_on_loopback(const struct ax_app *app,
						  const struct ax_endpoint *ep)
{
	struct ax_app_endpoint key = {.app = app->id, .ep = *ep};

	return bpf_map_lookup_elem(&loopback_servers, &key) != NULL;
}

/* The address of the app in the same family as `like`, NULL when it has none. */
static __always_inline const struct ax_addr *app_vip(const struct ax_app *app,
						     const struct ax_addr *like)
{
	const struct ax_addr *vip = addr_is_v4(like) ? &app->vip4 : &app->vip6;

	return addr_is_zero(vip) ? NULL : vip;
}

/* An address that ax gives out, and nobody has now. */
static __always_inline bool is_nobodys(const struct ax_addr *addr)
{
	struct ax_prefix p = {.len = 128, .addr = *addr};

	return bpf_map_lookup_elem(&reserved, &p) && !bpf_map_lookup_elem(&vips, addr);
}

/* The socket has that port no more: whoever has it next is another asker. (Somebody may have it
 * already, at another address of the host.) */
static __always_inline void forget_asker(struct ax_asked *a)
{
	struct ax_dns_port key = a->dns_port;
	__u32 *app;

	if (!key.port_be)
		return;
	__builtin_memset(&a->dns_port, 0, sizeof(a->dns_port));
	app = bpf_map_lookup_elem(&dns_ports, &key);
	if (app && *app == a->dns_app)
		bpf_map_delete_elem(&dns_ports, &key);
}

/* --- the switch --- */

enum route {
	ROUTE_OUTSIDE,	  /* not ours: nothing is done */
	ROUTE_DIRECT,	  /* to a virtual IP as it stands */
	ROUTE_TRANSLATED, /* `peer` was changed */
	ROUTE_AGENT,	  /* `peer` was changed to the agent's DNS */
};

struct route_request {
	struct ax_app *app;
	__u64 verdict;		 /* out: the last one of the rules */
	struct ax_endpoint peer; /* in: whom the app asks for; out: whom it gets */
	__u32 seed;		 /* chooses the backend; equal seeds choose alike */
	__u32 wait_ms;		 /* out: nobody listens there yet, wait so long */
	__be16 local_port_be;	 /* the socket's, 0: none yet */
	bool sticky;		 /* use seed whatever the strategy (datagrams of one socket) */
	bool counts;		 /* out: the connection counts as open to its backend */
	bool own;		 /* out: to a loopback server of the app itself */
	bool implied;		 /* out: wait_ms is the called app's, nobody asked for it */
	bool may_map;		 /* an IPv6 socket that may be given an IPv4 peer */
};

/* What a search for a backend has found so far. */
struct found {
	struct ax_endpoint ep;
	struct ax_endpoint fallback; /* may be used, but nobody listens there */
	__u32 fallback_rank;	     /* 0: there is none */
	int denied;		     /* enum refusal of a backend that may not be had, or 0 */
};

/* How near who does not listen is to it: runs, will be started, is only declared. */
static __always_inline __u32 nearness(const struct ax_vip *vip)
{
	if (vip->flags & AX_VIP_TELL)
		return 2;
	return vip->kind == AX_VIP_APP ? 3 : 1;
}

/* Of the caller and whoever has that party. */
static __always_inline struct question question_of(const struct route_request *rq,
						   const struct ax_endpoint *to, __u32 party)
{
	return (struct question){question_parties(rq->app->party, party),
				 question_ports(to->proto, to->port_be, rq->local_port_be)};
}

/* Whether the caller may leave ax for that address: 0, or enum refusal. */
static __always_inline int judge_world(struct route_request *rq, const struct ax_endpoint *to)
{
	struct question q = question_of(rq, to, AX_PARTY_NONE);

	rq->verdict = verdict_of(&q, &to->addr);
	if (rq->verdict & VERDICT_DENY)
		return REFUSED_RULE;
	if (VERDICT_RULE(rq->verdict) || (rq->app->flags & (AX_APP_HOST | AX_APP_EGRESS)))
		return 0;
	return REFUSED_NO_EGRESS;
}

/* Judges f->ep. Returns true when it is good to use. */
static __always_inline bool try_backend(struct route_request *rq, struct found *f)
{
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, &f->ep.addr);
	struct question q;
	int r;

	if (!vip) { /* a fixed address outside: nothing is known of it */
		r = judge_world(rq, &f->ep);
	} else {
		q = question_of(rq, &f->ep, vip->party);
		rq->verdict = party_verdict(q.parties, q.ports, &f->ep.addr);
		r = verdict_errno(rq->verdict);
	}
	if (r < 0) {
		f->denied = r;
		return false;
	}
	if (!vip || server_of(&f->ep, vip))
		return true;
	if (f->fallback_rank < nearness(vip)) {
		f->fallback = f->ep;
		f->fallback_rank = nearness(vip);
	}
	return false;
}

/* By the app's address in the family of what it asks for: that is what the backend sees. */
static __always_inline void client_of(const struct route_request *rq, struct ax_addr *ret)
{
	if (addr_is_v4(&rq->peer.addr)) {
		*ret = rq->app->vip4;
		ctx_branch_end();
	} else {
		*ret = rq->app->vip6;
	}
	if (addr_is_zero(ret))
		ret->w[3] = rq->app->id;
}

/* 0; 1: a backend where nobody listens yet; or a negative errno. */
static __noinline int choose_backend(struct route_request *rq, struct ax_service *svc)
{
	struct found f = {};
	struct choice c = {};

	if (!rq || !svc)
		return -EINVAL;
	c.asked = rq->peer;
	client_of(rq, &c.client);
	c.seed = rq->seed;
	c.sticky = rq->sticky;
	rq->counts = choose_counts(svc);
	for (__u32 i = 0; i < CHOOSE_TRIES && choose_more(&c, svc); i++) {
		if (choose_next(&c, svc, &f.ep) && try_backend(rq, &f)) {
			rq->peer = f.ep;
			return 0;
		}
	}
	if (f.fallback_rank) {
		rq->peer = f.fallback;
		return 1;
	}
	return f.denied ? f.denied : REFUSED_NO_BACKEND;
}

/* Whether the app has any server: then a port where it has none is one that it does not serve. */
static __always_inline bool serves(__u32 app)
{
	__u32 *n = bpf_map_lookup_elem(&app_servers, &app);

	return n && *n;
}

/* Nobody listens at rq->peer: how long to wait, who asks for `wait_ms`. */
static __always_inline void wait_there(struct route_request *rq, const struct ax_vip *vip,
				       __u32 wait_ms)
{
	rq->wait_ms = wait_ms > rq->app->wait_ms ? wait_ms : rq->app->wait_ms;
	if (rq->wait_ms || !(vip->flags & AX_VIP_WAITS))
		return;
	if (vip->kind == AX_VIP_APP && !(vip->flags & AX_VIP_TELL) && serves(vip->id))
		return;
	rq->wait_ms = AX_VIP_WAIT_MS;
	rq->implied = true;
}

/* Whether the caller may have rq->peer, as it is: 0, or enum refusal. */
static __always_inline int judge_direct(struct route_request *rq, const struct ax_vip *vip)
{
	struct question q = question_of(rq, &rq->peer, vip->party);

	rq->verdict = verdict_of(&q, &rq->peer.addr);
	return verdict_errno(rq->verdict);
}

static __always_inline int route_direct(struct route_request *rq, const struct ax_vip *vip)
{
	int r = judge_direct(rq, vip);

	if (r < 0)
		return refused(r);
	if (rq->peer.proto == IPPROTO_TCP && (rq->app->wait_ms || (vip->flags & AX_VIP_WAITS)) &&
	    !server_of(&rq->peer, vip))
		wait_there(rq, vip, 0);
	return ROUTE_DIRECT;
}

/* Of the one that was chosen, though others were looked at behind it. */
static __noinline __u64 backend_verdict(const struct route_request *rq)
{
	const struct ax_vip *vip = bpf_map_lookup_elem(&vips, &rq->peer.addr);
	struct question q = question_of(rq, &rq->peer, vip ? vip->party : AX_PARTY_NONE);

	return party_verdict(q.parties, q.ports, &rq->peer.addr);
}

static __always_inline int route_to_service(struct route_request *rq, struct ax_service *svc,
					    const struct ax_vip *vip)
{
	struct ax_endpoint before = rq->peer;
	int r = choose_backend(rq, svc);

	if (r == 1) {
		rq->verdict = backend_verdict(rq);
		/* Nobody serves that port. A datagram is then for the app whose own address this
		 * is: an answer to a client, most likely. */
		if (before.proto == IPPROTO_UDP && vip->kind == AX_VIP_APP) {
			rq->peer = before;
			return route_direct(rq, vip);
		}
		vip = bpf_map_lookup_elem(&vips, &rq->peer.addr);
		if (before.proto == IPPROTO_TCP && vip)
			wait_there(rq, vip, svc->wait_ms);
		r = 0;
	}
	if (r < 0)
		return refused(r);
	if (endpoint_eq(&before, &rq->peer))
		return ROUTE_DIRECT; /* the app that owns the shared address was chosen */
	count(AX_COUNT_TRANSLATED);
	return ROUTE_TRANSLATED;
}

static __always_inline bool to_agent_dns(struct route_request *rq, const struct ax_ctl *c)
{
	const struct ax_addr *host = addr_is_v4(&rq->peer.addr) ? &c->host4 : &c->host6;

	if (rq->peer.port_be != bpf_htons(53) || !c->dns_port_be || addr_is_zero(host))
		return false;
	rq->peer.addr = *host;
	rq->peer.port_be = c->dns_port_be;
	return true;
}

/* A datagram in answer to one that came in from outside ax (see ax_to_app()). */
static __noinline bool answers_outside(const struct route_request *rq)
{
	struct ax_flow_key flow = {};

	if (rq->peer.proto != IPPROTO_UDP || !rq->local_port_be)
		return false;
	flow.client = rq->peer;
	/* copied here and there: Linux 6.1 loses track of a pointer that is chosen */
	if (addr_is_v4(&rq->peer.addr)) {
		flow.peer.addr = rq->app->vip4;
		ctx_branch_end();
	} else {
		flow.peer.addr = rq->app->vip6;
	}
	flow.peer.port_be = rq->local_port_be;
	flow.peer.proto = IPPROTO_UDP;
	return bpf_map_lookup_elem(&datagrams, &flow) || flow_find(&flow);
}

/* Whether the app listens there by a wildcard, and not at that very address. */
static __always_inline bool listens_by_wildcard(const struct ax_app *app,
						const struct ax_endpoint *ep)
{
	struct ax_endpoint e = *ep;

	addr_set_wildcard(&e.addr, &ep->addr);
	if (!listening_on_loopback(app, &e))
		return false;
	return addr_is_wildcard(&ep->addr) || !listening_on_loopback(app, ep);
}

/*
 * The loopback addresses are the host's, but what the app has on a wildcard it finds there, before
 * others. TCP goes there as it is, and sk_lookup brings it to the app's socket. A datagram goes to
 * the app's own address.
 */
static __always_inline int route_loopback(struct route_request *rq)
{
	const struct ax_addr *vip;

	if (!listens_by_wildcard(rq->app, &rq->peer))
		return ROUTE_OUTSIDE;
	if (rq->peer.proto == IPPROTO_TCP) {
		rq->own = true;
		return ROUTE_OUTSIDE;
	}
	vip = app_vip(rq->app, &rq->peer.addr);
	if (!vip && rq->may_map && !addr_is_zero(&rq->app->vip4))
		vip = &rq->app->vip4;
	if (!vip)
		return ROUTE_OUTSIDE;
	rq->peer.addr = *vip;
	return ROUTE_TRANSLATED;
}

static __always_inline int leave_ax(struct route_request *rq, enum route route)
{
	int r = judge_world(rq, &rq->peer);

	if (!r)
		return route;
	if (!answers_outside(rq))
		return refused(r);
	rq->verdict = 0;
	return route;
}

static __always_inline int route_outside(struct route_request *rq, const struct ax_ctl *c)
{
	struct ax_app *app = rq->app;

	if (to_agent_dns(rq, c))
		return ROUTE_AGENT;
	if (addr_is_loopback(&rq->peer.addr))
		return app->flags & AX_APP_HOST ? route_loopback(rq) : ROUTE_OUTSIDE;
	if (rq->peer.proto == IPPROTO_TCP && app->wait_ms && is_nobodys(&rq->peer.addr)) {
		rq->wait_ms = app->wait_ms; /* whoever gets the address is judged then */
		return ROUTE_DIRECT;
	}
	return leave_ax(rq, ROUTE_OUTSIDE);
}

static __always_inline int find_route(struct route_request *rq)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_vip *vip;

	if (!c)
		return ROUTE_OUTSIDE;
	count(AX_COUNT_CONNECT);
	vip = bpf_map_lookup_elem(&vips, &rq->peer.addr);
	if (!vip)
		return route_outside(rq, c);
	if (vip->kind == AX_VIP_HOST) {
		if (to_agent_dns(rq, c))
			return ROUTE_AGENT;
		return leave_ax(rq, ROUTE_DIRECT); /* the host's own daemons are outside as well */
	}
	if (vip->kind == AX_VIP_BALANCER) /* datagrams that answer; it serves nothing */
		return rq->peer.proto == IPPROTO_UDP ? ROUTE_DIRECT : -ECONNREFUSED;
	if (vip->flags & AX_VIP_SERVICES) {
		struct ax_service *svc = find_service(&rq->peer);

		if (svc)
			return route_to_service(rq, svc, vip);
	}
	if (vip->kind == AX_VIP_SERVICE)
		return -ECONNREFUSED; /* a port that the service does not have */
	return route_direct(rq, vip);
}

/* Decides where a connect or a datagram goes. Returns enum route or a negative errno. */
static __always_inline int route_peer(struct route_request *rq)
{
	int r;

	rq->wait_ms = 0;
	rq->implied = false;
	rq->own = false;
	rq->verdict = 0;
	r = find_route(rq);
	if (rq->verdict)
		count_verdict(rq->verdict);
	return r;
}

#endif
