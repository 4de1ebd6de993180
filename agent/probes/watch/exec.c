// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/watch/exec.h"
#include "probes/watch/priv.h"
#include "exec.skel.h"

static void destroy(void *skel)
{
	exec__destroy(skel);
}

int watch_exec_load(const struct watch_options *o, const struct watch_exec_options *x,
		    struct watch **ret, struct error *e)
{
	struct exec *skel = exec__open();

	if (!skel)
		return error_set(e, -errno, "the programs of ax trace exec cannot be opened: %s",
				 strerror(errno));
	skel->rodata->wanted.env = x->env;
	skel->rodata->wanted.cwd = x->cwd;
	skel->rodata->wanted.exits = x->exits;
	bpf_program__set_autoload(skel->progs.ax_exec_failed, x->failed);
	bpf_program__set_autoload(skel->progs.ax_exit, x->exits);
	return watch_load(&(struct watch_parts){.skel = skel,
						.destroy = destroy,
						.skeleton = skel->skeleton,
						.obj = skel->obj,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
