/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who listens where: the maps of servers. Several sockets may share an endpoint (SO_REUSEPORT), so
 * they are counted; and a socket's storage says what it was counted for, so that it is taken back
 * once, whatever has become of its address by then.
 */
#ifndef AX_SERVER_BPF_H
#define AX_SERVER_BPF_H

#include <linux/in.h>
#include <stdbool.h>

#include "count.bpf.h"
#include "endpoint.bpf.h"
#include "home.bpf.h"
#include "maps.bpf.h"

extern __u32 servers_watched; /* 1: the agent wants to know when they change */
extern __u32 servers_told;    /* 1: it is told, and has not looked since */

/* The agent is told once until it looks, however often somebody listens and closes again. A global
 * function: the verifier judges it once. */
__weak __noinline int tell_servers(void)
{
	struct ax_event *ev;

	if (!servers_watched || servers_told)
		return 0;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev)
		return 0; /* it looks now and then by itself */
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_SERVERS;
	servers_told = 1;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* What a socket serves. */
struct serving {
	__u32 app;
	bool elsewhere;	      /* it sits on `first`, and is brought what comes to `second` */
	struct ax_addr first; /* zero: none */
	struct ax_addr second;
};

/*
 * Only what is the app's own: its addresses where they are its own, and in the host's namespace,
 * which it shares, its loopback servers, for itself. host_app: who has bound the socket there.
 */
static __always_inline bool serving_of(const struct ax_netns_app *ns, const struct ax_asked *a,
				       __u32 host_app, __u32 family, const struct ax_addr *local,
				       struct serving *ret)
{
	bool any = a && (a->flags & (AX_ASKED_ANY4 | AX_ASKED_ANY6));
	struct ax_vip *vip;

	__builtin_memset(ret, 0, sizeof(*ret));
	if (!ns)
		return false;
	ret->app = ns->id ? ns->id : host_app;
	if (!ret->app)
		return false;
	if (addr_is_wildcard(local)) {
		if (!ns->id) {
			if (!any)
				return false;
			ret->first = a->served[0].addr; /* (see tcp_bound()) */
			ret->second = a->served[1].addr;
			return true;
		}
		ret->first = ns->vip4;
		if (family == AF_INET6)
			ret->second = ns->vip6;
		return true;
	}
	if (addr_is_loopback(local)) {
		ret->first = *local;
		return !ns->id;
	}
	vip = bpf_map_lookup_elem(&vips, local);
	if (!vip || vip->kind != AX_VIP_APP || vip->id != ret->app)
		return any; /* (an anchor) */
	ret->first = *local;
	if (!ns->id && family == AF_INET6 && addr_is_v4(local)) {
		ret->second = vip->twin;
		ret->elsewhere = true;
	}
	return true;
}

/* --- how many an app has --- */

static __always_inline void share_return(__u32 app)
{
	__u32 *of_app = bpf_map_lookup_elem(&app_servers, &app), all = 0;
	__u32 *of_all = bpf_map_lookup_elem(&app_servers, &all);

	/* (0: sockets of before there was a count) */
	if (of_app && *(volatile __u32 *)of_app)
		__sync_fetch_and_sub(of_app, 1);
	if (of_all && *(volatile __u32 *)of_all)
		__sync_fetch_and_sub(of_all, 1);
}

static __always_inline bool share_take(__u32 app)
{
	__u32 *of_app = bpf_map_lookup_elem(&app_servers, &app), all = 0;
	__u32 *of_all = bpf_map_lookup_elem(&app_servers, &all);
	__u32 has, total;

	if (!of_app || !of_all)
		return false;
	has = __sync_fetch_and_add(of_app, 1);
	total = __sync_fetch_and_add(of_all, 1);
	if (has < AX_APP_SERVERS_SURE || (has < AX_APP_SERVERS_MAX && total < AX_SERVERS_MAX / 2))
		return true;
	share_return(app);
	return false;
}

/* --- the maps --- */

static __always_inline void loopback_del(const struct ax_endpoint *ep, __u32 app)
{
	struct ax_app_endpoint key = {.app = app, .ep = *ep};
	__u32 *n = bpf_map_lookup_elem(&loopback_servers, &key);

	if (n && __sync_fetch_and_sub(n, 1) <= 1)
		bpf_map_delete_elem(&loopback_servers, &key);
}

static __always_inline bool loopback_add(const struct ax_endpoint *ep, __u32 app)
{
	struct ax_app_endpoint key = {.app = app, .ep = *ep};
	__u32 *n, one = 1;

	if (bpf_map_update_elem(&loopback_servers, &key, &one, BPF_NOEXIST) == 0)
		return true;
	n = bpf_map_lookup_elem(&loopback_servers, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	return n != NULL;
}

static __always_inline bool entry_add(const struct ax_endpoint *ep, __u32 app, __u32 as)
{
	struct ax_server *known = bpf_map_lookup_elem(&servers, ep);
	/* (bind() has put what UDP's serve where the kernel finds it; see serve_from_now()) */
	struct ax_server fresh = {.app = app,
				  .sockets = as,
				  .since_ns =
					  ep->proto == IPPROTO_UDP ? bpf_ktime_get_boot_ns() : 0};

	/* of an app that had the address before: its socket has got away */
	if (known && known->app != app)
		return bpf_map_update_elem(&servers, ep, &fresh, BPF_ANY) == 0;
	if (!known && bpf_map_update_elem(&servers, ep, &fresh, BPF_NOEXIST) == 0)
		return true;
	/* there already, or since a moment ago: another CPU's */
	known = bpf_map_lookup_elem(&servers, ep);
	if (known)
		__sync_fetch_and_add(&known->sockets, as);
	return known != NULL;
}

static __always_inline void entry_del(const struct ax_endpoint *ep, __u32 app, __u32 as)
{
	struct ax_server *known = bpf_map_lookup_elem(&servers, ep);

	if (!known || known->app != app)
		return;
	if (AX_SERVER_SOCKETS(__sync_fetch_and_sub(&known->sockets, as)) <= 1)
		bpf_map_delete_elem(&servers, ep);
}

/* --- a socket --- */

static __always_inline __u32 counts_as(bool elsewhere)
{
	return elsewhere ? AX_SERVER_SOCKET | AX_SERVER_ELSEWHERE : AX_SERVER_SOCKET;
}

/* One endpoint, into *served, which is the socket's. (A global function, as are serve_no_more(),
 * any_at() and loopback_no_more(): the verifier judges it once in a program, and not with all that
 * those before it have done.) */
__weak __noinline int serve_at(struct ax_endpoint *served, const struct ax_endpoint *at, __u32 app,
			       __u32 as)
{
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */
	bool r;

	if (!served || !at)
		return false;
	ep = *at;
	if (!share_take(app)) {
		count(AX_COUNT_SERVERS_REFUSED);
		return false;
	}
	if (addr_is_loopback(&ep.addr))
		r = loopback_add(&ep, app);
	else
		r = entry_add(&ep, app, as);
	if (r) {
		*served = ep;
	} else {
		share_return(app);
		count(AX_COUNT_SERVERS_REFUSED);
	}
	return r;
}

static __always_inline void client_del(const struct ax_endpoint *ep, __u32 app)
{
	struct ax_app_endpoint key = {.app = app, .ep = *ep};
	__u32 *n = bpf_map_lookup_elem(&udp_clients, &key);

	if (n && __sync_fetch_and_sub(n, 1) <= 1)
		bpf_map_delete_elem(&udp_clients, &key);
}

static __always_inline bool client_add(const struct ax_endpoint *ep, __u32 app)
{
	struct ax_app_endpoint key = {.app = app, .ep = *ep};
	__u32 *n, one = 1;

	if (bpf_map_update_elem(&udp_clients, &key, &one, BPF_NOEXIST) == 0)
		return true;
	n = bpf_map_lookup_elem(&udp_clients, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	return n != NULL;
}

/* Port, protocol and padding: what tells whether there is an endpoint, to be changed at once. (Two
 * threads may send by one socket, and a third bind it.) */
static __always_inline __u32 *endpoint_word(struct ax_endpoint *ep)
{
	return (__u32 *)((char *)ep + sizeof(ep->addr));
}

/* flags: the socket's. */
__weak __noinline int serve_no_more(struct ax_endpoint *served, __u32 app, __u32 flags, __u32 as)
{
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */

	if (!served)
		return 0;
	ep = *served;
	if (!ep.port_be || !__sync_lock_test_and_set(endpoint_word(served), 0))
		return 0;
	if (flags & AX_ASKED_CLIENT)
		client_del(&ep, app);
	else if (addr_is_loopback(&ep.addr))
		loopback_del(&ep, app);
	else
		entry_del(&ep, app, as);
	share_return(app);
	return 0;
}

/* --- loopback, for whoever asked for a wildcard --- */

/* What has an address of the app as well counts there already. */
static __always_inline bool counts_by_address(const struct ax_asked *a)
{
	return a->served[0].port_be || a->served[1].port_be;
}

/* counted: it counts already. */
__weak __noinline int any_at(struct ax_endpoint *served, const struct ax_endpoint *at, __u32 app,
			     __u32 counted)
{
	bool taken = !counted && share_take(app);
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */

	if (!served || !at)
		return 0;
	ep = *at;
	if ((counted || taken) && loopback_add(&ep, app)) {
		*served = ep;
		return 0;
	}
	if (taken)
		share_return(app);
	count(AX_COUNT_SERVERS_REFUSED);
	return 0;
}

static __always_inline void serve_loopback(struct ax_asked *a, struct ax_endpoint *ep, __u32 app)
{
	__builtin_memset(&ep->addr, 0, sizeof(ep->addr));
	if (a->flags & AX_ASKED_ANY6)
		any_at(&a->served[3], ep, app, counts_by_address(a));
	addr_set_v4(&ep->addr, 0);
	if (a->flags & AX_ASKED_ANY4)
		any_at(&a->served[2], ep, app, counts_by_address(a));
}

static __always_inline void wild_del(const struct ax_endpoint *ep, __u32 app)
{
	struct ax_wild *w = bpf_map_lookup_elem(&wild_ports, ep);

	if (w && w->app == app)
		bpf_map_delete_elem(&wild_ports, ep);
}

/* flags: the socket's; counted: it counts by its address. */
__weak __noinline int loopback_no_more(struct ax_endpoint *served, __u32 app, __u32 flags,
				       __u32 counted)
{
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */

	if (!served || !served->port_be)
		return 0;
	ep = *served;
	served->port_be = 0;
	if (flags & AX_ASKED_CLIENT)
		wild_del(&ep, app);
	loopback_del(&ep, app);
	if (!counted)
		share_return(app);
	return 0;
}

static __always_inline void entry_anew(const struct ax_endpoint *served)
{
	struct ax_endpoint ep = *served; /* keys are on the stack to Linux 6.1 */
	struct ax_server *s = ep.port_be ? bpf_map_lookup_elem(&servers, &ep) : NULL;

	if (s && s->since_ns)
		s->since_ns = bpf_ktime_get_boot_ns();
}

/* Of a listener that ends, before the first of its entries does: nobody is to take it for one that
 * has the other family alone (serves_twin()). A global function, as is client_at(). */
__weak __noinline int serve_till_now(struct ax_asked *a)
{
	if (!a || !a->served[0].port_be || !a->served[1].port_be)
		return 0;
	entry_anew(&a->served[0]);
	entry_anew(&a->served[1]);
	return 0;
}

/* Takes back all that the socket stands for. A global function, as is client_at(): the verifier
 * judges it once, and not with all that its callers did before. */
__weak __noinline int serve_end(struct ax_asked *a)
{
	bool served;

	if (!a)
		return 0;
	served = counts_by_address(a);
	loopback_no_more(&a->served[2], a->app, a->flags, served);
	loopback_no_more(&a->served[3], a->app, a->flags, served);
	serve_no_more(&a->served[0], a->app, a->flags, counts_as(false));
	serve_no_more(&a->served[1], a->app, a->flags, counts_as(a->flags & AX_ASKED_ELSEWHERE));
	__sync_fetch_and_and(&a->flags, ~(AX_ASKED_ELSEWHERE | AX_ASKED_CLIENT));
	if (served)
		tell_servers();
	return 0;
}

/* --- UDP at ports from ephemeral_first on --- */

/* The socket's entry for the family of `addr`, its app's own there. */
static __always_inline struct ax_endpoint *client_slot(struct ax_asked *a,
						       const struct ax_addr *addr)
{
	return addr_is_v4(addr) ? &a->served[0] : &a->served[1];
}

static __always_inline bool is_client_at(struct ax_asked *a, const struct ax_endpoint *ep,
					 __u32 app)
{
	const struct ax_endpoint *known = client_slot(a, &ep->addr);

	return (a->flags & AX_ASKED_CLIENT) && a->app == app && known->port_be == ep->port_be &&
	       addr_eq(&known->addr, &ep->addr);
}

/* A server stays one. */
__weak __noinline int client_at(struct ax_asked *a, const struct ax_endpoint *ep, __u32 app)
{
	struct ax_endpoint *slot, fresh;

	if (!a || !ep)
		return 0;
	slot = client_slot(a, &ep->addr);
	fresh = *ep;
	if (!(a->flags & AX_ASKED_CLIENT) && counts_by_address(a))
		return 0;
	if (slot->port_be || a->app != app)
		serve_end(a); /* it has another port now, or another app has the socket */
	if (!share_take(app)) {
		count(AX_COUNT_SERVERS_REFUSED);
		return 0;
	}
	if (!client_add(ep, app)) {
		share_return(app);
		count(AX_COUNT_SERVERS_REFUSED);
		return 0;
	}
	a->app = app;
	__sync_fetch_and_or(&a->flags, AX_ASKED_CLIENT);
	slot->addr = ep->addr;
	if (__sync_val_compare_and_swap(endpoint_word(slot), 0, *endpoint_word(&fresh)) == 0)
		return 0;
	client_del(ep, app); /* another thread was faster */
	share_return(app);
	return 0;
}

/* --- UDP that is on a wildcard in truth (struct ax_wild) --- */

static __always_inline void wild_at(struct ax_asked *a, int i, struct ax_endpoint *ep,
				    const struct ax_wild *w)
{
	any_at(&a->served[i], ep, w->app, counts_by_address(a));
	if (a->served[i].port_be && bpf_map_update_elem(&wild_ports, ep, w, BPF_ANY))
		count(AX_COUNT_SERVERS_REFUSED);
}

/* At that port, of the families that AX_ASKED_ANY4 and AX_ASKED_ANY6 say. The app's own datagrams
 * find it at loopback as if bind() had put it on the app's address. A global function, as is
 * client_at(). */
__weak __noinline int client_on_wildcard(struct ax_asked *a, const struct ax_app *app,
					 __u32 port_be, __u32 families)
{
	struct ax_endpoint ep = {.port_be = (__be16)port_be, .proto = IPPROTO_UDP};
	struct ax_wild w = {};

	if (!a || !app || a->flags & AX_ASKED_REUSES)
		return 0;
	w.app = app->id;
	a->app = app->id;
	__sync_fetch_and_or(&a->flags, AX_ASKED_CLIENT);
	w.vip = app->vip6;
	if (addr_is_zero(&w.vip))
		w.vip = app->vip4;
	if (families & AX_ASKED_ANY6)
		wild_at(a, 3, &ep, &w);
	w.vip = app->vip4;
	if (addr_is_zero(&w.vip))
		w.vip = app->vip6;
	addr_set_v4(&ep.addr, 0);
	if (families & AX_ASKED_ANY4)
		wild_at(a, 2, &ep, &w);
	return 0;
}

/* Connected, it is on an address: another program may have the port at the others. */
__weak __noinline int leave_wildcard(struct ax_asked *a)
{
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */

	if (!a || !(a->flags & AX_ASKED_CLIENT))
		return 0;
	ep = a->served[2];
	if (ep.port_be)
		wild_del(&ep, a->app);
	ep = a->served[3];
	if (ep.port_be)
		wild_del(&ep, a->app);
	return 0;
}

/* In place of what it stood for. `ep` has port and protocol. A global function, as is client_at().
 */
__weak __noinline int serve(struct ax_asked *a, const struct ax_endpoint *ep,
			    const struct serving *s)
{
	struct ax_endpoint at; /* keys are on the stack to Linux 6.1 */

	if (!a || !ep || !s)
		return 0;
	at = *ep;
	serve_end(a);
	a->app = s->app;
	if (s->elsewhere)
		__sync_fetch_and_or(&a->flags, AX_ASKED_ELSEWHERE);
	at.addr = s->first;
	if (!addr_is_zero(&at.addr))
		serve_at(&a->served[0], &at, s->app, counts_as(false));
	at.addr = s->second;
	if (!addr_is_zero(&at.addr))
		serve_at(&a->served[1], &at, s->app, counts_as(s->elsewhere));
	if (counts_by_address(a) || (addr_is_zero(&s->first) && addr_is_zero(&s->second)))
		serve_loopback(a, &at, s->app);
	tell_servers();
	return 0;
}

/* Of a listener, once it is in map `listeners`: sk_lookup refuses whom it sends to a server that it
 * does not find. A global function, as is client_at(). */
__weak __noinline int serve_from_now(struct ax_asked *a)
{
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */
	struct ax_server *s;

	if (!a)
		return 0;
	ep = a->served[0];
	s = bpf_map_lookup_elem(&servers, &ep);
	if (s && !s->since_ns)
		s->since_ns = bpf_ktime_get_boot_ns();
	ep = a->served[1];
	s = bpf_map_lookup_elem(&servers, &ep);
	if (s && !s->since_ns)
		s->since_ns = bpf_ktime_get_boot_ns();
	tell_servers(); /* who has looked since serve() did not count it */
	return 0;
}

#endif
