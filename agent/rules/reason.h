/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What packets are counted for besides rules: one row for each enum ax_reason.
 *
 * To add one:
 *   include/xdp_reason.h    its number: before AX_REASON_POLICIES if it has a policy, and there
 *                           behind those that are worse (the worst of a packet is told)
 *   agent/rules/reason.c    its row; with a policy: whose default stands in defaults.h
 *   xdp/parse.bpf.h         odd(p, AX_REASON_...), or count_reason() where else it is found
 *   tools/share/ax-xdp.8    what it means
 *   tests/prog/test_filter_odd_packets.c   a packet of the class, which that test asks for
 */
#ifndef AX_RULES_REASON_H
#define AX_RULES_REASON_H

#include <stdint.h>

#include "xdp_reason.h"

struct rule_reason {
	const char *name;
	uint8_t policy; /* enum ax_policy, unless the list says otherwise; below
			   AX_REASON_POLICIES */
};
extern const struct rule_reason rule_reasons[AX_REASONS]; /* by enum ax_reason */

/* The class of packets of that name: one that has a policy. 0 (AX_REASON_NONE): there is none. */
enum ax_reason rule_class_find(const char *name);

#endif
