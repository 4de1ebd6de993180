/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs are told of the whole instance (include/ctl.h), and what follows from its
 * number. */
#ifndef AX_REGISTRY_INSTANCE_CTL_H
#define AX_REGISTRY_INSTANCE_CTL_H

#include "base/address.h"
#include "machine/instance.h"

struct agent;

/* Tells the kernel a->ctl as it is now. */
int agent_tell_ctl(struct agent *a);

/* The instance's /96 for anchors. */
void agent_anchor_prefix(const struct instance *inst, struct ax_addr *ret);

/* One address for all, at both ends of every pair: nobody needs a neighbour entry. */
void agent_mac(const struct agent *a, uint8_t ret[6]);

#endif
