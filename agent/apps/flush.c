/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of everything (`ax agent --flush`). */
#include <dirent.h>
#include <signal.h>

#include "apps/flush.h"
#include "apps/adopt.h"
#include "apps/sweep.h"
#include "machine/cgroup.h"
#include "machine/instance.h"
#include "base/strv.h"
#include "datapath/datapath.h"
#include "net/egress.h"

#define FLUSH_TERM_MS 2000
#define FLUSH_KILL_MS 5000

static bool wait_empty(const char *cgroup, unsigned ms)
{
	for (unsigned t = 0; t < ms; t += 10) {
		if (cgroup_populated(cgroup) <= 0)
			return true;
		usleep(10000);
	}
	return cgroup_populated(cgroup) <= 0;
}

static int end_apps(const char *root)
{
	CLEANUP(strv_free) struct strv paths = {0};
	int r = adopt_list(root, &paths);

	for (size_t i = 0; i < paths.n; i++) {
		cgroup_signal(paths.v[i], SIGTERM);
		cgroup_signal(paths.v[i], SIGCONT);
	}
	for (size_t i = 0; i < paths.n; i++) {
		if (!wait_empty(paths.v[i], FLUSH_TERM_MS))
			cgroup_signal(paths.v[i], SIGKILL);
		wait_empty(paths.v[i], FLUSH_KILL_MS);
	}
	/* the supervisors end by themselves when their apps have */
	wait_empty(root, FLUSH_TERM_MS);
	cgroup_signal(root, SIGKILL);
	wait_empty(root, FLUSH_KILL_MS);
	return r ? r : cgroup_remove(root);
}

static void remove_tree(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		return;
	while ((de = readdir(d))) {
		autofree char *path = NULL;

		if (streq(de->d_name, ".") || streq(de->d_name, "..") ||
		    asprintf(&path, "%s/%s", dir, de->d_name) < 0)
			continue;
		if (unlink(path) < 0 && errno == EISDIR)
			remove_tree(path);
	}
	closedir(d);
	rmdir(dir);
}

int flush_instance(const struct instance *inst, struct error *e)
{
	char root[4096];
	int r = cgroup_root(inst, root, NULL, e);

	if (r)
		return r;
	r = end_apps(root);
	if (r)
		return error_set(e, r, "cannot end the apps in %s: %s", root, strerror(-r));
	r = datapath_remove(inst, e);
	if (r)
		return r;
	r = egress_set(inst, NULL, 0, NULL, 0, NULL, e);
	if (r && r != -EOPNOTSUPP)
		return r;
	r = sweep_all(inst);
	if (r)
		return error_set(e, r, "cannot remove devices and routes: %s", strerror(-r));
	remove_tree(inst->run_dir);
	cgroup_unmount_unused();
	return 0;
}
