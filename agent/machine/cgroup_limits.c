/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an app's cgroup may use. A limit that cannot be set is an error: nothing runs without one
 * that was asked for. */
#include <limits.h>

#include "machine/cgroup.h"

#define CPU_PERIOD_US 100000 /* the kernel's own */

/* A controller in a list like that of cgroup.controllers. */
static bool is_in(const char *list, const char *controller)
{
	size_t len = strlen(controller);

	for (const char *p = list; (p = strstr(p, controller)); p += len)
		if ((p == list || p[-1] == ' ') && strchr(" \n", p[len]))
			return true;
	return false;
}

static bool has(const char *dir, const char *file, const char *controller)
{
	autofree char *text = NULL;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return file_read(path, 4096, &text) == 0 && is_in(text, controller);
}

/* Why cgroup2 has not got it, by /proc/cgroups: name, hierarchy, groups, enabled. */
static const char *why_missing(const char *controller)
{
	static const char *const not_built = "this kernel is built without it";
	autofile FILE *f = fopen("/proc/cgroups", "re");
	unsigned hierarchy, groups, enabled;
	char line[256], name[64];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %u %u %u", name, &hierarchy, &groups, &enabled) != 4 ||
		    !streq(name, controller))
			continue;
		if (!enabled)
			return "it is switched off when the kernel starts: see cgroup_disable and "
			       "cgroup_enable of its command line";
		if (hierarchy)
			return "cgroup v1 has it: start with "
			       "systemd.unified_cgroup_hierarchy=1, or without what mounts it";
		return "whoever made this cgroup2 tree (a container's host) has kept it back";
	}
	return f ? not_built : "/proc/cgroups cannot be read";
}

/* In what is above the apps: down from the mount. */
static int enable(const char *dir, const char *controller, struct error *e)
{
	char path[PATH_MAX], text[32];
	int r;

	if (has(dir, "cgroup.subtree_control", controller))
		return 0;
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	snprintf(text, sizeof(text), "+%s", controller);
	r = file_write(path, text);
	if (r == -EBUSY)
		return error_set(e, r,
				 "the %s controller cannot be had in %s: processes are in that "
				 "cgroup itself; move them below it",
				 controller, dir);
	return r ? error_set(e, r, "the %s controller cannot be had in %s (%s)", controller, dir,
			     strerror(-r))
		 : 0;
}

static int need(const char *root, const char *controller, struct error *e)
{
	char top[PATH_MAX];
	char *slash;
	int r;

	snprintf(top, sizeof(top), "%s", root);
	slash = strrchr(top, '/');
	if (!slash)
		return error_set(e, -EINVAL, "%s is no cgroup's path", root);
	*slash = 0;
	if (!has(top, "cgroup.controllers", controller))
		return error_set(e, -EOPNOTSUPP, "there is no %s controller in cgroup2: %s",
				 controller, why_missing(controller));
	r = enable(top, controller, e);
	return r ? r : enable(root, controller, e);
}

static int set(const char *root, const char *path, const char *file, const char *value,
	       struct error *e)
{
	char controller[16], name[PATH_MAX];
	int r;

	snprintf(controller, sizeof(controller), "%.*s", (int)strcspn(file, "."), file);
	r = need(root, controller, e);
	if (r)
		return r;
	snprintf(name, sizeof(name), "%s/%s", path, file);
	r = file_write(name, value);
	return r ? error_set(e, r, "cannot set %s to %s (%s)", name, value, strerror(-r)) : 0;
}

int cgroup_limit(const char *root, const char *path, const struct cgroup_limits *l, struct error *e)
{
	char text[48];
	int r = 0;

	if (l->memory) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)l->memory);
		r = set(root, path, "memory.max", text, e);
	}
	if (!r && l->cpus) {
		snprintf(text, sizeof(text), "%llu %u",
			 (unsigned long long)l->cpus * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
		r = set(root, path, "cpu.max", text, e);
	}
	if (!r && l->pids) {
		snprintf(text, sizeof(text), "%u", l->pids);
		r = set(root, path, "pids.max", text, e);
	}
	return r;
}
