/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * That a host on which ax switched forwarding on does not become everybody's router: one table of
 * nf_tables for all instances, whose devices are a group (netlink.h). Of what is to be forwarded
 * only what comes from such a device passes, its answers, and what comes to it from other nodes of
 * a cluster.
 */
#ifndef AX_NET_GUARD_H
#define AX_NET_GUARD_H

#include "base/address.h"
#include "base/util.h"

/* No instance's: those are called ax_<name>. */
#define GUARD_TABLE "ax-forwarding"

#define GUARD_NODES_MAX 64
/* For these families, in place of what it was before; also for what comes from apps of these
 * prefixes, on other nodes. -EOPNOTSUPP: not by this kernel. */
int guard_set(bool v4, bool v6, const struct prefix *nodes, size_t n, struct error *e);
/* Not an error when there is none. */
int guard_remove(struct error *e);

#endif
