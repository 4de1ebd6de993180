// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/instance.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "machine/cgroup.h"
#include "base/util.h"

int own_namespaces(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("bpf", BPFFS, "bpf", 0, "mode=0700") < 0) {
		perror("namespaces and a bpf filesystem of the test's own; it needs root");
		return -1;
	}
	return 0;
}

/* The cgroup and the lock files of the process' instance go with the process. */
static char own_cgroup[4096], own_run_dir[64];

static pid_t own_pid;

static void remove_own_instance(void)
{
	struct dirent *de;
	DIR *d;

	if (getpid() != own_pid)
		return;
	rmdir(own_cgroup);
	d = opendir(own_run_dir);
	if (!d)
		return;
	while ((de = readdir(d)))
		if (de->d_name[0] != '.')
			unlinkat(dirfd(d), de->d_name, 0);
	closedir(d);
	rmdir(own_run_dir);
}

int own_instance(struct instance *inst, char cgroup[4096])
{
	const char *list = getenv("AX_TEST_INSTANCES");
	char name[INSTANCE_NAME_MAX + 1] = "t";
	unsigned pid = (unsigned)getpid();
	autofile FILE *f = NULL;
	struct error e;
	int r;

	for (size_t i = 1; pid && i < sizeof(name) - 1; i++, pid /= 36)
		name[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[pid % 36];
	if (list && (f = fopen(list, "ae")))
		fprintf(f, "%s\n", name);
	r = instance_init(inst, name, &e);
	r = r ? r : cgroup_root(inst, cgroup, NULL, &e);
	if (r) {
		fprintf(stderr, "%s\n", e.text);
		return r;
	}
	snprintf(own_cgroup, sizeof(own_cgroup), "%s", cgroup);
	snprintf(own_run_dir, sizeof(own_run_dir), "%s", inst->run_dir);
	own_pid = getpid();
	return atexit(remove_own_instance) ? -ENOMEM : 0;
}
