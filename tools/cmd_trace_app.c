/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which cgroup is meant by --app and --cgroup. */
#include "cmd_trace.h"
#include "probes/scope.h"

int trace_cgroup(const char *path, struct session_options *o, struct error *e)
{
	return scope_cgroup(path, o, e);
}

int trace_app_cgroup(const struct instance *inst, const char *app, struct session_options *o,
		     struct error *e)
{
	return scope_app(inst, app, o, e);
}
