/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/request_shared.h"
#include "base/work.h"
#include "cluster/cluster.h"
#include "config/diff.h"
#include "config/shared.h"
#include "control/control.h"
#include "control/server.h"
#include "daemon/requests_priv.h"
#include "registry/state.h"
#include "sections/shared_services.h"

static void row(json_t *diff, const char *action, const char *kind, const char *name,
		const char *detail)
{
	json_array_append_new(diff, json_pack("{ss ss ss ss}", "action", action, "kind", kind,
					      "name", name, "detail", detail));
}

static const struct config_service *find(const struct config *c, const char *name)
{
	for (size_t i = 0; c && i < c->n_services; i++)
		if (streq(c->services[i].name, name))
			return &c->services[i];
	return NULL;
}

static bool is_overridden(const struct strv *v, const char *name)
{
	for (size_t i = 0; v && i < v->n; i++)
		if (streq(v->v[i], name))
			return true;
	return false;
}

static void note_service(const struct agent *a, const struct config_service *c, json_t *diff)
{
	const struct config_service *old = find(a->shared_config, c->name);
	char detail[1024] = "";

	if (is_overridden(shared_overridden(a), c->name) || find(&a->config, c->name)) {
		row(diff, "change", "service", c->name, "this node has its own of that name");
	} else if (!old) {
		row(diff, "add", "service", c->name, "");
	} else if (!config_service_eq(old, c)) {
		config_describe_service(detail, sizeof(detail), old, c);
		row(diff, "change", "service", c->name, detail);
	}
}

static bool rules_same(const struct config *o, const struct config *n)
{
	bool same = (o ? o->n_rules : 0) == n->n_rules;

	for (size_t i = 0; same && i < n->n_rules; i++)
		same = config_rule_eq(&o->rules[i], &n->rules[i]);
	return same;
}

/* Against what holds on this node. */
static json_t *difference(const struct agent *a, const struct config *next)
{
	const struct config *old = a->shared_config;
	json_t *diff = json_array();

	for (size_t i = 0; old && i < old->n_services; i++)
		if (!find(next, old->services[i].name))
			row(diff, "remove", "service", old->services[i].name, "");
	for (size_t i = 0; i < next->n_services; i++) {
		work_pause(a->work);
		note_service(a, &next->services[i], diff);
	}
	if (!rules_same(old, next))
		row(diff, "change", "policy", "rules", "");
	return diff;
}

struct parse {
	const char *text;
	struct config *config;
	struct config_errors *errs;
	int r;
};

static void parse(void *arg)
{
	struct parse *p = arg;

	p->r = config_shared_parse(p->text, strlen(p->text), p->config, p->errs);
}

int shared_judge(struct agent *a, const char *text, json_t **ret, struct config_errors *errs,
		 struct error *e)
{
	struct config next;
	struct parse p = {.text = text, .config = &next, .errs = errs};
	int r;

	*ret = NULL;
	if (!a->cluster)
		return error_set(e, -ENOENT,
				 "this node is in no cluster: see CLUSTER in ax.yaml(5)");
	work_offload(a->work, parse, &p);
	if (p.r)
		return p.r == -EINVAL && errs->n ? p.r : error_set(e, p.r, "%s", strerror(-p.r));
	r = shared_check(a, &next, e);
	if (!r)
		*ret = difference(a, &next);
	config_free(&next);
	return r;
}

/* --- what was stored --- */

json_t *shared_view(const struct agent *a, json_t *cluster)
{
	const struct strv *v = shared_overridden(a);
	json_t *list = v && v->n ? json_array() : NULL;

	for (size_t i = 0; list && i < v->n; i++)
		json_array_append_new(list, json_string(v->v[i]));
	if (list)
		json_object_set_new(json_object_get(cluster, "config"), "own", list);
	return cluster;
}

void request_config_history(struct agent *a, struct client *c, json_t *j, int fd)
{
	int64_t revision = json_integer_value(json_object_get(j, "revision"));
	struct error e = {0};
	const char *text;

	(void)fd;
	if (!a->cluster) {
		client_error(c, -ENOENT, "this node is in no cluster: see CLUSTER in ax.yaml(5)");
		return;
	}
	if (!json_object_get(j, "revision")) {
		client_reply(c,
			     json_pack("{sb so}", "ok", 1, "revisions", cluster_config_history(a)),
			     -1);
		return;
	}
	text = cluster_config_text(a, &revision, &e);
	if (text)
		client_reply(c,
			     json_pack("{sb sI ss}", "ok", 1, "revision", (json_int_t)revision,
				       "text", text),
			     -1);
	else
		client_error(c, -ENOENT, e.text);
}
