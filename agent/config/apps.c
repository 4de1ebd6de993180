// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section apps:. */
#include "base/values.h"
#include "config/limits.h"
#include "config/read.h"
#include "config/spec.h"

static void read_name(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a name");
	const char *want = text ? want_name(text) : NULL;
	struct config_app *app = to;

	if (want)
		reject(r, n, "%s", want);
	if (!text || want)
		return;
	app->spec.name = strdup(text);
	if (have(r, app->spec.name))
		claim_name(r, n, text, OWNER_APP);
}

static void read_ip(struct reader *r, const struct node *n, void *to)
{
	struct app_spec *spec = to;

	read_vips(r, n, OWNER_APP, &spec->ip4, &spec->ip6);
}

static void read_net(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "private or host");
	const char *want = text ? want_net(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_restart(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "no, on-failure or always");
	const char *want = text ? want_restart(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_memory(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a size");
	const char *want = text ? want_memory(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_cpus(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a number of processors");
	const char *want = text ? want_cpus(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_pids(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a number of processes");
	const char *want = text ? want_pids(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_volume(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "SOURCE:TARGET");
	struct volume v;
	const char *want = text ? want_volume(text, &v) : NULL;

	if (want)
		reject(r, n, "%s", want);
	else if (text)
		done(r, strv_add(to, text));
}

static void read_volumes(struct reader *r, const struct node *n, void *to)
{
	read_list(r, n, "volumes, each as SOURCE:TARGET", CONFIG_VOLUMES_MAX, read_volume, to);
}

static void read_start(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "now or on-connect");
	bool *on_connect = to;

	if (!text)
		return;
	*on_connect = streq(text, "on-connect");
	if (!*on_connect && !streq(text, "now"))
		reject(r, n, "now or on-connect");
}

/* --- env --- */

static void read_variable(struct reader *r, const struct node *key, const struct node *value,
			  void *to)
{
	const char *text = maybe_empty_text(r, value, "the variable's value");
	autofree char *item = NULL;

	if (!text)
		return;
	if (!key->len || strchr(key->text, '='))
		reject(r, key, "a variable's name");
	else if (done(r, asprintf(&item, "%s=%s", key->text, text)))
		done(r, strv_add(to, item));
}

struct env_list {
	struct registry seen;
	struct strv *env;
};

static void read_assignment(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "KEY=VALUE");
	const char *eq = text ? strchr(text, '=') : NULL;
	struct env_list *list = to;
	struct claim earlier;
	struct claim c;
	int taken;

	if (!text)
		return;
	if (!eq || eq == text) {
		reject(r, n, "KEY=VALUE");
		return;
	}
	c = (struct claim){.key = text, .len = (size_t)(eq - text), .line = n->line};
	taken = registry_claim(&list->seen, &c, &earlier);
	if (taken > 0)
		reject(r, n, "each variable once (line %u has it already)", earlier.line);
	else if (done(r, taken))
		done(r, strv_add(list->env, text));
}

static void read_env(struct reader *r, const struct node *n, void *to)
{
	struct env_list list = {.env = to};

	if (n->kind != NODE_LIST) {
		read_entries(r, n, "variables, or a list of KEY=VALUE", read_variable, to);
		return;
	}
	read_list(r, n, "KEY=VALUE", SIZE_MAX, read_assignment, &list);
	registry_free(&list.seen);
}

/* --- the section --- */

static const struct key app_keys[] = {
	{"name", read_name, 0},
	{"command", read_command, offsetof(struct config_app, spec.command)},
	{"ip", read_ip, offsetof(struct config_app, spec)},
	{"labels", read_labels, offsetof(struct config_app, spec.labels)},
	{"user", read_user, offsetof(struct config_app, spec.user)},
	{"net", read_net, offsetof(struct config_app, spec.net)},
	{"env", read_env, offsetof(struct config_app, spec.env)},
	{"directory", read_absolute_path, offsetof(struct config_app, spec.directory)},
	{"wait", read_duration_ms, offsetof(struct config_app, spec.wait_ms)},
	{"egress", read_egress, offsetof(struct config_app, spec.egress)},
	{"restart", read_restart, offsetof(struct config_app, spec.restart)},
	{"splice", read_splice, offsetof(struct config_app, spec.splice)},
	{"splice-emulation", read_bool, offsetof(struct config_app, spec.splice_emulation)},
	{"memory", read_memory, offsetof(struct config_app, spec.memory)},
	{"cpus", read_cpus, offsetof(struct config_app, spec.cpus)},
	{"pids", read_pids, offsetof(struct config_app, spec.pids)},
	{"volumes", read_volumes, offsetof(struct config_app, spec.volumes)},
	{"read-only", read_bool, offsetof(struct config_app, spec.read_only)},
	{"expose", read_expose, offsetof(struct config_app, spec.expose)},
	{"start", read_start, offsetof(struct config_app, on_connect)},
	{"idle", read_duration_ms, offsetof(struct config_app, idle_ms)},
};

static void check_start(struct reader *r, const struct node *key, const struct config_app *app)
{
	if (app->on_connect && !app->spec.command.n)
		report(r, key, "start: on-connect without a command", "command: ...");
	if (app->idle_ms && !app->on_connect)
		report(r, key, "idle without start: on-connect",
		       "start: on-connect, or nobody would start it again");
}

static void read_app(struct reader *r, const struct node *key, const struct node *value, void *to)
{
	struct config *c = to;
	struct config_app *app = &c->apps[c->n_apps++];
	const char *want = want_name(key->text);

	app->key = strdup(key->text);
	if (!have(r, app->key))
		return;
	if (want)
		reject(r, key, "%s", want);
	if (!read_mapping(r, value, app_keys, ARRAY_SIZE(app_keys), app))
		return;
	check_start(r, key, app);
	if (app->spec.name || want)
		return;
	app->spec.name = strdup(key->text);
	if (have(r, app->spec.name))
		claim_name(r, key, key->text, OWNER_APP);
}

void read_apps(struct reader *r, const struct node *n, void *to)
{
	struct config *c = to;

	if (n->kind == NODE_MAPPING && n->n > 0) {
		c->apps = calloc(n->n, sizeof(*c->apps));
		if (!have(r, c->apps))
			return;
	}
	read_entries(r, n, "apps by name", read_app, c);
}
