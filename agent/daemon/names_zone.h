/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The DNS zone that is made of names and addresses, and the server that answers for it. */
#ifndef AX_DAEMON_NAMES_ZONE_H
#define AX_DAEMON_NAMES_ZONE_H

#include "base/util.h"

struct agent;
struct ax_addr;
struct name;

/* Opens the server if the config wants one. */
int names_open(struct agent *a, struct error *e);

/* The config's upstreams, or those of /etc/resolv.conf. */
int names_set_upstreams(struct agent *a, struct error *e);

/* Whether anybody of this node has it. */
bool names_is_here(const struct name *n);

/* What a name resolves to; zero: nothing of that family. */
void names_address(const struct name *n, struct ax_addr *ip4, struct ax_addr *ip6);

#endif
