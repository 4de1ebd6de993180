/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices of apps that are gone. */
#include <net/if.h>

#include "daemon/devices.h"
#include "daemon/state.h"
#include "net/netlink.h"

#define DOOM_MS 500

struct doomed {
	unsigned ifindex;
	uint64_t at_ns;
};

void device_doom(struct agent *a, unsigned ifindex)
{
	struct doomed *more = realloc(a->doomed, (a->n_doomed + 1) * sizeof(*more));

	if (!more) {
		nl_link_del(a->nl, ifindex);
		return;
	}
	a->doomed = more;
	a->doomed[a->n_doomed].ifindex = ifindex;
	a->doomed[a->n_doomed++].at_ns = time_mono_ns() + DOOM_MS * 1000000ull;
	a->timers_stale = true;
}

void devices_due(struct agent *a, uint64_t now_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < a->n_doomed; i++) {
		char name[IF_NAMESIZE];

		if (a->doomed[i].at_ns > now_ns)
			a->doomed[left++] = a->doomed[i];
		/* asked first, and without the RTNL lock, for which the kernel's taking down of
		 * other namespaces would let us wait */
		else if (if_indextoname(a->doomed[i].ifindex, name))
			nl_link_del(a->nl, a->doomed[i].ifindex);
	}
	a->n_doomed = left;
}

uint64_t devices_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (size_t i = 0; i < a->n_doomed; i++)
		if (!next || a->doomed[i].at_ns < next)
			next = a->doomed[i].at_ns;
	return next;
}

void devices_free(struct agent *a)
{
	free(a->doomed);
}
