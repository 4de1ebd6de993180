/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Volumes, and files that are read-only, in the app's mount namespace. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "base/strv.h"
#include "config/limits.h"
#include "launch/parts.h"

/* --- volumes --- */

/* Of a path that no symbolic link is part of: whoever may write to a directory of it would choose
 * by one what root mounts, and where. */
static int open_straight(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)); /* Linux 5.6 */

	return fd < 0 ? -errno : fd;
}

static const char *because(int r)
{
	return r == -ELOOP    ? ": a symbolic link is part of it; give the path that it leads to"
	       : r == -ENOSYS ? ": Linux 5.12 or newer is needed"
			      : "";
}

/* As it is now: read-only mounts below it stay so, also in the copy. */
static int open_volume(const struct volume *v)
{
	struct mount_attr to = {.attr_set = MOUNT_ATTR_RDONLY};
	autoclose int path = open_straight(v->source);
	autoclose int fd = path < 0 ? -1
				    : open_tree(path, "",
						AT_EMPTY_PATH | OPEN_TREE_CLONE |
							OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (path < 0)
		return path;
	if (fd < 0)
		return -errno;
	if (v->read_only &&
	    mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &to, sizeof(to)) < 0)
		return -errno;
	return take_fd(&fd);
}

static int read_volume(const char *text, struct volume *v, struct error *e)
{
	const char *want = want_volume(text, v);

	return want ? error_set(e, -EINVAL, "'%.200s' is no volume: give %s", text, want) : 0;
}

int launch_volumes_open(const struct app_spec *s, struct launch_volumes *v, struct error *e)
{
	v->fds = calloc(s->volumes.n + 1, sizeof(*v->fds));
	if (!v->fds)
		return error_set(e, -ENOMEM, "out of memory");
	for (; v->n < s->volumes.n; v->n++) {
		struct volume volume;
		int r = read_volume(s->volumes.v[v->n], &volume, e);

		if (r)
			return r;
		r = v->fds[v->n] = open_volume(&volume);
		if (r < 0)
			return error_set(e, r, "cannot take the volume %.200s (%s)%s",
					 volume.source, strerror(-r), because(r));
	}
	return 0;
}

static int place(int fd, const char *target)
{
	autoclose int at = open_straight(target);

	if (at < 0)
		return at;
	return move_mount(fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

int launch_volumes_place(const struct app_spec *s, struct launch_volumes *v, struct error *e)
{
	for (size_t i = 0; i < v->n; i++) {
		struct volume volume;
		int r = read_volume(s->volumes.v[i], &volume, e);

		if (r)
			return r;
		r = place(v->fds[i], volume.target);
		close_fd(&v->fds[i]);
		if (r)
			return error_set(e, r, "cannot put a volume at %.200s (%s)%s",
					 volume.target, strerror(-r),
					 *because(r) ? because(r)
						     : ": there has to be a directory for a "
						       "directory, and a file for a file");
	}
	free(v->fds);
	v->fds = NULL;
	return 0;
}

/* --- read-only --- */

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]);
}

/* Devices, and settings of processes, are no files. */
static bool stays(const char *path)
{
	return is_below(path, "/dev") || is_below(path, "/proc") || is_below(path, "/sys");
}

static int make_read_only(const char *path)
{
	struct mount_attr to = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount_setattr(AT_FDCWD, path, 0, &to, sizeof(to)) == 0)
		return 0;
	/* below another mount: nobody sees it, and its path is somebody else's or nobody's */
	return errno == ENOENT || errno == ENOTDIR || (errno == EINVAL && !streq(path, "/"))
		       ? 0
		       : -errno;
}

static int make_all_read_only(struct strv *paths)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *m;
	int r = 0;

	if (!mounts)
		return -errno;
	while (!r && (m = getmntent(mounts)))
		if (!stays(m->mnt_dir))
			r = strv_add(paths, m->mnt_dir);
	endmntent(mounts);
	/* of a chroot() that is no mount the list does not have it, and its files cannot be had so
	 */
	r = r ? r : make_read_only("/");
	for (size_t i = 0; !r && i < paths->n; i++)
		r = make_read_only(paths->v[i]);
	return r;
}

int launch_read_only(struct error *e)
{
	CLEANUP(strv_free) struct strv paths = {0};
	int r;

	/* what the machine mounts later would come as it is there */
	if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		r = -errno;
	else
		r = make_all_read_only(&paths);
	if (r)
		return error_set(e, r, "cannot make the app's files read-only (%s)%s", strerror(-r),
				 r == -ENOSYS ? ": Linux 5.12 or newer is needed" : "");
	if (mount("ax", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return error_set(e, -errno, "cannot mount an empty /tmp (%s)", strerror(errno));
	return 0;
}
