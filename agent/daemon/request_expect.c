/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether what holds is what somebody expects: the rules of the config, those that were added and
 * the cluster's, for apps that run and those of the config. */
#include "daemon/requests_priv.h"
#include "base/work.h"
#include "config/config.h"
#include "config/expect.h"
#include "control/control.h"
#include "control/reply.h"
#include "control/server.h"
#include "daemon/permissions.h"
#include "registry/app_table.h"
#include "registry/state.h"
#include "yaml/errors.h"

#define UNMET_MAX 1000 /* that are said */

struct expect_work {
	struct agent *a;
	struct client *c; /* NULL: gone */
	json_t *request;
	struct config_app *apps; /* the first n_run are copies of those that run */
	size_t n_apps, n_run;
	json_t *answer;
	struct reply text;
	struct error e;
	int r;
};

/* --- who there is --- */

/* What rules ask of an app, and no more: it may end meanwhile. */
static int copy_app(const struct app *app, struct config_app *ret)
{
	ret->spec.name = strdup(app->spec.name);
	ret->spec.ip4 = app->vip4;
	ret->spec.ip6 = app->vip6;
	ret->spec.net = app->spec.net;
	if (!ret->spec.name || labels_copy(&app->spec.labels, &ret->spec.labels))
		return -ENOMEM;
	return egress_copy(&app->spec.egress, &ret->spec.egress);
}

static bool runs(const struct expect_work *w, const char *name)
{
	for (size_t i = 0; i < w->n_run; i++)
		if (streq(w->apps[i].spec.name, name))
			return true;
	return false;
}

static int note_apps(struct expect_work *w)
{
	const struct config *c = &w->a->config;
	int r = 0;

	w->apps = calloc(w->a->n_apps + c->n_apps + 1, sizeof(*w->apps));
	if (!w->apps)
		return -ENOMEM;
	for (const struct app *app = w->a->apps; app && w->n_run < w->a->n_apps && !r;
	     app = app->next)
		r = copy_app(app, &w->apps[w->n_run++]);
	w->n_apps = w->n_run;
	for (size_t i = 0; i < c->n_apps; i++)
		if (!runs(w, c->apps[i].spec.name))
			w->apps[w->n_apps++] = c->apps[i];
	return r;
}

static void work_free(struct expect_work *w)
{
	for (size_t i = 0; i < w->n_run; i++)
		app_spec_free(&w->apps[i].spec);
	free(w->apps);
	json_decref(w->request);
	free(w);
}

/* --- what is said --- */

static int judge(struct expect_work *w, const struct expectations *all)
{
	struct config c = w->a->config;
	const struct config *beside[3] = {0};
	json_t *unmet = json_array();
	size_t failed = 0, n = 0;
	int r = 0;

	c.apps = w->apps;
	c.n_apps = w->n_apps;
	c.rules = w->a->rules;
	c.n_rules = w->a->n_rules;
	if (w->a->added_config)
		beside[n++] = w->a->added_config;
	if (w->a->shared_config)
		beside[n++] = w->a->shared_config;
	for (size_t i = 0; i < all->n && !r; i++) {
		autofree char *why = NULL;
		int holds = expectation_holds_in(&c, beside, &all->v[i], &why);

		r = holds == -ENOMEM || !why ? -ENOMEM : 0;
		if (r || holds > 0 || failed++ >= UNMET_MAX)
			continue;
		json_array_append_new(
			unmet, json_pack("{si ss}", "line", (int)all->v[i].line, "why", why));
	}
	w->answer = json_pack("{sb sI sI so}", "ok", 1, "expectations", (json_int_t)all->n,
			      "failed", (json_int_t)failed, "unmet", unmet);
	return r || !w->answer ? error_set(&w->e, -ENOMEM, "out of memory") : 0;
}

/* By a thread. (Works alone change the config, the rules and the services, and this is part of
 * one.) */
static void answer(void *arg)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct expect_work *w = arg;
	const char *text = json_string_value(json_object_get(w->request, "text"));
	struct expectations all;

	w->r = expectations_parse(text, strlen(text), &all, &errs);
	if (w->r)
		error_set(&w->e, w->r, "the expectations cannot be read: %s", strerror(-w->r));
	else
		w->r = judge(w, &all);
	expectations_free(&all);
	if (!w->r && reply_make(w->answer, &w->text))
		w->r = error_set(&w->e, -EMSGSIZE,
				 "the answer is longer than the agent keeps for one client");
	json_decref(w->answer);
}

static void run(void *arg)
{
	struct expect_work *w = arg;

	w->r = w->c && note_apps(w) ? error_set(&w->e, -ENOMEM, "out of memory") : 0;
	if (w->c && !w->r)
		work_offload(w->a->work, answer, w);
	if (w->c)
		((struct client_state *)client_kept(w->c))->expect = NULL;
	if (w->c && w->r)
		client_error(w->c, w->r, w->e.text);
	else if (w->c)
		client_reply_made(w->c, &w->text);
	else
		reply_free(&w->text);
	work_free(w);
}

/* (It is as long as the file says, and no apply comes before its end: root's.) */
void request_expect(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct client_state *st = client_state_get(c);
	struct expect_work *w;

	(void)fd;
	if (!st || only_root(c))
		return;
	if (!json_is_string(json_object_get(j, "text")) || st->expect) {
		client_error(c, -EINVAL, "expect goes with a text, and one at a time");
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w) {
		*w = (struct expect_work){.a = a, .c = c, .request = json_incref(j)};
		st->expect = w;
		client_hold(c);
		if (!work_start(a->work, client_uid(c), run, w))
			return;
		work_free(w);
	}
	st->expect = NULL;
	client_error(c, -ENOMEM, "out of memory");
}

void request_expect_orphan(struct expect_work *w)
{
	w->c = NULL;
}
