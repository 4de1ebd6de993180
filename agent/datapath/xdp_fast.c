// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Room for the flows whose way the balancers' programs know (struct fast): so much for all CPUs
 * together, as each flow comes in by one of them, but no less for each than thousands.
 */
#include <bpf/libbpf.h>

#include "datapath/xdp_priv.h"
#include "filter.skel.h"

#define SETS_ALL   16384 /* of four flows each */
#define SETS_LEAST 1024

void datapath_xdp_fast_room(struct filter *skel)
{
	int possible = libbpf_num_possible_cpus();
	uint32_t cpus = possible > 0 ? (uint32_t)possible : 1, sets = SETS_ALL;

	while (sets > SETS_LEAST && sets * cpus > SETS_ALL)
		sets /= 2;
	*(uint32_t *)(uintptr_t)&skel->rodata->fast_sets = sets;
	bpf_map__set_max_entries(skel->maps.fast_flows4, sets * cpus);
	bpf_map__set_max_entries(skel->maps.fast_flows6, sets * cpus);
}
