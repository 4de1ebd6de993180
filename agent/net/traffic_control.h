/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BPF programs at a device by clsact and direct-action filters (tc-bpf(8)). All messages of a call
 * go out in one request: an app's launch waits for it. Returns 0 or the kernel's negative errno.
 */
#ifndef AX_NET_TRAFFIC_CONTROL_H
#define AX_NET_TRAFFIC_CONTROL_H

#include "net/netlink.h"

struct tc_program {
	unsigned ifindex;
	bool egress;
	uint16_t priority;
	uint32_t handle;  /* of this priority */
	int fd;		  /* nobody's when it is detached */
	const char *name; /* as tc(8) shows it */
};

/* Makes a clsact for each device that has none, *made says of the first one whether it had none
 * (NULL: nobody asks), and puts the programs there, in place of what has the same handle. What was
 * done before one fails stays done. */
int tc_attach(struct nl *nl, const struct tc_program *programs, size_t n, bool *made);
/* All are tried; returns the first error. */
int tc_detach(struct nl *nl, const struct tc_program *programs, size_t n);
/* Takes the device's clsact away with all programs there. */
int tc_clsact_del(struct nl *nl, unsigned ifindex);

#endif
