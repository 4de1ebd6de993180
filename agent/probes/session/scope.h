/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes a session is about, by what people call them. */
#ifndef AX_PROBES_SESSION_SCOPE_H
#define AX_PROBES_SESSION_SCOPE_H

#include "machine/instance.h"
#include "probes/session/session.h"

/* Only processes of that cgroup and those below it. -ENOENT. */
int scope_cgroup(const char *path, struct session_options *o, struct error *e);
/* Only those of a running app, by its name or number: of all that have the name, up to
 * AX_SCOPE_CGROUPS. -ENOENT: none runs; -E2BIG. */
int scope_app(const struct instance *inst, const char *app, struct session_options *o,
	      struct error *e);
/* The same for the same cgroups. */
uint64_t scope_number(const struct session_options *o);

#endif
