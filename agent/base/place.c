// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/place.h"

#define EGRESS ":egress"

/* How long the interface's name is in it. */
static size_t name_len(const char *place)
{
	size_t len = strlen(place), end = strlen(EGRESS);

	return len > end && streq(place + len - end, EGRESS) ? len - end : len;
}

void place_make(char ret[PLACE_MAX], const char *ifname, enum xdp_direction d)
{
	snprintf(ret, PLACE_MAX, "%.*s%s", (int)name_len(ifname) < 20 ? (int)name_len(ifname) : 20,
		 ifname, d == DIRECTION_EGRESS ? EGRESS : "");
}

enum xdp_direction place_direction(const char *place)
{
	return place[name_len(place)] ? DIRECTION_EGRESS : DIRECTION_INGRESS;
}

void place_ifname(const char *place, char ret[IF_NAMESIZE])
{
	size_t len = name_len(place);

	/* what is too long is the name of no interface, and must not become that of one */
	snprintf(ret, IF_NAMESIZE, "%.*s", len < IF_NAMESIZE ? (int)len : 0, place);
}

unsigned place_ifindex(const char *place)
{
	char name[IF_NAMESIZE];

	place_ifname(place, name);
	return if_nametoindex(name);
}

bool place_is_at(const char *place, const char *ifname)
{
	char name[IF_NAMESIZE];

	place_ifname(place, name);
	return streq(name, ifname);
}
