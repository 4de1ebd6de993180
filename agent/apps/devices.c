/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices of apps that are gone. */
#include <net/if.h>

#include "apps/devices.h"
#include "net/netlink.h"
#include "registry/state.h"

#define DOOM_MS 500

struct doomed {
	struct doomed *next;
	unsigned ifindex;
	uint64_t at_ns;
};

void device_doom(struct agent *a, unsigned ifindex)
{
	struct doomed *d = calloc(1, sizeof(*d));

	if (!d) {
		nl_link_del(a->nl, ifindex);
		return;
	}
	d->ifindex = ifindex;
	d->at_ns = time_mono_ns() + DOOM_MS * 1000000ull;
	d->next = a->doomed;
	a->doomed = d;
	a->timers_stale = true;
}

void devices_due(struct agent *a, uint64_t now_ns)
{
	struct doomed **at = &a->doomed;

	while (*at) {
		struct doomed *d = *at;
		char name[IF_NAMESIZE];

		if (d->at_ns > now_ns) {
			at = &d->next;
			continue;
		}
		/* asked first, and without the RTNL lock, for which the kernel's taking down of
		 * other namespaces would let us wait */
		if (if_indextoname(d->ifindex, name))
			nl_link_del(a->nl, d->ifindex);
		*at = d->next;
		free(d);
	}
}

uint64_t devices_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (const struct doomed *d = a->doomed; d; d = d->next)
		if (!next || d->at_ns < next)
			next = d->at_ns;
	return next;
}

void devices_free(struct agent *a)
{
	while (a->doomed) {
		struct doomed *d = a->doomed;

		a->doomed = d->next;
		free(d);
	}
}
