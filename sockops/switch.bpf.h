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

#include "across.bpf.h"
#include "answer.bpf.h"
#include "choose.bpf.h"
#include "count.bpf.h"
#include "endpoint.bpf.h"
#include "exposed.bpf.h"
#include "flows.bpf.h"
#include "home.bpf.h"
#include "maps.bpf.h"
#include "seen.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"
#include "verifier.bpf.h"

#define LO_IFINDEX	 1  /* in every network namespace */
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

/* What an app without IPv6 has in the host's network instead (struct ax_ctl): an address that
 * nobody else has, for its sockets of IPv6 alone and for its own datagrams to ::1. False: it has
 * none. */
static __always_inline bool own_anchor(const struct ax_app *app, struct ax_addr *ret)
{
	const struct ax_ctl *c = ctl_get();

	if (!c || !(app->flags & AX_APP_HOST) || !app->anchor)
		return false;
	*ret = c->anchor6;
	ret->w[3] = bpf_htonl(app->anchor);
	return true;
}

/* A global function: the verifier judges it once. */
__weak __noinline int is_own_anchor(const struct ax_app *app, const struct ax_addr *addr)
{
	struct ax_addr own;

	return app && addr && own_anchor(app, &own) && addr_eq(&own, addr);
}

static __always_inline bool is_anchor(const struct ax_addr *addr, const struct ax_ctl *c)
{
	return !addr_is_zero(&c->anchor6) && addr->w[0] == c->anchor6.w[0] &&
	       addr->w[1] == c->anchor6.w[1] && addr->w[2] == c->anchor6.w[2];
}

/* --- the switch --- */

enum route {
	ROUTE_OUTSIDE,	  /* not ours: nothing is done */
	ROUTE_DIRECT,	  /* to a virtual IP as it stands */
	ROUTE_TRANSLATED, /* `peer` was changed */
	ROUTE_AGENT,	  /* `peer` was changed to the agent's DNS */
};

/* No pointer and no hole: it is given to global functions, which the verifier judges once each. */
struct route_request {
	__u64 verdict;		 /* out: the last one of the rules */
	struct ax_endpoint peer; /* in: whom the app asks for; out: whom it gets */
	__u32 seed;		 /* chooses the backend; equal seeds choose alike */
	__u32 wait_ms;		 /* out: wait so long for somebody who listens there */
	__be16 local_port_be;	 /* the socket's, 0: none yet */
	bool sticky;		 /* use seed whatever the strategy (datagrams of one socket) */
	bool counts;		 /* out: the connection counts as open to its backend */
	bool own;		 /* out: its SYN says whose it is: map own_conns */
	bool implied;		 /* out: wait_ms is the called app's, nobody asked for it */
	bool may_map;		 /* an IPv6 socket that may be given an IPv4 peer */
	bool across;		 /* out: to another node by translation: its hook is to do that */
	bool from_app;		 /* in: its packets come from the app's own address */
	bool at_service;	 /* out: it waits at the service's own address, for whoever comes */
	bool other_source;	 /* in: its datagram comes from an address that is not the app's */
	bool served;		 /* out: somebody listens, wait_ms is for when he ends meanwhile */
};
_Static_assert(sizeof(struct route_request) == 48, "a hole would be stack that nobody has written");

/* What a search for a backend has found so far. */
struct found {
	__u16 fallback_rank; /* 0: there is none; else rq->peer may be used, but nobody listens */
	__s16 denied;	     /* enum refusal of a backend that may not be had, or 0 */
	__u64 fallback_verdict;
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
						   const struct ax_app *app,
						   const struct ax_endpoint *to, __u32 party)
{
	return (struct question){question_parties(app->party, party),
				 question_ports(to->proto, to->port_be, rq->local_port_be)};
}

/* Whether the caller may leave ax for that address: 0, or enum refusal. */
static __always_inline int judge_world(struct route_request *rq, const struct ax_app *app,
				       const struct ax_endpoint *to)
{
	struct question q = question_of(rq, app, to, AX_PARTY_NONE);

	rq->verdict = verdict_of(&q, &to->addr);
	if (rq->verdict & VERDICT_DENY)
		return REFUSED_RULE;
	if (VERDICT_RULE(rq->verdict) || (app->flags & AX_APP_EGRESS))
		return 0;
	return REFUSED_NO_EGRESS;
}

/* Whether the caller may have a backend, whose address `vip` is: 0, or enum refusal. */
static __always_inline int judge_backend(struct route_request *rq, const struct ax_app *app,
					 const struct ax_vip *vip, const struct ax_endpoint *ep)
{
	struct question q;

	if (!vip) /* a fixed address outside: nothing is known of it */
		return judge_world(rq, app, ep);
	q = question_of(rq, app, ep, vip->party);
	rq->verdict = party_verdict(q.parties, q.ports, &ep->addr);
	return verdict_errno(rq->verdict);
}

/* Returns true when `ep` is good to use: it is rq->peer then. */
static __always_inline bool try_backend(struct route_request *rq, const struct ax_app *app,
					const struct ax_vip *vip, const struct ax_endpoint *ep,
					struct found *f)
{
	int r = judge_backend(rq, app, vip, ep);

	if (r < 0) {
		f->denied = (__s16)r;
		return false;
	}
	if (!vip || is_elsewhere(vip) || server_of(ep, vip)) { /* (that is known there) */
		rq->peer = *ep;
		rq->across = vip && vip->kind == AX_VIP_ACROSS;
		return true;
	}
	if (f->fallback_rank < nearness(vip)) {
		rq->peer = *ep;
		f->fallback_verdict = rq->verdict;
		f->fallback_rank = (__u16)nearness(vip);
	}
	return false;
}

/* By the app's address in the family of what it asks for: that is what the backend sees. */
static __always_inline void client_of(const struct route_request *rq, const struct ax_app *app,
				      struct ax_addr *ret)
{
	if (addr_is_v4(&rq->peer.addr)) {
		*ret = app->vip4;
		ctx_branch_end();
	} else {
		*ret = app->vip6;
	}
	if (addr_is_zero(ret))
		ret->w[3] = app->id;
}

/* What the search knows of who asks. */
static __always_inline void choose_for(struct choice *c, const struct route_request *rq,
				       const struct ax_app *app, const struct ax_service *svc)
{
	c->asked = rq->peer;
	client_of(rq, app, &c->client);
	affinity_of_app(c, svc, app);
	c->start = rq->seed;
	c->sticky = rq->sticky;
	if (!rq->sticky || !(svc->flags & AX_SERVICE_PER_SEND))
		return;
	c->start = bpf_get_prandom_u32();
	c->sticky = false;
	c->kept |= KEPT_OFF;
}

/* The next one that the strategy names: enum tried. A global function: the verifier judges it once,
 * and not for each try. */
__weak __noinline int try_next(struct route_request *rq, const struct ax_app *app,
			       struct ax_service *svc, struct choice *c, struct found *f)
{
	struct ax_endpoint ep = {}; /* keys are on the stack to Linux 6.1, and all written */
	struct ax_vip *vip;
	int r;

	if (!rq || !app || !svc || !c || !f)
		return TRY_END;
	r = choose_next(c, svc, &ep);
	if (r != CHOSEN)
		return r == CHOSEN_NONE ? TRY_END : TRY_NEXT;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	return try_backend(rq, app, vip, &ep, f) && affinity_keep(c, svc) ? TRY_TAKEN : TRY_NEXT;
}

/* 0; 1: a backend where nobody listens yet; or a negative errno. */
__weak __noinline int choose_backend(struct route_request *rq, const struct ax_app *app,
				     struct ax_service *svc)
{
	struct found f = {};
	struct choice c = {};
	int r;

	if (!rq || !app || !svc)
		return -EINVAL;
	choose_for(&c, rq, app, svc);
	rq->counts = choose_counts(svc);
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		r = try_next(rq, app, svc, &c, &f);
		if (r == TRY_TAKEN)
			return 0;
		if (r == TRY_END)
			break;
	}
	if (f.fallback_rank) {
		rq->verdict = f.fallback_verdict; /* though others were looked at behind it */
		return 1;
	}
	return f.denied ? f.denied : REFUSED_NO_BACKEND;
}

/* Nobody listens at rq->peer: how long to wait, who asks for `wait_ms`. */
static __always_inline void wait_there(struct route_request *rq, const struct ax_app *app,
				       const struct ax_vip *vip, __u32 wait_ms)
{
	rq->wait_ms = wait_ms > app->wait_ms ? wait_ms : app->wait_ms;
	if (rq->wait_ms || !is_to_start(vip))
		return;
	rq->wait_ms = AX_VIP_WAIT_MS;
	rq->implied = true;
}

/* The verdict on a datagram that rules refuse: it may answer whose address this is. A global
 * function: the verifier judges it once. */
__weak __noinline int judge_answer(struct route_request *rq, const struct ax_app *app,
				   const struct ax_endpoint *to, __u32 client, __u32 party)
{
	struct ax_endpoint own = {.proto = IPPROTO_UDP};
	struct question q;

	if (!rq || !app || !to)
		return 0;
	if (addr_is_v4(&to->addr)) {
		own.addr = app->vip4;
		ctx_branch_end();
	} else {
		own.addr = app->vip6;
	}
	own.port_be = rq->local_port_be;
	q = question_of(rq, app, to, party);
	rq->verdict = answer_verdict(rq->verdict, q.parties, q.ports, &to->addr, client, &own);
	return 0;
}

/* Whether the caller may have `to`, as it is: 0, or enum refusal. */
static __always_inline int judge_direct(struct route_request *rq, const struct ax_app *app,
					const struct ax_endpoint *to, const struct ax_vip *vip)
{
	struct question q = question_of(rq, app, to, vip->party);

	rq->verdict = verdict_of(&q, &to->addr);
	if (rq->verdict & VERDICT_REFUSED && to->proto == IPPROTO_UDP && rq->local_port_be &&
	    vip->kind == AX_VIP_APP)
		judge_answer(rq, app, to, vip->id, vip->party);
	return verdict_errno(rq->verdict);
}

/* Whether a UDP socket of the app's is there on the wildcard in truth (struct ax_wild). A global
 * function, as are the next two: the verifier judges it once. */
__weak __noinline int has_wild(const struct ax_app *app, const struct ax_addr *like, __u32 port_be)
{
	struct ax_endpoint ep = {.port_be = (__be16)port_be, .proto = IPPROTO_UDP};
	const struct ax_wild *w;

	if (!app || !like)
		return false;
	addr_set_wildcard(&ep.addr, like);
	w = bpf_map_lookup_elem(&wild_ports, &ep);
	return w && w->app == app->id;
}

/* If that is an address of this machine, the datagram is one to the app itself, and comes from
 * there. */
__weak __noinline int await_itself(const struct route_request *rq, const struct ax_app *app,
				   const struct ax_endpoint *to)
{
	struct ax_endpoint from;

	if (!rq || !app || !to || !has_wild(app, &to->addr, to->port_be))
		return 0;
	from = *to;
	from.port_be = rq->local_port_be;
	await_from(app->id, &from, to->port_be);
	return 0;
}

/* Who is asked is not on this machine, or outside ax; for sk_lookup. (What a private app asks the
 * fabric sees.) */
__weak __noinline int await_elsewhere(const struct route_request *rq, const struct ax_app *app,
				      const struct ax_endpoint *to, __u32 party)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_endpoint asked;
	struct question q;
	bool open;

	if (!rq || !app || !to || !c || !(app->flags & AX_APP_HOST))
		return 0;
	asked = *to;
	q = question_of(rq, app, to, party);
	/* (to one on the wildcard in truth nothing but answers comes from this machine) */
	open = party != AX_PARTY_NONE ||
	       (c->host_access && !has_wild(app, &asked.addr, rq->local_port_be));
	await_answer(q.parties, q.ports, &asked.addr, app->id, &asked, open);
	return 0;
}

static __always_inline int route_direct(struct route_request *rq, const struct ax_app *app,
					const struct ax_endpoint *to, const struct ax_vip *vip)
{
	int r = judge_direct(rq, app, to, vip);

	if (r < 0)
		return refused(r);
	if (to->proto != IPPROTO_TCP || !(app->wait_ms || (vip->flags & AX_VIP_WAITS)))
		return ROUTE_DIRECT;
	rq->served = server_of(to, vip);
	if (!rq->served)
		wait_there(rq, app, vip, 0);
	else
		rq->wait_ms = app->wait_ms;
	return ROUTE_DIRECT;
}

/* To an app of another node, whose label and rules are judged there once more. A global function:
 * the verifier judges it once, and Linux 6.1 has no room for more in its callers. */
__weak __noinline int route_remote(struct route_request *rq, const struct ax_app *app, __u32 id,
				   __u32 party)
{
	struct ax_endpoint to; /* keys are on the stack to Linux 6.1 */
	struct question q;
	bool datagram;
	int r;

	if (!rq || !app)
		return -EINVAL;
	to = rq->peer;
	datagram = to.proto == IPPROTO_UDP && rq->local_port_be;
	q = question_of(rq, app, &to, party);
	rq->verdict = verdict_of(&q, &to.addr);
	if (rq->verdict & VERDICT_REFUSED && datagram)
		judge_answer(rq, app, &to, id, party);
	r = verdict_errno(rq->verdict);
	if (r < 0)
		return refused(r);
	if (datagram)
		await_elsewhere(rq, app, &to, party);
	return ROUTE_DIRECT;
}

/* Nobody serves that port. A datagram is then for the app whose own address this is: an answer to
 * a client, most likely. */
static __always_inline bool is_for_owner(const struct ax_endpoint *asked, const struct ax_vip *vip)
{
	return asked->proto == IPPROTO_UDP && vip->kind == AX_VIP_APP;
}

/* Whether who waits at that address gets others than its owner: nobody owns a service's own one;
 * one that apps share leads to those in host mode, or, for private apps, to private ones
 * (goes_to_service() of fabric.bpf.c). */
static __always_inline bool is_waited_at(const struct ax_vip *vip, const struct ax_app *app)
{
	if (vip->kind != AX_VIP_APP)
		return vip->kind == AX_VIP_SERVICE;
	if (vip->flags & AX_VIP_WAITS)
		return false;
	return vip->flags & AX_VIP_BY_DEVICE ? !(app->flags & AX_APP_HOST) : !vip->ifindex;
}

/*
 * Nobody listens of whom the client may have any; `chosen`: one may come at rq->peer. Whether it is
 * to wait at the service's address, where it gets who comes first: not if there is one alone, whose
 * address is asked without a detour, nor for one that its connection starts, nor if that is one to
 * whom the address does not lead. Who it is there says its source.
 */
static __noinline bool waits_at_service(struct route_request *rq, const struct ax_app *app,
					const struct ax_service *svc, const struct ax_vip *vip,
					bool chosen)
{
	__u32 wait_ms = svc->wait_ms > app->wait_ms ? svc->wait_ms : app->wait_ms;
	struct ax_addr to = rq->peer.addr; /* keys are on the stack to Linux 6.1 */
	struct ax_vip *be;

	if (!wait_ms || !rq->from_app || !is_waited_at(vip, app))
		return false;
	if (chosen) {
		be = bpf_map_lookup_elem(&vips, &to);
		if (svc->backends < 2 || !be || be->flags & AX_VIP_WAITS ||
		    (be->kind == AX_VIP_APP && !leads_to(vip, be)))
			return false;
	}
	rq->wait_ms = wait_ms;
	rq->at_service = true;
	waited_any = true;
	rq->counts = false;
	return true;
}

/* Somebody listens, who may end before the connection gets there. (A fixed address of the outside
 * is not waited for, nor is another node.) */
static __always_inline void wait_if_it_ends(struct route_request *rq, const struct ax_app *app,
					    const struct ax_service *svc)
{
	struct ax_addr to = rq->peer.addr; /* keys are on the stack to Linux 6.1 */
	const struct ax_vip *vip;

	if (!svc->wait_ms && !app->wait_ms)
		return;
	vip = bpf_map_lookup_elem(&vips, &to);
	if (!vip || vip->kind != AX_VIP_APP)
		return;
	rq->served = true;
	rq->wait_ms = svc->wait_ms > app->wait_ms ? svc->wait_ms : app->wait_ms;
}

/* `asked` is a copy of rq->peer, on the stack. */
static __always_inline int route_to_service(struct route_request *rq, const struct ax_app *app,
					    const struct ax_endpoint *asked, struct ax_service *svc,
					    const struct ax_vip *vip)
{
	int r = choose_backend(rq, app, svc);
	struct ax_addr to;

	if ((r == 1 || r == REFUSED_NO_BACKEND) && asked->proto == IPPROTO_TCP &&
	    waits_at_service(rq, app, svc, vip, r == 1)) {
		rq->peer = *asked;
		return ROUTE_DIRECT;
	}
	if (r == 1) {
		if (is_for_owner(asked, vip)) {
			rq->peer = *asked;
			return route_direct(rq, app, asked, vip);
		}
		to = rq->peer.addr;
		vip = bpf_map_lookup_elem(&vips, &to);
		if (asked->proto == IPPROTO_TCP && vip)
			wait_there(rq, app, vip, svc->wait_ms);
		r = 0;
	} else if (!r && asked->proto == IPPROTO_TCP) {
		wait_if_it_ends(rq, app, svc);
	}
	if (r < 0)
		return refused(r);
	if (endpoint_eq(asked, &rq->peer))
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
static __noinline bool answers_outside(const struct route_request *rq, const struct ax_app *app)
{
	struct ax_flow_key flow = {};

	if (rq->peer.proto != IPPROTO_UDP || !rq->local_port_be)
		return false;
	flow.client = rq->peer;
	/* copied here and there: Linux 6.1 loses track of a pointer that is chosen */
	if (addr_is_v4(&rq->peer.addr)) {
		flow.peer.addr = app->vip4;
		ctx_branch_end();
	} else {
		flow.peer.addr = app->vip6;
	}
	flow.peer.port_be = rq->local_port_be;
	flow.peer.proto = IPPROTO_UDP;
	return bpf_map_lookup_elem(&datagrams, &flow) || flow_find(&flow);
}

/* Whether the app listens there by a wildcard, and not at that very address. */
static __noinline bool listens_by_wildcard(const struct ax_app *app, const struct ax_endpoint *ep)
{
	struct ax_endpoint e = *ep;

	addr_set_wildcard(&e.addr, &ep->addr);
	if (!listening_on_loopback(app, &e))
		return false;
	return addr_is_wildcard(&ep->addr) || !listening_on_loopback(app, ep);
}

/* Whether its server for IPv6 is one for IPv4, too. (The agent is not waited for then, which brings
 * it what comes to the anchor.) */
static __noinline bool serves_both(const struct ax_app *app, const struct ax_endpoint *ep)
{
	struct ax_endpoint at = *ep;

	at.addr = app->vip4;
	if (!listening(&at))
		return false;
	addr_set_v4(&at.addr, 0);
	return listening_on_loopback(app, &at);
}

/*
 * The loopback addresses are the host's, but what the app has on a wildcard it finds there, before
 * others. TCP goes there as it is, and sk_lookup brings it to the app's socket. A datagram goes to
 * the app's own address, or its anchor.
 */
static __always_inline int route_loopback(struct route_request *rq, const struct ax_app *app,
					  const struct ax_endpoint *to)
{
	const struct ax_addr *vip;

	if (!listens_by_wildcard(app, to)) {
		if (to->proto == IPPROTO_UDP && rq->local_port_be)
			await_elsewhere(rq, app, to, AX_PARTY_NONE);
		return ROUTE_OUTSIDE;
	}
	if (to->proto == IPPROTO_TCP) {
		rq->own = true;
		return ROUTE_OUTSIDE;
	}
	if (rq->other_source && has_wild(app, &to->addr, to->port_be))
		return ROUTE_OUTSIDE; /* expect_itself(): it answers from there */
	vip = app_vip(app, &to->addr);
	if (!vip && rq->may_map && serves_both(app, to))
		vip = &app->vip4;
	if (vip)
		rq->peer.addr = *vip;
	else if (addr_is_v4(&to->addr) || !own_anchor(app, &rq->peer.addr))
		return ROUTE_OUTSIDE;
	return ROUTE_TRANSLATED;
}

static __always_inline int leave_ax(struct route_request *rq, const struct ax_app *app,
				    const struct ax_endpoint *to, enum route route)
{
	int r = judge_world(rq, app, to);

	if (!r && to->proto == IPPROTO_UDP && rq->local_port_be) {
		await_elsewhere(rq, app, to, AX_PARTY_NONE);
		await_itself(rq, app, to);
	}
	if (!r)
		return route;
	if (!answers_outside(rq, app))
		return refused(r);
	rq->verdict = 0;
	return route;
}

static __always_inline int route_outside(struct route_request *rq, const struct ax_app *app,
					 const struct ax_endpoint *to, const struct ax_ctl *c)
{
	if (to_agent_dns(rq, c))
		return ROUTE_AGENT;
	if (addr_is_loopback(&to->addr))
		return app->flags & AX_APP_HOST ? route_loopback(rq, app, to) : ROUTE_OUTSIDE;
	if (to->proto == IPPROTO_UDP && is_own_anchor(app, &to->addr))
		return ROUTE_DIRECT; /* it answers itself */
	if (to->proto == IPPROTO_TCP && is_nodes_port(&to->addr, to->port_be))
		return -ECONNREFUSED;
	if (to->proto == IPPROTO_TCP && app->wait_ms && is_nobodys(&to->addr)) {
		rq->wait_ms = app->wait_ms; /* whoever gets the address is judged then */
		return ROUTE_DIRECT;
	}
	return leave_ax(rq, app, to, ROUTE_OUTSIDE);
}

/*
 * An exposed port of this machine, asked for by an app in the host's network: whom it leads to is
 * asked for in its place. Behind it nobody could tell that app from the programs of the host, and
 * rules, labels and egress would not hold. (Who the app itself is there is found first, see
 * route_loopback(); what private apps ask the host for comes from their addresses.) True: rq->peer
 * was changed. A global function: the verifier judges it once.
 */
__weak __noinline int lead_exposed(struct route_request *rq, const struct ax_app *app)
{
	const struct ax_exposed *x;
	struct ax_endpoint to; /* keys are on the stack to Linux 6.1 */
	const struct ax_ctl *c = ctl_get();

	if (!rq || !app || !c || !c->exposed || !(app->flags & AX_APP_HOST))
		return false;
	to = rq->peer;
	if (!port_is_exposed(to.port_be, to.proto))
		return false;
	if (!addr_is_loopback(&to.addr))
		x = bpf_map_lookup_elem(&local_addrs, &to.addr) ? exposed_at(&to, LO_IFINDEX)
								: NULL;
	else
		x = listens_by_wildcard(app, &to) ? NULL : exposed_at(&to, LO_IFINDEX);
	if (!x)
		return false;
	rq->peer = x->to;
	return true;
}

/*
 * What lead_exposed() has left may come to an exposed port all the same: the app's own server there
 * is gone by then, or nobody knew that this address is the machine's. There it is not to be taken
 * for a program of the host.
 */
static __noinline void mark_exposed(struct route_request *rq, const struct ax_app *app,
				    const struct ax_endpoint *to, const struct ax_ctl *c)
{
	if (c->exposed && (app->flags & AX_APP_HOST) && to->proto == IPPROTO_TCP &&
	    port_is_exposed(to->port_be, to->proto))
		rq->own = true;
}

static __always_inline int find_route(struct route_request *rq, const struct ax_app *app)
{
	struct ax_endpoint to = rq->peer; /* keys are on the stack to Linux 6.1 */
	const struct ax_ctl *c = ctl_get();
	struct ax_vip *vip;

	if (!c)
		return ROUTE_OUTSIDE;
	count(AX_COUNT_CONNECT);
	vip = bpf_map_lookup_elem(&vips, &to.addr);
	if (!vip) {
		mark_exposed(rq, app, &to, c);
		return route_outside(rq, app, &to, c);
	}
	if (vip->kind == AX_VIP_HOST) {
		if (to_agent_dns(rq, c))
			return ROUTE_AGENT;
		mark_exposed(rq, app, &to, c);
		/* the host's own daemons are outside as well */
		return leave_ax(rq, app, &to, ROUTE_DIRECT);
	}
	if (is_elsewhere(vip)) {
		rq->across = vip->kind == AX_VIP_ACROSS;
		return route_remote(rq, app, vip->id, vip->party);
	}
	if (vip->kind == AX_VIP_BALANCER) /* datagrams that answer; it serves nothing */
		return to.proto == IPPROTO_UDP ? ROUTE_DIRECT : -ECONNREFUSED;
	if (vip->flags & AX_VIP_SERVICES) {
		struct ax_service *svc = find_service(&to);

		if (svc)
			return route_to_service(rq, app, &to, svc, vip);
	}
	if (vip->kind == AX_VIP_SERVICE)
		return -ECONNREFUSED; /* a port that the service does not have */
	return route_direct(rq, app, &to, vip);
}

/* Whom the app was refused, or would have been. */
static __always_inline void saw_route(const struct route_request *rq, const struct ax_app *app,
				      int r)
{
	__u32 where = SEEN(AX_SEEN_AT_CONNECT, r == REFUSED_NO_EGRESS ? AX_SEEN_EGRESS : 0);

	if (!(rq->verdict & VERDICT_REFUSED) && !VERDICT_AUDIT(rq->verdict) &&
	    r != REFUSED_NO_EGRESS)
		return;
	if (addr_is_v4(&rq->peer.addr))
		saw(&app->vip4, &rq->peer, rq->verdict, where, app->id);
	else
		saw(&app->vip6, &rq->peer, rq->verdict, where, app->id);
}

/* The SYN says whose it is, and a datagram has no room for that. */
static __always_inline bool may_go_across(const struct route_request *rq, const struct ax_app *app)
{
	const struct ax_addr *vip = addr_is_v4(&rq->peer.addr) ? &app->vip4 : &app->vip6;

	return rq->peer.proto == IPPROTO_TCP && !addr_is_zero(vip);
}

/* Decides where a connect or a datagram goes. Returns enum route or a negative errno. A global
 * function: what follows is not judged for each way in which it may end. */
__weak __noinline int route_peer(struct route_request *rq, const struct ax_app *app)
{
	int r, led;

	if (!rq || !app)
		return -EINVAL;
	rq->wait_ms = 0;
	rq->implied = false;
	rq->own = false;
	rq->across = false;
	rq->at_service = false;
	rq->served = false;
	rq->verdict = 0;
	led = lead_exposed(rq, app);
	r = find_route(rq, app);
	if (led)
		r = r == ROUTE_DIRECT ? ROUTE_TRANSLATED : r == ROUTE_OUTSIDE ? -ECONNREFUSED : r;
	if (rq->across && r >= 0 && !may_go_across(rq, app)) {
		count(AX_COUNT_ACROSS_REFUSED);
		r = rq->peer.proto == IPPROTO_TCP ? -ENETUNREACH : -EPROTONOSUPPORT;
	}
	if (rq->verdict)
		count_verdict(rq->verdict);
	saw_route(rq, app, r);
	return r;
}

#endif
