/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What belongs to nobody: table entries, devices, routes. */
#ifndef AX_APPS_SWEEP_H
#define AX_APPS_SWEEP_H

#include "machine/instance.h"
#include "base/util.h"

struct agent;

/* Removes what no app, service or address of the agent owns. */
int sweep(struct agent *a, struct error *e);

/* Removes the instance's devices, routes and anchors, all of them. */
int sweep_all(const struct instance *inst);

#endif
