/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IP forwarding, switched on while it is needed. What the sysctls were before is kept in
 * <run_dir>/forwarding, written before anything is changed, so that an agent that was killed loses
 * nothing; the file exists exactly while the instance needs forwarding.
 */
#ifndef AX_NET_FORWARDING_H
#define AX_NET_FORWARDING_H

#include "base/address.h"
#include "machine/instance.h"
#include "base/util.h"

/*
 * Where it is ax that switches it on, nothing is forwarded but what comes from the devices of its
 * instances, the answers to that, and to these devices what comes from `nodes`, whose apps are a
 * cluster's (guard.h): *guarded.
 *
 * IPv6 forwarding makes the kernel ignore router advertisements and drop what it learned from
 * them, except on interfaces whose accept_ra is 2: those that have 1 (and are not the instance's)
 * get 2 first, so that a host with an address from its router keeps it. Interfaces that appear
 * later are the administrator's to set.
 */
int forwarding_on(const struct instance *inst, bool v4, bool v6, const struct prefix *nodes,
		  size_t n_nodes, bool *guarded, struct error *e);

/* Whether this network namespace forwards anything now: some interface does, in either family. */
bool forwarding_is_on(void);

/*
 * Puts back what forwarding_on() changed, unless somebody else has changed it since. While another
 * instance (a sibling of run_dir) needs forwarding, it inherits the duty instead. Without a file
 * nothing is done.
 */
int forwarding_restore(const struct instance *inst, struct error *e);

#endif
