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

int scope_cgroup(const char *path, struct session_options *o, struct error *e)
{
	autofree char *real = realpath(path, NULL);
	char root[PATH_MAX];
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
	    cgroup_id(real, &o->cgroup) < 0)
		return error_set(e, -ENOENT,
				 "'%.200s' is no cgroup: expected a directory below %.100s", path,
				 root);
	o->cgroup_level = 0;
	for (const char *p = real + n; *p; p++)
		o->cgroup_level += *p == '/';
	return 0;
}

/* The directories say it as well as the agent does, who need not run. */
static int find_app(const char *root, const char *app, char *path, size_t size, struct error *e)
{
	char numbers[200] = "";
	DIR *d = opendir(root);
	struct dirent *de;
	size_t found = 0;

	while (d && (de = readdir(d))) {
		size_t len = strlen(numbers);

		if (de->d_type != DT_DIR || !apps_is(de->d_name, app))
			continue;
		if ((size_t)snprintf(path, size, "%s/%s", root, de->d_name) >= size)
			continue;
		snprintf(numbers + len, sizeof(numbers) - len, "%s%s", found ? ", " : "",
			 strrchr(de->d_name, '-') + 1);
		found++;
	}
	if (d)
		closedir(d);
	if (!found)
		return error_set(e, -ENOENT,
				 "no app '%.100s' is running: 'ax get apps' lists those that are",
				 app);
	if (found > 1)
		return error_set(e, -EINVAL,
				 "%zu apps are named '%.60s': expected one of their numbers, %s",
				 found, app, numbers);
	return 0;
}

int scope_app(const struct instance *inst, const char *app, struct session_options *o,
	      struct error *e)
{
	char root[PATH_MAX], path[PATH_MAX];
	int r = apps_directory(inst, root, sizeof(root), e);

	if (r < 0)
		return r;
	r = find_app(root, app, path, sizeof(path), e);
	return r < 0 ? r : scope_cgroup(path, o, e);
}
