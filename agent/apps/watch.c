/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>

#include "apps/watch.h"
#include "base/loop.h"
#include "registry/app_table.h"
#include "registry/state.h"

#define WATCH_BUCKETS 4096

struct watches {
	struct loop_item inotify;
	struct app *by_watch[WATCH_BUCKETS];
};

int watches_open(struct agent *a)
{
	struct watches *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	a->watches = w;
	w->inotify.kind = LOOP_CGROUP;
	w->inotify.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return w->inotify.fd < 0 ? -errno : loop_add(a->epoll, &w->inotify, EPOLLIN);
}

void watches_close(struct agent *a)
{
	if (a->watches)
		close_fd(&a->watches->inotify.fd);
	free(a->watches);
	a->watches = NULL;
}

static struct app **bucket(struct agent *a, int watch)
{
	return &a->watches->by_watch[(unsigned)watch % WATCH_BUCKETS];
}

static struct app *app_by_watch(struct agent *a, int watch)
{
	struct app *app = *bucket(a, watch);

	while (app && app->watch != watch)
		app = app->watch_next;
	return app;
}

/* Descriptors that are left for what the agent cannot do without: without one for its supervisor,
 * an app that ends by more than its supervisor's word has no exit status. */
#define DESCRIPTORS_LEFT 64

static void watch_launcher(struct agent *a, struct app *app)
{
	app->launcher.fd = pidfd_open(app->launcher_pid, 0);
	if (app->launcher.fd >= 0 && !fd_leaves(app->launcher.fd, DESCRIPTORS_LEFT))
		close_fd(&app->launcher.fd);
	if (app->launcher.fd >= 0)
		loop_add(a->epoll, &app->launcher, EPOLLIN);
}

int app_watch(struct agent *a, struct app *app, struct error *e)
{
	char events[4200];

	snprintf(events, sizeof(events), "%s/cgroup.events", app->cgroup);
	app->watch = inotify_add_watch(a->watches->inotify.fd, events, IN_MODIFY);
	if (app->watch < 0)
		return error_set(e, -errno,
				 "cannot watch %s: %s (is fs.inotify.max_user_watches reached?)",
				 events, strerror(errno));
	app->watch_next = *bucket(a, app->watch);
	*bucket(a, app->watch) = app;
	if (app->spec.detach && app->launcher.fd < 0)
		watch_launcher(a, app);
	return 0;
}

void app_unwatch(struct agent *a, struct app *app)
{
	struct app **p = bucket(a, app->watch);

	if (app->watch < 0)
		return;
	while (*p && *p != app)
		p = &(*p)->watch_next;
	if (*p)
		*p = app->watch_next;
	inotify_rm_watch(a->watches->inotify.fd, app->watch);
	app->watch = -1;
}

/* The kernel dropped notices: any app may have ended. */
static void check_all(struct agent *a, void (*check)(struct agent *a, struct app *app))
{
	struct app *next;

	for (struct app *app = a->apps; app; app = next) {
		next = app->next;
		check(a, app);
	}
}

void watches_on_cgroup(struct agent *a, void (*check)(struct agent *a, struct app *app))
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(a->watches->inotify.fd, buf, sizeof(buf));

	for (char *p = buf; n > 0 && p < buf + n;) {
		struct inotify_event *ev = (struct inotify_event *)(void *)p;
		struct app *app = app_by_watch(a, ev->wd);

		p += sizeof(*ev) + ev->len;
		if (ev->mask & IN_Q_OVERFLOW)
			check_all(a, check);
		if (app)
			check(a, app);
	}
}

void watches_on_launcher(struct agent *a, struct loop_item *item,
			 void (*check)(struct agent *a, struct app *app))
{
	struct app *app = LOOP_OWNER(item, struct app, launcher);

	loop_del(a->epoll, item);
	close_fd(&item->fd);
	check(a, app);
}
