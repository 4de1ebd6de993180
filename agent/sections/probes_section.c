/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The config's probes (`probes:`). They are pinned, see probes/named/named.h: nothing here is
 * needed for them to go on, and the next agent finds them as they are. What cannot be attached (its
 * file is not there yet) is said, and tried again with the next apply; one that is on an app waits
 * for it.
 */
#include "sections/probes_section.h"
#include "base/log.h"
#include "base/work.h"
#include "config/config.h"
#include "probes/named/named.h"
#include "registry/app_table.h"
#include "registry/state.h"

struct probe_failed {
	struct probe_failed *next;
	char *name;
	bool waiting; /* for its app */
	char why[sizeof(((struct error *)0)->text)];
};

static struct probe_failed *failed_find(const struct agent *a, const char *name)
{
	struct probe_failed *f = a->probes_failed;

	while (f && !streq(f->name, name))
		f = f->next;
	return f;
}

static void failed_remove(struct agent *a, const char *name)
{
	for (struct probe_failed **at = &a->probes_failed; *at; at = &(*at)->next) {
		struct probe_failed *f = *at;

		if (!streq(f->name, name))
			continue;
		*at = f->next;
		free(f->name);
		free(f);
		return;
	}
}

static void failed_add(struct agent *a, const char *name, bool waiting, const char *why)
{
	struct probe_failed *f = calloc(1, sizeof(*f));

	failed_remove(a, name);
	if (f)
		f->name = strdup(name);
	if (!f || !f->name) {
		free(f);
		return;
	}
	f->waiting = waiting;
	snprintf(f->why, sizeof(f->why), "%s", why);
	f->next = a->probes_failed;
	a->probes_failed = f;
}

/* To whom applies, who else would learn only of the first failure. */
static void warn(struct agent *a, const char *name, const char *why)
{
	json_t *line = a->warnings ? json_sprintf("probe %s: %s", name, why) : NULL;

	if (line)
		json_array_append_new(a->warnings, line);
}

/* What the kernel is slow with, above all: a probe is off when all CPUs have been somewhere else.
 */
struct kernel_work {
	const struct agent *a;
	const struct config_probe *p;
	struct named_outcome o;
	struct error *e;
	int r;
};

static void put_one(void *arg)
{
	struct kernel_work *w = arg;

	w->r = named_apply(w->a->inst, w->p, &w->o, w->e);
}

static void on_gone(void *arg, const char *name)
{
	(void)arg;
	log_info("the probe %s is removed", name);
}

static void remove_others(void *arg)
{
	struct kernel_work *w = arg;

	w->r = named_apply_others(w->a->inst, &w->a->config, on_gone, NULL, w->e);
}

/* No failure: the file may come, and the app be started. */
static void put(struct agent *a, const struct config_probe *p)
{
	struct error e = {0};
	struct kernel_work w = {.a = a, .p = p, .e = &e};
	const struct named_outcome *o = &w.o;
	bool waiting;
	int r;

	work_offload(a->work, put_one, &w);
	r = w.r;

	if (r) {
		waiting = r == -ENOENT && p->app && !app_by_name(a, p->app);
		if (!failed_find(a, p->name) || !streq(failed_find(a, p->name)->why, e.text)) {
			if (waiting)
				log_info("the probe %s waits for its app: %s", p->name, e.text);
			else
				log_error("the probe %s is not attached: %s", p->name, e.text);
		}
		warn(a, p->name, e.text);
		failed_add(a, p->name, waiting, e.text);
		return;
	}
	failed_remove(a, p->name);
	if (o->changed)
		log_info("the probe %s is %s%s", p->name, p->enabled ? "attached" : "there",
			 o->anew ? ", and begins anew" : "");
}

int probes_apply(struct agent *a, struct error *e)
{
	struct probe_failed *f = a->probes_failed, *next;
	struct kernel_work w = {.a = a, .e = e};

	for (; f; f = next) {
		bool stays = false;

		next = f->next;
		for (size_t i = 0; i < a->config.n_probes; i++)
			stays |= streq(a->config.probes[i].name, f->name);
		if (!stays)
			failed_remove(a, f->name);
	}
	work_offload(a->work, remove_others, &w);
	for (size_t i = 0; i < a->config.n_probes; i++)
		put(a, &a->config.probes[i]);
	return w.r;
}

static bool is_on(const struct config_probe *p, const char *name, const char *id)
{
	return p->app && (streq(p->app, name) || streq(p->app, id));
}

bool probes_has_app(const struct agent *a, const struct app *app)
{
	char id[16];

	snprintf(id, sizeof(id), "%u", app->id);
	for (size_t i = 0; i < a->config.n_probes; i++)
		if (is_on(&a->config.probes[i], app->spec.name, id))
			return true;
	return false;
}

void probes_app(struct agent *a, const struct app *app)
{
	autofree char *name = strdup(app->spec.name); /* the app may end meanwhile */
	char id[16];

	snprintf(id, sizeof(id), "%u", app->id);
	for (size_t i = 0; name && i < a->config.n_probes; i++)
		if (is_on(&a->config.probes[i], name, id))
			put(a, &a->config.probes[i]);
}

json_t *probes_view(const struct agent *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->config.n_probes; i++) {
		const struct config_probe *p = &a->config.probes[i];
		const struct probe_failed *f = failed_find(a, p->name);
		json_t *j = json_pack("{ss ss}", "name", p->name, "state",
				      !f	   ? "attached"
				      : f->waiting ? "waiting"
						   : "failed");

		if (f)
			json_object_set_new(j, "why", json_string(f->why));
		json_array_append_new(list, j);
	}
	return list;
}

void probes_free(struct agent *a)
{
	while (a->probes_failed)
		failed_remove(a, a->probes_failed->name);
}
