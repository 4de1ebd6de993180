/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps as they are seen from outside: cgroups named NAME-NUMBER below the instance's, which say it
 * as well as the agent does, who need not run. */
#ifndef AX_BASE_CGROUP_APPS_H
#define AX_BASE_CGROUP_APPS_H

#include "base/instance.h"
#include "base/util.h"

/* The directory of the instance's cgroups. */
int apps_directory(const struct instance *inst, char *path, size_t size, struct error *e);
/* "web-7" is of the app "web", or of the number 7. */
bool apps_is(const char *directory, const char *app);
/* The cgroups of running apps of that name or number. How many there are, at most `max`. */
size_t apps_find(const char *apps, const char *app, uint64_t *cgroups, size_t max);
/* The name of the app that has this cgroup. -ENOENT. */
int apps_name(const char *apps, uint64_t cgroup, char *name, size_t size);

#endif
