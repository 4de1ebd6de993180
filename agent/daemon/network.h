/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instance's own addresses, and what it needs of the host's network. */
#ifndef AX_DAEMON_NETWORK_H
#define AX_DAEMON_NETWORK_H

#include "base/util.h"

struct agent;

/* Opens the agent's netlink socket, takes the pools' first addresses for the host, makes the
 * anchors' prefix, and fills in what a->ctl says of them. */
int network_open(struct agent *a, struct error *e);

#endif
