/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an earlier agent left: apps that run are taken over from their cgroups' records. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "apps/adopt.h"
#include "allot/pool.h"
#include "apps/anchors.h"
#include "apps/apps.h"
#include "apps/watch.h"
#include "base/address.h"
#include "machine/cgroup.h"
#include "base/log.h"
#include "base/strv.h"
#include "config/config.h"
#include "control/control.h"
#include "datapath/datapath.h"
#include "net/netlink.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/in_force.h"
#include "registry/parties.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/verdicts.h"
#include "registry/vips.h"
#include "services/services.h"

#define SUPERVISORS "supervisors"
#define STOP_MS	    10000

/* --- adopting --- */

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
		app_record_addr(sj, "ip4", &ip4);
		app_record_addr(sj, "ip6", &ip6);
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
	if (nl_link_index(a->nl, device, &app->ifindex) == 0) {
		nl_link_set_group(a->nl, app->ifindex); /* older agents did not */
		datapath_fabric_attach(a->dp, a->nl, app->ifindex);
	}
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
	struct policy_who who;
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
	who = app_who(app);
	if (!r)
		r = party_ref(a, &app->spec.labels, &who, &app->party, e);
	in_force_note(a, app);
	adopt_network(a, app);
	anchor_adopt(a, app->anchor);
	app_link(a, app);
	a->apps_wait |= app->spec.wait_ms != 0;
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

int adopt_list(const char *root, struct strv *ret)
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

static void free_apps(struct app **list)
{
	while (*list) {
		struct app *app = *list;

		*list = app->next;
		app_free(app);
	}
}

int adopt_rules(struct agent *a, const struct config *c, struct error *e)
{
	CLEANUP(strv_free) struct strv paths = {0};
	CLEANUP(free_apps) struct app *apps = NULL;
	int r = adopt_list(a->cgroup, &paths);
	autofree struct egress_of *of = calloc(paths.n + 1, sizeof(*of));
	size_t n = 0;

	if (r || !of)
		return error_set(e, r ? r : -ENOMEM, "cannot read %s: %s", a->cgroup,
				 strerror(r ? -r : ENOMEM));
	for (size_t i = 0; i < paths.n; i++) {
		autofree char *text = NULL;
		struct app *app;

		if (cgroup_record_get(paths.v[i], "app", &text) ||
		    app_from_record(paths.v[i], text, &app))
			continue;
		app->next = apps;
		apps = app;
		of[n++] = (struct egress_of){app->spec.name, &app->spec.egress};
	}
	return in_force_apply(a, c, of, n, e);
}

int adopt_apps(struct agent *a, struct error *e)
{
	CLEANUP(strv_free) struct strv paths = {0};
	struct app *next;
	int r = adopt_list(a->cgroup, &paths);

	if (r)
		return error_set(e, r, "cannot read %s: %s", a->cgroup, strerror(-r));
	verdicts_adopt(a);
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
