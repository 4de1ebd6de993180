/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs are told of the whole instance. */
#include <arpa/inet.h>

#include "registry/instance_ctl.h"
#include "machine/instance.h"
#include "datapath/datapath.h"
#include "registry/state.h"

int agent_tell_ctl(struct agent *a)
{
	return datapath_ctl_set(a->dp, &a->ctl);
}

void agent_anchor_prefix(const struct instance *inst, struct ax_addr *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->w[0] = htonl(0xfd617861); /* fd, "axa" */
	ret->w[1] = htonl(inst->route_metric);
}

void agent_mac(const struct agent *a, uint8_t ret[6])
{
	instance_mac(a->inst, ret);
}
