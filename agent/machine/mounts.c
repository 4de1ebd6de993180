/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "machine/mounts.h"

#define BPFFS "/sys/fs/bpf"

/* --- where something is mounted --- */

static const struct {
	const char *name;
	unsigned long magic;
} types[] = {
	{"bpf", BPF_FS_MAGIC},
	{"cgroup2", CGROUP2_SUPER_MAGIC},
	{"debugfs", DEBUGFS_MAGIC},
	{"tracefs", TRACEFS_MAGIC},
};

/* What is in the table may have something else mounted over it. */
static bool is_visible(const char *path, const char *type)
{
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (streq(types[i].name, type))
			return statfs(path, &fs) == 0 && (unsigned long)fs.f_type == types[i].magic;
	}
	return false;
}

/* The first one of those that are wanted, the most wanted one first; else the one that was there
 * first. `root`: how to get to the root directory of the process whose mounts they are. */
static int find_in(const char *mounts, const char *root, const char *type,
		   const char *const wanted[2], char *ret, size_t size)
{
	FILE *f = setmntent(mounts, "r");
	unsigned best = UINT_MAX, rank;
	struct mntent *m;

	if (!f)
		return -errno;
	while ((m = getmntent(f))) {
		char path[PATH_MAX];

		if (!streq(m->mnt_type, type))
			continue;
		for (rank = 0; rank < 2; rank++) {
			if (wanted[rank] && streq(wanted[rank], m->mnt_dir))
				break;
		}
		snprintf(path, sizeof(path), "%s%s", root, m->mnt_dir);
		if (rank >= best || strlen(path) >= size || !is_visible(path, type))
			continue;
		memcpy(ret, path, strlen(path) + 1);
		best = rank;
	}
	endmntent(f);
	return best == UINT_MAX ? -ENOENT : 0;
}

int mount_find(const char *type, char *ret, size_t size)
{
	const char *const wanted[2] = {NULL};

	return find_in("/proc/self/mounts", "", type, wanted, ret, size);
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
static int find_above(const char *const wanted[2], char *ret, size_t size)
{
	char mounts[64], root[64];

	for (pid_t pid = getppid(); pid > 0; pid = parent_of(pid)) {
		snprintf(mounts, sizeof(mounts), "/proc/%d/mounts", (int)pid);
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
		if (!find_in(mounts, root, "bpf", wanted, ret, size))
			return 0;
	}
	return -ENOENT;
}

/* --- the bpf filesystem of an instance --- */

/*
 * Only a place that is not the usual one is recorded: there the state stays when one is mounted at
 * the usual place later.
 */
static void record_path(const struct instance *inst, char ret[128])
{
	snprintf(ret, 128, "%s/bpffs", inst->run_dir);
}

static char *recorded(const struct instance *inst)
{
	char path[128], *text = NULL;

	if (!inst)
		return NULL;
	record_path(inst, path);
	return file_read(path, PATH_MAX, &text) ? NULL : text;
}

static int record(const struct instance *inst, const char *place)
{
	char path[128];
	int r;

	record_path(inst, path);
	if (streq(place, BPFFS))
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	r = mkdir_parents(inst->run_dir, 0755);
	return r ? r : file_replace(path, 0644, place);
}

static int find_or_make(bool make, const char *const wanted[2], char *ret, size_t size)
{
	int r = find_in("/proc/self/mounts", "", "bpf", wanted, ret, size);

	if (r != -ENOENT || !make)
		return r;
	snprintf(ret, size, BPFFS);
	return mount("bpf", ret, "bpf", 0, "mode=0700") < 0 ? -errno : 0;
}

int mount_bpffs(const struct instance *inst, bool make, char *ret, size_t size, struct error *e)
{
	autofree char *place = recorded(inst);
	const char *const wanted[2] = {place, BPFFS};
	int r = find_or_make(make, wanted, ret, size);

	if (r)
		return error_set(e, r,
				 "there is no bpf filesystem and mounting one on " BPFFS
				 " failed (%s): run as root on a kernel with CONFIG_BPF_SYSCALL",
				 strerror(-r));
	if (!make || streq(ret, place ? place : BPFFS))
		return 0;
	r = record(inst, ret);
	return r ? error_set(e, r, "cannot write where the bpf filesystem is to %s: %s",
			     inst->run_dir, strerror(-r))
		 : 0;
}

int mount_bpffs_lasting(const struct instance *inst, bool make, char *ret, size_t size, bool *above,
			struct error *e)
{
	autofree char *place = recorded(inst);
	const char *const wanted[2] = {place, BPFFS};
	bool is_above = mount_find("bpf", ret, size) && !find_above(wanted, ret, size);

	if (above)
		*above = is_above;
	return is_above ? 0 : mount_bpffs(inst, make, ret, size, e);
}
