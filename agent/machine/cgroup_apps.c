/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <limits.h>

#include "machine/cgroup.h"
#include "machine/mounts.h"

int apps_directory(const struct instance *inst, char *path, size_t size, struct error *e)
{
	int r = mount_find("cgroup2", path, size);
	size_t n;

	if (r < 0)
		return error_set(e, r, "there is no cgroup2 file system: %s", strerror(-r));
	n = strlen(path);
	if ((size_t)snprintf(path + n, size - n, "/%s", inst->name) >= size - n)
		return error_set(e, -ENAMETOOLONG, "the path of the apps' cgroups is too long");
	return 0;
}

bool apps_is(const char *directory, const char *app)
{
	const char *number = strrchr(directory, '-');

	if (!number || !number[1] || number[1 + strspn(number + 1, "0123456789")])
		return false;
	if (streq(number + 1, app))
		return true;
	return strlen(app) == (size_t)(number - directory) &&
	       strncmp(directory, app, strlen(app)) == 0;
}

/* Calls f for each app's directory until it returns non-zero, which is returned. */
static int each_app(const char *apps, int (*f)(void *arg, const char *name, uint64_t cgroup),
		    void *arg)
{
	DIR *d = opendir(apps);
	struct dirent *de;
	int r = 0;

	while (r == 0 && d && (de = readdir(d))) {
		char path[PATH_MAX];
		uint64_t id;

		if (de->d_type != DT_DIR || !strchr(de->d_name, '-') ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", apps, de->d_name) >=
			    sizeof(path) ||
		    cgroup_id(path, &id) < 0)
			continue;
		r = f(arg, de->d_name, id);
	}
	if (d)
		closedir(d);
	return r;
}

struct finding {
	const char *app;
	uint64_t *cgroups;
	size_t n, max;
};

static int on_wanted(void *arg, const char *name, uint64_t cgroup)
{
	struct finding *f = arg;

	if (apps_is(name, f->app) && f->n < f->max)
		f->cgroups[f->n++] = cgroup;
	return 0;
}

size_t apps_find(const char *apps, const char *app, uint64_t *cgroups, size_t max)
{
	struct finding f = {.app = app, .cgroups = cgroups, .max = max};

	each_app(apps, on_wanted, &f);
	return f.n;
}

struct naming {
	uint64_t cgroup;
	char *name;
	size_t size;
};

static int on_named(void *arg, const char *name, uint64_t cgroup)
{
	struct naming *n = arg;

	if (cgroup != n->cgroup)
		return 0;
	snprintf(n->name, n->size, "%.*s", (int)(strrchr(name, '-') - name), name);
	return 1;
}

int apps_name(const char *apps, uint64_t cgroup, char *name, size_t size)
{
	struct naming n = {.cgroup = cgroup, .name = name, .size = size};

	return each_app(apps, on_named, &n) ? 0 : -ENOENT;
}
