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

static int look_up(const struct splice_peers *p, const struct ax_addr *remote)
{
	struct ax_vip vip;

	return p->vips < 0 ? -EBADF : bpf_map_lookup_elem(p->vips, remote, &vip) ? -errno : 0;
}

/* A process that goes on for another one (launch/standby.c) has what that one knew when it was
 * started. */
static void open_again(struct splice_peers *p)
{
	const uint64_t now = time_mono_ns();
	const bool early =
		p->vips < 0 && p->looked_by == getpid() && now - p->looked_ns < LOOK_EVERY_NS;

	if (early)
		return;
	p->looked_ns = now;
	p->looked_by = getpid();
	p->vips = open_vips(p->inst); /* (the former number may be somebody else's by now) */
}

bool datapath_splice_may_be(struct splice_peers *p, const struct ax_addr *remote)
{
	int r = look_up(p, remote);

	if (r == 0 || r == -ENOENT)
		return r == 0;
	open_again(p);
	return look_up(p, remote) == 0;
}
