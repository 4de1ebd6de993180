/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes are meant by an app's name or a cgroup's directory. */
#include <dirent.h>
#include <limits.h>

#include "machine/cgroup.h"
#include "machine/mounts.h"
#include "probes/session/scope.h"

static int find_mount(char *path, size_t size, struct error *e)
{
	int r = mount_find("cgroup2", path, size);

	if (r < 0)
		return error_set(e, r, "there is no cgroup2 file system: %s", strerror(-r));
	return 0;
}

static int add_cgroup(const char *path, struct session_options *o, struct error *e)
{
	autofree char *real = realpath(path, NULL);
	struct ax_scope *s = &o->scope;
	char root[PATH_MAX];
	uint32_t level = 0;
	size_t n;
	int r;

	if (!real)
		return error_set(e, -ENOENT, "there is no cgroup '%.200s': %s", path,
				 strerror(errno));
	r = find_mount(root, sizeof(root), e);
	if (r < 0)
		return r;
	n = strlen(root);
	if (strncmp(real, root, n) != 0 || (real[n] && real[n] != '/') ||
	    cgroup_id(real, (uint64_t *)&s->cgroups[s->n]) < 0)
		return error_set(e, -ENOENT,
				 "'%.200s' is no cgroup: expected a directory below %.100s", path,
				 root);
	for (const char *p = real + n; *p; p++)
		level += *p == '/';
	s->level = level;
	s->n++;
	return 0;
}

int scope_cgroup(const char *path, struct session_options *o, struct error *e)
{
	o->scope.n = 0;
	return add_cgroup(path, o, e);
}

/* Several apps may have one name. What they are together does not depend on their order. */
uint64_t scope_number(const struct session_options *o)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < o->scope.n; i++)
		sum += o->scope.cgroups[i];
	return sum;
}

static int no_app(const char *app, struct error *e)
{
	return error_set(e, -ENOENT,
			 "no app '%.100s' is running: 'ax get apps' lists those that are", app);
}

/* The directories say it as well as the agent does, who need not run. */
static int add_apps(const char *root, const char *app, struct session_options *o, struct error *e)
{
	DIR *d = opendir(root);
	char path[PATH_MAX];
	struct dirent *de;
	int r = 0;

	while (r == 0 && d && (de = readdir(d))) {
		if (de->d_type != DT_DIR || !apps_is(de->d_name, app))
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", root, de->d_name) >= sizeof(path))
			continue;
		if (o->scope.n == AX_SCOPE_CGROUPS)
			r = error_set(e, -E2BIG,
				      "more than %d apps are named '%.60s': expected one of their "
				      "numbers",
				      AX_SCOPE_CGROUPS, app);
		else
			r = add_cgroup(path, o, e);
		if (r == -ENOENT) /* it has just ended */
			r = 0;
	}
	if (d)
		closedir(d);
	return r < 0 || o->scope.n ? r : no_app(app, e);
}

int scope_app(const struct instance *inst, const char *app, struct session_options *o,
	      struct error *e)
{
	char root[PATH_MAX];
	int r = apps_directory(inst, root, sizeof(root), e);

	o->scope.n = 0;
	return r < 0 ? r : add_apps(root, app, o, e);
}
