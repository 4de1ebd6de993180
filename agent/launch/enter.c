/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Into an app that runs, for `ax exec`: its namespaces, as its launcher made them. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "launch/parts.h"
#include "machine/cgroup.h"

void launch_enter_close(struct launch_enter *in)
{
	close_fd(&in->net);
	close_fd(&in->mounts);
	close_fd(&in->root);
}

static int open_of(int pid, const char *what, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool same_user_namespace(int pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return stat("/proc/self/ns/user", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

struct search {
	const char *cgroup;
	struct launch_enter *to;
	bool other_user_namespace; /* of a process that was passed over */
};

/* Whose user namespace owns that namespace is asked of what was opened: a process that makes itself
 * new ones has the mounts a moment before it is seen to have another user namespace. */
static bool owned_by_ours(int ns)
{
	autoclose int owner = ioctl(ns, NS_GET_USERNS);
	struct stat own, other;

	return owner >= 0 && stat("/proc/self/ns/user", &own) == 0 && fstat(owner, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/*
 * What an unprivileged process makes for itself (a user namespace, in it mounts and a root
 * directory) is not what root's command may see as the machine's files. Who has made itself a user
 * namespace never comes back, so what is opened before the last look is from before.
 */
static int try_process(int pid, void *arg)
{
	struct launch_enter in = {.net = -1, .mounts = -1, .root = -1};
	struct search *s = arg;
	autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	/* its number may be another one's by now */
	if (pidfd < 0 || !launch_in_app(s->cgroup, pid))
		return 0;
	in.net = s->to->net >= 0 ? fcntl(s->to->net, F_DUPFD_CLOEXEC, 3)
				 : open_of(pid, "ns/net", O_RDONLY);
	in.mounts = open_of(pid, "ns/mnt", O_RDONLY);
	in.root = open_of(pid, "root", O_PATH | O_DIRECTORY);
	if (in.net >= 0 && in.mounts >= 0 && in.root >= 0) {
		bool same = same_user_namespace(pid) && owned_by_ours(in.mounts) &&
			    owned_by_ours(in.net);
		bool there = syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;

		if (same && there) {
			launch_enter_close(s->to);
			*s->to = in;
			return 1;
		}
		s->other_user_namespace |= !same && there;
	}
	launch_enter_close(&in);
	return 0;
}

int launch_enter_find(const char *cgroup, int pid, struct launch_enter *ret, struct error *e)
{
	struct search s = {.cgroup = cgroup, .to = ret};
	int r = pid > 0 ? try_process(pid, &s) : 0;

	if (!r)
		r = cgroup_each_pid(cgroup, try_process, &s);
	if (r > 0)
		return 0;
	if (s.other_user_namespace)
		return error_set(e, -EPERM,
				 "every process of the app is in a user namespace of its own: what "
				 "it sees as the machine's files cannot be trusted");
	return error_set(e, -ESRCH, "the app has ended: see 'ax ps'");
}

/* --- in the child --- */

/* What describes the caller's terminal and language. The rest is the caller's alone: processes of
 * the app can read it. */
static bool is_kept(const char *variable)
{
	static const char *const kept[] = {
		"PATH=", "TERM=", "COLORTERM=", "LANG=", "LANGUAGE=", "LC_",
		"TZ=",	 "HOME=", "SHELL=",	"USER=", "LOGNAME="};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (starts_with(variable, kept[i]))
			return true;
	return false;
}

static void drop_environment(void)
{
	char **to = environ;

	for (char **from = environ; *from; from++)
		if (is_kept(*from))
			*to++ = *from;
	*to = NULL;
}

int launch_enter(const struct launch_enter *in, struct error *e)
{
	char cwd[PATH_MAX];
	bool had = getcwd(cwd, sizeof(cwd)) != NULL;

	if (setns(in->net, CLONE_NEWNET) < 0 || setns(in->mounts, CLONE_NEWNS) < 0 ||
	    fchdir(in->root) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return error_set(e, -errno, "cannot enter the app's namespaces (%s): run as root",
				 strerror(errno));
	/* the caller's directory if the app has it, too */
	if (had && chdir(cwd) < 0 && chdir("/") < 0)
		return error_set(e, -errno, "cannot change to the directory / (%s)",
				 strerror(errno));
	drop_environment();
	return 0;
}
