/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ingress to virtual IPs that live in the host's own namespace (host-mode apps, services, declared
 * apps): the receiving side's policy check, services for programs outside ax, dual-stack listeners
 * for the other family, and no way to a host daemon on a wildcard address through an app's address.
 * Not run for established connections.
 */
#include "switch.bpf.h"
#include "across.bpf.h"
#include "door.bpf.h"
#include "exposed.bpf.h"
#include "open_conns.bpf.h"
#include "picked.bpf.h"
#include "wild.bpf.h"

static __always_inline void endpoints(const struct bpf_sk_lookup *ctx, struct ax_endpoint *local,
				      struct ax_addr *remote)
{
	if (ctx->family == AF_INET) {
		addr_set_v4(&local->addr, ctx->local_ip4);
		addr_set_v4(remote, ctx->remote_ip4);
		ctx_branch_end();
	} else {
		local->addr.w[0] = ctx->local_ip6[0];
		local->addr.w[1] = ctx->local_ip6[1];
		local->addr.w[2] = ctx->local_ip6[2];
		local->addr.w[3] = ctx->local_ip6[3];
		remote->w[0] = ctx->remote_ip6[0];
		remote->w[1] = ctx->remote_ip6[1];
		remote->w[2] = ctx->remote_ip6[2];
		remote->w[3] = ctx->remote_ip6[3];
	}
	local->port_be = bpf_htons(ctx->local_port);
	local->proto = ctx->protocol;
	local->pad = 0;
}

/* Who asks. */
struct caller {
	struct ax_addr addr;
	__u32 party;
	bool app;      /* else a program outside ax */
	bool dns;      /* the agent's, which answers */
	bool balancer; /* who may is decided by who wrote it */
	bool exposed;  /* who is outside ax may have it whatever host_access says */
	__be16 port_be;
	bool may;
	__u8 pad; /* Linux 6.1 lets no function see what was not written */
	__u32 id; /* the app's */
};

/* False: a virtual IP as source is believed only from its owner's side (Linux 5.17). */
static __noinline bool caller_of(const struct bpf_sk_lookup *ctx, struct caller *who,
				 const struct ax_ctl *c)
{
	struct ax_addr addr = who->addr; /* keys are on the stack to Linux 6.1 */
	const struct ax_vip *client = bpf_map_lookup_elem(&vips, &addr);

	who->dns = client && client->kind == AX_VIP_HOST && ctx->protocol == IPPROTO_UDP &&
		   (__be16)ctx->remote_port == c->dns_port_be && ctx->ingress_ifindex == LO_IFINDEX;
	who->balancer = client && client->kind == AX_VIP_BALANCER;
	if (who->balancer)
		return ctx->ingress_ifindex == c->service_ifindex;
	if (!client)
		return ctx->ingress_ifindex == LO_IFINDEX || !is_nobodys(&addr);
	if (client->kind == AX_VIP_ACROSS) /* no packet has it */
		return false;
	if (!is_running(client))
		return true;
	who->app = true;
	who->party = client->party;
	who->id = client->id;
	return ctx->ingress_ifindex == (client->ifindex ? client->ifindex : LO_IFINDEX);
}

/* Whether the caller may have what is there, by policy: to be asked of whoever gets it, whose party
 * is `party`. A global function, as are assign_backend() and is_clients(): the verifier judges it
 * once, and not with all that its caller did before. */
__weak __noinline int may_have(const struct caller *who, const struct ax_endpoint *ep, __u32 party,
			       __u64 *v)
{
	const struct ax_ctl *c = ctl_get();
	struct question q;

	if (!who || !ep || !v || !c)
		return false;
	*v = 0;
	if (who->dns || who->balancer)
		return true;
	if (who->app && (!who->party || !party))
		return false;
	q.parties = question_parties(who->party, party);
	q.ports = question_ports(ep->proto, ep->port_be, who->port_be);
	*v = verdict_of(&q, &who->addr);
	if (who->app || VERDICT_RULE(*v))
		return !(*v & VERDICT_REFUSED);
	return c->host_access || who->exposed;
}

/* A datagram that was let through: its answer will be (answer.bpf.h). */
static __noinline void let_through(const struct caller *who, const struct ax_endpoint *ep,
				   const struct question *q)
{
	struct ax_flow_key flow = {};
	struct ax_endpoint asked = *ep;
	__u32 one = 1;

	if (who->app) {
		await_answer(q->parties, q->ports, &asked.addr, who->id, &asked, true);
		return;
	}
	flow.client.addr = who->addr;
	flow.client.port_be = who->port_be;
	flow.client.proto = IPPROTO_UDP;
	flow.peer = asked;
	if (!bpf_map_lookup_elem(&datagrams, &flow))
		bpf_map_update_elem(&datagrams, &flow, &one, BPF_NOEXIST);
}

/* One that answers the app whose address this is: by what is said of its question. */
static __noinline bool is_answer(const struct caller *who, const struct ax_endpoint *ep,
				 const struct question *q, __u32 app, __u64 *v)
{
	struct ax_endpoint from = {.port_be = who->port_be, .proto = IPPROTO_UDP};
	__u64 question;

	from.addr = who->addr;
	if (!is_awaited(app, &from, ep->port_be))
		return false;
	question = turned_verdict(q->parties, q->ports, &from.addr);
	if (question & VERDICT_REFUSED)
		return false;
	*v = question;
	return true;
}

/* A datagram to an app's own address: one that may come is remembered, one that may not comes if it
 * is an answer. A global function, as may_have(). */
__weak __noinline int may_have_datagram(const struct caller *who, const struct ax_endpoint *ep,
					__u32 party, __u32 app, __u64 *v)
{
	struct question q;

	if (!who || !ep || !v)
		return false;
	if (who->dns || who->balancer)
		return who->may;
	q.parties = question_parties(who->party, party);
	q.ports = question_ports(IPPROTO_UDP, ep->port_be, who->port_be);
	if (!who->may)
		return is_answer(who, ep, &q, app, v);
	let_through(who, ep, &q);
	return true;
}

/* What apps may is counted where they ask. */
static __always_inline void count_caller(const struct caller *who, __u64 v)
{
	if (v && (!who->app || (v & VERDICT_DENY)))
		count_verdict(v);
}

static __always_inline void saw_caller(const struct caller *who, const struct ax_endpoint *ep,
				       __u64 v, bool may)
{
	if (who->app && may) /* it was seen where it asked */
		return;
	saw(&who->addr, ep, v,
	    SEEN(AX_SEEN_AT_SK_LOOKUP, may || who->app ? 0 : AX_SEEN_HOST_ACCESS), 0);
}

static __always_inline int deny(void)
{
	count(AX_COUNT_FABRIC_DENIED);
	return SK_DROP;
}

/* A search among the sockets that share a port (see AX_LISTENERS_MAX): the kernel chooses among
 * them all, whichever it is given. By bpf_loop(): Linux 6.1 would judge each turn of a loop. */
struct search { /* also the map's key */
	struct bpf_sk_lookup *ctx;
	struct ax_app_endpoint at;
	int r; /* 0: assigned; else a negative errno */
};

static __always_inline long assign_found(struct search *s, struct bpf_sock *sk)
{
	if (!sk)
		return 0;
	s->r = bpf_sk_assign(s->ctx, sk, 0);
	bpf_sk_release(sk);
	return s->r == 0;
}

static long try_listener(__u32 i, struct search *s)
{
	s->at.ep.pad = (__u8)i;
	return assign_found(s, bpf_map_lookup_elem(&listeners, &s->at.ep));
}

static long try_own(__u32 i, struct search *s)
{
	s->at.ep.pad = (__u8)i;
	return assign_found(s, bpf_map_lookup_elem(&loopback_listeners, &s->at));
}

/* 0: assigned; else a negative errno. (Not inline: the search would be on its callers' stacks, and
 * with all whom they call they have 512 bytes.) */
static __noinline int assign_listener(struct bpf_sk_lookup *ctx, const struct ax_endpoint *ep)
{
	struct search s = {.ctx = ctx, .at.ep = *ep, .r = -ENOENT};

	bpf_loop(ep->proto == IPPROTO_TCP ? AX_LISTENERS_MAX : 1, try_listener, &s, 0);
	return s.r;
}

/*
 * To the server's own socket. Who is not in the map, and sits on that address, is found as ever:
 * the kernel has let nobody else bind what the server has bound. (Of two sockets that SO_REUSEADDR
 * lets share an address and a UDP port, one may be somebody else's: both stand in the map.)
 */
static __noinline int assign_server(struct bpf_sk_lookup *ctx, struct ax_endpoint *ep,
				    const struct ax_server *s)
{
	if (assign_listener(ctx, ep) == 0)
		return SK_PASS;
	return AX_SERVER_SOCKETS(s->sockets) > AX_SERVER_ELSEWHERES(s->sockets) ? SK_PASS : SK_DROP;
}

/* For open_accepted(), by the ends of the socket that will be: it may have come by an exposed port.
 */
static __noinline void handed_to(const struct bpf_sk_lookup *ctx, const struct ax_endpoint *backend)
{
	struct ax_flow_key flow = {};

	endpoints(ctx, &flow.peer, &flow.client.addr);
	flow.client.port_be = ctx->remote_port;
	flow.client.proto = IPPROTO_TCP;
	bpf_map_update_elem(&handed, &flow, backend, BPF_ANY);
	outside_counts = true;
}

/* To the backend that a program on packets has chosen (struct ax_picked). False: to none. */
__weak __noinline int assign_picked(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				    const struct caller *who)
{
	struct ax_flow_key flow = {};
	const struct ax_service *svc;
	const struct ax_picked *before;
	struct ax_endpoint ep;
	struct ax_vip *vip;
	__u64 v = 0;

	if (!local || !who)
		return false;
	flow.peer = *local;
	svc = find_service(&flow.peer);
	flow.client.addr = who->addr;
	flow.client.port_be = who->port_be;
	flow.client.proto = IPPROTO_TCP;
	before = svc ? picked_find(&flow, svc) : NULL;
	if (!svc || !before)
		return false;
	ep = before->to;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip || !may_have(who, &ep, vip->party, &v) || !server_of(&ep, vip) ||
	    assign_listener(ctx, &ep))
		return false;
	if (choose_counts(svc))
		handed_to(ctx, &ep);
	count_caller(who, v);
	return true;
}

/* A search for a backend. */
struct offer {
	struct choice choice;
	struct ax_endpoint ep; /* the one that was looked at last */
	bool refused;	       /* one that the caller may not have was among them */
	bool starts;	       /* one that is started by connections was, and does not listen, */
	struct ax_addr start;  /* with this address */
	__u64 v;	       /* the verdict on that one, or on the one that is taken */
};

/* The next backend that the strategy names: enum tried. A global function: the verifier judges it
 * once, and not for each try. */
__weak __noinline int offer_next(struct bpf_sk_lookup *ctx, const struct caller *who,
				 struct ax_service *svc, struct offer *o)
{
	struct ax_endpoint ep = {}; /* keys are on the stack to Linux 6.1, and all written */
	struct ax_vip *vip;
	__u64 v;
	int r;

	if (!who || !svc || !o)
		return TRY_END;
	r = choose_next(&o->choice, svc, &ep);
	if (r != CHOSEN)
		return r == CHOSEN_NONE ? TRY_END : TRY_NEXT;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip)
		return TRY_NEXT;
	o->ep = ep;
	if (!may_have(who, &ep, vip->party, &v)) {
		o->refused = true;
		o->v = v;
		return TRY_NEXT;
	}
	if (is_to_start(vip)) {
		o->starts = true;
		o->start = ep.addr;
		return TRY_NEXT;
	}
	if (!server_of(&ep, vip) || !affinity_keep(&o->choice, svc) || assign_listener(ctx, &ep))
		return TRY_NEXT;
	o->v = v;
	return TRY_TAKEN;
}

/* A service's address that no app owns, or whose owner shares it: TCP goes to a listener in this
 * namespace, of a backend that the caller may have. */
__weak __noinline int assign_backend(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				     const struct caller *who)
{
	struct offer o = {};
	struct ax_service *svc;
	int r;

	if (!local || !who)
		return SK_DROP;
	o.choice.asked = *local;
	svc = find_service(&o.choice.asked); /* (keys are on the stack to Linux 6.1) */
	if (!svc)
		return SK_DROP;
	o.choice.client = who->addr;
	o.choice.start = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		r = offer_next(ctx, who, svc, &o);
		if (r == TRY_END)
			break;
		if (r == TRY_NEXT)
			continue;
		if (choose_counts(svc))
			handed_to(ctx, &o.ep);
		count_caller(who, o.v);
		return SK_PASS;
	}
	if (o.starts && !who->app && knock(ctx, &o.start) == SK_PASS)
		return SK_PASS;
	count_caller(who, o.v);
	if (o.refused)
		saw_caller(who, local, o.v, false);
	return o.refused ? deny() : SK_DROP;
}

static __always_inline int to_backend(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				      const struct caller *who)
{
	if (assign_picked(ctx, local, who))
		return SK_PASS;
	return assign_backend(ctx, local, who) == SK_PASS ? SK_PASS : SK_DROP;
}

/* --- to addresses of the host --- */

#define TO_SERVICE 2 /* besides enum sk_action */

/* The host-mode app whose SYN or datagram it is, if it is for a server of its own or hooks have
 * told of it for another reason (mark_exposed()); else 0. */
static __noinline __u32 own_conn(const struct ax_endpoint *local, const struct caller *who)
{
	struct ax_flow_key key = {.peer = *local};
	__u32 *app;

	key.client.addr = who->addr;
	key.client.port_be = who->port_be;
	key.client.proto = local->proto;
	app = bpf_map_lookup_elem(&own_conns, &key);
	return app ? *app : 0;
}

/* A port of the host that is an app's or a service's (struct ax_exposed). Who is outside ax may
 * have it whatever host_access says, if no rule keeps them out; for apps, policy holds. 0:
 * assigned; TO_SERVICE: to be assigned by the caller, who has more stack left; -ENOENT: it is not
 * exposed, or not to be had here. *to is where it leads. */
__weak __noinline int assign_exposed(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				     struct caller *who, struct ax_endpoint *to)
{
	const struct ax_exposed *x;
	struct ax_endpoint at; /* keys are on the stack to Linux 6.1 */
	struct ax_vip *vip;
	__u64 v = 0;
	bool may;

	if (!local || !who || !to)
		return -ENOENT;
	x = exposed_at(local, ctx->ingress_ifindex);
	if (!x || x->flags & AX_EXPOSED_SOON)
		return -ENOENT;
	if (!who->app && own_conn(local, who)) /* connect() has not judged it for this */
		return -EACCES;
	who->exposed = true;
	at = x->to;
	*to = at;
	if (x->flags & AX_EXPOSED_SERVICE)
		return TO_SERVICE;
	vip = bpf_map_lookup_elem(&vips, &at.addr);
	if (!vip || !server_of(&at, vip))
		return -ENOENT;
	may = may_have(who, &at, vip->party, &v);
	count_caller(who, v);
	saw_caller(who, &at, v, may);
	return may ? assign_listener(ctx, &at) : -EACCES;
}

/* Whose SYN it is, as ax_across() has noted it; else it is the node's, and treated like a program
 * outside ax. False: of neither. */
static __noinline bool across_caller(const struct bpf_sk_lookup *ctx, struct caller *who,
				     const struct ax_across_came *came)
{
	struct ax_addr client = who->addr; /* keys are on the stack to Linux 6.1 */
	struct ax_vip *vip;
	__u32 *now;

	if (!came) {
		now = bpf_map_lookup_elem(&across_nodes, &client);
		if (ctx->ingress_ifindex == LO_IFINDEX || !now || !*now)
			return false;
		count(AX_COUNT_ACROSS_PLAIN);
		return true;
	}
	client = came->client;
	vip = bpf_map_lookup_elem(&vips, &client);
	if (!vip || vip->kind != AX_VIP_ACROSS)
		return false;
	who->addr = client;
	who->app = true;
	who->party = vip->party;
	who->id = vip->id;
	return true;
}

/* From another node to a server of this one's (include/across.h). 0: assigned; -ENOENT: it is not
 * one; else it is refused. */
__weak __noinline int assign_across(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				    struct caller *who)
{
	const struct ax_across_ctl *c = across_get();
	struct ax_flow_key key = {};
	struct ax_across_came *came;
	struct ax_endpoint at, *served;
	struct ax_vip *vip;
	__u64 v = 0;
	bool may;

	if (!local || !who || !c || !is_across(c, local))
		return -ENOENT;
	key.peer = *local;
	key.client.addr = who->addr;
	key.client.port_be = who->port_be;
	key.client.proto = IPPROTO_TCP;
	came = bpf_map_lookup_elem(&across_came, &key);
	if (came && came->ifindex != ctx->ingress_ifindex)
		came = NULL;
	served = across_served_at(local);
	if (!served)
		return came ? -EACCES : -ENOENT;
	at = *served;
	vip = bpf_map_lookup_elem(&vips, &at.addr);
	if (!vip || !server_of(&at, vip) || !across_caller(ctx, who, came))
		return -EACCES;
	may = may_have(who, &at, vip->party, &v);
	count_caller(who, v);
	saw_caller(who, &at, v, may);
	return may && assign_listener(ctx, &at) == 0 ? 0 : -EACCES;
}

/* 0: assigned; else a negative errno. */
static __noinline int assign_own(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				 const struct caller *who)
{
	struct search own = {.ctx = ctx, .at.ep = *local, .r = -ENOENT};

	own.at.app = own_conn(local, who);
	if (!own.at.app)
		return -ENOENT;
	addr_set_wildcard(&own.at.ep.addr, &local->addr);
	bpf_loop(AX_LISTENERS_MAX, try_own, &own, 0);
	return own.r;
}

/* Whether a host-mode app's socket sits on a wildcard with that port. */
static __always_inline bool is_apps(const struct ax_endpoint *local, bool v4)
{
	struct ax_app_endpoint key = {.ep = *local};
	struct bpf_sock *sk;

	__builtin_memset(&key.ep.addr, 0, sizeof(key.ep.addr));
	if (v4)
		addr_set_v4(&key.ep.addr, 0);
	sk = bpf_map_lookup_elem(&loopback_listeners, &key);
	if (!sk)
		return false;
	bpf_sk_release(sk);
	return true;
}

/* An app's anchor is for its own datagrams. What sits there the kernel finds, and what sits on the
 * wildcard; a server of both families sits on the app's IPv4 address (dual_udp.bpf.c). */
static __noinline int to_anchor(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
				const struct caller *who)
{
	if (local->proto != IPPROTO_UDP || !own_conn(local, who))
		return SK_DROP;
	assign_listener(ctx, local);
	return SK_PASS;
}

/* Whether it comes from another socket of the app's that is on the wildcard. */
static __noinline bool own_wild(const struct caller *who, __u32 app)
{
	const struct ax_wild *w = wild_at_port(&who->addr, who->port_be);

	return w && w->app == app;
}

/* On this machine anybody's datagrams come from the host's addresses: nobody is to be believed,
 * but whom the app has asked, and itself (expect_itself()). */
static __noinline bool may_have_wild(const struct caller *who, const struct ax_endpoint *local,
				     __u32 app)
{
	struct ax_endpoint from = {.port_be = who->port_be, .proto = IPPROTO_UDP};

	from.addr = who->addr;
	return own_wild(who, app) || is_awaited(app, &from, local->port_be);
}

/* By an address of the host to what an app has on a wildcard in truth, if it has: as if it had been
 * sent to the app's own address. A global function, as may_have(). */
__weak __noinline int to_wild(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
			      struct caller *who)
{
	const struct ax_ctl *c = ctl_get();
	const struct ax_wild *w;
	struct ax_endpoint at; /* keys are on the stack to Linux 6.1 */
	struct ax_vip *vip;
	__u64 v = 0;
	__u32 app;
	bool may;

	if (!local || !who || !c)
		return SK_PASS;
	w = wild_at_port(&local->addr, local->port_be);
	if (!w)
		return SK_PASS;
	app = w->app;
	at = *local;
	at.addr = w->vip;
	vip = bpf_map_lookup_elem(&vips, &at.addr);
	if (!vip || vip->kind != AX_VIP_APP || vip->id != app)
		return SK_PASS; /* it has ended */
	if (!caller_of(ctx, who, c))
		return deny();
	if (ctx->ingress_ifindex == LO_IFINDEX && !who->app && !who->dns)
		return may_have_wild(who, local, app) ? SK_PASS : SK_DROP;
	who->may = may_have(who, &at, vip->party, &v);
	may = may_have_datagram(who, &at, vip->party, app, &v);
	count_caller(who, v);
	saw_caller(who, &at, v, may);
	return may ? SK_PASS : deny();
}

static __noinline int if_not_apps(const struct ax_endpoint *local)
{
	return is_apps(local, false) || (addr_is_v4(&local->addr) && is_apps(local, true))
		       ? SK_DROP
		       : SK_PASS;
}

/* A host-mode app's servers are reached at its own addresses; at loopback ones by itself. */
static __noinline int to_host(struct bpf_sk_lookup *ctx, const struct ax_endpoint *local,
			      struct caller *who, const struct ax_ctl *c, struct ax_endpoint *to)
{
	int r;

	if (is_anchor(&local->addr, c))
		return to_anchor(ctx, local, who);
	if (local->proto != IPPROTO_TCP)
		return ctx->local_port < c->ephemeral_first || to_wild(ctx, local, who) == SK_PASS
			       ? SK_PASS
			       : SK_DROP;
	if (addr_is_loopback(&local->addr) && assign_own(ctx, local, who) == 0)
		return SK_PASS;
	if (ctx->local_port >= AX_ACROSS_FIRST) {
		r = assign_across(ctx, local, who);
		if (r != -ENOENT)
			return r ? deny() : SK_PASS;
	}
	if (c->exposed & AX_EXPOSED_HOST_TCP) {
		if (!caller_of(ctx, who, c))
			return deny();
		r = assign_exposed(ctx, local, who, to);
		if (r == TO_SERVICE)
			return r;
		if (r != -ENOENT)
			return r ? deny() : SK_PASS;
	}
	return if_not_apps(local);
}

/* UDP servers are known by post_bind, and so is, from ephemeral_first on, what has its port else:
 * there the kernel finds the app's socket, and not whatever sits on a wildcard. */
__weak __noinline int is_clients(const struct ax_endpoint *local, __u32 app)
{
	struct ax_app_endpoint key = {.app = app};

	if (!local)
		return false;
	key.ep = *local;
	return bpf_map_lookup_elem(&udp_clients, &key) != NULL;
}

/* UDP by an exposed port (xdp/expose.bpf.c): exposing is the permission. */
static __noinline bool came_by_exposed(const struct ax_endpoint *local, const struct caller *who)
{
	struct ax_flow_key flow = {.peer = *local};
	const struct ax_flow *f;

	flow.client.addr = who->addr;
	flow.client.port_be = who->port_be;
	flow.client.proto = IPPROTO_UDP;
	f = flow_find(&flow);
	return f && f->kind == AX_FLOW_EXPOSED;
}

SEC("sk_lookup")
int ax_sk_lookup(struct bpf_sk_lookup *ctx)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_endpoint local, to = {};
	struct caller who = {};
	struct ax_server *s;
	struct ax_vip *vip;
	__u64 v = 0;
	bool may;
	int r;

	if (!c)
		return SK_PASS;
	endpoints(ctx, &local, &who.addr);
	who.port_be = (__be16)ctx->remote_port;
	vip = bpf_map_lookup_elem(&vips, &local.addr);
	if (!vip || vip->kind == AX_VIP_HOST) {
		r = to_host(ctx, &local, &who, c, &to);
		if (r == TO_SERVICE)
			r = to_backend(ctx, &to, &who) == SK_PASS ? SK_PASS : if_not_apps(&local);
		return r;
	}
	if (!caller_of(ctx, &who, c))
		return deny();
	s = server_of(&local, vip);
	if (!s && local.proto == IPPROTO_TCP && (vip->flags & AX_VIP_SERVICES))
		return to_backend(ctx, &local, &who);
	if (local.proto == IPPROTO_UDP && c->exposed & AX_EXPOSED_HOST_UDP && !who.app)
		who.exposed = came_by_exposed(&local, &who);
	may = who.may = may_have(&who, &local, vip->party, &v);
	if (local.proto == IPPROTO_UDP && vip->kind == AX_VIP_APP)
		may = may_have_datagram(&who, &local, vip->party, vip->id, &v);
	count_caller(&who, v);
	saw_caller(&who, &local, v, may);
	if (!may)
		return deny();
	if (s)
		return assign_server(ctx, &local, s);
	if (local.proto == IPPROTO_TCP)
		return !who.app && knock(ctx, &local.addr) == SK_PASS ? SK_PASS : SK_DROP;
	if (vip->kind != AX_VIP_APP)
		return SK_DROP;
	return is_clients(&local, vip->id) ? SK_PASS : SK_DROP;
}
