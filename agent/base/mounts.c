/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/magic.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/mounts.h"

/* `root`: how to get to the root directory of the process whose mounts they are. */
static int find_in(const char *mounts, const char *root, const char *type, char *ret, size_t size)
{
	FILE *f = setmntent(mounts, "r");
	struct mntent *m;
	int r = -ENOENT;

	if (!f)
		return -errno;
	while ((m = getmntent(f))) {
		if (!streq(m->mnt_type, type) || strlen(root) + strlen(m->mnt_dir) >= size)
			continue;
		snprintf(ret, size, "%s%s", root, m->mnt_dir);
		r = 0;
	}
	endmntent(f);
	return r;
}

int mount_find(const char *type, char *ret, size_t size)
{
	return find_in("/proc/self/mounts", "", type, ret, size);
}

int mount_check(struct error *e)
{
	struct statfs fs;

	if (access("/proc/self/mounts", R_OK) < 0)
		return error_set(e, -ENODEV, "/proc is not mounted: mount -t proc proc /proc");
	/* what is wanted of it, which a container may have without the rest */
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	if (statfs("/sys", &fs) < 0 || fs.f_type != SYSFS_MAGIC)
		return error_set(e, -ENODEV, "/sys is not mounted: mount -t sysfs sysfs /sys");
	return 0;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512];
	autofile FILE *f = NULL;
	const char *end;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	/* a name may have blanks and parentheses in it */
	end = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* That of the nearest process above this one that has one, as a path that leads there from here. */
static int find_above(const char *type, char *ret, size_t size)
{
	char mounts[64], root[64];

	for (pid_t pid = getppid(); pid > 0; pid = parent_of(pid)) {
		snprintf(mounts, sizeof(mounts), "/proc/%d/mounts", (int)pid);
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
		if (!find_in(mounts, root, type, ret, size))
			return 0;
	}
	return -ENOENT;
}

int mount_bpffs(bool make, char *ret, size_t size, struct error *e)
{
	int r = mount_find("bpf", ret, size);

	if (r == -ENOENT && make) {
		snprintf(ret, size, "/sys/fs/bpf");
		r = mount("bpf", ret, "bpf", 0, "mode=0700") < 0 ? -errno : 0;
	}
	if (r)
		return error_set(e, r,
				 "there is no bpf filesystem and mounting one on /sys/fs/bpf "
				 "failed (%s): run as root on a kernel with CONFIG_BPF_SYSCALL",
				 strerror(-r));
	return 0;
}

int mount_bpffs_lasting(bool make, char *ret, size_t size, bool *above, struct error *e)
{
	bool is_above = mount_find("bpf", ret, size) && !find_above("bpf", ret, size);

	if (above)
		*above = is_above;
	return is_above ? 0 : mount_bpffs(make, ret, size, e);
}
