/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting in BPF programs. */
#ifndef AX_COUNT_BPF_H
#define AX_COUNT_BPF_H

#include "maps.bpf.h"

static __always_inline void count(__u32 index)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &index);

	if (n)
		(*n)++; /* per CPU */
}

#endif
