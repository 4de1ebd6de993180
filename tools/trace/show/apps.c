/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The apps of processes, by their cgroups. */
#include "tools/trace/show/show.h"
#include "machine/cgroup.h"

void trace_find_apps(struct trace *t)
{
	struct error e = {0};

	if (apps_directory(&t->c->inst, t->apps, sizeof(t->apps), &e) == 0)
		t->options.apps = t->apps;
	else
		t->apps[0] = '\0';
}

/* Names are remembered, since the same ones come again, also when the app is gone. */
#define APPS_KNOWN 64
static const char *app_of(struct trace *t, uint64_t cgroup)
{
	static struct {
		uint64_t cgroup;
		char name[64];
	} known[APPS_KNOWN];
	size_t i = cgroup % APPS_KNOWN;

	if (!t->apps[0])
		trace_find_apps(t);
	if (known[i].cgroup != cgroup || !known[i].name[0]) {
		known[i].cgroup = cgroup;
		if (apps_name(t->apps, cgroup, known[i].name, sizeof(known[i].name)) < 0)
			strcpy(known[i].name, "-");
	}
	return known[i].name;
}

void trace_put_app(struct trace *t, uint64_t cgroup)
{
	const char *name = app_of(t, cgroup);

	if (t->json)
		trace_out_json(&t->out, name, strlen(name));
	else
		trace_out_safe(&t->out, name, strlen(name));
}
