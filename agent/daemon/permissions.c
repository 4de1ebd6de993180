// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "daemon/permissions.h"
#include "machine/cgroup.h"
#include "control/server.h"
#include "registry/app_table.h"

bool only_root(struct client *c)
{
	if (client_uid(c) == 0)
		return false;
	client_error(c, -EPERM, "only root may do that: use sudo");
	return true;
}

/* By what its first process is now, so that names of users need not be looked up here. */
static bool runs_as(const struct app *app, unsigned uid)
{
	int pid = cgroup_first_pid(app->cgroup);
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return pid > 0 && stat(path, &st) == 0 && st.st_uid == uid;
}

bool may_stop(const struct client *c, const struct app *app)
{
	return client_uid(c) == 0 || runs_as(app, client_uid(c));
}

bool may_cancel_start(const struct client *c)
{
	return client_uid(c) == 0;
}
