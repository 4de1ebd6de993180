/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The DNS zone that is made of names and addresses. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "daemon/names_zone.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "dns/dns.h"
#include "registry/app_table.h"
#include "registry/asked_names.h"
#include "registry/declared.h"
#include "registry/names.h"
#include "registry/names_outside.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"

#define UPSTREAMS_MAX	    8
#define RESOLV_CONF	    "/etc/resolv.conf"
#define RESOLV_CONF_LOOK_NS 1000000000ull

static void add_srv(struct dns_name_info *info, uint8_t proto, uint16_t port)
{
	if (!port || info->n_srv == ARRAY_SIZE(info->srv))
		return;
	for (size_t i = 0; i < info->n_srv; i++)
		if (info->srv[i].proto == proto && info->srv[i].port == port)
			return;
	info->srv[info->n_srv].proto = proto;
	info->srv[info->n_srv++].port = port;
}

struct srv_ctx {
	struct dns_name_info *info;
	const char *name;
	struct agent *a;
};

static int srv_of_server(void *arg, const struct ax_endpoint *ep, const struct ax_server *s)
{
	struct srv_ctx *c = arg;
	const struct app *app = app_by_id(c->a, s->app);
	const struct vip *v;

	if (!app || !streq(app->spec.name, c->name))
		return 0;
	v = vip_find(c->a, &ep->addr);
	if (v && v->app == app)
		add_srv(c->info, ep->proto, ntohs(ep->port_be));
	return c->info->n_srv == ARRAY_SIZE(c->info->srv); /* the rest has no room */
}

static void srv_of_others(struct dns_name_info *info, const struct name *n)
{
	for (const struct other_app *r = n ? n->others : NULL; r; r = r->next)
		for (size_t i = 0; i < r->n_ports; i++)
			add_srv(info, r->ports[i].proto, r->ports[i].port);
}

static void zone_ports(void *arg, const char *text, struct dns_name_info *ret)
{
	struct agent *a = arg;
	struct srv_ctx c = {.info = ret, .name = text, .a = a};
	const struct service *s = service_by_name(a, text);
	const struct config_service *conf = s ? s->conf : NULL;

	for (size_t i = 0; conf && i < conf->n_ports; i++)
		add_srv(ret, conf->ports[i].proto, conf->ports[i].port);
	if (conf)
		return;
	datapath_servers_each(a->dp, srv_of_server, &c);
	srv_of_others(ret, name_find(a, text));
}

/* An app of another node, where nobody of this node has the name. One that the config starts when
 * somebody connects is to be started. */
static const struct other_app *other_for(const struct name *n)
{
	bool here = n->service || n->app || (n->declared && n->declared->conf->on_connect);

	return here ? NULL : other_serving(n);
}

void names_address(const struct name *n, struct ax_addr *ip4, struct ax_addr *ip6)
{
	const struct service *s = n->service ? n->service : n->app ? n->app->service : NULL;
	const struct other_app *other = other_for(n);

	*ip4 = *ip6 = (struct ax_addr){0};
	if (s) {
		*ip4 = s->vip4;
		*ip6 = s->vip6;
	} else if (n->app) {
		*ip4 = n->app->vip4;
		*ip6 = n->app->vip6;
	} else if (other) {
		*ip4 = other->ip4;
		*ip6 = other->ip6;
	} else if (n->declared) {
		*ip4 = n->declared->ip4;
		*ip6 = n->declared->ip6;
	}
}

bool names_is_here(const struct name *n)
{
	const struct service *s = n->service;

	return n->app || n->declared || (s && (s->conf || s->members));
}

/* Whoever is on another node alone is found as soon as he listens: connects do not wait for that
 * there. */
static bool is_found(const struct name *n)
{
	return names_is_here(n) || other_serving(n);
}

static bool zone_lookup(void *arg, const char *text, struct dns_name_info *ret)
{
	struct agent *a = arg;
	struct name *n = name_find(a, text);

	if (!n || !is_found(n))
		return false;
	memset(ret, 0, sizeof(*ret));
	names_address(n, &ret->ip4, &ret->ip6);
	return true;
}

/* Whether names of a peer may be below. */
static bool zone_encloses(void *arg, const char *label)
{
	const struct agent *a = arg;
	const struct config_cluster *c = &a->config.cluster;

	for (size_t i = 0; i < c->n_peers; i++)
		if (streq(c->peers[i].name, label))
			return true;
	return false;
}

/* A private app that has just been registered has no way to it before its network is attached. */
static bool zone_ready(void *arg, const char *text)
{
	struct agent *a = arg;
	const struct name *n = name_find(a, text);
	const struct app *app = n ? n->app : NULL;

	return n && is_found(n) &&
	       (n->service || n->declared || !app || app->spec.net == NET_HOST || app->ifindex);
}

static bool zone_reverse(void *arg, const struct ax_addr *addr, char name[DNS_NAME_MAX])
{
	struct agent *a = arg;
	struct vip *v = vip_find(a, addr);
	const struct other_app *r = vip_is_here(v) ? NULL : other_of_addr(a, addr);
	const char *text = r ? r->app : v && !v->host ? name_of_addr(a, addr) : NULL;

	if (text)
		snprintf(name, DNS_NAME_MAX, "%s", text);
	return text != NULL;
}

static bool zone_owns(void *arg, const struct ax_addr *addr)
{
	struct agent *a = arg;

	for (size_t i = 0; i < a->n_nodes; i++)
		if (prefix_contains(&a->nodes[i], addr))
			return true;
	return (a->pool4.size && prefix_contains(&a->pool4.prefix, addr)) ||
	       (a->pool6.size && prefix_contains(&a->pool6.prefix, addr));
}

static size_t upstreams(struct agent *a, struct dns_upstream ret[UPSTREAMS_MAX])
{
	autofree char *text = NULL;
	size_t n = 0;

	for (; n < a->config.n_dns_upstreams && n < UPSTREAMS_MAX; n++) {
		ret[n].addr = a->config.dns_upstreams[n];
		ret[n].port_be = a->config.dns_upstream_ports_be[n];
	}
	if (n || file_read(RESOLV_CONF, 65536, &text))
		return n;
	return dns_upstreams_from_resolv_conf(text, ret, UPSTREAMS_MAX);
}

int names_set_upstreams(struct agent *a, struct error *e)
{
	struct dns_upstream up[UPSTREAMS_MAX];
	size_t n = upstreams(a, up);
	int r = a->dns ? dns_server_set_upstreams(a->dns, up, n) : 0;

	return r ? error_set(e, r, "cannot use the DNS upstreams: %s", strerror(-r)) : 0;
}

/* Who has the network change changes that file: at most once a second it is looked at. */
static void look_at_resolv_conf(struct agent *a)
{
	static struct stat seen;
	static uint64_t looked_ns;
	uint64_t now = time_mono_ns();
	struct error e = {0};
	struct stat st;

	if (a->config.n_dns_upstreams || now - looked_ns < RESOLV_CONF_LOOK_NS)
		return;
	looked_ns = now;
	if (stat(RESOLV_CONF, &st) < 0 ||
	    (st.st_ino == seen.st_ino && st.st_dev == seen.st_dev && st.st_size == seen.st_size &&
	     st.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
	     st.st_mtim.tv_nsec == seen.st_mtim.tv_nsec))
		return;
	if (names_set_upstreams(a, &e))
		log_error("%s", e.text);
	else
		seen = st;
}

/* The host's own resolver asks us for our names alone, and would be asked by us for those of others
 * that it has asked us for. */
static bool host_may_forward(const struct agent *a)
{
	return a->config.host_names != HOST_NAMES_RESOLVED;
}

/*
 * Who asks. An address of a pool that nobody has (any more) is nobody's, and what else is not known
 * as this host's own has no way out by us.
 */
static bool zone_asker(void *arg, const struct ax_addr *addr, __be16 port_be, uint8_t proto,
		       struct dns_rights *ret)
{
	const struct ax_endpoint from = {.addr = *addr, .port_be = port_be, .proto = proto};
	struct agent *a = arg;
	const struct vip *v = vip_find(a, addr);
	const struct app *app = v ? v->app : NULL;
	uint32_t id = 0;

	look_at_resolv_conf(a);
	*ret = (struct dns_rights){.forward = v && v->host && host_may_forward(a)};
	if (!app && (!v || v->host))
		id = datapath_dns_asker(a->dp, &from, dns_sent_after(a->dns));
	if (id) {
		app = app_by_id(a, id);
		if (!app) /* (just ended, too:) what it asked may not be this host's question */
			return false;
	}
	if (!app)
		return (v && v->host) || !zone_owns(a, addr);
	ret->wait_ms = app->spec.wait_ms;
	ret->self = addr_is_zero(&app->vip4) ? app->vip6 : app->vip4;
	ret->app = app->id;
	ret->judged = names_outside_judged(a, app);
	/* (who may have everything is refused nothing) */
	ret->told = ret->judged || a->n_rules || !app_egress_is_open(app);
	ret->forward =
		ret->judged || a->config.dns_forward == DNS_FORWARD_ALL || app_egress_is_open(app);
	return true;
}

static bool zone_may_ask(void *arg, const struct dns_rights *who, const char *name)
{
	struct agent *a = arg;
	const struct app *app = app_by_id(a, who->app);

	return app && names_outside_may_ask(a, app, name,
					    a->config.dns_forward == DNS_FORWARD_ALL ||
						    app_egress_is_open(app));
}

static void zone_learn(void *arg, const struct dns_rights *who, const char *name,
		       const struct dns_learnt *v, size_t n)
{
	struct agent *a = arg;
	struct app *app = app_by_id(a, who->app);

	for (size_t i = 0; app && i < n; i++) {
		asked_name_note(app, &v[i].addr, name);
		if (who->judged)
			names_outside_learn(a, app, name, &v[i].addr, v[i].ttl_s);
	}
}

static int filter_of(struct agent *a, const char *program)
{
	int fd = datapath_program_fd(a->dp, program);

	return fd < 0 ? 0 : fd;
}

static void on_drained(void *arg)
{
	struct agent *a = arg;

	datapath_dns_turn(a->dp);
}

int names_open(struct agent *a, struct error *e)
{
	struct dns_upstream up[UPSTREAMS_MAX];
	struct dns_config c = {
		.listen4 = a->host4,
		.port_be = htons(53),
		.zone = {.domain = a->config.dns_domain,
			 .lookup = zone_lookup,
			 .encloses = zone_encloses,
			 .ready = zone_ready,
			 .ports = zone_ports,
			 .reverse = zone_reverse,
			 .owns = zone_owns,
			 .asker = zone_asker,
			 .may_ask = zone_may_ask,
			 .learn = zone_learn,
			 .arg = a},
		.upstreams = up,
		.n_upstreams = upstreams(a, up),
		.udp_filter = filter_of(a, "ax_dns_udp"),
		.tcp_filter = filter_of(a, "ax_dns_tcp"),
		.drained = on_drained,
		.arg = a,
	};
	int r;

	if (!a->config.dns)
		return 0;
	if (a->has_ipv6)
		c.listen6 = a->host6;
	r = dns_server_open(a->epoll, &c, &a->dns, e);
	if (!r)
		a->ctl.dns_port_be = dns_server_port(a->dns);
	return r;
}
