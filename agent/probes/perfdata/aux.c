// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose traces hardware wrote into the AUX area. */
#include "probes/perfdata/priv.h"

const char *perfdata_aux_name(uint32_t type)
{
	static const char *const names[] = {"unknown", "intel_pt",    "intel_bts", "cs_etm",
					    "arm_spe", "s390_cpumsf", "hisi_ptt",  "vpa_dtl"};

	return type < ARRAY_SIZE(names) ? names[type] : names[0];
}

bool perfdata_aux(const struct perfdata *p, const struct perfdata_event *ev,
		  struct perfdata_aux *ret)
{
	struct cursor c = cursor_of(p, ev->data + HEADER_SIZE, ev->size - HEADER_SIZE);

	ret->size = take_u64(&c);
	ret->offset = take_u64(&c);
	ret->reference = take_u64(&c);
	ret->idx = take_u32(&c);
	ret->tid = take_u32(&c);
	ret->cpu = take_u32(&c);
	return ev->type == PERFDATA_AUXTRACE && !c.bad;
}
