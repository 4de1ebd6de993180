// SPDX-License-Identifier: GPL-2.0-or-later
/* One element of a set, changed in the arena of the list that judges. */
#include "iface/priv.h"

static int change_generation(const struct generation *g, const struct set_change *ch,
			     struct set_changed *ret)
{
	struct generation_view w CLEANUP(generation_view_close) = {0};
	int r = g->layout.journal ? generation_view_open(g, true, &w) : -ENOENT;

	return r ? 0 : arena_change_set(&w.v, ch, ret);
}

int xdp_change_set(const struct instance *inst, const char *ifname, const struct set_change *ch,
		   const struct xdp_load_options *o, struct set_changed *ret)
{
	autoclose int lock = -1;
	struct generation g = {.prog = -1, .arena = -1};
	struct error ignored = {0};
	struct datapath_xdp d;
	unsigned ifindex;
	char dir[256];
	int r;

	datapath_xdp_init(&d);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, &ignored);
	/* what waits for its confirmation stays as it is, and what cuts off is warned of */
	if (!r && !d.root->deadline_ns && !xdp_may_cut_off(ifname, &ch->prefix, o) &&
	    !generation_get_layout(&d, AX_JUMP_CURRENT, &g))
		r = change_generation(&g, ch, ret);
	generation_close(&g);
	datapath_xdp_close(&d);
	return r > 0;
}
