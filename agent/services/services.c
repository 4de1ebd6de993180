/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services: declared ones, and those that apps form by sharing a name or an address. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "services/services.h"
#include "allot/pool.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "health/health.h"
#include "ingress/ingress.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/events.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/verdict_names.h"
#include "registry/vips.h"
#include "services/across.h"
#include "services/affinity.h"
#include "services/checks.h"
#include "services/drain.h"
#include "services/members.h"
#include "services/near.h"
#include "services/passive.h"
#include "services/ramp.h"
#include "services/removed.h"

const char services_no_way[] = "not checked: host_access is off, and the app cannot be asked from "
			       "its own address: policy does not let it, or the check is a command";

/* --- to the kernel --- */

static void say_how(const struct config_service *c, struct datapath_service *set)
{
	set->strategy = c->strategy;
	set->wait_ms = c->wait_ms;
	set->flags = (c->affinity == AFFINITY_APP ? AX_SERVICE_BY_APP : 0) |
		     (c->affinity == AFFINITY_SRC ? AX_SERVICE_BY_SRC : 0) |
		     (c->hash == HASH_APP ? AX_SERVICE_HASH_APP : 0) |
		     (c->udp == UDP_PER_SEND ? AX_SERVICE_PER_SEND : 0) | removed_flags(c);
	set->affinity_ms =
		c->affinity_timeout_ms ? c->affinity_timeout_ms : CONFIG_AFFINITY_TIMEOUT_MS;
}

/* Whether it gets connections to that endpoint of the service, which go that far. */
static bool gets(const struct service_member *m, const struct ax_endpoint *ep, uint16_t target,
		 unsigned reach, bool local)
{
	return addr_is_v4(&m->addr) == addr_is_v4(&ep->addr) && member_serves(m) &&
	       m->away <= reach && across_serves(m, target, ep->proto, local);
}

/* Writes one endpoint with the members of its family. */
static int write_endpoint(struct agent *a, const struct service *s, const struct ax_endpoint *ep,
			  uint16_t target, const struct service_member *m, size_t n)
{
	autofree struct datapath_backend *b = calloc(n ? n : 1, sizeof(*b));
	struct datapath_service set = {.strategy = AX_STRATEGY_RANDOM};
	unsigned reach = near_reach(a, m, n, ep, target);
	bool local = false;
	size_t used = 0;

	if (!b)
		return -ENOMEM;
	for (size_t i = 0; i < n && !local; i++)
		local = !m[i].other && gets(&m[i], ep, target, reach, false);
	for (size_t i = 0; i < n; i++) {
		if (!gets(&m[i], ep, target, reach, local))
			continue;
		b[used].be.addr = m[i].addr;
		b[used].be.port_be = htons(m[i].port ? m[i].port : target);
		b[used].be.app = m[i].app ? m[i].app->id : 0;
		b[used++].weight = ramps_share(s, &m[i]);
	}
	if (s->conf)
		say_how(s->conf, &set);
	else
		set.flags = removed_flags(NULL);
	return datapath_service_set(a->dp, ep, &set, b, used);
}

/* Calls f for each endpoint of a configuration (NULL: a service of apps) under the addresses. */
static int each_endpoint(const struct config_service *conf, const struct ax_addr *ip4,
			 const struct ax_addr *ip6,
			 int (*f)(void *arg, const struct ax_endpoint *ep, uint16_t target),
			 void *arg)
{
	static const struct service_port every[] = {{.proto = IPPROTO_TCP}, {.proto = IPPROTO_UDP}};
	const struct service_port *ports = conf && conf->n_ports ? conf->ports : every;
	size_t n = conf && conf->n_ports ? conf->n_ports : ARRAY_SIZE(every);

	for (size_t i = 0; i < 2 * n; i++) {
		const struct service_port *p = &ports[i / 2];
		struct ax_endpoint ep = {
			.addr = i % 2 ? *ip6 : *ip4, .port_be = htons(p->port), .proto = p->proto};
		int r;

		if (addr_is_zero(&ep.addr))
			continue;
		r = f(arg, &ep, p->target);
		if (r)
			return r;
	}
	return 0;
}

struct write_ctx {
	struct agent *a;
	struct service *s;
	struct service_member *m;
	size_t n;
};

static int write_one(void *arg, const struct ax_endpoint *ep, uint16_t target)
{
	struct write_ctx *w = arg;

	return write_endpoint(w->a, w->s, ep, target, w->m, w->n);
}

/* At one port, which the service has by its members of other nodes alone. */
static int each_of_port(const struct service *s, const struct other_port *p,
			int (*f)(void *arg, const struct ax_endpoint *ep, uint16_t target),
			void *arg)
{
	struct ax_endpoint ep[] = {{.addr = s->vip4}, {.addr = s->vip6}};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ep) && !r; i++) {
		ep[i].port_be = htons(p->port);
		ep[i].proto = p->proto;
		r = addr_is_zero(&ep[i].addr) ? 0 : f(arg, &ep[i], p->port);
	}
	return r;
}

static int del_one(void *arg, const struct ax_endpoint *ep, uint16_t target)
{
	const struct write_ctx *w = arg;

	(void)target;
	return datapath_service_del(w->a->dp, ep);
}

static bool is_own_port(const struct service *s, const struct other_port *p)
{
	for (size_t i = 0; s->conf && i < s->conf->n_ports; i++)
		if (s->conf->ports[i].port == p->port && s->conf->ports[i].proto == p->proto)
			return true;
	return false;
}

/* Their lists come first: a port that has none of its own is the apps' of this node. */
static int write_ports(struct write_ctx *w)
{
	autofree struct other_port *gone = NULL;
	struct service *s = w->s;
	size_t n_gone;
	int r = across_ports(s, w->m, w->n, &gone, &n_gone);

	for (size_t i = 0; !r && i < s->n_ports; i++)
		r = each_of_port(s, &s->ports[i], write_one, w);
	/* whatever became of the others: nobody asks for these a second time */
	for (size_t i = 0; i < n_gone; i++) {
		int d = is_own_port(s, &gone[i]) ? 0 : each_of_port(s, &gone[i], del_one, w);

		if (d)
			across_port_stays(s, &gone[i]);
		r = r ? r : d;
	}
	return r;
}

static int adopt_one(void *arg, const struct ax_endpoint *ep, uint16_t target)
{
	const struct write_ctx *w = arg;

	(void)target;
	return removed_adopt(w->a, w->s, ep);
}

static int refused(const struct service *s, int r, struct error *e)
{
	if (r == -E2BIG)
		return error_set(e, r, "service %s would have more than %d backends: divide it",
				 s->name, AX_SERVICE_BACKENDS_MAX);
	if (r == -ENOSPC)
		return error_set(e, r,
				 "there is no room for the backends of service %s, all services "
				 "together have too many: it goes on with those that it had",
				 s->name);
	return error_set(e, r, "the kernel refuses the backends of service %s: %s", s->name,
			 strerror(-r));
}

int service_sync(struct agent *a, struct service *s, struct error *e)
{
	struct write_ctx w = {.a = a, .s = s};
	int r = service_members(a, s, &w.m, &w.n);

	if (!r && (s->health || (s->conf && s->conf->check.type != CHECK_NONE))) {
		checks_sync(a, s, w.m, w.n);
		checks_mark(s, w.m, w.n);
		near_mark(a, s, w.m, w.n);
	}
	if (!r)
		near_watch(a, s, w.m, w.n);
	if (!r)
		ramps_sync(a, s, w.m, w.n);
	if (!r)
		passive_sync(a, s, w.m, w.n);
	if (!r && !s->removed) /* if it fails, less is ended */
		each_endpoint(s->conf, &s->vip4, &s->vip6, adopt_one, &w);
	if (!r)
		r = each_endpoint(s->conf, &s->vip4, &s->vip6, write_one, &w);
	if (!r)
		r = write_ports(&w);
	if (!r)
		removed_sync(a, s, w.m, w.n);
	free(w.m);
	affinity_sync(a, s);
	a->hooks.service_changed(a, s);
	service_way(a, s);
	ingress_service_moved(a, s);
	/* its route depends on where its backends are */
	r = r ? r : vip_resync(a, &s->vip4, e);
	r = r ? r : vip_resync(a, &s->vip6, e);
	return r ? refused(s, r, e) : 0;
}

int services_sync(struct agent *a, const struct app *app, struct error *e)
{
	for (struct service *s = a->services; s; s = s->next) {
		int r = !app || service_affected(s, app) ? service_sync(a, s, e) : 0;

		if (r)
			return r;
	}
	return 0;
}

/* --- what checks find --- */

void services_backend_changed(void *arg, void *owner, const struct health_target *t, bool down,
			      const char *why)
{
	struct agent *a = arg;
	struct service *s = owner;
	const struct app *app = t->app ? app_by_id(a, t->app) : NULL;
	struct error e = {0};
	char addr[ADDR_STRLEN];

	addr_port_format(&t->addr, htons(t->port), addr);
	if (down)
		log_warn("service %s: the backend %s%s%s is down: %s", s->name,
			 app ? app->spec.name : "", app ? " " : "", addr, why);
	else
		log_info("service %s: the backend %s%s%s is up again", s->name,
			 app ? app->spec.name : "", app ? " " : "", addr);
	events_health(a, s, app, &t->addr, t->port, down, why);
	if (service_sync(a, s, &e))
		log_error("%s", e.text);
}

void services_backend_no_way(void *arg, void *owner, const struct health_target *t, bool was_down)
{
	struct service *s = owner;

	(void)t;
	log_warn("service %s: a backend is %s", s->name, services_no_way);
	if (was_down)
		service_sync(arg, s, NULL);
}

/* --- coming and going --- */

struct drop_ctx {
	struct agent *a;
	const struct config_service *keep; /* endpoints of this stay */
	const struct ax_addr *ip4, *ip6;
	const struct ax_endpoint *candidate;
};

static int is_candidate(void *arg, const struct ax_endpoint *ep, uint16_t target)
{
	struct drop_ctx *d = arg;

	(void)target;
	return memcmp(ep, d->candidate, sizeof(*ep)) == 0;
}

static int drop_one(void *arg, const struct ax_endpoint *ep, uint16_t target)
{
	struct drop_ctx *d = arg;

	(void)target;
	d->candidate = ep;
	if (d->keep && each_endpoint(d->keep, d->ip4, d->ip6, is_candidate, d) == 1)
		return 0;
	return datapath_service_del(d->a->dp, ep);
}

int services_route(struct agent *a, const struct app *app, struct error *e)
{
	for (struct service *s = a->services; s; s = s->next) {
		int r = 0;

		if (service_affected(s, app)) {
			service_way(a, s);
			ingress_service_moved(a, s);
			r = vip_resync(a, &s->vip4, e);
			r = r ? r : vip_resync(a, &s->vip6, e);
		}
		if (r)
			return r;
	}
	return 0;
}

static int claim(struct agent *a, struct service *s, const struct ax_addr *addr, struct error *e)
{
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	v = vip_get(a, addr);
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->service = s;
	return vip_sync(a, v, e);
}

static void unclaim(struct agent *a, const struct service *s, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	if (addr_is_zero(addr) || (v && v->service && v->service != s))
		return;
	if (!v || (!v->app && !v->declared))
		pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, false);
	if (!v || !v->service)
		return;
	v->service = NULL;
	vip_sync(a, v, NULL);
}

static struct service *service_new(struct agent *a, const char *name, struct error *e)
{
	struct service *s = calloc(1, sizeof(*s));
	struct name *n = name_get(a, name);

	if (s)
		s->name = strdup(name);
	if (!s || !n || !s->name) {
		if (n)
			name_put(a, n);
		free(s);
		error_set(e, -ENOMEM, "out of memory");
		return NULL;
	}
	s->id = a->next_service++;
	s->next = a->services;
	s->at = &a->services;
	if (s->next)
		s->next->at = &s->next;
	a->services = s;
	a->n_services++;
	n->service = s;
	return s;
}

void service_remove(struct agent *a, struct service *s)
{
	struct drop_ctx d = {.a = a};
	struct write_ctx w = {.a = a, .s = s};
	struct name *n = name_find(a, s->name);

	verdict_names_note(a, NULL, 0);
	checks_forget(s);
	ramps_forget(s);
	near_forget(a, s);
	ingress_service_gone(a, s);
	each_endpoint(s->conf, &s->vip4, &s->vip6, drop_one, &d);
	for (size_t i = 0; i < s->n_ports; i++)
		each_of_port(s, &s->ports[i], del_one, &w);
	removed_all(a, s);
	for (struct app *app = a->apps; app; app = app->next) {
		if (app->service != s)
			continue;
		app->service = NULL;
		app_save(app);
		app_tell(a, app);
	}
	unclaim(a, s, &s->vip4);
	unclaim(a, s, &s->vip6);
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	a->n_services--;
	if (s->conf)
		a->hooks.servers(a); /* its address may be another node's now */
	if (n && n->service == s) {
		n->service = NULL;
		if (s->conf && n->others) /* they may be one by themselves */
			name_stale(a, n);
		name_put(a, n);
	}
	free(s->ports);
	free(s->name);
	free(s);
}

/* An address that a service may have: nobody else's. */
static int check_free(struct agent *a, const struct ax_addr *addr, const char *name,
		      struct error *e)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);
	int r = a->hooks.service_address(a, addr, name, e);
	char text[ADDR_STRLEN];

	if (r || !v)
		return r;
	return error_set(e, -EADDRINUSE, "service %s cannot have the address %s: %s has it", name,
			 addr_format(addr, text),
			 v->app	       ? v->app->spec.name
			 : v->service  ? v->service->name
			 : v->declared ? v->declared->conf->spec.name
				       : "the agent");
}

int service_check_addresses(struct agent *a, const struct service *s,
			    const struct config_service *conf, struct error *e)
{
	const struct ax_addr *both[] = {&conf->ip4, &conf->ip6};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		struct vip *v = addr_is_zero(both[i]) ? NULL : vip_find(a, both[i]);
		int r = 0;

		if (v && v->app && v->app->state == APP_ENDED)
			continue; /* it only lingers */
		if (!s || !v || v->service != s || v->app || v->declared)
			r = check_free(a, both[i], conf->name, e);
		if (r)
			return r;
	}
	return 0;
}

static int service_addresses(struct agent *a, struct service *s, struct error *e)
{
	const struct config_service *c = s->conf;
	int r;

	r = check_free(a, &c->ip4, c->name, e);

	r = r ? r : check_free(a, &c->ip6, c->name, e);
	if (r)
		return r;
	s->vip4 = c->ip4;
	s->vip6 = c->ip6;
	pool_mark(&a->pool4, &s->vip4, true);
	pool_mark(&a->pool6, &s->vip6, true);
	if (!addr_is_zero(&c->ip4) || !addr_is_zero(&c->ip6))
		return 0;
	if (a->pool4.size) {
		r = pool_take(&a->pool4, &s->vip4);
	}
	if (!r && a->pool6.size) {
		r = pool_take(&a->pool6, &s->vip6);
	}
	return r ? error_set(e, r, "the pool has no address left for service %s", c->name) : 0;
}

/* Its backends first, then its address: nobody meets it half made. */
static int service_tell(struct agent *a, struct service *s, struct error *e)
{
	int r = service_sync(a, s, e);

	r = r ? r : claim(a, s, &s->vip4, e);
	return r ? r : claim(a, s, &s->vip6, e);
}

int service_declare(struct agent *a, struct config_service *conf, struct error *e)
{
	struct service *s = service_by_name(a, conf->name);
	int r;

	if (s && !s->conf && !s->members) { /* only of other nodes' apps: here the config decides */
		service_remove(a, s);
		s = NULL;
	}
	if (s)
		return error_set(e, -EEXIST, "apps have formed a service named %s", conf->name);
	s = service_new(a, conf->name, e);
	if (!s)
		return -ENOMEM;
	s->conf = conf;
	r = service_addresses(a, s, e);
	r = r ? r : service_tell(a, s, e);
	if (r)
		service_remove(a, s);
	/* (it serves those inside in any case) */
	return r ? r : ingress_service(a, s, e);
}

int service_change(struct agent *a, struct service *s, struct config_service *conf, struct error *e)
{
	struct drop_ctx d = {.a = a, .keep = conf, .ip4 = &s->vip4, .ip6 = &s->vip6};
	struct config_service *old = s->conf;
	int r;

	if (!addr_eq(&old->ip4, &conf->ip4) || !addr_eq(&old->ip6, &conf->ip6)) {
		service_remove(a, s);
		return service_declare(a, conf, e);
	}
	s->conf = conf;
	r = service_sync(a, s, e);
	r = r ? r : ingress_service(a, s, e);
	each_endpoint(old, &s->vip4, &s->vip6, drop_one, &d);
	return r;
}

int service_adopt(struct agent *a, const char *name, const struct ax_addr *ip4,
		  const struct ax_addr *ip6, struct service **ret)
{
	const struct ax_addr *both[] = {ip4, ip6};
	struct service *s = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(both) && !s; i++) {
		struct vip *v = addr_is_zero(both[i]) ? NULL : vip_find(a, both[i]);

		s = v ? v->service : NULL;
	}
	*ret = s;
	if (s)
		return 0;
	s = service_new(a, name, NULL);
	if (!s)
		return -ENOMEM;
	s->vip4 = *ip4;
	s->vip6 = *ip6;
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		struct vip *v = addr_is_zero(both[i]) ? NULL : vip_get(a, both[i]);

		pool_mark(&a->pool4, both[i], true);
		pool_mark(&a->pool6, both[i], true);
		if (v)
			v->service = s;
	}
	*ret = s;
	return 0;
}

int service_of_app(struct agent *a, struct app *owner, struct service **ret, struct error *e)
{
	int r;

	if (owner->service) {
		*ret = owner->service;
		return 0;
	}
	r = service_adopt(a, owner->spec.name, &owner->vip4, &owner->vip6, ret);
	if (r)
		return error_set(e, r, "out of memory");
	service_join(a, *ret, owner);
	r = service_tell(a, *ret, e);
	if (r)
		service_remove(a, *ret);
	return r;
}

void service_join(struct agent *a, struct service *s, struct app *app)
{
	(void)a;
	app->service = s;
	s->members++;
	app_save(app); /* the owner's was written before there was a service */
}

static bool owns_address(const struct service *s, const struct app *app)
{
	return addr_is_zero(&s->vip4) ? addr_eq(&s->vip6, &app->vip6)
				      : addr_eq(&s->vip4, &app->vip4);
}

/* The one app that is left, and owns the address: there is nothing left to translate. */
static bool is_owner_alone(struct agent *a, const struct service *s)
{
	if (s->members != 1)
		return false;
	for (const struct app *x = a->apps; x; x = x->next)
		if (x->service == s && owns_address(s, x))
			return true;
	return false;
}

/* The address itself outlives its owner as long as anybody serves it. */
int service_settle(struct agent *a, struct service *s, struct error *e)
{
	if (across_members(a, s) || (s->members && !is_owner_alone(a, s)))
		return service_sync(a, s, e);
	drains_forget(a, s->name);
	service_remove(a, s);
	return 0;
}

void service_leave(struct agent *a, struct app *app)
{
	struct service *s = app->service;

	if (!s)
		return;
	app->service = NULL;
	s->members--;
	service_settle(a, s, NULL);
}

int service_of_others(struct agent *a, const char *name, struct error *e)
{
	struct service *s = service_new(a, name, e);
	int r;

	if (!s)
		return -ENOMEM;
	r = a->pool4.size ? pool_take(&a->pool4, &s->vip4) : 0;
	if (!r && a->pool6.size)
		r = pool_take(&a->pool6, &s->vip6);
	if (r)
		error_set(e, r, "the pool has no address left for it");
	r = r ? r : service_tell(a, s, e);
	if (r)
		service_remove(a, s);
	return r;
}

void services_free_all(struct agent *a)
{
	while (a->services) {
		struct service *s = a->services;

		a->services = s->next;
		ramps_forget(s);
		removed_forget(s);
		free(s->ports);
		free(s->name);
		free(s);
	}
}
