/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups of interfaces (`ip link set IFACE group GROUP`): of which one is, and what names stand
 * for, as iproute2 and nft(8) have them. */
#ifndef AX_NET_LINK_GROUPS_H
#define AX_NET_LINK_GROUPS_H

#include "base/util.h"

struct nl;

/* That of a link. -ENODEV. */
int nl_link_group(struct nl *nl, unsigned ifindex, uint32_t *group);

/* The names of this machine: of /etc/iproute2/group, or /usr/share/iproute2/group where there is
 * none, and of the files *.conf in group.d beside them. "default" is 0 without any. */
struct link_groups {
	char *text; /* of all files, one behind the other; the first line with a name holds */
};
int link_groups_read(struct link_groups *g);
void link_groups_free(struct link_groups *g);
/* -ENOENT: there is no such name. */
int link_groups_find(const struct link_groups *g, const char *name, uint32_t *ret);

#endif
