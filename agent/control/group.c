/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/group.h"

#include <grp.h>
#include <nss.h>
#include <sys/auxv.h>

#include "base/util.h"

/*
 * glibc loads the modules that nsswitch.conf names also into a static program, with another copy of
 * libc, and crashes in them unless both are of the same build. "files" is built in. A program
 * without a dynamic loader is a static one.
 */
void accounts_prepare(void)
{
	if (getauxval(AT_BASE))
		return;
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
	__nss_configure_lookup("initgroups", "files");
}

int group_id(const char *name, gid_t *ret)
{
	autofree char *buf = NULL;
	struct group gr, *found = NULL;
	size_t size = 4096;
	int r;

	accounts_prepare();
	for (;; size *= 2) {
		char *more = realloc(buf, size);

		if (!more)
			return -ENOMEM;
		buf = more;
		r = getgrnam_r(name, &gr, buf, size, &found);
		if (r != ERANGE || size > (1u << 20))
			break;
	}
	if (!found)
		return -ENOENT;
	*ret = gr.gr_gid;
	return 0;
}
