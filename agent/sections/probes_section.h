/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config's probes (`probes:`). */
#ifndef AX_SECTIONS_PROBES_SECTION_H
#define AX_SECTIONS_PROBES_SECTION_H

#include <jansson.h>
#include "base/util.h"

struct agent;
struct app;

/* When the config holds. All of it is tried; the first failure is returned. */
int probes_apply(struct agent *a, struct error *e);

/* An app has its cgroup, but nothing is executed yet: probes on apps of its name see it, if there
 * are any. May be part of a work, and the app be gone when it returns. */
bool probes_has_app(const struct agent *a, const struct app *app);
void probes_app(struct agent *a, const struct app *app);

/* An array of all of the config's, with their states. */
json_t *probes_view(const struct agent *a);
void probes_free(struct agent *a);

#endif
