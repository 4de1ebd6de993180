/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registering an app: its name, with whom it forms a service, its addresses, its cgroup. */
#include <sys/stat.h>
#include <time.h>

#include "apps/register.h"
#include "allot/pool.h"
#include "apps/apps.h"
#include "apps/linger.h"
#include "apps/spawn.h"
#include "apps/squat.h"
#include "base/address.h"
#include "ingress/ingress.h"
#include "machine/cgroup.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/strv.h"
#include "config/config.h"
#include "launch/launch.h"
#include "net/netlink.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/in_force.h"
#include "registry/names.h"
#include "registry/parties.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/services.h"

static int take_limits(struct app_spec *s, const struct app_spec *d)
{
	s->memory = s->memory ? s->memory : d->memory;
	s->cpus = s->cpus ? s->cpus : d->cpus;
	s->pids = s->pids ? s->pids : d->pids;
	s->read_only |= d->read_only;
	return s->volumes.n ? 0 : strv_copy(&d->volumes, &s->volumes);
}

/* What the config says of an app of this name holds where the command line is silent. */
static int take_declared(struct app_spec *s, const struct app_spec *d, bool from_config,
			 struct error *e)
{
	int r = 0;

	if (from_config)
		return 0;
	if (addr_is_zero(&s->ip4) && addr_is_zero(&s->ip6)) {
		s->ip4 = d->ip4;
		s->ip6 = d->ip6;
	}
	if (!s->labels.n)
		r = labels_copy(&d->labels, &s->labels);
	if (!r && !s->user && d->user) {
		s->user = strdup(d->user);
		r = s->user ? 0 : -ENOMEM;
	}
	if (!r && !s->directory && d->directory) {
		s->directory = strdup(d->directory);
		r = s->directory ? 0 : -ENOMEM;
	}
	/* the command line's come last: they win */
	if (!r && d->env.n) {
		struct strv env = {0};

		r = strv_copy(&d->env, &env);
		for (size_t i = 0; !r && i < s->env.n; i++)
			r = strv_add(&env, s->env.v[i]);
		strv_free(&s->env);
		s->env = env;
	}
	if (!s->wait_ms)
		s->wait_ms = d->wait_ms;
	if (s->net == NET_PRIVATE)
		s->net = d->net;
	if (s->egress.mode == EGRESS_DEFAULT && !r) {
		egress_free(&s->egress);
		r = egress_copy(&d->egress, &s->egress);
	}
	if (s->splice == SPLICE_AUTO)
		s->splice = d->splice;
	s->splice_emulation |= d->splice_emulation;
	r = r ? r : take_limits(s, d);
	if (!r && !s->expose.n)
		r = expose_list_copy(&d->expose, &s->expose);
	return r ? error_set(e, r, "out of memory") : 0;
}

/* A name made from the command is the app's alone: two runs of curl are no service. */
static int make_name(struct agent *a, struct app_spec *s)
{
	char base[64], name[80];

	launch_default_name(s, base, sizeof(base));
	base[56] = 0; /* room for a number within the 63 characters of a label */
	snprintf(name, sizeof(name), "%s", base);
	for (unsigned i = 2; name_find(a, name); i++)
		snprintf(name, sizeof(name), "%s-%u", base, i);
	s->name = strdup(name);
	return s->name ? 0 : -ENOMEM;
}

static int check_service_name(struct agent *a, const char *name, struct error *e)
{
	struct service *s = service_by_name(a, name);

	if (!s || !s->conf)
		return 0;
	return error_set(e, -EADDRINUSE,
			 "the config declares a service named %s: give the app another --name and "
			 "let the service choose it as a backend",
			 name);
}

/* Apps that have ended, which the kernel tells of a little later (at most once in 10 ms each). */
static void notice_ended(struct agent *a)
{
	struct app *next;

	for (struct app *app = a->apps; app; app = next) {
		next = app->next;
		app_check(a, app);
	}
}

/* An app that has ended, but whose end was not heard of yet, or that TCP still sends for, holds
 * neither name, address nor port: the next `ax run` of a script gets them. (Declared ones, too: it
 * comes after take_declared().) */
static void settle(struct agent *a, const struct app_spec *s)
{
	const struct ax_addr *asked[] = {&s->ip4, &s->ip6};
	struct name *n;

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct vip *v = addr_is_zero(asked[i]) ? NULL : vip_find(a, asked[i]);

		if (v && v->app && v->app->state != APP_ENDED)
			app_check(a, v->app);
		app_release_addr(a, asked[i]);
	}
	n = s->name ? name_find(a, s->name) : NULL;
	if (n && n->app)
		app_check(a, n->app);
	if (ingress_is_taken(a, &s->expose))
		notice_ended(a);
}

/* What is shared with another app is one thing, what is asked for besides another. */
static int check_not_local(struct agent *a, const struct ax_addr *const asked[2], struct error *e)
{
	char text[ADDR_STRLEN];

	for (size_t i = 0; i < 2; i++) {
		bool local = false;
		int r;

		if (addr_is_zero(asked[i]) || vip_find(a, asked[i]))
			continue;
		r = nl_addr_is_local(a->nl, asked[i], &local);
		if (r)
			return error_set(e, r,
					 "the kernel does not say whether %s is an address of this "
					 "machine already: %s",
					 addr_format(asked[i], text), strerror(-r));
		if (local)
			return error_set(e, -EADDRINUSE,
					 "%s is an address of this machine already: its own "
					 "services would be cut off",
					 addr_format(asked[i], text));
	}
	return 0;
}

/* The app (or service of apps) whose address or name the new app shares, if any. */
static int find_partner(struct agent *a, const struct app *app, struct service **svc,
			struct app **owner, struct error *e)
{
	const struct ax_addr *asked[] = {&app->spec.ip4, &app->spec.ip6};
	char text[ADDR_STRLEN];
	struct name *n;
	int r;

	*svc = NULL;
	*owner = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct vip *v = addr_is_zero(asked[i]) ? NULL : vip_find(a, asked[i]);

		if (!v)
			continue;
		if (v->host || (v->service && v->service->conf))
			return error_set(e, -EADDRINUSE, "the address %s belongs to %s",
					 addr_format(asked[i], text),
					 v->host ? "the agent" : v->service->name);
		if (v->declared && !streq(v->declared->conf->spec.name, app->spec.name))
			return error_set(e, -EADDRINUSE,
					 "the config gives the address %s to the app %s",
					 addr_format(asked[i], text), v->declared->conf->spec.name);
		if ((*svc && v->service != *svc) || (*owner && v->app != *owner))
			return error_set(e, -EADDRINUSE,
					 "the two addresses belong to different apps: give one "
					 "app's, or two that are free");
		if (v->service)
			*svc = v->service;
		else if (v->app)
			*owner = v->app;
	}
	r = check_not_local(a, asked, e);
	if (r || *svc || *owner)
		return r;
	n = name_find(a, app->spec.name);
	if (n && n->service)
		*svc = n->service;
	else if (n && n->app)
		*owner = n->app->service ? NULL : n->app;
	if (n && n->app && n->app->service && !n->service)
		*svc = n->app->service;
	return 0;
}

static int take_from_pool(struct agent *a, struct app *app, struct pool *p, struct ax_addr *addr,
			  const char *family, struct error *e)
{
	int r;

	if (!p->size)
		return 0;
	r = squat_take_free(a, app, p, addr);
	if (r) {
		notice_ended(a);
		r = squat_take_free(a, app, p, addr);
	}
	if (r && p->shut && p->n_shut == p->size)
		return error_set(
			e, r,
			"this node has no block of the cluster's pool yet: see 'ax status', "
			"or give an address with --ip");
	if (r)
		return error_set(e, r,
				 "the %s pool has no address left: end some apps, give one with "
				 "--ip, or configure a larger agent.pool",
				 family);
	return 0;
}

static int choose_addresses(struct agent *a, struct app *app, const struct service *svc,
			    struct error *e)
{
	const struct declared *d = declared_find(a, app->spec.name);
	bool shared4 = svc && !addr_is_zero(&svc->vip4) && addr_eq(&svc->vip4, &app->spec.ip4);
	bool shared6 = svc && !addr_is_zero(&svc->vip6) && addr_eq(&svc->vip6, &app->spec.ip6);
	bool declared;
	int r = 0;

	app->vip4 = shared4 ? (struct ax_addr){0} : app->spec.ip4;
	app->vip6 = shared6 ? (struct ax_addr){0} : app->spec.ip6;
	squat_warn(app, &app->vip4);
	squat_warn(app, &app->vip6);
	declared = addr_is_zero(&app->spec.ip4) && addr_is_zero(&app->spec.ip6) && d && !svc &&
		   (!addr_is_zero(&d->ip4) || !addr_is_zero(&d->ip6));
	if (declared) {
		app->vip4 = d->ip4; /* the one that its name already resolves to */
		app->vip6 = d->ip6;
	}
	squat_end_last(app, &app->vip4);
	squat_end_last(app, &app->vip6);
	if (declared)
		return 0;
	if (addr_is_zero(&app->vip4) && (shared4 || addr_is_zero(&app->spec.ip6)))
		r = take_from_pool(a, app, &a->pool4, &app->vip4, "IPv4", e);
	if (!r && addr_is_zero(&app->vip6) && (shared6 || addr_is_zero(&app->spec.ip4)))
		r = take_from_pool(a, app, &a->pool6, &app->vip6, "IPv6", e);
	if (!r && !addr_is_zero(&app->vip6) && !a->has_ipv6)
		r = error_set(e, -EAFNOSUPPORT,
			      "this machine has IPv6 switched off: give an IPv4 address");
	if (!r && addr_is_zero(&app->vip4) && addr_is_zero(&app->vip6))
		r = error_set(e, -EADDRNOTAVAIL, "there is no address for %s: give one with --ip",
			      app->spec.name);
	return r;
}

static int make_cgroup(struct agent *a, struct app *app, struct error *e)
{
	const struct cgroup_limits limits = {
		.memory = app->spec.memory, .cpus = app->spec.cpus, .pids = app->spec.pids};
	int r = 0;

	if (asprintf(&app->cgroup, "%s/%s-%u", a->cgroup, app->spec.name, app->id) < 0) {
		app->cgroup = NULL;
		return error_set(e, -ENOMEM, "out of memory");
	}
	if (mkdir(app->cgroup, 0755) < 0)
		r = -errno;
	if (!r)
		r = cgroup_id(app->cgroup, &app->cgroup_id);
	if (!r)
		r = app_save(app);
	if (r)
		return error_set(e, r, "cannot make the cgroup %s: %s", app->cgroup, strerror(-r));
	return cgroup_limit(a->cgroup, app->cgroup, &limits, e);
}

static int prepare(struct agent *a, struct app *app, struct service **svc, struct error *e)
{
	struct app_spec *s = &app->spec;
	struct app *owner = NULL;
	const struct declared *d;
	int r;

	if (!s->name)
		r = make_name(a, s) ? error_set(e, -ENOMEM, "out of memory") : 0;
	else
		r = check_service_name(a, s->name, e);
	d = r ? NULL : declared_find(a, s->name);
	if (d)
		r = take_declared(s, &d->conf->spec, app->config_key != NULL, e);
	if (!r && !s->labels.n)
		r = labels_copy(&a->config.default_labels, &s->labels);
	settle(a, s);
	r = r ? r : find_partner(a, app, svc, &owner, e);
	if (!r && owner)
		r = service_of_app(a, owner, svc, e);
	return r;
}

/* What is no address of this machine gets no answers. */
static int check_source(struct agent *a, const struct app_spec *s, struct error *e)
{
	const struct ax_addr *given[] = {&s->egress.source4, &s->egress.source6};
	char text[ADDR_STRLEN];

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		bool local = false;
		int r;

		if (addr_is_zero(given[i]))
			continue;
		r = nl_addr_is_local(a->nl, given[i], &local);
		if (r)
			return error_set(e, r,
					 "the kernel does not say whether %s is an address of this "
					 "machine: %s",
					 addr_format(given[i], text), strerror(-r));
		if (!local || vip_find(a, given[i]))
			return error_set(e, -EADDRNOTAVAIL,
					 "the outside cannot see %s as %s, which is no address of "
					 "this machine's own",
					 s->name, addr_format(given[i], text));
	}
	return 0;
}

int app_register(struct agent *a, struct app_spec *spec, const char *config_key, struct app **ret,
		 struct error *e)
{
	struct app *app = app_new();
	struct service *svc = NULL;
	struct policy_who who;
	int r;

	if (!app)
		return error_set(e, -ENOMEM, "out of memory");
	app->spec = *spec;
	memset(spec, 0, sizeof(*spec));
	app->since_boot = time_boot_s();
	app->config_key = config_key ? strdup(config_key) : NULL;
	r = prepare(a, app, &svc, e);
	r = r ? r : check_source(a, &app->spec, e);
	if (r) {
		app_free(app);
		return r;
	}
	app->restarts = spawn_restarts(a, app->config_key, app->spec.name);
	app->id = app_next_id(a);
	if (svc)
		service_join(a, svc, app);
	who = app_who(app);
	r = party_ref(a, &app->spec.labels, &who, &app->party, e);
	app_link(a, app);
	r = r ? r : choose_addresses(a, app, svc, e);
	r = r ? r : party_of_address(a, app, e);
	in_force_note(a, app);
	r = r ? r : make_cgroup(a, app, e);
	r = r ? r : app_publish(a, app, e);
	if (r) {
		app->no_restart = true;
		app_remove(a, app);
		return r;
	}
	if (svc && svc->members == 2)
		app_tell(a, app);
	*ret = app;
	return 0;
}
