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

#include "daemon/agent_priv.h"
#include "base/cgroup.h"
#include "control/control.h"
#include "launch/launch.h"
#include "base/log.h"
#include "net/sock_diag.h"

const char *app_state_name(enum app_state s)
{
	static const char *const names[] = {"starting", "running", "stopping", "ended"};

	return names[s];
}

struct app *app_by_id(struct agent *a, uint32_t id)
{
	struct app *app = a->by_id[id % APP_BUCKETS];

	while (app && app->id != id)
		app = app->id_next;
	return app;
}

struct app *app_by_name(struct agent *a, const char *name)
{
	struct name *n = name_find(a, name);

	return n ? n->app : NULL;
}

struct app *app_by_watch(struct agent *a, int watch)
{
	struct app *app = a->by_watch[(unsigned)watch % APP_BUCKETS];

	while (app && app->watch != watch)
		app = app->watch_next;
	return app;
}

static void forget_watch(struct agent *a, struct app *app)
{
	struct app **p = &a->by_watch[(unsigned)app->watch % APP_BUCKETS];

	if (app->watch < 0)
		return;
	while (*p && *p != app)
		p = &(*p)->watch_next;
	if (*p)
		*p = app->watch_next;
	inotify_rm_watch(a->inotify.fd, app->watch);
	app->watch = -1;
}

void app_free(struct app *app)
{
	app_spec_free(&app->spec);
	free(app->config_key);
	free(app->cgroup);
	close_fd(&app->launcher.fd);
	close_fd(&app->netns_fd);
	free(app);
}

/* --- the record --- */

static json_t *record_of(const struct app *app, bool cut)
{
	json_t *spec = control_spec_to_json(&app->spec);
	json_t *j = json_pack("{si si so si si sI sI si si sb}", "id", (int)app->id, "state",
			      (int)app->state, "spec", spec, "pid", app->pid, "launcher",
			      app->launcher_pid, "since", (json_int_t)app->since, "netns",
			      (json_int_t)app->netns_cookie, "restarts", (int)app->restarts,
			      "anchor", (int)app->anchor, "cut", cut);

	if (!j)
		return NULL;
	if (cut) {
		json_object_set_new(spec, "env", json_array());
		json_object_set_new(spec, "command",
				    json_pack("[ss]", app->spec.command.v[0], "..."));
		json_object_set_new(spec, "restart", json_string("no"));
	}
	json_object_set_new(j, "ip4", json_addr(&app->vip4));
	json_object_set_new(j, "ip6", json_addr(&app->vip6));
	if (app->config_key)
		json_object_set_new(j, "config", json_string(app->config_key));
	if (app->service)
		json_object_set_new(j, "service",
				    json_pack("{ss so so}", "name", app->service->name, "ip4",
					      json_addr(&app->service->vip4), "ip6",
					      json_addr(&app->service->vip6)));
	return j;
}

static int save_record(const struct app *app, bool cut)
{
	json_t *j = record_of(app, cut);
	autofree char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return text ? cgroup_record_set(app->cgroup, "app", text) : -ENOMEM;
}

/*
 * An extended attribute holds 64 KiB: of an app with a longer command line or environment the
 * record keeps the program's name alone, and a later agent does not start it again.
 */
int app_save(const struct app *app)
{
	int r = app->cgroup ? save_record(app, false) : -ENOENT;

	if ((r == -E2BIG || r == -ENOSPC || r == -ERANGE) && app->spec.command.n)
		r = save_record(app, true);
	return r;
}

/* --- tables --- */

int app_tell(struct agent *a, struct app *app)
{
	struct ax_app v = {.id = app->id,
			   .flags = (app->spec.net == NET_HOST ? AX_APP_HOST : 0) |
				    (app->spec.egress ? AX_APP_EGRESS : 0),
			   .vip4 = app->vip4,
			   .vip6 = app->vip6,
			   .wait_ms = app->spec.wait_ms,
			   .anchor = app->anchor,
			   .party = app->party};

	if (app->service && !addr_eq(&app->service->vip4, &app->vip4))
		v.shared4 = app->service->vip4;
	if (app->service && !addr_eq(&app->service->vip6, &app->vip6))
		v.shared6 = app->service->vip6;
	return datapath_app_set(a->dp, app->cgroup_id, &v);
}

int agent_update_hold(struct agent *a)
{
	bool want = false;
	int r;

	for (struct app *app = a->apps; app && !want; app = app->next)
		want = app->spec.wait_ms != 0;
	for (size_t i = 0; i < a->config.n_services && !want; i++)
		want = a->config.services[i].wait_ms != 0;
	if (want == a->holding)
		return 0;
	r = datapath_hold(a->dp, want);
	if (!r)
		a->holding = want;
	return r;
}

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

/* The pool has an address back when nobody is left who goes by it. */
static void unclaim(struct agent *a, struct app *app, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	if (addr_is_zero(addr) || (v && v->app && v->app != app))
		return;
	if (!v || (!v->service && !v->declared))
		pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, false);
	if (!v)
		return;
	v->app = NULL;
	vip_sync(a, v, NULL);
}

/* --- lists --- */

void app_link(struct agent *a, struct app *app)
{
	struct app **p = &a->apps;
	struct name *n = name_get(a, app->spec.name);

	while (*p && (*p)->id < app->id)
		p = &(*p)->next;
	app->next = *p;
	*p = app;
	a->n_apps++;
	app->id_next = a->by_id[app->id % APP_BUCKETS];
	a->by_id[app->id % APP_BUCKETS] = app;
	if (n && (!n->app || n->app->id > app->id))
		n->app = app;
}

static void unlink_app(struct agent *a, struct app *app)
{
	struct name *n = name_find(a, app->spec.name);
	struct app **p = &a->apps;

	while (*p && *p != app)
		p = &(*p)->next;
	if (!*p)
		return;
	*p = app->next;
	a->n_apps--;
	p = &a->by_id[app->id % APP_BUCKETS];
	while (*p != app)
		p = &(*p)->id_next;
	*p = app->id_next;
	if (!n || n->app != app)
		return;
	n->app = NULL;
	for (struct app *x = a->apps; x && !n->app; x = x->next)
		if (streq(x->spec.name, n->text))
			n->app = x;
	name_put(a, n);
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
	if (!r && app->spec.egress && app->spec.net == NET_HOST)
		r = agent_update_egress(a, e);
	if (!r && app->spec.wait_ms) {
		r = agent_update_hold(a);
		if (r)
			error_set(e, r, "this kernel cannot hold connections back (--wait): %s",
				  strerror(-r));
	}
	return r;
}

/* --- network of a private app --- */

/* One address for all, at both ends of every pair: nobody needs a neighbour entry. */
void agent_mac(const struct agent *a, uint8_t ret[6])
{
	uint32_t m = a->inst->route_metric;

	ret[0] = 0x02; /* locally administered */
	ret[1] = 'a';
	ret[2] = 'x';
	ret[3] = (uint8_t)(m >> 16);
	ret[4] = (uint8_t)(m >> 8);
	ret[5] = (uint8_t)m;
}

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
		r = datapath_fabric_attach(a->dp, app->ifindex);
	if (!r)
		r = netns_configure(netns_fd, "eth0", &app->vip4, &app->vip6);
	/* or the host end would lose the first packets */
	if (!r)
		r = nl_link_wait_up(a->nl, app->ifindex, 1000);
	if (r)
		return error_set(e, r, "cannot connect the network of %s: %s", app->spec.name,
				 strerror(-r));
	app->netns_fd = fcntl(netns_fd, F_DUPFD_CLOEXEC, 3); /* see is_sending() */
	r = vip_resync(a, &app->vip4, e);
	r = r ? r : vip_resync(a, &app->vip6, e);
	r = r ? r : services_route(a, app, e);
	if (!r && app->spec.egress)
		r = agent_update_egress(a, e);
	return r;
}

/* --- life --- */

static void watch_launcher(struct agent *a, struct app *app)
{
	app->launcher.fd = pidfd_open(app->launcher_pid, 0);
	if (app->launcher.fd >= 0)
		loop_add(a->epoll, &app->launcher, EPOLLIN);
}

/* Its cgroup's events, and the process that tells a detached app's exit status. */
int app_watch(struct agent *a, struct app *app, struct error *e)
{
	char events[4200];

	snprintf(events, sizeof(events), "%s/cgroup.events", app->cgroup);
	app->watch = inotify_add_watch(a->inotify.fd, events, IN_MODIFY);
	if (app->watch < 0)
		return error_set(e, -errno,
				 "cannot watch %s: %s (is fs.inotify.max_user_watches reached?)",
				 events, strerror(errno));
	app->watch_next = a->by_watch[(unsigned)app->watch % APP_BUCKETS];
	a->by_watch[(unsigned)app->watch % APP_BUCKETS] = app;
	if (app->spec.detach && app->launcher.fd < 0)
		watch_launcher(a, app);
	return 0;
}

int app_started(struct agent *a, struct app *app, int pid, int launcher_pid, struct error *e)
{
	app->pid = pid;
	if (app->state == APP_STARTING) /* it may have been stopped already */
		app->state = APP_RUNNING;
	app->launcher_pid = launcher_pid;
	app_save(app);
	events_app(a, "launch", app);
	return app_watch(a, app, e);
}

void app_stop(struct agent *a, struct app *app, uint32_t timeout_ms)
{
	app->no_restart = true;
	if (app->state != APP_STOPPING) {
		app->state = APP_STOPPING;
		app_save(app);
		services_sync(a, app, NULL); /* no new connections */
	}
	app->kill_at_ns = time_mono_ns() + (uint64_t)timeout_ms * 1000000;
	cgroup_signal(app->cgroup, SIGTERM);
	cgroup_signal(app->cgroup, SIGCONT); /* a stopped process cannot end */
	agent_timers(a);
	app_check(a, app);
}

static bool wants_restart(const struct app *app)
{
	if (app->no_restart || !app->spec.detach || app->spec.restart == RESTART_NO)
		return false;
	return app->spec.restart == RESTART_ALWAYS || app->exit_status != 0;
}

#define RESTART_FIRST_MS 200
#define RESTART_MAX_MS	 30000
#define RESTART_GOOD_S	 10 /* one that ran so long starts afresh */

static void restart(struct agent *a, struct app *app)
{
	uint32_t n = time(NULL) - app->since >= RESTART_GOOD_S ? 0 : app->restarts;
	uint32_t delay = RESTART_FIRST_MS;

	for (uint32_t i = 0; i < n && delay < RESTART_MAX_MS; i++)
		delay *= 2;
	log_info("app %s (%u) ended with status %d, starting it again in %u ms", app->spec.name,
		 app->id, app->exit_status, delay);
	spawn_app(a, &app->spec, app->config_key, n + 1,
		  delay < RESTART_MAX_MS ? delay : RESTART_MAX_MS);
}

static void finish(struct agent *a, struct app *app)
{
	autofree char *key = app->replaced && app->config_key ? strdup(app->config_key) : NULL;
	events_on_ring(a); /* what it did, while its name is known */
	events_app(a, "exit", app);
	if (wants_restart(app))
		restart(a, app);
	app_remove(a, app);
	if (key)
		declared_start(a, key);
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

int app_netns(const struct app *app)
{
	int fd, pid = cgroup_first_pid(app->cgroup);
	char path[64];

	if (pid <= 0)
		return pid ? pid : -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void app_release(struct agent *a, struct app *app)
{
	struct app **p = &a->lingering;

	while (*p && *p != app)
		p = &(*p)->next;
	if (*p)
		*p = app->next;
	services_route(a, app, NULL);
	anchor_release(a, app);
	unclaim(a, app, &app->vip4);
	unclaim(a, app, &app->vip6);
	close_fd(&app->netns_fd);
	if (app->ifindex)
		doom_device(a, app->ifindex);
	if (app->netns_cookie)
		datapath_netns_del(a->dp, app->netns_cookie);
	if (app->spec.egress)
		agent_update_egress(a, NULL);
	if (app->has_labels)
		policy_unref(&a->policy, &app->spec.labels);
	app_free(app);
	if (a->undeclared)
		services_retry(a);
}

void app_release_addr(struct agent *a, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	if (v && v->app && v->app->state == APP_ENDED)
		app_release(a, v->app);
}

#define LINGER_S	60
#define LINGER_CHECK_MS 50

/* TCP goes on sending after close() and exit(), for which it needs the address and the way. */
static bool is_sending(const struct app *app)
{
	return socks_sending(app->netns_fd, &app->vip4) > 0 ||
	       socks_sending(app->netns_fd, &app->vip6) > 0;
}

void app_linger(struct agent *a, uint64_t now_ns)
{
	struct app *next;

	for (struct app *app = a->lingering; app; app = next) {
		next = app->next;
		if (app->linger_check_ns > now_ns)
			continue;
		if (now_ns >= app->linger_until_ns || !is_sending(app))
			app_release(a, app);
		else
			app->linger_check_ns = now_ns + LINGER_CHECK_MS * 1000000ull;
	}
}

static void linger(struct agent *a, struct app *app)
{
	uint64_t now = time_mono_ns();

	app->linger_until_ns = now + LINGER_S * 1000000000ull;
	app->linger_check_ns = now + LINGER_CHECK_MS * 1000000ull;
	app->next = a->lingering;
	a->lingering = app;
	agent_timers(a);
}

static bool is_shared(struct agent *a, const struct app *app)
{
	struct vip *v4 = vip_find(a, &app->vip4), *v6 = vip_find(a, &app->vip6);

	return (v4 && v4->service) || (v6 && v6->service);
}

static bool has_to_linger(struct agent *a, const struct app *app)
{
	if (app->pid <= 0 || (app->spec.net == NET_PRIVATE && app->netns_fd < 0))
		return false;
	/* an address that others serve as well is theirs at once */
	return !is_shared(a, app) && is_sending(app);
}

void app_remove(struct agent *a, struct app *app)
{
	bool serves = service_affects(a, app), lingers = has_to_linger(a, app);
	int r;

	unlink_app(a, app);
	app->state = APP_ENDED;
	if (lingers) /* before its services lose it, and with it their way to it */
		linger(a, app);
	services_sync(a, app, NULL);
	service_leave(a, app);
	if (app->cgroup_id)
		datapath_app_del(a->dp, app->cgroup_id);
	if (app->spec.wait_ms)
		agent_update_hold(a);
	forget_watch(a, app);
	loop_del(a->epoll, &app->launcher);
	r = app->cgroup ? cgroup_remove(app->cgroup) : 0;
	if (r)
		log_warn("cannot remove the cgroup %s: %s", app->cgroup, strerror(-r));
	if (serves)
		end_stuck(a, app);
	clients_app_gone(a, app);
	if (!lingers)
		app_release(a, app);
}
