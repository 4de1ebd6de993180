/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose exposed ports are whose. */
#include <arpa/inet.h>
#include <net/if.h>

#include "ingress/ingress.h"
#include "ingress/priv.h"
#include "base/log.h"
#include "datapath/datapath.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/instance_ctl.h"
#include "registry/service_device.h"
#include "registry/service_table.h"

int ingress_open(struct agent *a)
{
	a->ingress = calloc(1, sizeof(*a->ingress));
	if (a->ingress)
		a->ingress->links.fd = -1;
	return a->ingress ? 0 : -ENOMEM;
}

static void exposure_free(struct exposure *x)
{
	for (int f = 0; f < FAMILIES; f++)
		close_fd(&x->fd[f]);
	free(x->waits);
	free(x);
}

void ingress_close(struct agent *a)
{
	while (a->ingress && a->ingress->list) {
		struct exposure *x = a->ingress->list;

		a->ingress->list = x->next;
		exposure_free(x);
	}
	if (a->ingress) {
		close_fd(&a->ingress->links.fd);
		free(a->ingress->attached);
		free(a->ingress->moved);
	}
	free(a->ingress);
	a->ingress = NULL;
}

/* --- to the kernel --- */

static bool in_word(const struct exposure *x, const struct expose *of)
{
	return x->x.proto == of->proto && x->x.host_port >> 6 == of->host_port >> 6;
}

/* The bits of 64 ports, of which one came or went. */
static int tell_ports(struct agent *a, const struct expose *of)
{
	uint64_t bits = 0;

	for (const struct exposure *x = a->ingress->list; x; x = x->next)
		if (in_word(x, of) && (x->has[V4] || x->has[V6]))
			bits |= AX_EXPOSED_BIT(x->x.host_port);
	return datapath_exposed_ports(
		a->dp, AX_EXPOSED_WORD(of->host_port, of->proto == IPPROTO_UDP), bits);
}

/* (What connections start, sk_lookup has to know as well.) */
static uint16_t kinds_of(struct agent *a, const struct exposure *x)
{
	const struct declared *d =
		x->service ? NULL : declared_find(a, x->app ? x->app->spec.name : x->waits);
	bool starts = d && d->conf->on_connect, host;

	if (x->service)
		return AX_EXPOSED_PACKETS |
		       (x->x.proto == IPPROTO_UDP ? AX_EXPOSED_HOST_UDP : AX_EXPOSED_HOST_TCP);
	host = (x->app ? x->app->spec.net : d ? d->conf->spec.net : NET_PRIVATE) == NET_HOST;
	if (x->x.proto == IPPROTO_UDP)
		return AX_EXPOSED_PACKETS | (host ? AX_EXPOSED_HOST_UDP : 0);
	return host ? AX_EXPOSED_HOST_TCP : AX_EXPOSED_PACKETS | (starts ? AX_EXPOSED_HOST_TCP : 0);
}

static int tell_kinds(struct agent *a)
{
	const uint16_t of_packets = AX_EXPOSED_PACKETS | AX_EXPOSED_HOST_UDP;
	uint16_t kinds = a->ingress->before, packets;
	int r = 0;

	if (a->ingress->n_mixed)
		kinds |= AX_EXPOSED_PACKETS | AX_EXPOSED_MIXED;
	for (const struct exposure *x = a->ingress->list; x; x = x->next)
		if (x->has[V4] || x->has[V6])
			kinds |= kinds_of(a, x);
	if (kinds == a->ingress->told)
		return 0;
	packets = (kinds ^ a->ingress->told) & of_packets;
	a->ctl.exposed = a->ingress->told = kinds;
	if (kinds)
		r = ingress_watch(a);
	if (!r && packets && kinds & AX_EXPOSED_PACKETS)
		r = ingress_attach(a);
	r = r ? r : agent_tell_ctl(a);
	if (!kinds || (packets && !(kinds & AX_EXPOSED_PACKETS)))
		ingress_detach(a);
	return r;
}

static struct ax_exposed_key key_of(const struct expose *x, int family)
{
	struct ax_exposed_key k = {
		.at = {.addr = x->addr, .port_be = htons(x->host_port), .proto = x->proto},
		.ifindex = *x->device ? if_nametoindex(x->device) : 0};

	if (addr_is_zero(&x->addr) && family == V4)
		k.at.addr = addr_from_v4(0);
	return k;
}

static uint32_t service_flags(const struct agent *a, const struct service *s)
{
	return AX_EXPOSED_SERVICE | (service_has_private(a, s) ? AX_EXPOSED_PRIVATE : 0);
}

static uint32_t flags_of(const struct agent *a, const struct owner *o)
{
	enum net_mode net;

	if (o->service)
		return service_flags(a, o->service);
	net = o->app ? o->app->spec.net : o->declared->conf->spec.net;
	return net == NET_PRIVATE ? AX_EXPOSED_PRIVATE : 0;
}

/* One family of one port. */
static int tell(struct agent *a, struct exposure *x, int family, const struct owner *o,
		struct error *e)
{
	struct ax_exposed to = {
		.to = {.addr = o->vip[family], .port_be = htons(x->x.port), .proto = x->x.proto},
		.flags = flags_of(a, o)};
	struct ax_exposed was;
	char text[EXPOSE_STRLEN];
	bool known;
	int r;

	x->key[family] = key_of(&x->x, family);
	known = datapath_exposed_get(a->dp, &x->key[family], &was) == 0;
	if (x->fd[family] < 0) {
		r = reserve(x, family, known, e);
		if (r)
			return r;
	}
	if (*x->x.device && !x->key[family].ifindex)
		return 0;
	x->soon[family] = !known || was.flags & AX_EXPOSED_SOON;
	if (x->soon[family])
		to.flags |= AX_EXPOSED_SOON;
	r = datapath_exposed_set(a->dp, &x->key[family], &to);
	if (r)
		return error_set(e, r, "the kernel refuses the exposed port %s: %s",
				 expose_format(&x->x, text), strerror(-r));
	x->has[family] = true;
	if (o->service && x->x.proto == IPPROTO_UDP &&
	    !(known && memcmp(&was.to, &to.to, sizeof(to.to)) == 0))
		moved_note(a, &x->key[family].at);
	if (x->fd[family] < 0)
		reserve_later(a);
	return 0;
}

/* The programs know what has come, and apps that connect are judged for it: what they had connected
 * there before is ended, and then it is there for everybody. */
static void open_soon(struct agent *a)
{
	bool udp = false, tcp = false;
	struct ax_exposed now;

	for (const struct exposure *x = a->ingress->list; x; x = x->next) {
		if (!x->soon[V4] && !x->soon[V6])
			continue;
		udp |= x->x.proto == IPPROTO_UDP;
		tcp |= x->x.proto == IPPROTO_TCP;
	}
	unjudged_end(a, udp, tcp);
	for (struct exposure *x = a->ingress->list; x; x = x->next) {
		for (int f = 0; f < FAMILIES; f++) {
			if (!x->soon[f])
				continue;
			x->soon[f] = false;
			if (!x->has[f] || datapath_exposed_get(a->dp, &x->key[f], &now))
				continue;
			now.flags &= ~AX_EXPOSED_SOON;
			datapath_exposed_set(a->dp, &x->key[f], &now);
		}
	}
}

static void untell(struct agent *a, struct exposure *x)
{
	for (int f = 0; f < FAMILIES; f++)
		if (x->has[f])
			datapath_exposed_del(a->dp, &x->key[f]);
	x->has[V4] = x->has[V6] = false;
	tell_ports(a, &x->x);
}

/* --- claims --- */

static bool is_owners(const struct exposure *x, const struct owner *o)
{
	if (o->app || o->service)
		return o->app ? x->app == o->app : x->service == o->service;
	return x->waits && streq(x->waits, o->name);
}

/* Of an app of that name which has ended, or does not run. */
static bool is_inherited(const struct exposure *x, const struct owner *o)
{
	if (o->service)
		return false;
	if (x->app)
		return x->app->state == APP_ENDED && streq(x->app->spec.name, o->name);
	return x->waits && streq(x->waits, o->name);
}

static void drop(struct agent *a, struct exposure **at)
{
	struct exposure *x = *at;

	untell(a, x);
	*at = x->next;
	exposure_free(x);
}

static const char *name_of(const struct exposure *x)
{
	return x->app ? x->app->spec.name : x->waits ? x->waits : x->service->name;
}

/* 0: nobody has what clashes. Whose app has ended, and only lingers, gives it up. */
static int check_free(struct agent *a, const struct expose *x, const struct owner *o,
		      struct error *e)
{
	char text[EXPOSE_STRLEN];

	for (struct exposure **at = &a->ingress->list; *at;) {
		const struct exposure *other = *at;

		if (is_owners(other, o) || !expose_clashes(&other->x, x)) {
			at = &(*at)->next;
			continue;
		}
		if (!is_inherited(other, o) && (!other->app || other->app->state != APP_ENDED))
			return error_set(e, -EADDRINUSE,
					 "cannot expose %s: the %s %s exposes that port already",
					 expose_format(x, text), other->service ? "service" : "app",
					 name_of(other));
		drop(a, at);
	}
	return 0;
}

bool ingress_is_taken(const struct agent *a, const struct expose_list *l)
{
	for (const struct exposure *x = l->n ? a->ingress->list : NULL; x; x = x->next)
		for (size_t i = 0; x->app && i < l->n; i++)
			if (expose_clashes(&x->x, &l->v[i]))
				return true;
	return false;
}

static struct exposure *find(struct agent *a, const struct expose *x, const struct owner *o)
{
	for (struct exposure *at = a->ingress->list; at; at = at->next)
		if (is_owners(at, o) && expose_eq(&at->x, x))
			return at;
	return NULL;
}

/* 0 or -ENOMEM, and it is whose it was. */
static int set_owner(struct exposure *x, const struct owner *o)
{
	char *waits = o->declared ? strdup(o->name) : NULL;

	if (o->declared && !waits)
		return -ENOMEM;
	free(x->waits);
	x->waits = waits;
	x->app = o->app;
	x->service = o->service;
	return 0;
}

/* Its predecessor's, with the sockets that keep the port; NULL: there is none. */
static struct exposure *inherit(struct agent *a, const struct expose *x, const struct owner *o)
{
	for (struct exposure *at = a->ingress->list; at; at = at->next)
		if (is_inherited(at, o) && expose_eq(&at->x, x))
			return set_owner(at, o) ? NULL : at;
	return NULL;
}

static int check_family(const struct expose *x, const struct owner *o, struct error *e)
{
	char text[EXPOSE_STRLEN];

	if (!x->family || !addr_is_zero(&o->vip[x->family == AF_INET ? V4 : V6]))
		return 0;
	return error_set(e, -EAFNOSUPPORT,
			 "cannot expose %s: %s has no %s address (see agent.pool, or --ip)",
			 expose_format(x, text), o->name, x->family == AF_INET ? "IPv4" : "IPv6");
}

static struct exposure *make(struct agent *a, const struct expose *x, const struct owner *o)
{
	struct exposure *own = calloc(1, sizeof(*own));

	if (!own)
		return NULL;
	*own = (struct exposure){.next = a->ingress->list, .x = *x, .fd = {-1, -1}};
	if (set_owner(own, o)) {
		free(own);
		return NULL;
	}
	a->ingress->list = own;
	return own;
}

static int claim(struct agent *a, const struct expose *x, const struct owner *o, struct error *e)
{
	struct exposure *own = find(a, x, o);
	bool is_new;
	char text[EXPOSE_STRLEN];
	int r = check_family(x, o, e);

	if (!r && !own)
		own = inherit(a, x, o);
	is_new = !own;
	r = r ? r : check_free(a, x, o, e);
	if (r)
		return r;
	if (!own) {
		own = make(a, x, o);
		if (!own)
			return error_set(e, -ENOMEM, "out of memory");
	}
	for (int f = 0; f < FAMILIES && !r; f++) {
		bool wanted = !x->family || x->family == (f == V4 ? AF_INET : AF_INET6);

		if (wanted && !addr_is_zero(&o->vip[f]))
			r = tell(a, own, f, o, e);
	}
	r = r ? r : tell_ports(a, x);
	if (is_new && !r && a->ctl.ephemeral_first && x->host_port >= a->ctl.ephemeral_first)
		log_warn("%s is exposed by a port that connections get as well (see sysctl "
			 "net.ipv4.ip_local_port_range): what this host masquerades may clash with "
			 "it",
			 expose_format(x, text));
	return r;
}

static bool is_in(const struct expose_list *l, const struct expose *x)
{
	for (size_t i = 0; i < l->n; i++)
		if (expose_eq(&l->v[i], x))
			return true;
	return false;
}

/* Gives back what is the owner's, or was waiting for it, and not in the list. */
static void drop_others(struct agent *a, const struct owner *o, const struct expose_list *keep)
{
	for (struct exposure **at = &a->ingress->list; *at;) {
		bool waits = o->app && o->name && (*at)->waits && streq((*at)->waits, o->name);

		if ((waits || is_owners(*at, o)) && !is_in(keep, &(*at)->x))
			drop(a, at);
		else
			at = &(*at)->next;
	}
}

static int settle(struct agent *a, const struct owner *o, struct error *e)
{
	static const struct expose_list none;
	struct error why = {0};
	int r = 0, told;

	drop_others(a, o, o->list);
	for (size_t i = 0; i < o->list->n && !r; i++)
		r = claim(a, &o->list->v[i], o, &why);
	if (r)
		drop_others(a, o, &none);
	told = tell_kinds(a);
	open_soon(a);
	moved_forget(a);
	if (!r && told)
		r = error_set(&why, told, "the kernel refuses the exposed ports: %s",
			      strerror(-told));
	if (r && e)
		*e = why;
	return r;
}

static struct owner owner_app(const struct app *app)
{
	return (struct owner){.app = app,
			      .name = app->spec.name,
			      .list = &app->spec.expose,
			      .vip = {app->vip4, app->vip6}};
}

static struct owner owner_service(const struct service *s)
{
	static const struct expose_list none;

	return (struct owner){.service = s,
			      .name = s->name,
			      .list = s->conf ? &s->conf->expose : &none,
			      .vip = {s->vip4, s->vip6}};
}

static struct owner owner_declared(const struct declared *d)
{
	return (struct owner){.declared = d,
			      .name = d->conf->spec.name,
			      .list = &d->conf->spec.expose,
			      .vip = {d->ip4, d->ip6}};
}

int ingress_app(struct agent *a, const struct app *app, struct error *e)
{
	const struct owner o = owner_app(app);

	return settle(a, &o, e);
}

int ingress_service(struct agent *a, const struct service *s, struct error *e)
{
	const struct owner o = owner_service(s);

	return settle(a, &o, e);
}

int ingress_declared(struct agent *a, const struct declared *d, struct error *e)
{
	const struct owner o = owner_declared(d);

	return settle(a, &o, e);
}

/* The services' device is there as long as one is mixed: at its egress a backend is chosen. */
static int begin_mixed(struct agent *a)
{
	int r = service_device_open(a);

	if (!r)
		service_device_routed(a, 0, a->ctl.service_ifindex);
	return r ? r : tell_kinds(a);
}

static int end_mixed(struct agent *a)
{
	service_device_routed(a, a->ctl.service_ifindex, 0);
	return tell_kinds(a);
}

/* Services with backends of both modes are translated where exposed ports are. */
static void settle_mixed(struct agent *a, struct service *s, bool mixed)
{
	int r = 0;

	if (s->mixed == mixed)
		return;
	s->mixed = mixed;
	if (mixed && a->ingress->n_mixed++ == 0)
		r = begin_mixed(a);
	if (!mixed && --a->ingress->n_mixed == 0)
		r = end_mixed(a);
	if (r)
		log_warn("programs outside ax do not reach private backends of service %s, which "
			 "has some in host mode, too: %s",
			 s->name, strerror(-r));
}

void ingress_service_moved(struct agent *a, struct service *s)
{
	settle_mixed(a, s, s->by_host && service_has_private(a, s));
	for (const struct exposure *x = a->ingress->list; x; x = x->next) {
		struct ax_exposed now;

		for (int f = 0; x->service == s && f < FAMILIES; f++) {
			if (!x->has[f] || datapath_exposed_get(a->dp, &x->key[f], &now))
				continue;
			now.flags = service_flags(a, s);
			datapath_exposed_set(a->dp, &x->key[f], &now);
		}
	}
}

void ingress_service_next(struct agent *a, const struct service *s, const struct expose_list *next)
{
	const struct owner o = {.service = s};

	drop_others(a, &o, next);
}

static void gone(struct agent *a, const struct owner *o)
{
	static const struct expose_list none;

	drop_others(a, o, &none);
	tell_kinds(a);
}

void ingress_app_gone(struct agent *a, const struct app *app)
{
	const struct owner o = {.app = app};

	gone(a, &o);
}

void ingress_declared_gone(struct agent *a, const struct declared *d)
{
	const struct owner o = owner_declared(d);

	gone(a, &o);
}

void ingress_service_gone(struct agent *a, struct service *s)
{
	const struct owner o = {.service = s};

	settle_mixed(a, s, false);
	gone(a, &o);
}

/* --- what a former agent left --- */

static bool keep(void *arg, const struct ax_exposed_key *key)
{
	const struct agent *a = arg;

	for (const struct exposure *x = a->ingress->list; x; x = x->next)
		for (int f = 0; f < FAMILIES; f++)
			if (x->has[f] && memcmp(&x->key[f], key, sizeof(*key)) == 0)
				return true;
	return false;
}

void ingress_adopt(struct agent *a)
{
	struct ax_ctl was;

	if (datapath_ctl_get(a->dp, &was) == 0)
		a->ctl.exposed = a->ingress->before = was.exposed;
}

int ingress_sweep(struct agent *a)
{
	int r = datapath_exposed_sweep(a->dp, keep, a);

	for (uint32_t word = 0; word < AX_EXPOSED_WORDS && !r; word++) {
		uint64_t bits = 0;

		for (const struct exposure *x = a->ingress->list; x; x = x->next)
			if (AX_EXPOSED_WORD(x->x.host_port, x->x.proto == IPPROTO_UDP) == word &&
			    (x->has[V4] || x->has[V6]))
				bits |= AX_EXPOSED_BIT(x->x.host_port);
		r = datapath_exposed_ports(a->dp, word, bits);
	}
	a->ingress->before = 0;
	r = r ? r : tell_kinds(a);
	if (!r && !(a->ctl.exposed & AX_EXPOSED_PACKETS))
		ingress_detach(a);
	return r;
}

static void owner_again(struct agent *a, const struct exposure *x, struct error *e)
{
	const struct declared *d = x->waits ? declared_find(a, x->waits) : NULL;

	if (x->app)
		ingress_app(a, x->app, e);
	else if (x->service)
		ingress_service(a, x->service, e);
	else if (d)
		ingress_declared(a, d, e);
}

void ingress_links_changed(struct agent *a)
{
	struct error e = {0};

	for (struct exposure *x = a->ingress->list; x; x = x->next) {
		unsigned ifindex = *x->x.device ? if_nametoindex(x->x.device) : 0;

		for (int f = 0; f < FAMILIES; f++) {
			if (!x->has[f] || x->key[f].ifindex == ifindex)
				continue;
			datapath_exposed_del(a->dp, &x->key[f]);
			x->has[f] = false;
		}
		if (*x->x.device && ifindex && !x->has[V4] && !x->has[V6]) {
			owner_again(a, x, &e);
			return; /* the list is another; the next message comes */
		}
	}
}
