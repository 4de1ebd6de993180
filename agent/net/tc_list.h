/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What packets meet at a device's clsact, whoever put it there. */
#ifndef AX_NET_TC_LIST_H
#define AX_NET_TC_LIST_H

#include "net/netlink.h"

struct tc_filter {
	uint32_t id;	   /* of the BPF program; 0: another kind of filter */
	uint32_t priority; /* lower ones come first */
	uint32_t handle;
	char name[32]; /* the program's, as who put it there calls it; else the filter's kind */
};

/* The filters of packets that leave, in the order in which they are asked. *ret is malloc'ed. None,
 * also where there is no clsact. 0, or a negative errno. */
int tc_egress_filters(struct nl *nl, unsigned ifindex, struct tc_filter **ret, size_t *n);

#endif
