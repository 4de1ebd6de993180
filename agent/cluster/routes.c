/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The direct way between nodes: the blocks of the others are routed to their nodes' addresses, and
 * the programs are told whose addresses are in them. What the kernel has is compared with what is
 * known, when something changes and from time to time: routes and interfaces are not ours alone.
 */
#include <net/if.h>
#include <search.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "datapath/datapath.h"
#include "net/host_links.h"
#include "net/neighbour.h"
#include "net/traffic_control.h"
#include "registry/remotes.h"
#include "registry/state.h"

#define LOOK_MS		   5000
#define REST_TIMES	   4 /* as long as the last look took others have the loop before the next one */
#define TELL_SLICE	   256	/* apps; then others have their turn */
#define FOREIGN_COPIES_MAX 1000 /* of a name */

static bool has_ways(const struct cluster *c)
{
	return c->conf.routes != CLUSTER_ROUTES_NONE;
}

void routes_stale(struct cluster *c)
{
	uint64_t now = time_mono_ns();

	c = home_of(c);
	if (!has_ways(c))
		return;
	c->ways_changed = true;
	cluster_at(c, &c->routes_at_ns,
		   c->routes_rest_ns > now ? (c->routes_rest_ns - now) / NS_PER_MS + 1 : 0);
}

/* --- apps --- */

/* Whether another cluster's app has a name: it exports it, and has not too many of the same. */
static bool is_named(const struct peer_app *app, const struct name *n)
{
	return app->rec.exported && app->name &&
	       (app->other.in || !n || n->n_others < FOREIGN_COPIES_MAX);
}

/* By its name it is found as long as there is a way to it, at the addresses that have one. */
static void name_app(struct cluster *c, struct peer_app *app)
{
	const struct name *n = app->name ? name_find(c->a, app->name) : NULL;
	const struct ax_addr none = {0}, *ip4 = app->remote ? &app->rec.ip4 : &none;
	const struct ax_addr *ip6 = app->remote6 ? &app->rec.ip6 : &none;
	bool found = (app->remote || app->remote6) && (!c->home || is_named(app, n));

	if (found && app->other.in && addr_eq(&app->other.ip4, ip4) &&
	    addr_eq(&app->other.ip6, ip6))
		return;
	other_remove(c->a, &app->other);
	if (!found)
		return;
	app->other = (struct other_app){.node = c->home ? app->node_name : app->rec.node,
					.app = c->home ? app->name : app->rec.name,
					.cluster = c->home ? c->conf.name : NULL,
					.ip4 = *ip4,
					.ip6 = *ip6,
					.ports = app->rec.ports,
					.n_ports = app->rec.n_ports,
					.states = app->rec.states,
					.n_states = app->rec.n_states,
					.stopping = app->rec.stopping};
	if (other_add(c->a, &app->other))
		log_error("the cluster %s: out of memory: %s of %s is not found by name",
			  c->conf.name, app->rec.name, app->rec.node);
}

/* "": another cluster's that is not found by name, so that no rule is about that. */
static const char *name_of(const struct peer_app *app)
{
	if (!app->node->of->home)
		return app->rec.name;
	return app->name && app->rec.exported ? app->name : "";
}

/* What another cluster says of its apps is no reason to let them come: its own name is, which is
 * this one's word for it. */
static const char *labels_of(const struct cluster *c, const struct peer_app *app,
			     char label[FOREIGN_LABELS_MAX])
{
	if (!c->home)
		return app->rec.labels;
	snprintf(label, FOREIGN_LABELS_MAX, FOREIGN_LABEL "%.63s", c->conf.name);
	return label;
}

/* A node speaks for the addresses of its own blocks alone. */
static void tell_address(struct cluster *c, struct peer_app *app, const struct ax_addr *addr,
			 struct remote **told)
{
	const struct peer_block *b = has_ways(c) ? peers_block_of(c, addr) : NULL;
	char label[FOREIGN_LABELS_MAX];
	const struct remote_app to = {.addr = addr,
				      .name = name_of(app),
				      .labels = labels_of(c, app, label),
				      .ifindex = b ? b->way.ifindex : 0,
				      .across = translate_is_on(c)};
	struct error e = {0};

	if (!to.ifindex || b->node != app->node) {
		remote_drop(c->a, *told);
		*told = NULL;
		return;
	}
	if (remote_put(c->a, &to, told, &e) == 0)
		return;
	/* (one for all of them: what is wrong may be said with other words for each) */
	c = home_of(c);
	if (!c->tell_failed && !streq(c->untold, e.text))
		log_error("apps of other nodes cannot be reached, such as %s of %s: %s",
			  app->rec.name, app->rec.node, e.text);
	snprintf(c->untold, sizeof(c->untold), "%.255s", e.text);
	c->tell_failed = true;
}

void routes_app(struct cluster *c, struct peer_app *app)
{
	tell_address(c, app, &app->rec.ip4, &app->remote);
	tell_address(c, app, &app->rec.ip6, &app->remote6);
	translate_app(c, app);
	name_app(c, app);
}

void routes_app_gone(struct cluster *c, struct peer_app *app)
{
	other_remove(c->a, &app->other);
	remote_drop(c->a, app->remote);
	remote_drop(c->a, app->remote6);
	app->remote = app->remote6 = NULL;
	translate_app(c, app);
	app->gone = true;
}

static void note_app(const void *at, VISIT which, void *arg)
{
	struct peer_app *app = *(struct peer_app *const *)at;
	struct cluster *c = arg;

	if (which != postorder && which != leaf)
		return;
	app->refs++;
	c->telling[c->n_telling++] = app;
}

static void end_telling(struct cluster *c)
{
	while (c->n_telling)
		peer_app_put(c->telling[--c->n_telling]);
	free(c->telling);
	c->telling = NULL;
}

static void begin_telling(struct cluster *c)
{
	size_t n = c->peers.n_apps + 1;

	end_telling(c);
	for (const struct cluster *v = c->next; v; v = v->next)
		n += v->peers.n_apps;
	c->telling = calloc(n, sizeof(struct peer_app *));
	if (!c->telling) {
		c->ways_changed = true; /* the next time */
		return;
	}
	c->tell_failed = false;
	for (const struct cluster *v = c; v; v = v->next)
		twalk_r(v->peers.apps, note_app, c);
	cluster_at(c, &c->tell_at_ns, 0);
}

void routes_tell(struct cluster *c)
{
	for (unsigned i = 0; i < TELL_SLICE && c->n_telling; i++) {
		struct peer_app *app = c->telling[--c->n_telling];

		if (!app->gone)
			routes_app(app->node->of, app);
		peer_app_put(app);
	}
	if (c->n_telling) {
		cluster_at(c, &c->tell_at_ns, 0);
		return;
	}
	if (!c->tell_failed)
		c->untold[0] = 0;
	end_telling(c);
}

/* --- routes --- */

struct table {
	struct nl_route *v;
	size_t n, room;
	const struct cluster *clusters; /* whose pools these are of */
	unsigned tunnel;		/* ifindex, 0: there is none */
};

static int table_add(struct table *t, const struct nl_route *r)
{
	struct nl_route *more = t->v;

	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 64;
		more = reallocarray(t->v, t->room, sizeof(*more));
	}
	if (!more)
		return -ENOMEM;
	t->v = more;
	t->v[t->n++] = *r;
	return 0;
}

static void table_free(struct table *t)
{
	free(t->v);
}

/* Of all that ax routes only these have a gateway, or lead into a tunnel. */
static int note_own(void *arg, const struct nl_route *r)
{
	const struct table *t = arg;

	if (addr_is_zero(&r->gateway) && (!t->tunnel || r->ifindex != t->tunnel))
		return 0;
	return table_add(arg, r);
}

/* In whose pools it is: this cluster's, or a peer's. NULL: in none. */
static const struct cluster *of_pool(const struct cluster *c, const struct ax_addr *addr)
{
	while (c && !cluster_contains(c, addr))
		c = c->next;
	return c;
}

static int note_foreign(void *arg, const struct nl_route *r)
{
	struct table *t = arg;

	const struct cluster *v = of_pool(t->clusters, &r->dst.addr);

	if (r->v4_default || r->v6_default || !v ||
	    r->dst.len <= cluster_pool(v, &r->dst.addr)->len)
		return 0;
	return table_add(t, r);
}

/* By address, larger prefixes first. */
static int route_cmp(const void *a, const void *b)
{
	const struct nl_route *x = a, *y = b;
	int r = addr_cmp(&x->dst.addr, &y->dst.addr);

	r = r ? r : (x->dst.len > y->dst.len) - (x->dst.len < y->dst.len);
	r = r ? r : (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
	return r ? r : addr_cmp(&x->gateway, &y->gateway);
}

static void table_sort(struct table *t)
{
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), route_cmp);
}

/* In a sorted one. */
static const struct nl_route *find_inside(const struct table *t, const struct prefix *p)
{
	const struct nl_route key = {.dst = *p};
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (route_cmp(&t->v[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n && prefix_contains(p, &t->v[low].dst.addr) ? &t->v[low] : NULL;
}

static bool has(const struct table *t, const struct nl_route *r)
{
	return t->n && bsearch(r, t->v, t->n, sizeof(*r), route_cmp);
}

/* --- who comes in by their interfaces --- */

static void clear_link(struct agent *a, const struct node_link *l)
{
	datapath_nodes_detach(a->nl, l->ifindex, a->inst->route_metric);
	if (l->made && !nl_link_has_filters(a->nl, l->ifindex))
		tc_clsact_del(a->nl, l->ifindex);
}

static struct node_link *find_link(struct cluster *c, unsigned ifindex)
{
	for (size_t i = 0; i < c->n_links; i++)
		if (c->links[i].ifindex == ifindex)
			return &c->links[i];
	return NULL;
}

static int add_link(struct cluster *c, unsigned ifindex)
{
	struct node_link *l = find_link(c, ifindex);

	if (l)
		l->used = c->looks;
	if (l && (!l->err || l->look == c->looks))
		return l->err;
	if (!l) {
		l = reallocarray(c->links, c->n_links + 1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		c->links = l;
		l = &l[c->n_links++];
		*l = (struct node_link){.ifindex = ifindex, .used = c->looks};
	}
	l->look = c->looks;
	l->err = (translate_is_on(c) ? datapath_across_attach : datapath_nodes_attach)(
		c->a->dp, c->a->nl, ifindex, c->a->inst->route_metric, &l->made);
	return l->err;
}

/* The program is there before anybody may come by the interface, and as long as one may. */
static void drop_links(struct cluster *c)
{
	for (size_t i = c->n_links; i-- > 0;) {
		if (c->links[i].used == c->looks)
			continue;
		clear_link(c->a, &c->links[i]);
		c->links[i] = c->links[--c->n_links];
	}
}

static int forget_link(void *arg, const struct nl_host_link *link)
{
	const struct agent *a = arg;

	datapath_nodes_detach(a->nl, link->ifindex, a->inst->route_metric);
	return 0;
}

/* An agent before this one may have had it there. */
static int forget_unwanted(void *arg, const struct nl_host_link *link)
{
	struct cluster *c = arg;

	return find_link(c, link->ifindex) ? 0 : forget_link(c->a, link);
}

static void settle_links(struct cluster *c)
{
	drop_links(c);
	if (!c->swept)
		nl_outer_link_each(c->a->nl, forget_unwanted, c);
	c->swept = true;
}

/* Apps of other nodes come by the tunnel alone: by whatever else somebody comes with such a source,
 * he lies. */
static int guard_link(void *arg, const struct nl_host_link *link)
{
	struct cluster *c = arg;
	const struct node_link *l = find_link(c, link->ifindex);
	int was = l ? l->err : 0, r = link->enslaved ? 0 : add_link(c, link->ifindex);
	char device[IF_NAMESIZE] = "?";

	if (r && r != was) {
		if_indextoname(link->ifindex, device);
		log_warn("the cluster %s: what comes in by %s with an app's address as source "
			 "cannot be looked at: %s",
			 c->conf.name, device, strerror(-r));
	}
	return 0;
}

/* --- the blocks --- */

struct sync {
	struct cluster *c;
	struct cluster *of; /* whose blocks are looked at: it, or a peer of it */
	struct table own, foreign, want;
	struct table here;	/* where nodes of its own are, if there are peers */
	struct table nodes;	/* whose blocks have a way: their addresses alone */
	bool moved;		/* a block is reached by another interface */
	struct error no_tunnel; /* why there is none; "": there is, or is not to be */
};

/* What is in the way is not ours to take away. */
static bool is_free(const struct sync *s, struct peer_block *b)
{
	const struct nl_route *r = find_inside(&s->foreign, &b->rec.prefix);
	char text[ADDR_STRLEN], device[IF_NAMESIZE] = "?";

	if (!r || translate_is_on(s->c))
		return true;
	if_indextoname(r->ifindex, device);
	snprintf(b->way.why, sizeof(b->way.why),
		 "a route to %s by %s that is not ax's is in the way: remove it (ip %sroute del "
		 "%s), or give the cluster another pool",
		 prefix_format(&r->dst, text), device, addr_is_v4(&r->dst.addr) ? "" : "-6 ", text);
	return false;
}

bool is_others(const struct cluster *c, const struct peer_block *b)
{
	/* (what is at this node's address is this one, under a name that it had before) */
	return !streq(b->node->rec.name, c->node) &&
	       (addr_is_zero(&c->address) || !addr_eq(&b->node->rec.address, &c->address));
}

/* Asked for once in a look, however many blocks the node has. */
const struct node_hop *routes_hop(struct cluster *c, struct peer_node *n, bool six)
{
	const struct ax_addr *addr = six ? &n->rec.address6 : &n->rec.address;
	struct node_hop *hop = six ? &n->hop6 : &n->hop;

	if (hop->look == c->looks)
		return hop;
	*hop = (struct node_hop){.look = c->looks};
	hop->none = of_pool(c, addr) ? -ELOOP : next_hop_find(c->a->nl, addr, &hop->to);
	return hop;
}

/* Another cluster does not say where this one's nodes are. */
static bool is_here(const struct sync *s, const struct ax_addr *addr)
{
	const struct nl_route r = {.dst = {.addr = *addr, .len = 128}};

	return s->of->home && has(&s->here, &r);
}

static void add_here(struct table *t, const struct ax_addr *addr)
{
	const struct nl_route r = {.dst = {.addr = *addr, .len = 128}};

	if (!addr_is_zero(addr))
		table_add(t, &r);
}

static void note_here(const void *at, VISIT which, void *arg)
{
	const struct peer_node *n = *(struct peer_node *const *)at;

	if (which != postorder && which != leaf)
		return;
	add_here(arg, &n->rec.address);
	add_here(arg, &n->rec.address6);
}

/* IPv4 packets can be sent to an IPv4 address alone, and IPv6 ones to an IPv6 address. */
static bool has_address(struct peer_block *b, bool six)
{
	const struct record_node *n = &b->node->rec;

	if (six ? !addr_is_zero(&n->address6) : addr_is_v4(&n->address))
		return true;
	snprintf(b->way.why, sizeof(b->way.why),
		 "its node has no %s address: give it one as cluster.node.address%s",
		 six ? "IPv6" : "IPv4", six ? "6, or all nodes routes: wireguard" : "");
	return false;
}

/* By translation what goes to an IPv6 address comes from one of this node's, too. */
static bool has_own_address(const struct sync *s, struct peer_block *b, bool six)
{
	if (!six || !translate_is_on(s->c) || !addr_is_zero(&s->c->address6))
		return true;
	snprintf(b->way.why, sizeof(b->way.why), "%.255s", s->c->no_address6);
	return false;
}

static bool find_hop(const struct sync *s, struct peer_block *b, struct next_hop *ret)
{
	bool six = !addr_is_v4(&b->rec.prefix.addr);
	const struct ax_addr *addr = six ? &b->node->rec.address6 : &b->node->rec.address;
	const struct node_hop *hop;
	char text[ADDR_STRLEN];

	if (!has_address(b, six) || !has_own_address(s, b, six))
		return false;
	if (is_here(s, addr)) {
		snprintf(b->way.why, sizeof(b->way.why),
			 "its node says that it is at %s, where a node of this cluster is",
			 addr_format(addr, text));
		return false;
	}
	hop = routes_hop(s->c, b->node, six);
	*ret = hop->to;
	if (!hop->none && addr_is_v4(&ret->addr) == !six && ret->ifindex != s->c->a->lo)
		return true;
	snprintf(b->way.why, sizeof(b->way.why), "there is no way to its node's address %s: %s",
		 addr_format(addr, text),
		 hop->none == -EADDRINUSE ? "it is this machine's own"
		 : hop->none == -ELOOP	  ? "it is one of a cluster's pool"
		 : hop->none		  ? strerror(-hop->none)
					  : "it is not reached by IPv4");
	return false;
}

static int add_node(struct sync *s, const struct ax_addr *addr)
{
	const struct nl_route r = {.dst = {.addr = *addr, .len = 128}};

	return table_add(&s->nodes, &r);
}

/* Whose SYNs are believed, if they prove it. */
static void tell_nodes(struct sync *s)
{
	autofree struct ax_addr *list = calloc(s->nodes.n + 1, sizeof(*list));
	int r = list ? 0 : -ENOMEM;
	size_t n = 0;

	if (!translate_is_on(s->c))
		return;
	table_sort(&s->nodes);
	for (size_t i = 0; i < s->nodes.n && !r; i++)
		if (!n || !addr_eq(&list[n - 1], &s->nodes.v[i].dst.addr))
			list[n++] = s->nodes.v[i].dst.addr;
	r = r ? r : datapath_across_nodes(s->c->a->dp, list, n);
	if (r)
		log_error("the cluster %s: the programs cannot be told its nodes: %s",
			  s->c->conf.name, strerror(-r));
}

/* By which of this machine's ways the block is reached: r has where it leads. */
static bool find_way(struct sync *s, struct peer_block *b, struct nl_route *r)
{
	char device[IF_NAMESIZE] = "?";
	struct next_hop hop;
	int err;

	if (tunnel_is_on(s->c)) {
		r->ifindex = s->c->tunnel_ifindex;
		snprintf(b->way.why, sizeof(b->way.why), "%.255s",
			 s->no_tunnel.text[0] ? s->no_tunnel.text : b->node->no_peer);
		return !b->way.why[0];
	}
	if (!find_hop(s, b, &hop))
		return false;
	r->ifindex = hop.ifindex;
	r->gateway = hop.addr;
	err = add_link(s->c, r->ifindex);
	if (err) {
		if_indextoname(r->ifindex, device);
		snprintf(b->way.why, sizeof(b->way.why),
			 "who comes in by the interface %s cannot be looked at: %s", device,
			 strerror(-err));
	}
	return !err;
}

static void route_block(struct sync *s, struct peer_block *b)
{
	struct nl_route r = {.dst = b->rec.prefix, .metric = s->c->a->inst->route_metric};
	int err;

	b->way.why[0] = 0;
	if (!peers_up(s->of, b->node) || !is_others(s->of, b) || !is_free(s, b) ||
	    !find_way(s, b, &r))
		return;
	err = table_add(&s->want, &r);
	if (!err && translate_is_on(s->c))
		err = add_node(s, addr_is_v4(&r.dst.addr) ? &b->node->rec.address
							  : &b->node->rec.address6);
	else if (!err && !has(&s->own, &r))
		err = nl_route_add(s->c->a->nl, &r);
	if (err)
		snprintf(b->way.why, sizeof(b->way.why), "the kernel refuses the route: %s",
			 strerror(-err));
	else
		b->way.ifindex = r.ifindex;
}

static void sync_block(const void *at, VISIT which, void *arg)
{
	struct peer_block *b = *(struct peer_block *const *)at;
	struct sync *s = arg;
	char was[sizeof(b->way.why)], text[ADDR_STRLEN];
	unsigned ifindex = b->way.ifindex;

	if (which != postorder && which != leaf)
		return;
	memcpy(was, b->way.why, sizeof(was));
	b->way.ifindex = 0;
	route_block(s, b);
	s->moved |= b->way.ifindex != ifindex;
	if (b->way.why[0] && !streq(b->way.why, was) && foreign_may_complain(s->of))
		log_error("the cluster %s: the apps of %s (%s) cannot be reached: %s",
			  s->of->conf.name, b->rec.node, prefix_format(&b->rec.prefix, text),
			  b->way.why);
}

/* --- all together --- */

/* Those that are there and not wanted (sorted) any more. */
static void undo(struct agent *a, const struct table *own, const struct table *want)
{
	for (size_t i = 0; i < own->n; i++)
		if (!has(want, &own->v[i]))
			nl_route_del(a->nl, &own->v[i]);
}

/* (what is not known is not undone before all was read) */
static void undo_known(const struct cluster *c, struct table *own, const struct table *want)
{
	size_t n = 0;

	for (size_t i = 0; i < own->n; i++) {
		const struct cluster *of = of_pool(c, &own->v[i].dst.addr);

		of = of ? of : c; /* (a peer's that is none any more) */
		if (of->was_read || peers_block(of, &own->v[i].dst))
			own->v[n++] = own->v[i];
	}
	own->n = n;
	undo(c->a, own, want);
}

static void sync_blocks(struct sync *s)
{
	if (s->c->next) {
		add_here(&s->here, &s->c->address);
		add_here(&s->here, &s->c->address6);
		twalk_r(s->c->peers.nodes, note_here, &s->here);
		table_sort(&s->here);
	}
	for (s->of = s->c; s->of; s->of = s->of->next)
		twalk_r(s->of->peers.blocks, sync_block, s);
}

static bool all_read(const struct cluster *c)
{
	while (c && c->was_read)
		c = c->next;
	return !c;
}

void routes_sync(struct cluster *c)
{
	struct sync s = {.c = c, .foreign.clusters = c};
	const struct table none = {0};
	uint64_t began = time_mono_ns(), end;
	bool untold;
	int r;

	if (!has_ways(c) || (!c->was_read && !c->by_memory))
		return;
	c->looks++;
	node_look(c);
	tunnel_sync(c, &s.no_tunnel);
	s.own.tunnel = c->tunnel_ifindex;
	r = nl_route_each(c->a->nl, c->a->inst->route_metric, note_own, &s.own);
	r = r ? r : nl_route_each_foreign(c->a->nl, note_foreign, &s.foreign);
	if (!r && tunnel_is_on(c))
		r = nl_outer_link_each(c->a->nl, guard_link, c);
	if (r) {
		log_warn("the cluster %s: the machine's routes cannot be read: %s", c->conf.name,
			 strerror(-r));
	} else {
		table_sort(&s.own);
		table_sort(&s.foreign);
		sync_blocks(&s);
		table_sort(&s.want);
		undo_known(c, &s.own, translate_is_on(c) ? &none : &s.want);
		tell_nodes(&s);
		if (all_read(c))
			settle_links(c);
	}
	/* (a round that goes on comes to them) */
	untold = (c->untold[0] || c->a->n_untold) && !c->telling;
	if (!r && (s.moved || c->ways_changed || untold)) {
		c->ways_changed = false;
		begin_telling(c);
	}
	table_free(&s.own);
	table_free(&s.foreign);
	table_free(&s.want);
	table_free(&s.nodes);
	table_free(&s.here);
	end = time_mono_ns();
	c->routes_rest_ns = end + REST_TIMES * (end - began);
	cluster_at(c, &c->routes_at_ns, LOOK_MS);
}

void routes_open(struct agent *a)
{
	const struct cluster *c = a->cluster;
	struct table own = {0}, none = {0};

	tunnel_open(a);
	if (c && has_ways(c) && !tunnel_is_on(c))
		return;
	/* (where packets are to be encrypted none goes another way meanwhile) */
	if (nl_route_each(a->nl, a->inst->route_metric, note_own, &own) == 0)
		undo(a, &own, &none);
	table_free(&own);
	if (!c || !has_ways(c))
		nl_outer_link_each(a->nl, forget_link, a);
}

void routes_close(struct cluster *c)
{
	end_telling(c);
	free(c->links);
}
