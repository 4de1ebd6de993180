/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests about apps by their name, after their start: to enter one, to forget one that ended. */
#include "daemon/requests_priv.h"
#include "apps/apps.h"
#include "apps/spawn.h"
#include "config/spec.h"
#include "control/control.h"
#include "control/server.h"
#include "daemon/permissions.h"
#include "machine/cgroup.h"
#include "registry/app_table.h"
#include "registry/state.h"

/* --- enter --- */

struct found_apps {
	struct app *first;
	size_t n;
	char ids[128]; /* of all, for a person; as many as fit */
};

static void note_app(struct agent *a, struct app *app, void *arg)
{
	struct found_apps *f = arg;
	size_t len = strlen(f->ids);

	(void)a;
	if (!f->n++)
		f->first = app;
	snprintf(f->ids + len, sizeof(f->ids) - len, "%s%u", len ? ", " : "", app->id);
}

/* NULL: the client has been told why. */
static struct app *find_to_enter(struct agent *a, struct client *c, const char *text)
{
	struct found_apps f = {0};
	struct error e = {0};

	if (text)
		each_app_named(a, text, note_app, &f);
	if (!f.n) {
		no_such_app(c, text ? text : "");
		return NULL;
	}
	if (f.n > 1)
		error_set(&e, -ENOTUNIQ, "there are %zu apps named %.60s: give one's id (%s)", f.n,
			  text, f.ids);
	else if (f.first->state == APP_STARTING)
		error_set(&e, -EAGAIN, "the app %.60s is being started", f.first->spec.name);
	else if (f.first->state != APP_RUNNING)
		error_set(&e, -ESRCH, "the app %.60s is being stopped", f.first->spec.name);
	else if (f.first->empty || cgroup_populated(f.first->cgroup) <= 0)
		error_set(&e, -ESRCH, "the app %.60s has ended", f.first->spec.name);
	if (e.code)
		client_error(c, e.code, e.text);
	return e.code ? NULL : f.first;
}

/* Until the client has put its process there (which its end says) the app is not taken for ended.
 */
void request_enter(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct client_state *st = client_state_get(c);
	struct app *app;
	json_t *answer;

	(void)fd;
	if (!st || only_root(c))
		return;
	if (st->entering) {
		client_error(c, -EBUSY, "this connection has entered an app already");
		return;
	}
	app = find_to_enter(a, c, json_string_value(json_object_get(j, "app")));
	if (!app)
		return;
	answer = json_pack("{sb si ss ss si so}", "ok", 1, "id", (int)app->id, "name",
			   app->spec.name, "cgroup", app->cgroup, "pid", app->pid, "spec",
			   control_spec_to_json(&app->spec));
	if (answer) {
		st->entering = app->id;
		app->entering++;
	}
	client_reply(c, answer, app->spec.net == NET_PRIVATE ? app->netns_fd : -1);
}

void request_entered(struct agent *a, uint32_t id)
{
	struct app *app = id ? app_by_id(a, id) : NULL;

	if (!app || !app->entering)
		return;
	app->entering--;
	app_check(a, app);
}

/* --- remove --- */

/* Both files of it (launch/output.h). True: there was one. */
static bool remove_log(const struct agent *a, const char *name)
{
	static const char *const suffixes[] = {".log", ".log.1"};
	bool had = false;
	char path[320];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(path, sizeof(path), "%s/%.63s%s", a->inst->log_dir, name, suffixes[i]);
		had |= unlink(path) == 0;
	}
	return had;
}

void request_remove(struct agent *a, struct client *c, json_t *j, int fd)
{
	const char *name = json_string_value(json_object_get(j, "app"));
	struct found_apps f = {0};
	size_t cancelled;
	struct error e;
	bool had;

	(void)fd;
	if (only_root(c))
		return;
	if (name)
		each_app_named(a, name, note_app, &f);
	if (f.n) {
		error_set(&e, -EBUSY,
			  "the app %.60s runs: stop it first, or give --force to have it stopped",
			  name);
		client_error(c, e.code, e.text);
		return;
	}
	/* (the name becomes a path) */
	if (!name || spec_check_name(name, &e)) {
		no_such_app(c, name ? name : "");
		return;
	}
	cancelled = spawn_cancel(a, name);
	had = remove_log(a, name);
	if (had || cancelled)
		client_ok(c);
	else
		no_such_app(c, name);
}
