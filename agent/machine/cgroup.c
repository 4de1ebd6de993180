/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "machine/cgroup.h"
#include "machine/mounts.h"

#define CGROUP_PATH_MAX (PATH_MAX + 64)

#define RUN_DIR	  "/run/ax"
#define OWN_MOUNT RUN_DIR "/cgroup2"

static void remove_own_mount(void)
{
	/* EBUSY: somebody uses it */
	if (umount2(OWN_MOUNT, 0) == 0)
		rmdir(OWN_MOUNT);
}

static int make_own_mount(void)
{
	int r = mkdir_parents(OWN_MOUNT, 0755);

	if (!r && mount("none", OWN_MOUNT, "cgroup2", 0, NULL) < 0) {
		r = -errno;
		rmdir(OWN_MOUNT);
	}
	return r;
}

int cgroup_root(const struct instance *inst, char ret[4096], unsigned *made, struct error *e)
{
	char mount_dir[PATH_MAX - 32];
	int r = mount_find("cgroup2", mount_dir, sizeof(mount_dir));
	unsigned m = 0;

	if (r == -ENOENT) {
		snprintf(mount_dir, sizeof(mount_dir), OWN_MOUNT);
		r = make_own_mount();
		m = CGROUP_MADE_MOUNT;
	}
	if (r)
		return error_set(e, r,
				 "there is no cgroup2 mount and mounting one on " OWN_MOUNT
				 " failed (%s): run as root, or mount cgroup2 yourself",
				 strerror(-r));
	snprintf(ret, PATH_MAX, "%s/%s", mount_dir, inst->name);
	if (mkdir(ret, 0755) == 0) {
		m |= CGROUP_MADE_ROOT;
	} else if (errno != EEXIST) {
		r = error_set(e, -errno, "cannot make the cgroup %s (%s): run as root", ret,
			      strerror(errno));
		cgroup_root_undo(ret, m);
		return r;
	}
	if (made)
		*made = m;
	return 0;
}

void cgroup_root_undo(const char *root, unsigned made)
{
	if (made & CGROUP_MADE_ROOT)
		rmdir(root);
	if (made & CGROUP_MADE_MOUNT)
		remove_own_mount();
}

void cgroup_unmount_unused(void)
{
	DIR *d = opendir(RUN_DIR);
	bool used = false;
	struct dirent *de;

	if (!d)
		return;
	while ((de = readdir(d)))
		used |= de->d_name[0] != '.' && !streq(de->d_name, "cgroup2");
	closedir(d);
	if (!used)
		remove_own_mount();
}

int cgroup_id(const char *path, uint64_t *ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

int cgroup_populated(const char *path)
{
	char file[CGROUP_PATH_MAX];
	autofree char *text = NULL;
	const char *p;
	int r;

	snprintf(file, sizeof(file), "%s/cgroup.events", path);
	r = file_read(file, 4096, &text);
	if (r)
		return r;
	p = strstr(text, "populated ");
	return p ? p[strlen("populated ")] == '1' : -EBADMSG;
}

/* Calls f for each child cgroup's path; stops at the first non-zero result. */
static int each_child(const char *path, int (*f)(const char *child, void *arg), void *arg)
{
	DIR *d = opendir(path);
	struct dirent *de;
	int r = 0;

	if (!d)
		return -errno;
	while (!r && (de = readdir(d))) {
		char child[CGROUP_PATH_MAX];

		if (de->d_type != DT_DIR || de->d_name[0] == '.')
			continue;
		if (snprintf(child, sizeof(child), "%s/%s", path, de->d_name) < (int)sizeof(child))
			r = f(child, arg);
	}
	closedir(d);
	return r;
}

/* Calls f for each process of this cgroup alone. */
static int each_pid(const char *path, int (*f)(int pid, void *arg), void *arg)
{
	char file[CGROUP_PATH_MAX];
	autofile FILE *procs = NULL;
	int pid, r = 0;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	procs = fopen(file, "re");
	if (!procs)
		return -errno;
	while (!r && fscanf(procs, "%d", &pid) == 1)
		r = f(pid, arg);
	return r;
}

static int signal_pid(int pid, void *arg)
{
	kill(pid, *(int *)arg);
	return 0;
}

static int signal_child(const char *child, void *arg)
{
	return cgroup_signal(child, *(int *)arg);
}

int cgroup_signal(const char *path, int signal)
{
	char file[CGROUP_PATH_MAX];
	int r;

	if (signal == SIGKILL) {
		snprintf(file, sizeof(file), "%s/cgroup.kill", path); /* Linux 5.14 */
		if (!file_write(file, "1"))
			return 0;
	}
	r = each_pid(path, signal_pid, &signal);
	return r ? r : each_child(path, signal_child, &signal);
}

static int remove_child(const char *child, void *arg)
{
	(void)arg;
	return cgroup_remove(child);
}

int cgroup_remove(const char *path)
{
	int r;

	if (rmdir(path) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY && errno != ENOTEMPTY)
		return -errno;
	r = each_child(path, remove_child, NULL);
	if (r)
		return r;
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int take_pid(int pid, void *arg)
{
	*(int *)arg = pid;
	return 1;
}

static int first_pid_child(const char *child, void *arg)
{
	int pid = cgroup_first_pid(child);

	if (pid <= 0)
		return 0;
	*(int *)arg = pid;
	return 1;
}

int cgroup_first_pid(const char *path)
{
	int pid = 0, r = each_pid(path, take_pid, &pid);

	if (r == 0)
		r = each_child(path, first_pid_child, &pid);
	return r < 0 ? r : pid;
}

struct pid_walk {
	int (*f)(int pid, void *arg);
	void *arg;
};

static int walk_child(const char *child, void *arg)
{
	const struct pid_walk *w = arg;

	return cgroup_each_pid(child, w->f, w->arg);
}

int cgroup_each_pid(const char *path, int (*f)(int pid, void *arg), void *arg)
{
	struct pid_walk w = {f, arg};
	int r = each_pid(path, f, arg);

	return r ? r : each_child(path, walk_child, &w);
}

int cgroup_move(const char *path, int pid)
{
	char file[CGROUP_PATH_MAX], text[16];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	snprintf(text, sizeof(text), "%d", pid);
	return file_write(file, text);
}

/*
 * trusted.* and not user.*: kernfs takes both, but only CAP_SYS_ADMIN can change a trusted one, so
 * that an app that was given its own cgroup cannot forge its record.
 */
int cgroup_record_set(const char *path, const char *key, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "trusted.ax.%s", key);
	return setxattr(path, name, text, strlen(text), 0) < 0 ? -errno : 0;
}

int cgroup_record_get(const char *path, const char *key, char **ret)
{
	autofree char *buf = NULL;
	char name[64];
	ssize_t n;

	snprintf(name, sizeof(name), "trusted.ax.%s", key);
	n = getxattr(path, name, NULL, 0);
	if (n < 0)
		return -errno;
	buf = malloc((size_t)n + 1);
	if (!buf)
		return -ENOMEM;
	n = getxattr(path, name, buf, (size_t)n);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	*ret = take_ptr(&buf);
	return 0;
}
