/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs count (include/ctl.h says what each counter stands for), and the names under
 * which 'ax status' shows it. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"

static const char *const names[] = {
	[AX_COUNT_CONNECT] = "connects",
	[AX_COUNT_TRANSLATED] = "translated",
	[AX_COUNT_DENIED_LABELS] = "denied-no-shared-label",
	[AX_COUNT_DENIED_RULE] = "denied-by-rule",
	[AX_COUNT_NO_BACKEND] = "no-backend",
	[AX_COUNT_NO_EGRESS] = "no-egress",
	[AX_COUNT_HELD] = "held",
	[AX_COUNT_BIND_REFUSED] = "bind-refused",
	[AX_COUNT_FABRIC_SOURCE] = "fabric-wrong-source",
	[AX_COUNT_FABRIC_DENIED] = "fabric-denied",
	[AX_COUNT_FABRIC_MALFORMED] = "fabric-malformed",
	[AX_COUNT_EVENTS_LOST] = "events-lost",
	[AX_COUNT_ERROR] = "errors",
	[AX_COUNT_SERVERS_REFUSED] = "servers-refused",
	[AX_COUNT_ACROSS_CAME] = "nodes-came",
	[AX_COUNT_ACROSS_PLAIN] = "nodes-without-option",
	[AX_COUNT_ACROSS_FORGED] = "nodes-forged",
	[AX_COUNT_ACROSS_FULL] = "nodes-full",
	[AX_COUNT_ACROSS_REFUSED] = "nodes-refused",
};
_Static_assert(ARRAY_SIZE(names) == AX_COUNTERS, "every counter has a name");

const char *datapath_counter_name(unsigned counter)
{
	return counter < AX_COUNTERS ? names[counter] : "?";
}

int datapath_counters(struct datapath *dp, uint64_t ret[AX_COUNTERS])
{
	int cpus = libbpf_num_possible_cpus();
	autofree uint64_t *values = NULL;

	if (cpus < 0)
		return cpus;
	values = calloc((size_t)cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < AX_COUNTERS; i++) {
		int r = bpf_map_lookup_elem(dp->map[MAP_COUNTERS], &i, values) ? -errno : 0;

		ret[i] = 0;
		if (r == -ENOENT)
			continue; /* younger than the map, which an older agent made */
		if (r)
			return r;
		for (int c = 0; c < cpus; c++)
			ret[i] += values[c];
	}
	return 0;
}
