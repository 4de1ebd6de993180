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

#include "agent_priv.h"
#include "cgroup.h"
#include "control.h"
#include "launch.h"
#include "log.h"
#include "socks.h"

#define APP_ID_MAX 999999 /* "<instance>-<id>" must fit an interface name */

const char *app_state_name(enum app_state s)
{
	return s == APP_STARTING ? "starting" : s == APP_RUNNING ? "running" : "stopping";
}

struct app *app_by_id(struct agent *a, uint32_t id)
{
	for (struct app *app = a->apps; app; app = app->next)
		if (app->id == id)
			return app;
	return NULL;
}

struct app *app_by_name(struct agent *a, const char *name)
{
	struct name *n = name_find(a, name);

	return n ? n->app : NULL;
}

struct app *app_by_watch(struct agent *a, int watch)
{
	for (struct app *app = a->apps; app; app = app->next)
		if (app->watch == watch)
			return app;
	return NULL;
}

void app_free(struct app *app)
{
	app_spec_free(&app->spec);
	free(app->config_key);
	free(app->cgroup);
	close_fd(&app->launcher.fd);
	free(app);
}

/* --- the record --- */

int app_save(const struct app *app)
{
	json_t *spec = control_spec_to_json(&app->spec);
	autofree char *text = NULL;
	json_t *j;
	int r;

	j = json_pack("{si si so si si sI sI sb sb si si}", "id", (int)app->id, "state",
		      (int)app->state, "spec", spec, "pid", app->pid, "launcher", app->launcher_pid,
		      "since", (json_int_t)app->since, "netns", (json_int_t)app->netns_cookie,
		      "own4", app->own4, "own6", app->own6, "restarts", (int)app->restarts,
		      "anchor", (int)app->anchor);
	if (!j) {
		json_decref(spec);
		return -ENOMEM;
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
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	if (!text)
		return -ENOMEM;
	r = cgroup_record_set(app->cgroup, "app", text);
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
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	v = vip_get(a, addr);
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->app = app;
	pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, true);
	return vip_sync(a, v, e);
}

static void unclaim(struct agent *a, struct app *app, const struct ax_addr *addr, bool from_pool)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);
	bool v4 = addr_is_v4(addr);

	if (!v || v->app != app)
		return;
	v->app = NULL;
	if (from_pool || (!v->service && !v->declared))
		pool_mark(v4 ? &a->pool4 : &a->pool6, addr, false);
	vip_sync(a, v, NULL);
}

/* --- registering --- */

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
	s->egress |= d->egress;
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

/* An app that has ended, but whose end was not heard of yet, holds neither name nor address: the
 * next `ax run` of a script gets them. */
static void settle(struct agent *a, const struct app_spec *s)
{
	const struct ax_addr *asked[] = {&s->ip4, &s->ip6};
	struct name *n;

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct vip *v = addr_is_zero(asked[i]) ? NULL : vip_find(a, asked[i]);

		if (v && v->app)
			app_check(a, v->app);
	}
	n = s->name ? name_find(a, s->name) : NULL;
	if (n && n->app)
		app_check(a, n->app);
}

/* The app (or service of apps) whose address or name the new app shares, if any. */
static int find_partner(struct agent *a, const struct app *app, struct service **svc,
			struct app **owner, struct error *e)
{
	const struct ax_addr *asked[] = {&app->spec.ip4, &app->spec.ip6};
	char text[ADDR_STRLEN];
	struct name *n;

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
		if (v->service)
			*svc = v->service;
		else if (v->app)
			*owner = v->app;
	}
	if (*svc || *owner)
		return 0;
	n = name_find(a, app->spec.name);
	if (n && n->service)
		*svc = n->service;
	else if (n && n->app)
		*owner = n->app->service ? NULL : n->app;
	if (n && n->app && n->app->service && !n->service)
		*svc = n->app->service;
	return 0;
}

static int take_from_pool(struct pool *p, struct ax_addr *addr, bool *own, const char *family,
			  struct error *e)
{
	int r;

	if (!p->size)
		return 0;
	r = pool_take(p, addr);
	if (r)
		return error_set(e, r,
				 "the %s pool has no address left: end some apps, give one with "
				 "--ip, or configure a larger agent.pool",
				 family);
	*own = true;
	return 0;
}

static int choose_addresses(struct agent *a, struct app *app, const struct service *svc,
			    struct error *e)
{
	const struct declared *d = declared_find(a, app->spec.name);
	bool shared4 = svc && !addr_is_zero(&svc->vip4) && addr_eq(&svc->vip4, &app->spec.ip4);
	bool shared6 = svc && !addr_is_zero(&svc->vip6) && addr_eq(&svc->vip6, &app->spec.ip6);
	int r = 0;

	app->vip4 = shared4 ? (struct ax_addr){0} : app->spec.ip4;
	app->vip6 = shared6 ? (struct ax_addr){0} : app->spec.ip6;
	if (addr_is_zero(&app->spec.ip4) && addr_is_zero(&app->spec.ip6) && d && !svc) {
		app->vip4 = d->ip4; /* the one that its name already resolves to */
		app->vip6 = d->ip6;
		return 0;
	}
	if (addr_is_zero(&app->vip4) && (shared4 || addr_is_zero(&app->spec.ip6)))
		r = take_from_pool(&a->pool4, &app->vip4, &app->own4, "IPv4", e);
	if (!r && addr_is_zero(&app->vip6) && (shared6 || addr_is_zero(&app->spec.ip4)))
		r = take_from_pool(&a->pool6, &app->vip6, &app->own6, "IPv6", e);
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
	return r ? error_set(e, r, "cannot make the cgroup %s: %s", app->cgroup, strerror(-r)) : 0;
}

void app_link(struct agent *a, struct app *app)
{
	struct app **p = &a->apps;
	struct name *n = name_get(a, app->spec.name);

	while (*p && (*p)->id < app->id)
		p = &(*p)->next;
	app->next = *p;
	*p = app;
	a->n_apps++;
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
	if (!n || n->app != app)
		return;
	n->app = NULL;
	for (struct app *x = a->apps; x && !n->app; x = x->next)
		if (streq(x->spec.name, n->text))
			n->app = x;
	name_put(a, n);
}

static uint32_t next_id(struct agent *a)
{
	do {
		a->next_id = a->next_id >= APP_ID_MAX ? 1 : a->next_id + 1;
	} while (app_by_id(a, a->next_id));
	return a->next_id;
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

static int prepare(struct agent *a, struct app *app, struct service **svc, struct error *e)
{
	struct app_spec *s = &app->spec;
	struct app *owner = NULL;
	const struct declared *d;
	int r;

	settle(a, s);
	if (!s->name)
		r = make_name(a, s) ? error_set(e, -ENOMEM, "out of memory") : 0;
	else
		r = check_service_name(a, s->name, e);
	d = r ? NULL : declared_find(a, s->name);
	if (d)
		r = take_declared(s, &d->conf->spec, app->config_key != NULL, e);
	if (!r && !s->labels.n)
		r = labels_copy(&a->config.default_labels, &s->labels);
	r = r ? r : find_partner(a, app, svc, &owner, e);
	if (!r && owner)
		r = service_of_app(a, owner, svc, e);
	return r;
}

int app_register(struct agent *a, struct app_spec *spec, const char *config_key, struct app **ret,
		 struct error *e)
{
	struct app *app = calloc(1, sizeof(*app));
	struct service *svc = NULL;
	int r;

	if (!app)
		return error_set(e, -ENOMEM, "out of memory");
	app->spec = *spec;
	memset(spec, 0, sizeof(*spec));
	app->launcher = (struct loop_item){.kind = LOOP_LAUNCHER, .fd = -1};
	app->watch = -1;
	app->exit_status = -1;
	app->since = time(NULL);
	app->config_key = config_key ? strdup(config_key) : NULL;
	r = prepare(a, app, &svc, e);
	if (r) {
		app_free(app);
		return r;
	}
	app->restarts = spawn_restarts(a, app->config_key, app->spec.name);
	app->id = next_id(a);
	if (svc)
		service_join(a, svc, app);
	r = policy_ref(&a->policy, &app->spec.labels, &app->party, e);
	app->has_labels = r == 0;
	app_link(a, app);
	r = r ? r : choose_addresses(a, app, svc, e);
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

	if (app->spec.detach)
		watch_launcher(a, app);
	snprintf(events, sizeof(events), "%s/cgroup.events", app->cgroup);
	app->watch = inotify_add_watch(a->inotify.fd, events, IN_MODIFY);
	if (app->watch < 0)
		return error_set(e, -errno,
				 "cannot watch %s: %s (is fs.inotify.max_user_watches reached?)",
				 events, strerror(errno));
	return 0;
}

int app_started(struct agent *a, struct app *app, int pid, int launcher_pid, struct error *e)
{
	app->pid = pid;
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
	autofree char *text = NULL;

	if (app->exit_status < 0 && cgroup_record_get(app->cgroup, "exit", &text) == 0)
		app->exit_status = atoi(text);
	events_app(a, "exit", app);
	if (wants_restart(app))
		restart(a, app);
	app_remove(a, app);
	if (key)
		declared_start(a, key);
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

void app_remove(struct agent *a, struct app *app)
{
	bool serves = service_affects(a, app);
	int r;

	unlink_app(a, app);
	anchor_release(a, app);
	app->state = APP_STOPPING;
	services_sync(a, app, NULL);
	service_leave(a, app);
	unclaim(a, app, &app->vip4, app->own4);
	unclaim(a, app, &app->vip6, app->own6);
	if (app->netns_cookie)
		datapath_netns_del(a->dp, app->netns_cookie);
	if (app->cgroup_id)
		datapath_app_del(a->dp, app->cgroup_id);
	if (app->spec.egress)
		agent_update_egress(a, NULL);
	if (app->spec.wait_ms)
		agent_update_hold(a);
	if (app->has_labels)
		policy_unref(&a->policy, &app->spec.labels);
	if (app->watch >= 0)
		inotify_rm_watch(a->inotify.fd, app->watch);
	loop_del(a->epoll, &app->launcher);
	r = app->cgroup ? cgroup_remove(app->cgroup) : 0;
	if (r)
		log_warn("cannot remove the cgroup %s: %s", app->cgroup, strerror(-r));
	if (serves)
		end_stuck(a, app);
	clients_app_gone(a, app);
	app_free(app);
}
