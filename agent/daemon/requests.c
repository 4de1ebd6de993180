/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of the control socket ask for; control.h describes each request. */
#include <fcntl.h>
#include <signal.h>

#include "daemon/requests.h"
#include "daemon/requests_priv.h"
#include "apps/apps.h"
#include "apps/register.h"
#include "apps/spawn.h"
#include "base/address.h"
#include "machine/cgroup.h"
#include "base/log.h"
#include "base/work.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/spec.h"
#include "control/control.h"
#include "control/server.h"
#include "daemon/config_file.h"
#include "daemon/permissions.h"
#include "daemon/reconcile.h"
#include "daemon/views.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/events.h"
#include "registry/in_force.h"
#include "registry/state.h"
#include "registry/verdicts.h"
#include "sections/probes_section.h"
#include "sections/xdp_section.h"
#include "yaml/errors.h"

struct client_state *client_state_get(struct client *c)
{
	struct client_state *st = client_kept(c);

	if (st)
		return st;
	st = calloc(1, sizeof(*st));
	if (!st)
		client_error(c, -ENOMEM, "out of memory");
	client_keep(c, st);
	return st;
}

static bool is_launching(const struct client *c, const struct app *app)
{
	const struct client_state *st = client_kept(c);

	return st && st->launch_id == app->id;
}

static struct app *app_of_request(struct agent *a, struct client *c, const json_t *j)
{
	json_int_t id = json_integer_value(json_object_get(j, "id"));
	struct app *app = id > 0 && id <= UINT32_MAX ? app_by_id(a, (uint32_t)id) : NULL;

	if (!app)
		client_error(c, -ENOENT, "there is no app with that id");
	return app;
}

/* Resolvers give up after 10 seconds, musl's after 5: those of an app that waits for names wait as
 * long as it does, as far as they can be told (man resolv.conf). */
#define RESOLVER_ATTEMPTS_MAX  5
#define RESOLVER_TIMEOUT_MAX_S 30

static json_t *resolv_conf(const struct agent *a, const struct app *app)
{
	unsigned seconds = app->spec.wait_ms / 1000 / RESOLVER_ATTEMPTS_MAX + 1;
	char text[320], options[64] = "", ip[ADDR_STRLEN];

	if (seconds > RESOLVER_TIMEOUT_MAX_S)
		seconds = RESOLVER_TIMEOUT_MAX_S;
	if (app->spec.wait_ms)
		snprintf(options, sizeof(options), " timeout:%u attempts:%d",
			 seconds < 5 ? 5 : seconds, RESOLVER_ATTEMPTS_MAX);
	snprintf(text, sizeof(text), "nameserver %s\nsearch %s\noptions ndots:1%s\n",
		 addr_format(&a->host4, ip), a->config.dns_domain, options);
	return json_string(text);
}

static json_t *launch_answer(struct agent *a, const struct app *app)
{
	json_t *j = json_pack("{sb si ss ss ss so}", "ok", 1, "id", (int)app->id, "name",
			      app->spec.name, "net", net_mode_name(app->spec.net), "cgroup",
			      app->cgroup, "spec", control_spec_to_json(&app->spec));
	char log[256];

	if (!j)
		return NULL;
	if (!addr_is_zero(&app->vip4))
		json_object_set_new(j, "ip4", json_addr(&app->vip4));
	if (!addr_is_zero(&app->vip6))
		json_object_set_new(j, "ip6", json_addr(&app->vip6));
	if (app->spec.net == NET_PRIVATE && a->dns)
		json_object_set_new(j, "resolv_conf", resolv_conf(a, app));
	if (app->spec.detach) {
		snprintf(log, sizeof(log), "%s/%s.log", a->inst->log_dir, app->spec.name);
		json_object_set_new(j, "log", json_string(log));
		json_object_set_new(j, "log_max",
				    json_integer(a->config.logs_to_journal
							 ? 0
							 : (json_int_t)a->config.logs_size));
	}
	return j;
}

/* An app that waits for its addresses, its probes, or for rules. */
struct launch_work {
	struct agent *a;
	struct client *c; /* NULL: gone, and the app with it */
	uint32_t id;
	struct app_spec spec; /* what is to be launched then, */
	json_t *request;      /* with the rest of the request */
};

static void answer_launch(struct agent *a, struct client *c, const struct app *app)
{
	autoclose int cgroup_fd = open(app->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	client_reply(c, launch_answer(a, app), cgroup_fd);
}

static void put_probes(void *arg)
{
	struct launch_work *w = arg;
	struct app *app = w->c ? app_by_id(w->a, w->id) : NULL;

	if (app)
		probes_app(w->a, app);
	if (w->c)
		((struct client_state *)client_kept(w->c))->launch = NULL;
	app = w->c ? app_by_id(w->a, w->id) : NULL;
	if (app)
		answer_launch(w->a, w->c, app);
	else if (w->c)
		client_error(w->c, -ENOENT, "the app was ended before it could start");
	free(w);
}

/* Answers when its probes are there. */
static void finish_launch(struct agent *a, struct client *c, struct app *app)
{
	struct client_state *st = client_kept(c);
	struct launch_work *w = probes_has_app(a, app) ? calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		answer_launch(a, c, app);
		return;
	}
	*w = (struct launch_work){.a = a, .c = c, .id = app->id};
	st->launch = w;
	if (work_start(a->work, 0, put_probes, w)) {
		st->launch = NULL;
		free(w);
		answer_launch(a, c, app);
	}
}

static void launch(struct agent *a, struct client *c, struct app_spec *spec, const json_t *j)
{
	const char *key = json_string_value(json_object_get(j, "config"));
	struct client_state *st = client_kept(c);
	struct error e = {0};
	struct app *app;
	int r = 0;

	/* an entry that was removed while its launch was under way */
	if (key && !declared_key(a, key))
		r = error_set(&e, -ENOENT, "the config has no app '%.63s' any more", key);
	r = r ? r : app_register(a, spec, key, &app, &e);
	if (r) {
		client_error(c, r, e.text);
		return;
	}
	app->launcher_pid = (int)json_integer_value(json_object_get(j, "pid"));
	st->launch_id = app->id;
	finish_launch(a, c, app);
}

/* The rules first that its list becomes: they change as by an apply, and not beside one. */
static void launch_listed(void *arg)
{
	struct launch_work *w = arg;
	struct app_spec *s = &w->spec;
	const struct egress_of of = {s->name	    ? s->name
				     : s->command.n ? s->command.v[0]
						    : "app",
				     &s->egress};
	struct error e = {0};
	int r = in_force_apply(w->a, &w->a->config, &of, 1, &e);

	if (w->c)
		((struct client_state *)client_kept(w->c))->launch = NULL;
	if (w->c && r)
		client_error(w->c, r, e.text[0] ? e.text : strerror(-r));
	else if (w->c)
		launch(w->a, w->c, s, w->request);
	json_decref(w->request);
	app_spec_free(s);
	free(w);
}

static int start_listed(struct agent *a, struct client *c, struct app_spec *spec, json_t *j)
{
	struct client_state *st = client_kept(c);
	struct launch_work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct launch_work){.a = a, .c = c, .spec = *spec, .request = json_incref(j)};
	st->launch = w;
	if (work_start(a->work, 0, launch_listed, w)) {
		st->launch = NULL;
		json_decref(j);
		free(w);
		return -ENOMEM;
	}
	memset(spec, 0, sizeof(*spec));
	return 0;
}

static void launch_or_list(struct agent *a, struct client *c, struct app_spec *spec, json_t *j)
{
	if (in_force_has(a, &spec->egress))
		launch(a, c, spec, j);
	else if (start_listed(a, c, spec, j))
		client_error(c, -ENOMEM, "out of memory");
}

static void on_claimed(void *arg, int err, const char *why)
{
	struct launch_work *w = arg;

	if (w->c)
		((struct client_state *)client_kept(w->c))->launch = NULL;
	if (w->c && err)
		client_error(w->c, err, why);
	else if (w->c)
		launch_or_list(w->a, w->c, &w->spec, w->request);
	json_decref(w->request);
	app_spec_free(&w->spec);
	free(w);
}

/* The addresses that it asks for, or that the config gives it, are no other node's. 0; 1: it is
 * launched, or refused, when that is known; else a negative errno. */
static int claim_addresses(struct agent *a, struct client *c, struct app_spec *spec, json_t *j,
			   struct error *e)
{
	const struct declared *d = spec->name ? declared_find(a, spec->name) : NULL;
	bool given = !d || !addr_is_zero(&spec->ip4) || !addr_is_zero(&spec->ip6);
	const struct app_spec *of = given ? spec : &d->conf->spec;
	const struct ax_addr *const asked[2] = {&of->ip4, &of->ip6};
	struct client_state *st = client_kept(c);
	struct launch_work *w;
	int r;

	if (addr_is_zero(asked[0]) && addr_is_zero(asked[1]))
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(e, -ENOMEM, "out of memory");
	*w = (struct launch_work){.a = a, .c = c, .request = json_incref(j)};
	st->launch = w;
	r = cluster_claim(a, asked, spec->name ? spec->name : "app", on_claimed, w, e);
	if (r == 1) {
		w->spec = *spec;
		memset(spec, 0, sizeof(*spec));
		return 1;
	}
	st->launch = NULL;
	json_decref(j);
	free(w);
	return r;
}

static void on_launch(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct client_state *st = client_state_get(c);
	CLEANUP(app_spec_free) struct app_spec spec = {0};
	struct error e = {0};
	int r;

	(void)fd;
	if (!st || only_root(c))
		return;
	if (st->launch_id || st->launch) {
		client_error(c, -EBUSY, "this connection is launching an app already");
		return;
	}
	r = control_spec_from_json(json_object_get(j, "spec"), &spec, &e);
	r = r ? r : claim_addresses(a, c, &spec, j, &e);
	if (!r)
		launch_or_list(a, c, &spec, j);
	else if (r < 0)
		client_error(c, r, e.text[0] ? e.text : "out of memory");
}

static void on_attach(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct app *app = app_of_request(a, c, j);
	struct error e = {0};
	int r;

	if (!app)
		return;
	if (fd < 0 || !is_launching(c, app)) {
		client_error(c, -EINVAL, "attach goes with a network namespace and after launch");
		return;
	}
	r = app_attach(a, app, fd, &e);
	if (r)
		client_error(c, r, e.text);
	else
		client_ok(c);
}

static void on_started(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct app *app = app_of_request(a, c, j);
	struct client_state *st = client_kept(c);
	int pid = (int)json_integer_value(json_object_get(j, "pid"));
	struct error e = {0};
	int r;

	(void)fd;
	if (!app)
		return;
	if (!is_launching(c, app)) {
		client_error(c, -EINVAL, "started comes after launch, on the same connection");
		return;
	}
	r = app_started(a, app, pid, app->launcher_pid, &e);
	if (r) {
		/* nobody would notice its end: it must not run (and launch_id undoes it) */
		log_error("%s", e.text);
		cgroup_signal(app->cgroup, SIGKILL);
		client_error(c, r, e.text);
		return;
	}
	st->launch_id = 0;
	client_ok(c);
	app_check(a, app); /* it may have ended before it was watched */
}

static void on_exited(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct app *app = app_of_request(a, c, j);

	(void)fd;
	if (!app || only_root(c))
		return;
	client_ok(c);
	app_exited(a, app, (int)json_integer_value(json_object_get(j, "status")));
}

size_t each_app_named(struct agent *a, const char *text,
		      void (*f)(struct agent *a, struct app *app, void *arg), void *arg)
{
	struct app *next;
	size_t n = 0;

	for (struct app *app = a->apps; app; app = next) {
		char id[16];

		next = app->next;
		snprintf(id, sizeof(id), "%u", app->id);
		if (!streq(app->spec.name, text) && !streq(id, text))
			continue;
		n++;
		f(a, app, arg);
	}
	return n;
}

void no_such_app(struct client *c, const char *text)
{
	struct error e;

	error_set(&e, -ENOENT, "there is no app %.60s: see 'ax ps'", text);
	client_error(c, -ENOENT, e.text);
}

static void note_stop(struct agent *a, struct app *app, void *arg)
{
	struct client_state *st = client_kept(arg);
	uint32_t *more;

	(void)a;
	if (!may_stop(arg, app))
		return;
	more = realloc(st->stopping, (st->n_stopping + 1) * sizeof(*more));
	if (!more)
		return;
	st->stopping = more;
	st->stopping[st->n_stopping++] = app->id;
	json_array_append_new(st->stopped,
			      json_pack("{si ss}", "id", (int)app->id, "name", app->spec.name));
}

static void on_stop(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct client_state *st = client_state_get(c);
	const char *text = json_string_value(json_object_get(j, "app"));
	json_t *t = json_object_get(j, "timeout_ms");
	json_int_t timeout = json_is_integer(t) ? json_integer_value(t) : 10000;
	autofree uint32_t *ids = NULL;
	size_t n, cancelled;

	(void)fd;
	if (!st)
		return;
	if (st->n_stopping) {
		client_error(c, -EBUSY, "this connection is waiting for a stop already");
		return;
	}
	json_decref(st->stopped);
	st->stopped = json_array();
	cancelled = text && may_cancel_start(c) ? spawn_cancel(a, text) : 0;
	n = text ? each_app_named(a, text, note_stop, c) : 0;
	if (!n && cancelled) { /* it was between two starts */
		client_reply(c, json_pack("{sb sO}", "ok", 1, "stopped", st->stopped), -1);
		return;
	}
	if (!n) {
		no_such_app(c, text ? text : "");
		return;
	}
	if (!st->n_stopping) {
		client_error(c, -EPERM, "only root may stop what runs as another user: use sudo");
		return;
	}
	/* stopping changes the client's list: walk a copy */
	n = st->n_stopping;
	ids = malloc(n * sizeof(*ids));
	if (!ids)
		return;
	memcpy(ids, st->stopping, n * sizeof(*ids));
	for (size_t i = 0; i < n; i++) {
		struct app *app = app_by_id(a, ids[i]);

		if (app)
			app_stop(a, app,
				 timeout < 0 || timeout > 3600000 ? 10000 : (uint32_t)timeout);
	}
}

struct found_logs {
	json_t *list;
	bool detached; /* at least one app */
};

static void note_log(struct agent *a, struct app *app, void *arg)
{
	struct found_logs *found = arg;
	char path[256];

	if (!app->spec.detach)
		return;
	found->detached = true;
	snprintf(path, sizeof(path), "%s/%s.log", a->inst->log_dir, app->spec.name);
	if (access(path, F_OK) == 0)
		json_array_append_new(found->list, json_pack("{si ss ss}", "id", (int)app->id,
							     "name", app->spec.name, "path", path));
}

static void on_logs(struct agent *a, struct client *c, json_t *j, int fd)
{
	const char *text = json_string_value(json_object_get(j, "app"));
	json_t *logs = json_array();
	struct found_logs found = {.list = logs};
	size_t n = text ? each_app_named(a, text, note_log, &found) : 0;
	char path[256];

	(void)fd;
	/* one that ended left its log behind */
	if (!n && text && !strchr(text, '/')) {
		snprintf(path, sizeof(path), "%s/%.63s.log", a->inst->log_dir, text);
		if (access(path, F_OK) == 0) {
			json_array_append_new(
				logs, json_pack("{si ss ss}", "id", 0, "name", text, "path", path));
			n = 1;
		}
	}
	if (n && json_array_size(logs)) {
		client_reply(c, json_pack("{sb so}", "ok", 1, "logs", logs), -1);
		return;
	}
	json_decref(logs);
	if (found.detached)
		client_error(c, -ENOENT,
			     a->config.logs_to_journal
				     ? "the output of that app goes to the journal: see "
				       "'journalctl -t NAME'"
				     : "that app has no log (any more)");
	else if (n)
		client_error(c, -ENOENT,
			     "that app was not started with --detach: its output went "
			     "to the terminal that started it");
	else
		no_such_app(c, text ? text : "");
}

static void send_verdict(void *arg, json_t *event)
{
	client_event(arg, event);
	json_decref(event);
}

static void on_events(struct agent *a, struct client *c, json_t *j, int fd)
{
	bool verdicts = json_is_true(json_object_get(j, "verdicts"));
	int r;

	(void)fd;
	if (verdicts) /* the others: this one is told all that there is */
		events_verdicts(a);
	client_watch(c, verdicts ? WATCH_VERDICTS : WATCH_EVENTS);
	r = events_update(a);
	if (!r) {
		client_ok(c);
		if (verdicts)
			verdicts_all(a, send_verdict, c);
		return;
	}
	client_watch(c, 0);
	client_error(c, r, "the events of this kernel's dataplane cannot be read: see 'ax doctor'");
}

static const struct {
	const char *op;
	void (*handle)(struct agent *a, struct client *c, json_t *j, int fd);
} ops[] = {
	{"launch", on_launch},
	{"attach", on_attach},
	{"started", on_started},
	{"exited", on_exited},
	{"get", request_get},
	{"status", request_status},
	{"stop", on_stop},
	{"logs", on_logs},
	{"apply", request_apply},
	{"service", request_service},
	{"events", on_events},
	{"enter", request_enter},
	{"remove", request_remove},
	{"explain", request_explain},
	{"expect", request_expect},
	{"policy", request_policy},
	{"apply-cluster", request_apply},
	{"config-history", request_config_history},
};

void request_handle(void *arg, struct client *c, json_t *request, int fd)
{
	struct agent *a = arg;
	const char *op = json_string_value(json_object_get(request, "op"));

	for (size_t i = 0; op && i < ARRAY_SIZE(ops); i++) {
		if (!streq(op, ops[i].op))
			continue;
		ops[i].handle(a, c, request, fd);
		return;
	}
	client_error(c, -EOPNOTSUPP,
		     "the agent does not know this request: is it an older version "
		     "than the command?");
}

static void undo_launch(struct agent *a, uint32_t id)
{
	struct app *app = id ? app_by_id(a, id) : NULL;

	if (!app)
		return;
	/* its launcher died half way; what it may have started in the cgroup goes too */
	log_info("the launch of %s (%u) was not finished and is undone", app->spec.name, app->id);
	app->no_restart = true;
	if (cgroup_populated(app->cgroup) > 0) {
		struct error e;

		cgroup_signal(app->cgroup, SIGKILL);
		if (app_started(a, app, 0, 0, &e) == 0) {
			app->state = APP_STOPPING;
			app_check(a, app);
			return;
		}
		/* it cannot be watched: killed processes are gone in a moment */
		for (int i = 0; i < 100 && cgroup_populated(app->cgroup) > 0; i++)
			usleep(10000);
	}
	app->replaced = false; /* spawn_reap() hears of it as well, and does that */
	app_remove(a, app);
}

void request_client_gone(void *arg, struct client *c)
{
	const struct client_state *st = client_kept(c);
	struct agent *a = arg;

	if (st && st->apply)
		request_apply_orphan(st->apply);
	if (st && st->launch)
		st->launch->c = NULL;
	if (st && st->get)
		request_get_orphan(st->get);
	if (st && st->service)
		request_service_orphan(st->service);
	if (st && st->explain)
		request_explain_orphan(st->explain);
	if (st && st->expect)
		request_expect_orphan(st->expect);
	if (st)
		undo_launch(a, st->launch_id);
	if (st)
		request_entered(a, st->entering);
	events_update(a);
}

void request_free_kept(void *kept)
{
	struct client_state *st = kept;

	if (!st)
		return;
	free(st->stopping);
	json_decref(st->stopped);
	free(st);
}

/* One client whose stop waited for this app alone; NULL: none (any more). */
static struct client *client_served(struct agent *a, const struct app *app)
{
	for (struct client *c = NULL; (c = client_next(a->control, c));) {
		struct client_state *st = client_kept(c);
		size_t left = 0, before = st ? st->n_stopping : 0;

		if (st && st->launch_id == app->id)
			st->launch_id = 0;
		for (size_t i = 0; i < before; i++)
			if (st->stopping[i] != app->id)
				st->stopping[left++] = st->stopping[i];
		if (st)
			st->n_stopping = left;
		if (before && !left)
			return c;
	}
	return NULL;
}

void requests_app_gone(struct agent *a, const struct app *app)
{
	struct client *c;

	/* a reply may close its client, and others with it: begin anew after each */
	while ((c = client_served(a, app))) {
		struct client_state *st = client_kept(c);
		json_t *stopped = take_ptr(&st->stopped);

		client_reply(c, json_pack("{sb so}", "ok", 1, "stopped", stopped), -1);
	}
}
