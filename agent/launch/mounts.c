/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an app's mount namespace has of its own: a private one /etc/resolv.conf and /sys, and what
 * volumes.c puts there. */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/strv.h"
#include "launch/parts.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLVED    "/run/systemd/resolve"
#define SYS	    "/sys"

/* --- the machine's mounts stay as they are --- */

static int make_slave(const char *path)
{
	return mount(NULL, path, NULL, MS_SLAVE | MS_REC, NULL) < 0 ? -errno : 0;
}

/* From the working directory, which is outside of the root directory. A directory may be mounted on
 * one below itself, so the mount counts, too. */
static int climb_to_the_top(void)
{
	unsigned what = STATX_INO | STATX_MNT_ID;
	struct statx here, above;

	do {
		if (statx(AT_FDCWD, ".", 0, what, &here) < 0 ||
		    statx(AT_FDCWD, "..", 0, what, &above) < 0 || chdir("..") < 0)
			return -errno;
	} while (here.stx_ino != above.stx_ino || here.stx_mnt_id != above.stx_mnt_id);
	return 0;
}

/*
 * After a chroot() to a directory on which nothing is mounted the mount that it is in has no name
 * any more, and only names can be given to mount(). So it is left for a moment.
 */
static int make_slave_outside(const char *inside)
{
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (root < 0 || here < 0 || fchdir(root) < 0 || chroot(inside) < 0)
		return -errno;
	r = climb_to_the_top();
	if (!r)
		r = make_slave(".");
	if (fchdir(root) < 0 || chroot(".") < 0 || fchdir(here) < 0)
		return -errno;
	return r;
}

/* --- /etc/resolv.conf --- */

/* The file under that name below the directory, too, where folders of the name may be missing. */
static int link_below(const char *dir, const char *name, const char *file)
{
	char path[2 * PATH_MAX], folder[2 * PATH_MAX];
	mode_t caller = umask(022); /* the app's user has to get there */
	int r = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	r = mkdir_parents(folder, 0755);
	umask(caller);
	if (!r && link(file, path) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

/*
 * Where the host has systemd-resolved, a directory that has no more than its files, which
 * /etc/resolv.conf may lead to: by its socket there (nss-resolve) it would be asked instead of the
 * app's nameserver, for names that it does not know, and outside for apps that have no egress.
 */
static int replace_resolved(const char *scratch, const char *resolv_conf)
{
	autofree char *linked = realpath(RESOLV_CONF, NULL);
	const char *names[] = {"resolv.conf", "stub-resolv.conf", NULL};
	char dir[PATH_MAX];

	if (access(RESOLVED, F_OK) < 0)
		return 0;
	snprintf(dir, sizeof(dir), "%s/resolve", scratch);
	/* whatever name of there it is that it leads to */
	if (linked && starts_with(linked, RESOLVED "/"))
		names[2] = linked + strlen(RESOLVED "/");
	for (size_t i = 0; i < ARRAY_SIZE(names) && names[i]; i++) {
		int r = link_below(dir, names[i], resolv_conf);

		if (r)
			return r;
	}
	return mount(dir, RESOLVED, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/*
 * The text goes into a tmpfs that is mounted over the scratch directory for a moment, in this
 * mount namespace only. The bind mount keeps it, no file is ever made on the host, so none can
 * be left behind. (The kernel refuses to bind an O_TMPFILE, ENOENT, and a memfd, EINVAL.)
 */
static int mount_resolv_conf(const char *scratch, const char *text)
{
	autoclose int fd = -1;
	char path[PATH_MAX];
	int r;

	if (access(RESOLV_CONF, F_OK) < 0)
		return 0;
	if (mount("ax", scratch, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/resolv.conf", scratch);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	/* fchmod: the caller's umask may hide it from the app's user */
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	r = write_whole(fd, text, strlen(text));
	r = r ? r : replace_resolved(scratch, path);
	if (r)
		return r;
	if (mount(path, RESOLV_CONF, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return umount2(scratch, MNT_DETACH) < 0 ? -errno : 0;
}

/* --- /sys --- */

static bool is_carried(const struct strv *carried, const char *dir)
{
	for (size_t i = 0; i < carried->n; i++) {
		size_t len = strlen(carried->v[i]);

		if (!strncmp(dir, carried->v[i], len) && (dir[len] == '/' || !dir[len]))
			return true;
	}
	return false;
}

/* What is mounted below the old one is below the new one too, at the same place. */
static int carry_mounts(const char *to)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct strv carried = {0};
	struct mntent *m;
	int r = 0;

	if (!mounts)
		return -errno;
	while (!r && (m = getmntent(mounts))) {
		char path[PATH_MAX];

		if (!starts_with(m->mnt_dir, SYS "/") || is_carried(&carried, m->mnt_dir))
			continue;
		if (snprintf(path, sizeof(path), "%s%s", to, m->mnt_dir + strlen(SYS)) >=
		    (int)sizeof(path))
			continue;
		r = strv_add(&carried, m->mnt_dir);
		/* ENOENT: below a device, say, that the app does not have; EINVAL: it was made
		 * unbindable, for no other namespace to have */
		if (!r && mount(m->mnt_dir, path, NULL, MS_BIND | MS_REC, NULL) < 0 &&
		    errno != ENOENT && errno != EINVAL)
			r = -errno;
	}
	endmntent(mounts);
	strv_free(&carried);
	return r;
}

/* A sysfs shows the network devices of the namespace that mounted it. */
static int mount_sysfs(const char *scratch)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	struct statvfs old;
	struct statfs fs;
	int r;

	if (statfs(SYS, &fs) < 0 || fs.f_type != SYSFS_MAGIC)
		return 0; /* there is none that could show anything */
	if (statvfs(SYS, &old) == 0 && (old.f_flag & ST_RDONLY))
		flags |= MS_RDONLY;
	if (mount("ax", scratch, "sysfs", flags, NULL) < 0)
		return -errno;
	r = carry_mounts(scratch);
	if (!r && mount(scratch, SYS, NULL, MS_MOVE, NULL) < 0)
		r = -errno;
	return r;
}

/* What a network namespace of its own asks for. */
static int mount_private(const struct launch_plan *p, struct error *e)
{
	int r = mount_sysfs(p->scratch_dir);

	if (r)
		return error_set(e, r, "cannot mount a private " SYS " (%s)", strerror(-r));
	r = p->resolv_conf ? mount_resolv_conf(p->scratch_dir, p->resolv_conf) : 0;
	return r ? error_set(e, r, "cannot mount a private " RESOLV_CONF " (%s)", strerror(-r)) : 0;
}

int launch_mount(const struct launch_plan *p, struct error *e)
{
	struct launch_volumes volumes = {0};
	int r = make_slave("/");

	if (r == -EINVAL)
		r = make_slave_outside(p->scratch_dir);
	if (r)
		return error_set(e, r, "cannot part the app's mounts from the machine's (%s)",
				 strerror(-r));
	if (p->netns_fd >= 0)
		r = mount_private(p, e);
	r = r ? r : launch_volumes_open(p->spec, &volumes, e);
	if (!r && p->spec->read_only)
		r = launch_read_only(e);
	return r ? r : launch_volumes_place(p->spec, &volumes, e);
}
