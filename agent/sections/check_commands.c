/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "sections/check_commands.h"
#include "base/address.h"
#include "config/config.h"
#include "machine/cgroup.h"
#include "registry/app_table.h"
#include "registry/state.h"
#include "sections/command.h"
#include "services/checks.h"

#define RUNS_MAX  32	 /* at the same time */
#define PROCESSES "4096" /* of all */
#define SWEEP_NS  3000000000ull
#define LEAVE_MS  1000
#define LEFT_MAX  1000
#define CGROUP	  ".checks" /* (with a dot: no app's) */

/* --- cgroups --- */

static void directory(const char *cgroup, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%.4000s/" CGROUP, cgroup);
}

static uint64_t newest;	 /* number of the last one that was made */
static uint64_t settled; /* up to it, their commands have gone there, if they ever do */

/* Those up to that number without a process, and then the directory of them. False: there are more.
 */
static bool remove_empty(const char *dir, uint64_t up_to)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		return true;
	while ((de = readdir(d)))
		if (de->d_type == DT_DIR && de->d_name[0] != '.' &&
		    strtoull(de->d_name, NULL, 10) <= up_to)
			unlinkat(dirfd(d), de->d_name, AT_REMOVEDIR);
	closedir(d);
	return rmdir(dir) == 0 || errno == ENOENT;
}

static void sweep_later(struct agent *a)
{
	if (a->checks_sweep_at_ns)
		return;
	a->checks_sweep_at_ns = time_mono_ns() + SWEEP_NS;
	a->timers_stale = true;
}

/* A new one, malloc'ed; NULL: errno says why not. */
static char *make_cgroup(struct agent *a)
{
	char dir[PATH_MAX], limit[PATH_MAX + 16];
	int tries = 0;
	char *path;

	directory(a->cgroup, dir);
	snprintf(limit, sizeof(limit), "%s/pids.max", dir);
	if (mkdir(dir, 0755) == 0)
		file_write(limit, PROCESSES); /* where somebody has enabled that controller */
	do {				      /* some may be left of an earlier agent */
		if (asprintf(&path, "%s/%llu", dir, (unsigned long long)++newest) < 0)
			return NULL;
		if (mkdir(path, 0755) == 0)
			return path;
		free(path);
	} while (errno == EEXIST && tries++ < LEFT_MAX);
	return NULL;
}

void check_commands_flush(const char *cgroup)
{
	const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
	char dir[PATH_MAX];

	directory(cgroup, dir);
	if (access(dir, F_OK))
		return;
	cgroup_signal(dir, SIGKILL);
	for (int ms = 0; !remove_empty(dir, UINT64_MAX) && ms < LEAVE_MS; ms += 5)
		nanosleep(&moment, NULL);
}

void check_commands_due(struct agent *a, uint64_t now_ns)
{
	char dir[PATH_MAX];

	if (!a->checks_sweep_at_ns || now_ns < a->checks_sweep_at_ns)
		return;
	a->checks_sweep_at_ns = 0;
	directory(a->cgroup, dir);
	if (!remove_empty(dir, settled))
		sweep_later(a);
	settled = newest;
}

/* --- commands --- */

/* Its output comes by *read_end. */
static int start(struct agent *a, struct command_run *run, int *read_end)
{
	autoclose int write_end = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	*read_end = ends[0];
	write_end = ends[1];
	fcntl(write_end, F_SETFL, 0); /* the command's may block */
	run->output = write_end;
	return command_start(a, run);
}

int check_command_start(void *arg, const struct health_target *t, const struct service_check *c,
			const char *name, struct health_command *ret)
{
	struct agent *a = arg;
	const struct app *app = t->app ? app_by_id(a, t->app) : NULL;
	autofree char *cgroup = NULL;
	autoclose int read_end = -1;
	char address[ADDR_STRLEN], port[8];
	const struct command_word words[] = {{"AX_CHECK_SERVICE", name},
					     {"AX_CHECK_ADDRESS", address},
					     {"AX_CHECK_PORT", port},
					     {"AX_CHECK_APP", app ? app->spec.name : ""}};
	struct command_run run = {.kind = "check of",
				  .name = name,
				  .user = c->user,
				  .command = &c->command,
				  .words = words,
				  .n_words = ARRAY_SIZE(words),
				  .ends_with_us = true};
	int r = checks_netns(a, t, &run.netns);

	if (r)
		return r;
	if (health_running(a->health) >= RUNS_MAX)
		return -EAGAIN;
	addr_format(&t->addr, address);
	snprintf(port, sizeof(port), "%u", t->port);
	run.cgroup = cgroup = make_cgroup(a);
	if (!cgroup) /* EAGAIN is a limit of cgroups there, and no turn that is left out */
		return errno == EAGAIN ? -ENOSPC : -errno;
	sweep_later(a);
	r = start(a, &run, &read_end);
	if (r < 0)
		return r;
	*ret = (struct health_command){
		.pid = r, .output = take_fd(&read_end), .cgroup = take_ptr(&cgroup)};
	return 0;
}
