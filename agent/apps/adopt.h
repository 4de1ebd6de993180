/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an earlier agent left: apps that run are taken over, the rest is undone. */
#ifndef AX_APPS_ADOPT_H
#define AX_APPS_ADOPT_H

#include "base/strv.h"
#include "base/util.h"

struct agent;

/* Takes over the apps of the instance's cgroups. */
int adopt_apps(struct agent *a, struct error *e);

/* The rules that hold from now on: the config's, and of the lists of those apps (in_force.h).
 * Before adopt_apps(). */
struct config;
int adopt_rules(struct agent *a, const struct config *c, struct error *e);

/* The paths of the apps' cgroups below the instance's. */
int adopt_list(const char *root, struct strv *ret);

#endif
