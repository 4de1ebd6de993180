// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "probes/watch/jit.h"
#include "probes/btf/few_types.h"
#include "probes/watch/priv.h"
#include "jit.skel.h"

int watch_jit_load(const struct watch_options *o, struct watch **ret, struct error *e)
{
	CLEANUP(few_types_close) struct few_types types = FEW_TYPES_NONE;
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct jit *skel;
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return error_set(e, -errno,
				 "/proc/self/ns/pid, which tells processes apart, cannot be "
				 "looked at: %s; mount /proc",
				 strerror(errno));
	opts.btf_custom_path = few_types_path(jit__elf_bytes, &types);
	skel = jit__open_opts(&opts);
	if (!skel)
		return watch_not_opened("jit", e);
	*(uint32_t *)&skel->rodata->wanted.pidns = (uint32_t)st.st_ino;
	bpf_map__set_max_entries(skel->maps.records, WATCH_JIT_RING);
	bpf_program__set_autoload(skel->progs.ax_jit_fork, !o->alone);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
