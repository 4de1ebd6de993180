/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is kept of an app outside of the agent. */
#include <time.h>

#include "registry/parties.h"
#include "registry/app_record.h"
#include "base/address.h"
#include "machine/cgroup.h"
#include "config/config.h"
#include "control/control.h"
#include "datapath/datapath.h"
#include "net/netlink.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"

static json_t *record_of(const struct app *app, bool cut)
{
	json_t *spec = control_spec_to_json(&app->spec);
	json_t *j = json_pack("{si si so si si sI sI si si sb}", "id", (int)app->id, "state",
			      (int)app->state, "spec", spec, "pid", app->pid, "launcher",
			      app->launcher_pid, "since_boot", (json_int_t)app->since_boot, "netns",
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

/* FNV-1a: two names that have one in common are one client, and no more. */
static uint64_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (const char *p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3ull;
	return h;
}

int app_tell(struct agent *a, struct app *app)
{
	const uint64_t name = hash_of(app->spec.name);
	struct ax_app v = {.id = app->id,
			   .flags = (app->spec.net == NET_HOST ? AX_APP_HOST : 0) |
				    (app_egress_is_open(app) ? AX_APP_EGRESS : AX_APP_CONFINED) |
				    (app->confined ? AX_APP_CONFINED : 0),
			   .vip4 = app->vip4,
			   .vip6 = app->vip6,
			   .wait_ms = app->spec.wait_ms,
			   .anchor = app->anchor,
			   .party = party_told(app->party),
			   .name = {(uint32_t)(name >> 32), (uint32_t)name}};
	const struct ax_source *s = &app->source;
	int r;

	if (app->spec.net == NET_HOST && (!addr_is_zero(&s->v4) || !addr_is_zero(&s->v6))) {
		v.flags |= AX_APP_SOURCE;
		r = datapath_source_set(a->dp, app->id, s);
		if (r)
			return r;
	}
	if (app->service && !addr_eq(&app->service->vip4, &app->vip4))
		v.shared4 = app->service->vip4;
	if (app->service && !addr_eq(&app->service->vip6, &app->vip6))
		v.shared6 = app->service->vip6;
	r = app_is_confined(app) ? datapath_straight(a->dp, true) : 0;
	return r ? r : datapath_app_set(a->dp, app->cgroup_id, &v);
}

void app_record_addr(const json_t *j, const char *key, struct ax_addr *ret)
{
	const char *text = json_string_value(json_object_get(j, key));

	memset(ret, 0, sizeof(*ret));
	if (text)
		addr_parse(text, ret);
}

/* An older agent noted the UNIX time. */
static int64_t since_of(const json_t *j)
{
	const json_t *boot = json_object_get(j, "since_boot");
	json_int_t time_then = json_integer_value(json_object_get(j, "since"));

	return boot ? json_integer_value(boot) : time_boot_s() - (time(NULL) - time_then);
}

int app_from_record(const char *cgroup, const char *text, struct app **ret)
{
	struct app *app = app_new();
	const char *key;
	struct error e;
	json_t *j;
	int r;

	if (!app)
		return -ENOMEM;
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
	app->since_boot = since_of(j);
	app->netns_cookie = (uint64_t)json_integer_value(json_object_get(j, "netns"));
	app->restarts = (uint32_t)json_integer_value(json_object_get(j, "restarts"));
	app->anchor = (uint32_t)json_integer_value(json_object_get(j, "anchor"));
	app->cut = json_is_true(json_object_get(j, "cut"));
	app_record_addr(j, "ip4", &app->vip4);
	app_record_addr(j, "ip6", &app->vip6);
	key = json_string_value(json_object_get(j, "config"));
	app->config_key = key ? strdup(key) : NULL;
	app->cgroup = strdup(cgroup);
	json_decref(j);
	*ret = app;
	return app->cgroup ? 0 : -ENOMEM;
}
