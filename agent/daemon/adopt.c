/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an earlier agent left: apps that run are taken over from their cgroups' records, the rest
 * is undone. And the end of everything (`ax agent --flush`).
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "daemon/agent_priv.h"
#include "base/cgroup.h"
#include "control/control.h"
#include "net/egress.h"
#include "base/log.h"

#define SUPERVISORS "supervisors"
#define STOP_MS	    10000

/* --- adopting --- */

static void addr_from_json(const json_t *j, const char *key, struct ax_addr *ret)
{
	const char *text = json_string_value(json_object_get(j, key));

	memset(ret, 0, sizeof(*ret));
	if (text)
		addr_parse(text, ret);
}

/* 0 and *ret; -ENODATA: no record that makes sense. */
static int app_from_record(const char *cgroup, const char *text, struct app **ret)
{
	struct app *app = calloc(1, sizeof(*app));
	const char *key;
	struct error e;
	json_t *j;
	int r;

	if (!app)
		return -ENOMEM;
	app->launcher.kind = LOOP_LAUNCHER;
	app->launcher.fd = app->watch = app->exit_status = app->netns_fd = -1;
	r = control_parse_line(text, strlen(text), &j, &e);
	if (r) {
		app_free(app);
		return -ENODATA;
	}
	r = control_spec_from_json(json_object_get(j, "spec"), &app->spec, &e);
	app->id = (uint32_t)json_integer_value(json_object_get(j, "id"));
	if (r || !app->spec.name || !app->id) {
		json_decref(j);
		app_free(app);
		return -ENODATA;
	}
	app->state = json_integer_value(json_object_get(j, "state")) == APP_STOPPING ? APP_STOPPING
										     : APP_RUNNING;
	app->pid = (int)json_integer_value(json_object_get(j, "pid"));
	app->launcher_pid = (int)json_integer_value(json_object_get(j, "launcher"));
	app->since = json_integer_value(json_object_get(j, "since"));
	app->netns_cookie = (uint64_t)json_integer_value(json_object_get(j, "netns"));
	app->restarts = (uint32_t)json_integer_value(json_object_get(j, "restarts"));
	app->anchor = (uint32_t)json_integer_value(json_object_get(j, "anchor"));
	app->cut = json_is_true(json_object_get(j, "cut"));
	addr_from_json(j, "ip4", &app->vip4);
	addr_from_json(j, "ip6", &app->vip6);
	key = json_string_value(json_object_get(j, "config"));
	app->config_key = key ? strdup(key) : NULL;
	app->cgroup = strdup(cgroup);
	json_decref(j);
	*ret = app;
	return app->cgroup ? 0 : -ENOMEM;
}

static int adopt_service(struct agent *a, struct app *app, const char *text, struct error *e)
{
	struct ax_addr ip4, ip6;
	struct service *s;
	const char *name;
	json_t *j, *sj;
	int r = control_parse_line(text, strlen(text), &j, e);

	if (r)
		return r;
	sj = json_object_get(j, "service");
	name = json_string_value(json_object_get(sj, "name"));
	if (name) {
		addr_from_json(sj, "ip4", &ip4);
		addr_from_json(sj, "ip6", &ip6);
		r = service_adopt(a, name, &ip4, &ip6, &s);
		if (!r)
			service_join(a, s, app);
	}
	json_decref(j);
	return r;
}

static void adopt_network(struct agent *a, struct app *app)
{
	char device[16];

	if (app->spec.net != NET_PRIVATE)
		return;
	snprintf(device, sizeof(device), "%s%u", a->inst->device_prefix, app->id);
	app->netns_fd = app_netns(app);
	if (nl_link_index(a->nl, device, &app->ifindex) == 0)
		datapath_fabric_attach(a->dp, app->ifindex);
}

static void adopt_address(struct agent *a, struct app *app, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_get(a, addr);

	if (!v)
		return;
	v->app = app;
	pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, true);
}

/* Into our own lists only: the kernel is told when all are known, so that nothing that works now
 * is seen half made. */
static int adopt_one(struct agent *a, const char *cgroup, struct error *e)
{
	autofree char *text = NULL;
	struct app *app;
	int r = cgroup_record_get(cgroup, "app", &text);

	r = r ? r : app_from_record(cgroup, text, &app);
	if (r) {
		/* a launch that died before it wrote a word */
		log_warn("%s has no record and is removed", cgroup);
		cgroup_signal(cgroup, SIGKILL);
		cgroup_remove(cgroup);
		return 0;
	}
	r = cgroup_id(cgroup, &app->cgroup_id);
	if (!r)
		r = policy_ref(&a->policy, &app->spec.labels, &app->party, e);
	app->has_labels = r == 0;
	adopt_network(a, app);
	anchor_adopt(a, app->anchor);
	app_link(a, app);
	if (app->id > a->next_id)
		a->next_id = app->id;
	adopt_address(a, app, &app->vip4);
	adopt_address(a, app, &app->vip6);
	r = r ? r : adopt_service(a, app, text, e);
	if (r)
		log_error("the app %s (%u) cannot be taken over whole: %s", app->spec.name, app->id,
			  e->text[0] ? e->text : strerror(-r));
	return 0;
}

static void adopted_tell(struct agent *a, struct app *app)
{
	struct error e = {0};
	int r = app_publish(a, app, &e);

	r = r ? r : app_watch(a, app, &e);
	if (r)
		log_error("the app %s (%u) cannot be taken over whole: %s", app->spec.name, app->id,
			  e.text);
	else
		log_info("took over %s (%u)", app->spec.name, app->id);
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

/* The paths of the apps' cgroups. */
static int list_cgroups(const char *root, struct strv *ret)
{
	DIR *d = opendir(root);
	struct dirent *de;
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (!r && (de = readdir(d))) {
		autofree char *path = NULL;

		if (de->d_type != DT_DIR || de->d_name[0] == '.' || streq(de->d_name, SUPERVISORS))
			continue;
		if (asprintf(&path, "%s/%s", root, de->d_name) < 0) {
			path = NULL;
			r = -ENOMEM;
		} else {
			r = strv_add(ret, path);
		}
	}
	closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return r;
}

int adopt_apps(struct agent *a, struct error *e)
{
	CLEANUP(strv_free) struct strv paths = {0};
	struct app *next;
	int r = list_cgroups(a->cgroup, &paths);

	if (r)
		return error_set(e, r, "cannot read %s: %s", a->cgroup, strerror(-r));
	for (size_t i = 0; i < paths.n && !r; i++)
		r = adopt_one(a, paths.v[i], e);
	r = r ? r : services_sync(a, NULL, e);
	for (struct app *app = a->apps; app && !r; app = app->next)
		adopted_tell(a, app);
	for (struct app *app = a->apps; app; app = next) {
		next = app->next;
		if (app->state == APP_STOPPING)
			app_stop(a, app, STOP_MS); /* the last agent had begun to */
		else
			app_check(a, app); /* those that ended while no agent ran */
	}
	return r;
}

/* --- sweeping --- */

static bool keep_app(void *arg, uint32_t id)
{
	return app_by_id(arg, id) != NULL;
}

static bool keep_cgroup(void *arg, uint64_t cgroup)
{
	for (const struct app *app = ((struct agent *)arg)->apps; app; app = app->next)
		if (app->cgroup_id == cgroup)
			return true;
	return false;
}

static bool keep_vip(void *arg, const struct ax_addr *addr)
{
	return vip_find(arg, addr) != NULL;
}

static bool keep_service(void *arg, const struct ax_endpoint *ep)
{
	struct vip *v = vip_find(arg, &ep->addr);
	const struct config_service *c;

	if (!v || !v->service)
		return false;
	c = v->service->conf;
	if (!c || !c->n_ports)
		return ep->port_be == 0;
	for (size_t i = 0; i < c->n_ports; i++)
		if (htons(c->ports[i].port) == ep->port_be && c->ports[i].proto == ep->proto)
			return true;
	return false;
}

struct stale {
	struct agent *a;
	struct nl_route *routes;
	unsigned *links;
	size_t n_routes, n_links;
};

static int note_route(void *arg, const struct nl_route *r)
{
	struct stale *s = arg;
	struct vip *v = r->dst.len == 128 ? vip_find(s->a, &r->dst.addr) : NULL;
	struct nl_route *more;

	if (r->dst.len != 128 ||
	    (v && v->route.local == r->local && v->route.ifindex == r->ifindex))
		return 0;
	more = realloc(s->routes, (s->n_routes + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->routes = more;
	s->routes[s->n_routes++] = *r;
	return 0;
}

/* "<instance>-<number>" or the services' pair: others may have names that begin alike. */
static bool is_device_of_ours(const struct agent *a, const char *name)
{
	const char *rest = name + strlen(a->inst->device_prefix);
	size_t digits = strspn(rest, "0123456789");

	return service_device_is(a, name) || (digits && digits <= 6 && !rest[digits]);
}

static int note_link(void *arg, const char *name, unsigned ifindex)
{
	struct stale *s = arg;
	unsigned *more;

	if (!is_device_of_ours(s->a, name))
		return 0;

	if (s->a->ctl.service_ifindex && service_device_is(s->a, name))
		return 0;
	for (const struct app *app = s->a->apps; app; app = app->next)
		if (app->ifindex == ifindex)
			return 0;
	more = realloc(s->links, (s->n_links + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->links = more;
	s->links[s->n_links++] = ifindex;
	return 0;
}

static int sweep_net(struct agent *a)
{
	struct stale s = {.a = a};
	int r = nl_link_each(a->nl, a->inst->device_prefix, note_link, &s);

	for (size_t i = 0; i < s.n_links; i++)
		nl_link_del(a->nl, s.links[i]);
	r = r ? r : nl_route_each(a->nl, a->inst->route_metric, note_route, &s);
	for (size_t i = 0; i < s.n_routes; i++) {
		nl_route_del(a->nl, &s.routes[i]);
		if (s.routes[i].local)
			nl_addr_del(a->nl, a->lo, &s.routes[i].dst.addr, 128);
	}
	free(s.links);
	free(s.routes);
	return r;
}

int adopt_sweep(struct agent *a, struct error *e)
{
	const struct datapath_keep keep = {.app = keep_app,
					   .cgroup = keep_cgroup,
					   .vip = keep_vip,
					   .service = keep_service,
					   .arg = a};
	int r = datapath_sweep(a->dp, &keep);

	r = r ? r : sweep_net(a);
	return r ? error_set(e, r, "cannot remove what an earlier agent left: %s", strerror(-r))
		 : 0;
}

/* --- the end of everything --- */

#define FLUSH_TERM_MS 2000
#define FLUSH_KILL_MS 5000

static bool wait_empty(const char *cgroup, unsigned ms)
{
	for (unsigned t = 0; t < ms; t += 10) {
		if (cgroup_populated(cgroup) <= 0)
			return true;
		usleep(10000);
	}
	return cgroup_populated(cgroup) <= 0;
}

static int end_apps(const char *root)
{
	CLEANUP(strv_free) struct strv paths = {0};
	int r = list_cgroups(root, &paths);

	for (size_t i = 0; i < paths.n; i++) {
		cgroup_signal(paths.v[i], SIGTERM);
		cgroup_signal(paths.v[i], SIGCONT);
	}
	for (size_t i = 0; i < paths.n; i++) {
		if (!wait_empty(paths.v[i], FLUSH_TERM_MS))
			cgroup_signal(paths.v[i], SIGKILL);
		wait_empty(paths.v[i], FLUSH_KILL_MS);
	}
	/* the supervisors end by themselves when their apps have */
	wait_empty(root, FLUSH_TERM_MS);
	cgroup_signal(root, SIGKILL);
	wait_empty(root, FLUSH_KILL_MS);
	return r ? r : cgroup_remove(root);
}

static int note_any_route(void *arg, const struct nl_route *r)
{
	struct stale *s = arg;
	struct nl_route *more = realloc(s->routes, (s->n_routes + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->routes = more;
	s->routes[s->n_routes++] = *r;
	return 0;
}

static int remove_anchor(void *arg, const struct ax_addr *addr)
{
	struct agent *a = arg;

	if (memcmp(addr, &a->ctl.anchor6, 12) == 0)
		nl_addr_del(a->nl, a->lo, addr, 128);
	return 0;
}

static int flush_net(const struct instance *inst)
{
	CLEANUP(nl_closep) struct nl *nl = NULL;
	struct agent none = {.inst = inst};
	struct stale s = {.a = &none};
	unsigned lo = 1;
	int r = nl_open(&nl);

	if (!r)
		r = nl_link_index(nl, "lo", &lo);
	if (r)
		return r;
	r = nl_link_each(nl, inst->device_prefix, note_link, &s);
	for (size_t i = 0; i < s.n_links; i++)
		nl_link_del(nl, s.links[i]);
	r = r ? r : nl_route_each(nl, inst->route_metric, note_any_route, &s);
	for (size_t i = 0; i < s.n_routes; i++) {
		nl_route_del(nl, &s.routes[i]);
		if (s.routes[i].local)
			nl_addr_del(nl, lo, &s.routes[i].dst.addr, 128);
	}
	agent_anchor_prefix(inst, &none.ctl.anchor6);
	none.nl = nl;
	none.lo = lo;
	if (!r)
		nl_addr6_each(nl, lo, remove_anchor, &none);
	free(s.links);
	free(s.routes);
	return r;
}

static void remove_tree(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		return;
	while ((de = readdir(d))) {
		autofree char *path = NULL;

		if (streq(de->d_name, ".") || streq(de->d_name, "..") ||
		    asprintf(&path, "%s/%s", dir, de->d_name) < 0)
			continue;
		if (unlink(path) < 0 && errno == EISDIR)
			remove_tree(path);
	}
	closedir(d);
	rmdir(dir);
}

int flush_instance(const struct instance *inst, struct error *e)
{
	char root[4096];
	int r = cgroup_root(inst, root, e);

	if (r)
		return r;
	r = end_apps(root);
	if (r)
		return error_set(e, r, "cannot end the apps in %s: %s", root, strerror(-r));
	r = datapath_remove(inst, e);
	if (r)
		return r;
	r = egress_set(inst, NULL, 0, e);
	if (r && r != -EOPNOTSUPP)
		return r;
	r = flush_net(inst);
	if (r)
		return error_set(e, r, "cannot remove devices and routes: %s", strerror(-r));
	remove_tree(inst->run_dir);
	return 0;
}
