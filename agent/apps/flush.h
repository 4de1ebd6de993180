/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of everything (`ax agent --flush`). */
#ifndef AX_APPS_FLUSH_H
#define AX_APPS_FLUSH_H

#include "machine/instance.h"
#include "base/util.h"

/* Ends the instance's apps and removes its dataplane, devices, routes and files. */
int flush_instance(const struct instance *inst, struct error *e);

#endif
