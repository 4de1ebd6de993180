/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option that says which of an interface's lists is meant. */
#include "tools/xdp/common.h"

static const char *direction(size_t i)
{
	return xdp_direction_name((enum xdp_direction)i);
}

const struct words cmd_xdp_direction_words = {.nth = direction};

const struct opt cmd_xdp_direction_opts[] = {
	{"direction", 0, OPT_CHOICE, "DIRECTION",
	 "ingress (the default): the list for packets that come in; egress: for those that leave",
	 offsetof(struct cmd_xdp_direction, d), &cmd_xdp_direction_words},
};

const char *cmd_xdp_place(struct cmd_xdp_direction *d, const char *ifname)
{
	if (d->d != DIRECTION_EGRESS)
		return ifname;
	place_make(d->place, ifname, DIRECTION_EGRESS);
	return d->place;
}
