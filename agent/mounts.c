/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <mntent.h>

#include "mounts.h"

int mount_find(const char *type, char *ret, size_t size)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	struct mntent *m;
	int r = -ENOENT;

	if (!f)
		return -errno;
	while ((m = getmntent(f))) {
		if (!streq(m->mnt_type, type) || strlen(m->mnt_dir) >= size)
			continue;
		snprintf(ret, size, "%s", m->mnt_dir);
		r = 0;
	}
	endmntent(f);
	return r;
}
