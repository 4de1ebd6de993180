/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a rule list is: at an interface, and in one of its directions. As one word, by which lists
 * are named throughout: "eth0" is where its packets come in, "eth0:egress" where they leave. (No
 * interface has a ':' in its name.)
 */
#ifndef AX_BASE_PLACE_H
#define AX_BASE_PLACE_H

#include <net/if.h>

#include "base/util.h"

enum xdp_direction { DIRECTION_INGRESS, DIRECTION_EGRESS };

#define PLACE_MAX 32 /* with its end, for names that are too long to be an interface's, too */

/* The place of that direction at an interface, or at the interface of another place. */
void place_make(char ret[PLACE_MAX], const char *ifname, enum xdp_direction d);
enum xdp_direction place_direction(const char *place);
static inline bool place_is_egress(const char *place)
{
	return place_direction(place) == DIRECTION_EGRESS;
}
/* Its interface. */
void place_ifname(const char *place, char ret[IF_NAMESIZE]);
/* 0: there is no such interface, in the network namespace of the caller. */
unsigned place_ifindex(const char *place);
/* Whether it is at that interface. */
bool place_is_at(const char *place, const char *ifname);

#endif
