/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of running apps, and how to find one. */
#include <fcntl.h>

#include "registry/app_table.h"
#include "machine/cgroup.h"
#include "base/loop.h"
#include "config/config.h"
#include "registry/asked_names.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/state.h"

const char *app_state_name(enum app_state s)
{
	static const char *const names[] = {"starting", "running", "stopping", "ended"};

	return names[s];
}

uint64_t app_egress_id(const struct app *app)
{
	return egress_id(&app->spec.egress);
}

struct policy_who app_who(const struct app *app)
{
	return (struct policy_who){.name = app->spec.name,
				   .ip4 = &app->vip4,
				   .ip6 = &app->vip6,
				   .egress = app_egress_id(app)};
}

bool app_egress_is_open(const struct app *app)
{
	return egress_is_open(&app->spec.egress, app->spec.net == NET_HOST);
}

bool apps_any_in_host_mode(const struct agent *a)
{
	for (const struct app *x = a->apps; x; x = x->next)
		if (x->spec.net == NET_HOST)
			return true;
	return false;
}

bool app_is_confined(const struct app *app)
{
	return app->spec.net == NET_HOST && (app->confined || !app_egress_is_open(app));
}

#define APP_BUCKETS 4096

struct app_index {
	struct app *by_id[APP_BUCKETS];
	uint32_t last; /* the last id that was given out */
};

int app_table_open(struct agent *a)
{
	a->app_index = calloc(1, sizeof(*a->app_index));
	return a->app_index ? 0 : -ENOMEM;
}

static void free_list(struct app *app)
{
	while (app) {
		struct app *next = app->next;

		app_free(app);
		app = next;
	}
}

void app_table_close(struct agent *a)
{
	free_list(take_ptr(&a->apps));
	free_list(take_ptr(&a->lingering));
	free(a->app_index);
	a->app_index = NULL;
}

static struct app **bucket(const struct agent *a, uint32_t id)
{
	return &a->app_index->by_id[id % APP_BUCKETS];
}

struct app *app_new(void)
{
	struct app *app = calloc(1, sizeof(*app));

	if (!app)
		return NULL;
	app->launcher = (struct loop_item){.kind = LOOP_LAUNCHER, .fd = -1};
	app->watch = app->exit_status = app->netns_fd = -1;
	return app;
}

void app_free(struct app *app)
{
	app_spec_free(&app->spec);
	asked_names_free(app->asked);
	free(app->config_key);
	free(app->cgroup);
	close_fd(&app->launcher.fd);
	close_fd(&app->netns_fd);
	free(app);
}

struct app *app_by_id(struct agent *a, uint32_t id)
{
	struct app *app = *bucket(a, id);

	while (app && app->id != id)
		app = app->id_next;
	return app;
}

struct app *app_by_name(struct agent *a, const char *name)
{
	struct name *n = name_find(a, name);

	return n ? n->app : NULL;
}

void app_link(struct agent *a, struct app *app)
{
	struct app **p = &a->apps;
	struct name *n = name_get(a, app->spec.name);

	while (*p && (*p)->id < app->id)
		p = &(*p)->next;
	app->next = *p;
	*p = app;
	a->n_apps++;
	a->splice_stale = true;
	app_id_taken(a, app->id);
	app->id_next = *bucket(a, app->id);
	*bucket(a, app->id) = app;
	if (n && (!n->app || n->app->id > app->id))
		n->app = app;
	if (n && n->others)
		name_stale(a, n);
}

void app_unlink(struct agent *a, struct app *app)
{
	struct name *n = name_find(a, app->spec.name);
	struct app **p = &a->apps;

	while (*p && *p != app)
		p = &(*p)->next;
	if (!*p)
		return;
	*p = app->next;
	a->n_apps--;
	a->splice_stale = true;
	p = bucket(a, app->id);
	while (*p != app)
		p = &(*p)->id_next;
	*p = app->id_next;
	if (n && n->others)
		name_stale(a, n);
	if (!n || n->app != app)
		return;
	n->app = NULL;
	for (struct app *x = a->apps; x && !n->app; x = x->next)
		if (streq(x->spec.name, n->text))
			n->app = x;
	name_put(a, n);
}

int app_netns(const struct app *app)
{
	int fd, pid = app->cgroup ? cgroup_first_pid(app->cgroup) : 0; /* NULL: not made yet */
	char path[64];

	if (pid <= 0)
		return pid ? pid : -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

#define APP_ID_MAX 999999 /* "<instance>-<id>" must fit an interface name */

void app_id_taken(struct agent *a, uint32_t id)
{
	if (id > a->app_index->last)
		a->app_index->last = id;
}

uint32_t app_next_id(struct agent *a)
{
	uint32_t *id = &a->app_index->last;

	do {
		*id = *id >= APP_ID_MAX ? 1 : *id + 1;
	} while (app_by_id(a, *id));
	return *id;
}
