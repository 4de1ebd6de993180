// SPDX-License-Identifier: GPL-2.0-or-later
/* Room for what programs have found out and need not look for again. */
#include <bpf/libbpf.h>

#include "datapath/xdp_priv.h"
#include "filter.skel.h"

#define SETS_ALL   16384 /* of four flows each */
#define SETS_LEAST 1024

/* Looking for a rule of fewer words costs no more than to know it. */
#define FOUND_WORDS  3
#define FOUND_PLACES 1024
#define FOUND_FIELDS 8 /* as many classes as struct found has room for */

static uint32_t all_cpus(void)
{
	int possible = libbpf_num_possible_cpus();

	return possible > 0 ? (uint32_t)possible : 1;
}

/* Flows whose way the balancers' programs know (struct fast): so many for all CPUs together, as
 * each flow comes in by one of them, but no fewer for each than thousands. */
void datapath_xdp_fast_room(struct filter *skel)
{
	uint32_t cpus = all_cpus(), sets = SETS_ALL;

	while (sets > SETS_LEAST && sets * cpus > SETS_ALL)
		sets /= 2;
	*(uint32_t *)(uintptr_t)&skel->rodata->fast_sets = sets;
	bpf_map__set_max_entries(skel->maps.fast_flows4, sets * cpus);
	bpf_map__set_max_entries(skel->maps.fast_flows6, sets * cpus);
}

void datapath_xdp_found_room(const struct ax_layout *l, const volatile uint32_t *places,
			     struct bpf_map *founds)
{
	uint32_t fields = 0;

	for (size_t i = 0; i < AX_FIELDS; i++)
		fields += l->field[i].used != 0;
	if (l->match != AX_MATCH_BITMAP || l->words < FOUND_WORDS || fields > FOUND_FIELDS)
		return;
	*(uint32_t *)(uintptr_t)places = FOUND_PLACES;
	bpf_map__set_max_entries(founds, FOUND_PLACES * all_cpus());
}
