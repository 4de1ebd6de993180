/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cgroup2 tree of an instance: <mount>/<instance>/<app>-<id>; an app's record is an extended
 * attribute of its cgroup, so that it lives and dies with it. */
#ifndef AX_MACHINE_CGROUP_H
#define AX_MACHINE_CGROUP_H

#include "machine/instance.h"
#include "base/util.h"

/* What was not there before. */
enum { CGROUP_MADE_MOUNT = 1, CGROUP_MADE_ROOT = 2 };
/* Finds the cgroup2 mount in /proc/self/mounts (mounts one under /run/ax when there is none) and
 * makes <mount>/<instance>; its path goes to ret (PATH_MAX), what it made to *made (may be NULL).
 */
int cgroup_root(const struct instance *inst, char ret[4096], unsigned *made, struct error *e);
/* Takes that back. */
void cgroup_root_undo(const char *root, unsigned made);
/* Takes a mount under /run/ax away once no instance has its directory there. */
void cgroup_unmount_unused(void);
/* The id that BPF programs see: the directory's inode number. */
int cgroup_id(const char *path, uint64_t *ret);
/* 1: has processes, 0: empty, or a negative errno. */
int cgroup_populated(const char *path);
/* Sends a signal to every process below; SIGKILL through cgroup.kill where the kernel has it. */
int cgroup_signal(const char *path, int signal);
/* Removes it and its children (-EBUSY while processes are in it). */
int cgroup_remove(const char *path);
/* The first pid in it or below it, 0 when there is none, or a negative errno. */
int cgroup_first_pid(const char *path);
/* Calls f for each process in it and below it; stops at the first result that is not 0 and returns
 * it. */
int cgroup_each_pid(const char *path, int (*f)(int pid, void *arg), void *arg);
/* Moves a process (0: the caller). */
int cgroup_move(const char *path, int pid);
/* The extended attribute trusted.ax.<key>: text. Reading gives a malloc'ed string; -ENODATA. */
int cgroup_record_set(const char *path, const char *key, const char *text);
int cgroup_record_get(const char *path, const char *key, char **ret);

/* --- what it may use (cgroup_limits.c) --- */

struct cgroup_limits {
	uint64_t memory; /* bytes; 0: no limit, as of the others */
	uint32_t cpus;	 /* thousandths of a processor */
	uint32_t pids;
};
/* Of `path`, an app's below the instance's `root`, for which the controllers are enabled from the
 * mount down. */
int cgroup_limit(const char *root, const char *path, const struct cgroup_limits *l,
		 struct error *e);

/* --- apps as they are seen from outside (cgroup_apps.c): cgroups named NAME-NUMBER below the
 * instance's say it as well as the agent does, who need not run --- */

/* The directory of the instance's cgroups. */
int apps_directory(const struct instance *inst, char *path, size_t size, struct error *e);
/* "web-7" is of the app "web", or of the number 7. */
bool apps_is(const char *directory, const char *app);
/* The cgroups of running apps of that name or number. How many there are, at most `max`. */
size_t apps_find(const char *apps, const char *app, uint64_t *cgroups, size_t max);
/* The name of the app that has this cgroup. -ENOENT. */
int apps_name(const char *apps, uint64_t cgroup, char *name, size_t size);

#endif
