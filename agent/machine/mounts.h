/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a kernel filesystem is mounted; never a path by assumption. */
#ifndef AX_MACHINE_MOUNTS_H
#define AX_MACHINE_MOUNTS_H

#include "machine/instance.h"
#include "base/util.h"

/* The directory on which a filesystem of this type (bpf, cgroup2, debugfs, tracefs) was mounted
 * first, of those that nothing else is mounted over. -ENOENT: there is none. */
int mount_find(const char *type, char *ret, size_t size);

/* Whether /proc and /sys are there. -ENODEV: the error says how to mount what is not. */
int mount_check(struct error *e);

/*
 * The bpf filesystem that has an instance's state, also when others are mounted elsewhere later:
 * the one that is recorded in the instance's directory in /run, else that on /sys/fs/bpf, else
 * another. `make`: it is to have state, so one is mounted on /sys/fs/bpf if there is none, and a
 * place other than that is recorded. inst may be NULL without it.
 */
int mount_bpffs(const struct instance *inst, bool make, char *ret, size_t size, struct error *e);
/*
 * The same, for what is to stay when this mount namespace ends: `ip netns exec` gives its command
 * one of its own without a bpf filesystem, and if one were mounted there, it would be gone with the
 * command. *above (may be NULL): it is that of a process above.
 */
int mount_bpffs_lasting(const struct instance *inst, bool make, char *ret, size_t size, bool *above,
			struct error *e);

#endif
