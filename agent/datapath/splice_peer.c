/* SPDX-License-Identifier: GPL-2.0-or-later */
/* With whom connections may be spliced, for those who are not the agent: from its pinned maps. */
#include <fcntl.h>

#include <bpf/bpf.h>

#include "app.h"
#include "datapath/priv.h"
#include "datapath/splice.h"
#include "machine/mounts.h"

/* The agent loads what splices, and joins nothing before several times this. */
#define LOOK_EVERY_NS (50 * 1000 * 1000ull)

static int open_vips(const struct instance *inst)
{
	char mount[200], path[PIN_PATH_MAX];
	struct error ignored = {0};

	if (mount_bpffs(inst, false, mount, sizeof(mount), &ignored))
		return -1;
	snprintf(path, sizeof(path), "%s/%s/map_splice_members", mount, inst->name);
	if (access(path, F_OK) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/%s/map_vips", mount, inst->name);
	return bpf_obj_get(path);
}

bool datapath_splice_may_be(struct splice_peers *p, const struct ax_addr *remote)
{
	uint64_t now = p->vips < 0 ? time_mono_ns() : 0;
	struct ax_vip vip;

	if (p->vips < 0 && now - p->looked_ns >= LOOK_EVERY_NS) {
		p->looked_ns = now;
		p->vips = open_vips(p->inst);
	}
	return p->vips >= 0 && bpf_map_lookup_elem(p->vips, remote, &vip) == 0;
}
