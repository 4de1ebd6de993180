/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an app comes to be. */
#ifndef AX_APPS_REGISTER_H
#define AX_APPS_REGISTER_H

#include "base/util.h"

struct agent;
struct app;
struct app_spec;

/* Registers an app: name, addresses, cgroup, tables. `spec` is taken over, also by a failure.
 * config_key: the config's entry that it is started from, or NULL. */
int app_register(struct agent *a, struct app_spec *spec, const char *config_key, struct app **ret,
		 struct error *e);

#endif
