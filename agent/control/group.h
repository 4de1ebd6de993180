/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups by their name, in a way that also holds for the static binary. */
#ifndef AX_CONTROL_GROUP_H
#define AX_CONTROL_GROUP_H

#include <sys/types.h>

/* The group whose members may use the agent. */
#define AX_GROUP "ax"

/* Before any call of getpw*(), getgr*() or getgrouplist(): see group.c. */
void accounts_prepare(void);

/* -ENOENT when there is no such group, also where it cannot be looked up; -ENOMEM. */
int group_id(const char *name, gid_t *ret);

#endif
