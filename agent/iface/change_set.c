// SPDX-License-Identifier: GPL-2.0-or-later
/* One element of a set, changed in the arena of the list that judges. */
#include <sys/mman.h>

#include "iface/priv.h"

static int change_generation(const struct generation *g, const struct set_change *ch,
			     struct set_changed *ret)
{
	uint8_t *arena = g->layout.journal ? generation_writable(g) : NULL;
	int r;

	if (!arena)
		return 0;
	r = arena_change_set(arena, ch, ret);
	munmap(arena, g->size);
	return r;
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
