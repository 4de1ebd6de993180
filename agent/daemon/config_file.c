/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/config_file.h"
#include "machine/instance.h"
#include "base/log.h"
#include "config/edit.h"
#include "yaml/errors.h"

static void applied_path(const struct instance *inst, char buf[128])
{
	snprintf(buf, 128, "%s/applied.yaml", inst->run_dir);
}

static bool newer(const struct stat *x, const struct stat *y)
{
	if (x->st_mtim.tv_sec != y->st_mtim.tv_sec)
		return x->st_mtim.tv_sec > y->st_mtim.tv_sec;
	return x->st_mtim.tv_nsec > y->st_mtim.tv_nsec;
}

/* Of the file (or NULL) and what was applied, the one that holds. NULL: neither is there. */
static const char *which(const char *file, const char *applied)
{
	struct stat f, kept;

	if (stat(applied, &kept) < 0)
		return file;
	if (file && (stat(file, &f) < 0 || newer(&f, &kept)))
		return file;
	log_info("using the config that was applied last (%s)", applied);
	return applied;
}

int config_file_read(const struct instance *inst, const char *path, struct config_next *ret,
		     struct error *e)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	autofree char *text = NULL;
	char applied[128];
	int r;

	applied_path(inst, applied);
	path = which(path, applied);
	r = path ? file_read(path, 64u << 20, &text) : 0;
	if (r)
		return error_set(e, r, "cannot read the config %s: %s", path, strerror(-r));
	r = config_read(NULL, NULL, text ? text : "", text ? strlen(text) : 0, ret, &errs);
	if (!r)
		return 0;
	config_errors_print(&errs, path, stderr);
	return error_set(e, r, "the config %s has errors: the agent does not start", path);
}

void config_file_forget(const struct instance *inst)
{
	char path[128];

	applied_path(inst, path);
	unlink(path);
}

void config_file_keep(const struct instance *inst, const char *text)
{
	char path[128];
	int r;

	applied_path(inst, path);
	r = file_replace(path, 0600, text); /* an environment may hold secrets */
	if (r)
		log_warn("cannot keep the applied config in %s: %s", path, strerror(-r));
}
