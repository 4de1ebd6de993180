/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "services/removed.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/events.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/ending.h"

/* What a service had when it was told last. */
struct told {
	struct ending_backend b;
	bool down; /* so are those who do not run */
};

struct removed {
	size_t n;
	bool adopted;	 /* from the kernel's lists, which have the port of each endpoint */
	struct told b[]; /* in order */
};

static int compare(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	return ending_compare(&x->b, &y->b);
}

static const struct told *find(const struct told *b, size_t n, const struct told *one)
{
	return bsearch(one, b, n, sizeof(*b), compare);
}

/* The first one of that address, r->n or more: none. */
static size_t first_of(const struct removed *r, const struct ax_addr *addr)
{
	const struct ending_backend one = {.addr = *addr};
	size_t first = 0, behind = r->n;

	while (first < behind) {
		size_t middle = (first + behind) / 2;

		if (ending_compare(&r->b[middle].b, &one) < 0)
			first = middle + 1;
		else
			behind = middle;
	}
	return first;
}

static bool is_at(const struct removed *r, size_t i, const struct ax_addr *addr)
{
	return i < r->n && addr_eq(&r->b[i].b.addr, addr);
}

/* Whether connections to that port of that address are what the service's would be now. Port 0: it
 * is the one that was asked for. */
static bool serves(const struct service *s, const struct removed *r,
		   const struct ending_backend *old)
{
	const struct config_service *c = s->conf;
	bool asked_for = false;
	size_t i = r ? first_of(r, &old->addr) : 0;

	if (!r || !is_at(r, i, &old->addr))
		return false;
	if (!old->port || !c || !c->n_ports)
		return true;
	for (; is_at(r, i, &old->addr); i++) {
		if (r->b[i].b.port == old->port)
			return true;
		asked_for |= !r->b[i].b.port;
	}
	for (size_t p = 0; p < c->n_ports && asked_for; p++)
		if (c->ports[p].target == old->port)
			return true;
	return false;
}

uint32_t removed_flags(const struct config_service *c)
{
	bool udp = !c || !c->n_ports;

	if (!c) /* of apps that share a name or an address: what holds when nothing is said */
		return AX_SERVICE_ENDS_UDP;
	for (size_t i = 0; i < c->n_ports; i++)
		udp |= c->ports[i].proto == IPPROTO_UDP;
	return (c->on_remove == ON_REMOVE_DESTROY ? AX_SERVICE_ENDS_TCP : 0) |
	       (udp && c->on_remove != ON_REMOVE_KEEP ? AX_SERVICE_ENDS_UDP : 0);
}

static bool ends_tcp(const struct service *s)
{
	return removed_flags(s->conf) & AX_SERVICE_ENDS_TCP;
}

static bool ends_udp(const struct service *s)
{
	return removed_flags(s->conf) & AX_SERVICE_ENDS_UDP;
}

/* Whether the backend has come back meanwhile: it is not lost then. */
static bool is_lost(const struct ending *e, const struct ending_backend *b)
{
	const struct service *s = service_by_name(e->a, e->service);
	const struct removed *is = s ? s->removed : NULL;
	const struct told one = {.b = *b}, *now = is ? find(is->b, is->n, &one) : NULL;

	return !now || now->down;
}

static bool is_lost_adopted(const struct ending *e, const struct ending_backend *b)
{
	const struct service *s = service_by_name(e->a, e->service);

	return !s || !serves(s, s->removed, b);
}

static void tell_ended(const struct ending *e)
{
	struct service *s = service_by_name(e->a, e->service);
	char text[ADDR_STRLEN] = "*";

	if (!e->ended)
		return;
	log_info("service %s: %u connection%s to backends that it has lost, or that are down, had "
		 "to be ended",
		 e->service, e->ended, e->ended == 1 ? "" : "s");
	if (s)
		s->ended += e->ended;
	if (e->n == 1)
		addr_format(&e->b[0].addr, text);
	events_drain(e->a, e->service, text, "removed", (int)e->ended);
}

static struct ending *lost_new(struct agent *a, const struct service *s, size_t most)
{
	struct ending *e = ending_new(a, s, most);

	if (!e)
		return NULL;
	e->tcp = e->outside_tcp = ends_tcp(s);
	e->udp = ends_udp(s);
	e->holds = is_lost;
	e->done = tell_ended;
	return e;
}

/* --- who is lost --- */

/* Whether nothing goes there any more, whatever the port. */
static bool is_whole(const struct removed *is, const struct ax_addr *addr)
{
	for (size_t i = is ? first_of(is, addr) : 0; is && is_at(is, i, addr); i++)
		if (!is->b[i].down)
			return false;
	return true;
}

/* Those of `was` that `is` (NULL: nothing) has not, or has as down. */
static void end_missing(struct agent *a, const struct service *s, const struct removed *was,
			const struct removed *is)
{
	struct ending *e = NULL;

	for (size_t i = 0; was && i < was->n; i++) {
		const struct told *now = is ? find(is->b, is->n, &was->b[i]) : NULL;

		if (was->adopted && serves(s, is, &was->b[i].b))
			continue;
		if (!was->adopted && now && (!now->down || was->b[i].down))
			continue;
		e = e ? e : lost_new(a, s, was->n);
		if (!e)
			break;
		e->b[e->n] = was->b[i].b;
		e->b[e->n++].whole = is_whole(is, &was->b[i].b.addr);
	}
	if (!e)
		return;
	if (was->adopted)
		e->holds = is_lost_adopted;
	ending_start(e);
}

static int adopt(void *arg, const struct ax_backend *b)
{
	struct service *s = arg;
	size_t n = s->removed ? s->removed->n : 0;
	struct removed *more;

	more = realloc(s->removed, sizeof(*more) + (n + 1) * sizeof(more->b[0]));
	if (!more)
		return -ENOMEM;
	s->removed = more;
	more->adopted = true;
	more->b[n] = (struct told){.b = {.addr = b->addr, .port = ntohs(b->port_be)}};
	more->n = n + 1;
	return 0;
}

int removed_adopt(struct agent *a, struct service *s, const struct ax_endpoint *ep)
{
	if (!ends_tcp(s) && !ends_udp(s))
		return 0;
	return datapath_backends_each(a->dp, ep, adopt, s);
}

void removed_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n)
{
	autofree struct removed *was = s->removed;
	struct removed *is;

	s->removed = NULL;
	if (!ends_tcp(s) && !ends_udp(s))
		return;
	is = calloc(1, sizeof(*is) + n * sizeof(is->b[0]));
	if (!is)
		return;
	for (size_t i = 0; i < n; i++)
		is->b[is->n++] = (struct told){.b = {.addr = m[i].addr, .port = m[i].port},
					       .down = m[i].down || m[i].declared};
	qsort(is->b, is->n, sizeof(is->b[0]), compare);
	s->removed = is;
	end_missing(a, s, was, is);
}

void removed_all(struct agent *a, struct service *s)
{
	autofree struct removed *was = s->removed;

	s->removed = NULL;
	end_missing(a, s, was, NULL);
}

/* --- services that were removed while no agent ran --- */

static bool is_gone(struct agent *a, const struct ax_addr *vip)
{
	const struct vip *v = vip_find(a, vip);

	return !v || !v->service;
}

/* (Another service may have come to the address meanwhile, with the same backend.) */
static bool is_lost_with_all(const struct ending *e, const struct ending_backend *b)
{
	return is_gone(e->a, &b->vip);
}

static void tell_gone(const struct ending *e)
{
	if (!e->ended)
		return;
	log_info("%u connection%s through %s had to be ended: the service was removed while no "
		 "agent ran",
		 e->ended, e->ended == 1 ? "" : "s", e->service);
	events_drain(e->a, e->service, "*", "removed", (int)e->ended);
}

/* Those of all that are gone, together: the sockets are looked through once for each protocol. */
struct gone {
	struct agent *a;
	struct ending *tcp, *udp; /* NULL: none of that */
	size_t n_tcp, n_udp;	  /* endpoints */
	struct ax_addr *wanted;	  /* of services that could not be declared, in order */
	size_t n_wanted;

	/* the endpoint that is looked at */
	struct ax_addr vip;
	uint32_t flags;
};

static int compare_addr(const void *x, const void *y)
{
	return memcmp(x, y, sizeof(struct ax_addr));
}

/* A service that could not be declared (as another app has its name, say) is not removed. */
static int note_wanted(struct gone *g)
{
	const struct config *of[] = {&g->a->config, g->a->added_config, g->a->shared_config};
	size_t most = 0;

	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		most += of[i] ? 2 * of[i]->n_services : 0;
	g->wanted = calloc(most + 1, sizeof(*g->wanted));
	if (!g->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		for (size_t k = 0; of[i] && k < of[i]->n_services; k++) {
			const struct config_service *c = &of[i]->services[k];

			if (!addr_is_zero(&c->ip4) && is_gone(g->a, &c->ip4))
				g->wanted[g->n_wanted++] = c->ip4;
			if (!addr_is_zero(&c->ip6) && is_gone(g->a, &c->ip6))
				g->wanted[g->n_wanted++] = c->ip6;
		}
	qsort(g->wanted, g->n_wanted, sizeof(*g->wanted), compare_addr);
	return 0;
}

static bool is_wanted(const struct gone *g, const struct ax_addr *vip)
{
	return bsearch(vip, g->wanted, g->n_wanted, sizeof(*g->wanted), compare_addr);
}

static int add_backend(struct ending *e, const struct ending_backend *b)
{
	if (!(e->n & (e->n - 1))) { /* it is as long as it was made */
		void *more = realloc(e->b, (2 * e->n + 1) * sizeof(*e->b));

		if (!more)
			return -ENOMEM;
		e->b = more;
	}
	e->b[e->n++] = *b;
	return 0;
}

static int note_backend(void *arg, const struct ax_backend *b)
{
	const struct gone *g = arg;
	const struct ending_backend one = {
		.addr = b->addr, .port = ntohs(b->port_be), .vip = g->vip, .whole = true};
	int r = 0;

	if (g->flags & AX_SERVICE_ENDS_TCP)
		r = add_backend(g->tcp, &one);
	if (!r && g->flags & AX_SERVICE_ENDS_UDP)
		r = add_backend(g->udp, &one);
	return r;
}

static int want_ending(struct agent *a, const struct ax_endpoint *ep, struct ending **e)
{
	char text[ADDR_STRLEN];
	const struct service s = {.name = text};

	if (*e)
		return 0;
	addr_port_format(&ep->addr, ep->port_be, text);
	*e = ending_new(a, &s, 0);
	if (!*e)
		return -ENOMEM;
	(*e)->holds = is_lost_with_all;
	(*e)->done = tell_gone;
	return 0;
}

static int note_gone(void *arg, const struct ax_endpoint *ep, uint32_t flags)
{
	struct gone *g = arg;
	int r = 0;

	flags &= ep->port_be == 0	    ? AX_SERVICE_ENDS_TCP | AX_SERVICE_ENDS_UDP
		 : ep->proto == IPPROTO_UDP ? AX_SERVICE_ENDS_UDP
					    : AX_SERVICE_ENDS_TCP;
	if (!flags || !is_gone(g->a, &ep->addr) || is_wanted(g, &ep->addr))
		return 0;
	g->vip = ep->addr;
	g->flags = flags;
	if (flags & AX_SERVICE_ENDS_TCP) {
		r = want_ending(g->a, ep, &g->tcp);
		g->n_tcp++;
	}
	if (!r && flags & AX_SERVICE_ENDS_UDP) {
		r = want_ending(g->a, ep, &g->udp);
		g->n_udp++;
	}
	return r ? r : datapath_backends_each(g->a->dp, ep, note_backend, g);
}

/* Takes `e` (NULL: nothing) over, of n endpoints. */
static int end_gone(struct ending *e, size_t n)
{
	char *text = NULL;

	if (!e)
		return 0;
	if (n > 1 &&
	    asprintf(&text, "%s and %zu other%s", e->service, n - 1, n == 2 ? "" : "s") < 0) {
		ending_free(e);
		return -ENOMEM;
	}
	if (text) {
		free(e->service);
		e->service = text;
	}
	return ending_start(e) ? 0 : -ENOMEM;
}

int removed_while_away(struct agent *a)
{
	struct gone g = {.a = a};
	int r = note_wanted(&g), tcp, udp;

	r = r ? r : datapath_services_each(a->dp, note_gone, &g);
	free(g.wanted);
	if (g.tcp)
		g.tcp->tcp = g.tcp->outside_tcp = true;
	if (g.udp)
		g.udp->udp = true;
	tcp = end_gone(g.tcp, g.n_tcp);
	udp = end_gone(g.udp, g.n_udp);
	return r ? r : tcp ? tcp : udp;
}

void removed_forget(struct service *s)
{
	free(s->removed);
	s->removed = NULL;
}
