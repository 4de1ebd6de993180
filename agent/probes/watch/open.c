// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/watch/open.h"
#include "probes/watch/priv.h"
#include "open.skel.h"

int watch_open_load(const struct watch_options *o, const struct watch_open_options *x,
		    struct watch **ret, struct error *e)
{
	struct open *skel = open__open();
	struct ax_open_config *config;

	if (!skel)
		return watch_not_opened("open", e);
	config = (void *)&skel->rodata->wanted;
	config->failed_only = x->failed_only;
	config->latency = x->latency;
	config->prefix_len = (uint32_t)strnlen(x->prefix, sizeof(config->prefix) - 1);
	memcpy(config->prefix, x->prefix, config->prefix_len);
	bpf_program__set_autoload(skel->progs.ax_open_enter, x->latency);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
