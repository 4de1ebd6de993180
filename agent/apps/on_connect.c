/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dataplane holds back who connects to an app that does not run, and tells (AX_VIP_TELL). An
 * app that nobody uses is first closed: new connections wait from then on. Only when there is
 * none that came just before, it is ended; who waits by then has it started again.
 */
#include <linux/bpf.h>

#include "apps/on_connect.h"
#include "app.h"
#include "apps/apps.h"
#include "apps/door.h"
#include "apps/held.h"
#include "apps/spawn.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "ingress/ingress.h"
#include "net/sock_diag.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"

#define NS_PER_MS 1000000ull

#define STOP_MS	    10000
#define CLOSED_MS   50 /* for what was on its way when it was closed */
#define LOOK_MIN_MS 20
#define LOOK_MAX_MS 10000
#define RETRY_MS    1000 /* doubling */
#define RETRY_TIMES 5
#define GOOD_S	    10 /* one that ran so long was no failure */

static struct declared *declared_of(struct agent *a, const char *key)
{
	const struct config_app *c = key ? declared_key(a, key) : NULL;
	struct declared *d = c && c->on_connect ? declared_find(a, c->spec.name) : NULL;

	return d && d->conf == c ? d : NULL;
}

static void tell(struct agent *a, const struct declared *d)
{
	vip_resync(a, &d->ip4, NULL);
	vip_resync(a, &d->ip6, NULL);
}

/* What an app exposes that does not run is exposed all the same: connections there start it. One
 * that runs has its ports itself. */
static int expose(struct agent *a, struct declared *d, struct error *e)
{
	bool waits = d->conf->on_connect && d->party != AX_PARTY_NONE;
	int r = 0;

	if (!d->conf->spec.expose.n)
		return 0;
	if (!waits)
		ingress_declared_gone(a, d);
	else if (!app_by_name(a, d->conf->spec.name))
		r = ingress_declared(a, d, e);
	d->unexposed = r || (addr_is_zero(&d->ip4) && addr_is_zero(&d->ip6));
	return r;
}

void on_connect_wanted(struct agent *a, const struct ax_addr *addr)
{
	struct vip *v = vip_find(a, addr);
	struct declared *d = v ? v->declared : NULL;
	struct app *app = v && v->app && v->app->state != APP_ENDED ? v->app : NULL;

	if (!d || !d->conf->on_connect || d->retry_at_ns)
		return;
	if (!app)
		app = app_of_config(a, d->conf->key);
	if (app) { /* it has to be gone before another one can be there */
		if (app->state == APP_STOPPING)
			app->replaced = true;
		return;
	}
	if (spawn_pending(a, d->conf->key))
		return;
	log_msg(d->failures ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
		"the app %s is started by a connection", d->conf->spec.name);
	declared_start(a, d->conf->key);
}

void on_connect_knocked(struct agent *a, const struct ax_addr *addr)
{
	door_open(a); /* (it is looked at) */
	on_connect_wanted(a, addr);
}

bool on_connect_is_failing(struct agent *a, const char *key)
{
	const struct declared *d = declared_of(a, key);

	return d && d->failures;
}

void on_connect_failed(struct agent *a, const char *key)
{
	struct declared *d = declared_of(a, key);
	unsigned delay;

	if (!d)
		return;
	delay = RETRY_MS << (d->failures < RETRY_TIMES ? d->failures : RETRY_TIMES);
	d->failures++;
	d->retry_at_ns = time_mono_ns() + delay * NS_PER_MS;
	a->timers_stale = true;
	if (d->failures == 1)
		log_error("the app %s does not start: connections to it are refused for %u s, and "
			  "longer each time; only this once is it said",
			  d->conf->spec.name, delay / 1000);
	tell(a, d);
	held_soon(a);
}

/* Whether connections to it are counted (sock_ops.bpf.c), however short they are. Not by a
 * service's address from outside ax, nor by ports that only one interface has. */
static bool all_are_seen(struct agent *a, const struct app *app)
{
	const struct expose_list *l = &app->spec.expose;

	for (size_t i = 0; app->spec.net == NET_HOST && i < l->n; i++)
		if (*l->v[i].device)
			return false;
	return app->spec.net != NET_HOST || !service_affects(a, app);
}

/* It ended by itself, soon, and without having served anybody. */
static bool came_to_nothing(struct agent *a, const struct app *app)
{
	uint64_t accepts = 0;

	if (app->no_restart || app->replaced || time_boot_s() - app->since_boot >= GOOD_S)
		return false;
	return app->exit_status || (all_are_seen(a, app) &&
				    datapath_accepts(a->dp, app->id, &accepts) == 0 && !accepts);
}

/* Else the end of its launch tells that it has failed (spawn_failed()). */
static bool was_launched(const struct app *app)
{
	return app->pid > 0;
}

void on_connect_gone(struct agent *a, const struct app *app)
{
	struct declared *d = declared_of(a, app->config_key);
	struct declared *of_name = declared_find(a, app->spec.name);
	bool was_unexposed = of_name && of_name->unexposed;
	struct error e;

	if (of_name && expose(a, of_name, &e) && !was_unexposed)
		log_warn("connections to the ports of the app %s do not start it: %s",
			 app->spec.name, e.text);
	if (d && was_launched(app) && came_to_nothing(a, app)) {
		on_connect_failed(a, app->config_key);
	} else if (d) {
		if (was_launched(app))
			d->failures = 0;
		tell(a, d); /* it may linger at its address */
		held_soon(a);
	}
	if (d || app->use.look_at_ns)
		datapath_accepts_drop(a->dp, app->id);
}

/* --- in use or not --- */

struct in_use {
	struct datapath *dp;
	const struct app *app;
};

/* What the app has not closed yet. (What it has may be with the kernel for minutes, when the client
 * is gone without a word.) */
#define TCP_STATES_OPEN (1 << BPF_TCP_ESTABLISHED | 1 << BPF_TCP_SYN_RECV | 1 << BPF_TCP_CLOSE_WAIT)

/* 1: a connection to a server of the app. */
static int is_use(void *arg, const struct ax_conn *c)
{
	const struct in_use *u = arg;
	struct ax_endpoint local = c->local;

	if (!(1 << c->state & TCP_STATES_OPEN))
		return 0;
	if (!addr_eq(&local.addr, &u->app->vip4) && !addr_eq(&local.addr, &u->app->vip6))
		return 0;
	local.proto = IPPROTO_TCP;
	return datapath_is_served(u->dp, &local);
}

/* Who comes to one in host mode by a port of the host is connected to that. */
static bool is_used_by_port(const struct app *app)
{
	const struct expose_list *l = &app->spec.expose;

	for (size_t i = 0; app->spec.net == NET_HOST && i < l->n; i++)
		if (l->v[i].proto == IPPROTO_TCP &&
		    socks_open_at(&l->v[i].addr, l->v[i].host_port) != 0)
			return true;
	return false;
}

static bool in_use(struct agent *a, const struct app *app)
{
	struct in_use u = {.dp = a->dp, .app = app};
	int netns = app->spec.net == NET_PRIVATE ? app->netns_fd : -1;

	if (is_used_by_port(app))
		return true;
	if (app->spec.net == NET_PRIVATE && netns < 0)
		return true;
	/* (an error says nothing: it stays) */
	return datapath_conns_each(a->dp, netns, is_use, &u) != 0;
}

static void set_closed(struct agent *a, struct app *app, bool closed)
{
	app->use.closed = closed;
	vip_resync(a, &app->vip4, NULL);
	vip_resync(a, &app->vip6, NULL);
	if (!closed)
		held_awaited(a);
}

static uint64_t look_interval(uint32_t idle_ms)
{
	uint32_t ms = idle_ms / 4;

	ms = ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
	return ms * NS_PER_MS;
}

/* Somebody has had it started: to one that nobody has connected to yet they may come again, as late
 * as they would be waited for (TCP tries after 1, 3, 7 and 15 s). */
static uint64_t idle_ns(const struct app_use *use, uint32_t idle_ms)
{
	if (!use->accepts && idle_ms < AX_VIP_WAIT_MS)
		idle_ms = AX_VIP_WAIT_MS;
	return idle_ms * NS_PER_MS;
}

static void look(struct agent *a, struct app *app, uint32_t idle_ms, uint64_t now)
{
	struct app_use *use = &app->use;
	uint64_t accepts = use->accepts;
	bool open = in_use(a, app), busy;

	datapath_accepts(a->dp, app->id, &accepts);
	busy = open || accepts != use->accepts;
	/* also the first look that finds it idle: when it became so is not known */
	if (busy || use->busy)
		use->busy_ns = now;
	use->accepts = accepts;
	use->busy = busy;
	use->look_at_ns = now + look_interval(idle_ms);
	if (use->closed && busy) {
		set_closed(a, app, false);
	} else if (use->closed) {
		log_info("app %s (%u) ends: nobody has connected for a while", app->spec.name,
			 app->id);
		app_stop(a, app, STOP_MS); /* it may be gone after it */
	} else if (!busy && now - use->busy_ns >= idle_ns(use, idle_ms)) {
		set_closed(a, app, true);
		use->look_at_ns = now + CLOSED_MS * NS_PER_MS;
	}
}

/* 0: it is not to end by itself */
static uint32_t idle_of(struct agent *a, const struct app *app)
{
	const struct declared *d = declared_of(a, app->config_key);

	if (!all_are_seen(a, app))
		return 0;
	return d && app->state == APP_RUNNING ? d->conf->idle_ms : 0;
}

void on_connect_started(struct agent *a, struct app *app)
{
	uint32_t idle_ms = idle_of(a, app);
	uint64_t none;

	if (!declared_of(a, app->config_key))
		return;
	datapath_accepts(a->dp, app->id, &none); /* from now on they are counted */
	if (!idle_ms && app->use.closed && app->state == APP_RUNNING)
		set_closed(a, app, false);
	app->use.look_at_ns = 0;
	if (!idle_ms)
		return;
	app->use.busy = true;
	app->use.look_at_ns = time_mono_ns();
	a->timers_stale = true;
}

void on_connect_due(struct agent *a, uint64_t now_ns)
{
	struct app *next;
	size_t n;
	const struct declared *v = declared_all(a, &n);

	for (size_t i = 0; i < n; i++) {
		struct declared *d;

		if (!v[i].retry_at_ns || v[i].retry_at_ns > now_ns)
			continue;
		d = declared_find(a, v[i].conf->spec.name);
		if (!d)
			continue;
		d->retry_at_ns = 0;
		tell(a, d);
	}
	for (struct app *app = a->apps; app; app = next) {
		uint32_t idle_ms;

		next = app->next;
		if (!app->use.look_at_ns || app->use.look_at_ns > now_ns)
			continue;
		idle_ms = idle_of(a, app);
		app->use.look_at_ns = 0;
		if (idle_ms)
			look(a, app, idle_ms, now_ns);
		else if (app->use.closed && app->state == APP_RUNNING) /* it is a service's now */
			set_closed(a, app, false);
	}
}

uint64_t on_connect_deadline(const struct agent *a)
{
	uint64_t next = 0;
	size_t n;
	const struct declared *v = declared_all(a, &n);

	for (size_t i = 0; i < n; i++)
		if (v[i].retry_at_ns && (!next || v[i].retry_at_ns < next))
			next = v[i].retry_at_ns;
	for (const struct app *app = a->apps; app; app = app->next)
		if (app->use.look_at_ns && (!next || app->use.look_at_ns < next))
			next = app->use.look_at_ns;
	return next;
}

void on_connect_update(struct agent *a, struct error *failed)
{
	size_t n;
	const struct declared *v = declared_all(a, &n);

	for (size_t i = 0; i < n; i++) {
		struct declared *d = declared_find(a, v[i].conf->spec.name);
		struct error e;

		if (v[i].conf->on_connect) /* before anybody is led to it */
			door_open(a);
		tell(a, &v[i]);
		if (d == &v[i] && expose(a, d, &e) && !failed->code)
			*failed = e;
	}
	for (struct app *app = a->apps; app; app = app->next)
		if (app->config_key)
			on_connect_started(a, app);
}

void on_connect_retry(struct agent *a)
{
	size_t n;
	const struct declared *v = declared_all(a, &n);

	for (size_t i = 0; i < n; i++) {
		struct declared *d = v[i].unexposed ? declared_find(a, v[i].conf->spec.name) : NULL;
		struct error e;

		if (d)
			expose(a, d, &e);
	}
}

void on_connect_removed(struct agent *a, struct declared *d)
{
	ingress_declared_gone(a, d);
	declared_remove(a, d);
}
