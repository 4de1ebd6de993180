/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Running apps: registered before their first process exists, undone after the last one is gone.
 * The record in the cgroup is written first and removed with it last, so that at whatever point an
 * agent dies the next one finds out what there is to undo.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "apps/apps.h"
#include "allot/pool.h"
#include "apps/anchors.h"
#include "apps/linger.h"
#include "apps/needs.h"
#include "apps/on_connect.h"
#include "apps/watch.h"
#include "base/address.h"
#include "machine/cgroup.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "ingress/ingress.h"
#include "net/netlink.h"
#include "net/sock_diag.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/events.h"
#include "registry/instance_ctl.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "registry/verdict_names.h"
#include "registry/verdicts.h"
#include "services/services.h"

static int claim(struct agent *a, struct app *app, const struct ax_addr *addr, struct error *e)
{
	char text[ADDR_STRLEN];
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	app_release_addr(a, addr);
	v = vip_get(a, addr);
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	if (v->app && v->app != app)
		return error_set(e, -EADDRINUSE, "the app %s has the address %s", v->app->spec.name,
				 addr_format(addr, text));
	v->app = app;
	pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, true);
	return vip_sync(a, v, e);
}

/* Tells the kernel and the others of an app that is linked in. */
int app_publish(struct agent *a, struct app *app, struct error *e)
{
	int r = claim(a, app, &app->vip4, e);

	r = r ? r : claim(a, app, &app->vip6, e);
	if (!r)
		anchor_take(a, app);
	if (!r) {
		r = app_tell(a, app);
		if (r)
			error_set(e, r, "the kernel refuses the app: %s", strerror(-r));
	}
	r = r ? r : services_sync(a, app, e);
	if (!r && app->spec.net == NET_HOST)
		r = needs_way(a, app, e);
	if (!r && app->spec.wait_ms) {
		r = needs_hold(a);
		if (r)
			error_set(e, r, "this kernel cannot hold connections back (--wait): %s",
				  strerror(-r));
	}
	return r ? r : ingress_app(a, app, e);
}

/* --- network of a private app --- */

/* A namespace of its own: not the host's, not another app's. */
static int check_netns(struct agent *a, struct app *app)
{
	uint64_t cookie = app->netns_cookie;

	if (cookie != a->netns_cookie) {
		const struct app *x = a->apps;

		while (x && (x == app || x->netns_cookie != cookie))
			x = x->next;
		if (!x)
			return 0;
	}
	app->netns_cookie = 0; /* not ours to forget */
	return -EEXIST;
}

int app_attach(struct agent *a, struct app *app, int netns_fd, struct error *e)
{
	struct ax_netns_app na = {.id = app->id, .vip4 = app->vip4, .vip6 = app->vip6};
	char device[16];
	uint8_t mac[6];
	int r;

	if (app->spec.net != NET_PRIVATE || app->ifindex)
		return error_set(e, -EINVAL, "the app %s has its network already", app->spec.name);
	snprintf(device, sizeof(device), "%s%u", a->inst->device_prefix, app->id);
	agent_mac(a, mac);
	r = netns_cookie(netns_fd, &app->netns_cookie);
	if (!r)
		r = check_netns(a, app);
	if (!r)
		r = datapath_netns_set(a->dp, app->netns_cookie, &na);
	if (!r)
		r = nl_link_add_veth(a->nl, device, "eth0", netns_fd, mac, 0, &app->ifindex);
	/* the source check stands before the app has a way to send */
	if (!r)
		r = datapath_fabric_attach(a->dp, a->nl, app->ifindex);
	if (!r)
		r = netns_configure(netns_fd, "eth0", &app->vip4, &app->vip6);
	/* or the host end would lose the first packets */
	if (!r)
		r = nl_link_wait_up(a->nl, app->ifindex, 1000);
	if (r)
		return error_set(e, r, "cannot connect the network of %s: %s", app->spec.name,
				 strerror(-r));
	app->netns_fd = fcntl(netns_fd, F_DUPFD_CLOEXEC, 3); /* see is_sending() */
	ingress_device(a, app);
	r = vip_resync(a, &app->vip4, e);
	r = r ? r : vip_resync(a, &app->vip6, e);
	r = r ? r : services_route(a, app, e);
	r = r ? r : needs_way(a, app, e);
	return r;
}

/* --- life --- */

int app_started(struct agent *a, struct app *app, int pid, int launcher_pid, struct error *e)
{
	app->pid = pid;
	if (app->state == APP_STARTING) /* it may have been stopped already */
		app->state = APP_RUNNING;
	app->launcher_pid = launcher_pid;
	app_save(app);
	on_connect_started(a, app);
	events_app(a, "launch", app);
	return app_watch(a, app, e);
}

void app_stop(struct agent *a, struct app *app, uint32_t timeout_ms)
{
	app->no_restart = true;
	if (app->state != APP_STOPPING) {
		app->state = APP_STOPPING;
		app_save(app);
		vip_resync(a, &app->vip4, NULL);
		vip_resync(a, &app->vip6, NULL);
		services_sync(a, app, NULL); /* no new connections */
		a->hooks.servers(a);
	}
	app->kill_at_ns = time_mono_ns() + (uint64_t)timeout_ms * 1000000;
	cgroup_signal(app->cgroup, SIGTERM);
	cgroup_signal(app->cgroup, SIGCONT); /* a stopped process cannot end */
	a->timers_stale = true;
	app_check(a, app);
}

static void finish(struct agent *a, struct app *app)
{
	events_ending(a, app);
	events_app(a, "exit", app);
	app_remove(a, app);
	verdicts_sweep(a);
}

/* What the supervisor wrote before it told, or before it could tell nobody. */
static void read_exit(struct app *app)
{
	autofree char *text = NULL;

	if (app->exit_status < 0 && cgroup_record_get(app->cgroup, "exit", &text) == 0)
		app->exit_status = atoi(text);
}

void app_check(struct agent *a, struct app *app)
{
	int populated;

	if (app->state == APP_STARTING)
		return; /* its first process is still to come; the client's end undoes it */
	if (app->entering)
		return; /* the same of another one */
	populated = cgroup_populated(app->cgroup);
	if (populated > 0)
		return;
	app->empty = true;
	read_exit(app);
	/* the supervisor tells the exit status, and is gone right after */
	if (app->launcher.fd < 0 || app->exit_status >= 0)
		finish(a, app);
}

void app_exited(struct agent *a, struct app *app, int status)
{
	app->exit_status = status;
	if (app->empty)
		finish(a, app);
}

/* UDP sockets that are connected to the app through a service have another backend to go to. */
static void end_stuck(struct agent *a, const struct app *app)
{
	const struct ax_addr *both[] = {&app->vip4, &app->vip6};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		if (addr_is_zero(both[i]))
			continue;
		if (socks_end_udp(-1, both[i]) == -EOPNOTSUPP)
			return;
		for (const struct app *x = a->apps; x; x = x->next) {
			autoclose int fd = x->spec.net == NET_PRIVATE ? app_netns(x) : -1;

			if (fd >= 0)
				socks_end_udp(fd, both[i]);
		}
	}
}

void app_remove(struct agent *a, struct app *app)
{
	bool serves = service_affects(a, app), lingers = app_has_to_linger(a, app);
	int r;

	verdict_names_note(a, NULL, 0);
	app_unlink(a, app);
	app->state = APP_ENDED;
	if (lingers) /* before its services lose it, and with it their way to it */
		app_linger(a, app);
	services_sync(a, app, NULL);
	service_leave(a, app);
	if (app->cgroup_id)
		datapath_app_del(a->dp, app->cgroup_id);
	datapath_source_set(a->dp, app->id, &(struct ax_source){.v4 = {.w = {0}}});
	if (app->spec.wait_ms)
		needs_hold(a);
	if (app_is_confined(app))
		needs_straight(a);
	app_unwatch(a, app);
	loop_del(a->epoll, &app->launcher);
	r = app->cgroup ? cgroup_remove(app->cgroup) : 0;
	if (r)
		log_warn("cannot remove the cgroup %s: %s", app->cgroup, strerror(-r));
	if (serves)
		end_stuck(a, app);
	a->hooks.app_gone(a, app);
	if (!lingers)
		app_release(a, app);
}

void apps_due(struct agent *a, uint64_t now_ns)
{
	for (struct app *app = a->apps; app; app = app->next) {
		if (!app->kill_at_ns || app->kill_at_ns > now_ns)
			continue;
		app->kill_at_ns = 0;
		log_warn("app %s (%u) does not end by itself and is killed", app->spec.name,
			 app->id);
		cgroup_signal(app->cgroup, SIGKILL);
	}
}

uint64_t apps_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (const struct app *app = a->apps; app; app = app->next)
		if (app->kill_at_ns && (!next || app->kill_at_ns < next))
			next = app->kill_at_ns;
	return next;
}
