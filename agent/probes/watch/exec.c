// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/watch/exec.h"
#include "probes/watch/priv.h"
#include "exec.skel.h"

int watch_exec_load(const struct watch_options *o, const struct watch_exec_options *x,
		    struct watch **ret, struct error *e)
{
	struct exec *skel = exec__open();

	if (!skel)
		return watch_not_opened("exec", e);
	skel->rodata->wanted.env = x->env;
	skel->rodata->wanted.cwd = x->cwd;
	skel->rodata->wanted.exits = x->exits;
	bpf_program__set_autoload(skel->progs.ax_exec_failed, x->failed);
	bpf_program__set_autoload(skel->progs.ax_exit, x->exits);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
