/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices of apps that are gone. */
#ifndef AX_APPS_DEVICES_H
#define AX_APPS_DEVICES_H

#include "base/util.h"

struct agent;

/*
 * Deletes a device a little later, should it still be there. It goes with its network namespace,
 * which the kernel takes down in its own time. Deleting it here and now would hold up the agent for
 * some 30 ms; but a namespace that orphaned sockets keep alive would keep it for minutes.
 */
void device_doom(struct agent *a, unsigned ifindex);

/* Deletes those whose time has come. */
void devices_due(struct agent *a, uint64_t now_ns);

/* The next deadline, 0: none. */
uint64_t devices_deadline(const struct agent *a);

void devices_free(struct agent *a);

#endif
