/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services and rules that clients add, change and remove: works, as applies are, so that each sees
 * what those before it have left. */
#include "daemon/requests_priv.h"
#include "base/work.h"
#include "control/control.h"
#include "control/server.h"
#include "daemon/permissions.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "sections/added_rules.h"
#include "sections/added_services.h"
#include "sections/shared_services.h"
#include "services/drain.h"

struct service_work {
	struct agent *a;
	struct client *c; /* NULL: gone */
	json_t *request;
	int (*change)(struct agent *a, const json_t *j, struct error *e);
};

static int drain(struct agent *a, const json_t *j, const char *name, struct error *e)
{
	const char *backend = json_string_value(json_object_get(j, "backend"));
	json_int_t ms = json_integer_value(json_object_get(j, "deadline_ms"));
	struct service *s = service_by_name(a, name);

	if (!s)
		return error_set(e, -ENOENT, "there is no service %.60s: see 'ax get services'",
				 name);
	if (!backend || !*backend || ms < 0 || ms > UINT32_MAX)
		return error_set(e, -EINVAL, "drain goes with a backend");
	return json_is_true(json_object_get(j, "undo"))
		       ? service_undrain(a, s, backend, e)
		       : service_drain(a, s, backend, (uint32_t)ms, e);
}

static int unknown_action(struct error *e)
{
	return error_set(e, -EINVAL,
			 "the agent does not know this action: is it an older version "
			 "than the command?");
}

static int change_service(struct agent *a, const json_t *j, struct error *e)
{
	const char *action = json_string_value(json_object_get(j, "action"));
	const char *name = json_string_value(json_object_get(j, "name"));
	json_t *words = json_object_get(j, "words");

	if (!action || !name || !*name)
		return error_set(e, -EINVAL, "service goes with an action and a name");
	if (streq(action, "add") && json_is_object(words))
		return added_add(a, name, words, e);
	if (streq(action, "set") && json_is_object(words))
		return added_set(a, name, words, e);
	if (streq(action, "del")) {
		int r = added_del(a, name, e);

		if (!r)
			shared_settle(a); /* it may have stood before the cluster's of that name */
		return r;
	}
	if (streq(action, "drain"))
		return drain(a, j, name, e);
	return unknown_action(e);
}

static int change_policy(struct agent *a, const json_t *j, struct error *e)
{
	const char *action = json_string_value(json_object_get(j, "action"));
	const char *name = json_string_value(json_object_get(j, "name"));
	json_t *rule = json_object_get(j, "rule");

	if (action && streq(action, "del"))
		return added_rules_del(a, json_object_get(j, "names"), e);
	if (!action || !name || !*name || !json_is_object(rule))
		return error_set(e, -EINVAL, "policy goes with an action, a name and a rule");
	if (streq(action, "add"))
		return added_rules_add(a, name, rule, e);
	if (streq(action, "set"))
		return added_rules_set(a, name, rule, e);
	return unknown_action(e);
}

static void run(void *arg)
{
	struct service_work *w = arg;
	struct error e = {0};
	int r = w->change(w->a, w->request, &e);
	struct client_state *st = w->c ? client_kept(w->c) : NULL;

	if (st)
		st->service = NULL;
	if (w->c && r)
		client_error(w->c, r, e.text);
	else if (w->c)
		client_ok(w->c);
	json_decref(w->request);
	free(w);
}

static void request_change(struct agent *a, struct client *c, json_t *j,
			   int (*change)(struct agent *a, const json_t *j, struct error *e))
{
	struct client_state *st = client_state_get(c);
	struct service_work *w;

	if (!st || only_root(c))
		return;
	if (st->service) {
		client_error(c, -EBUSY, "this connection is changing a service or a rule already");
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w)
		*w = (struct service_work){
			.a = a, .c = c, .request = json_incref(j), .change = change};
	st->service = w;
	if (w && !work_start(a->work, client_uid(c), run, w))
		return;
	st->service = NULL;
	if (w)
		json_decref(w->request);
	free(w);
	client_error(c, -ENOMEM, "out of memory");
}

void request_service(struct agent *a, struct client *c, json_t *j, int fd)
{
	(void)fd;
	request_change(a, c, j, change_service);
}

void request_policy(struct agent *a, struct client *c, json_t *j, int fd)
{
	(void)fd;
	request_change(a, c, j, change_policy);
}

void request_service_orphan(struct service_work *w)
{
	w->c = NULL;
}
