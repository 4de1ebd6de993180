/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device to which services with private backends are routed (xdp/service.bpf.c). */
#ifndef AX_DAEMON_SERVICE_DEVICE_H
#define AX_DAEMON_SERVICE_DEVICE_H

#include "base/util.h"

struct agent;

/* Takes over the last agent's, before the programs are told anything. */
void service_device_adopt(struct agent *a);

/* Opens it, if it is not there. */
int service_device_open(struct agent *a);

/* When nothing is routed to it any more. */
void service_device_close(struct agent *a);

/* Whether a device of that name is one of the pair. */
bool service_device_is(const struct agent *a, const char *name);

#endif
