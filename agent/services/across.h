/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names that apps of other nodes have: together with this node's apps of that name they are a
 * service, and so are several of other nodes alone. One by itself is no service: its name leads to
 * its address. What comes in one burst is worked off in parts, and the loop goes round between.
 *
 * An app of another node is a backend for a port only while it listens there, as its node says:
 * programs in the kernel do not know it, so each port has a list of its own.
 */
#ifndef AX_SERVICES_ACROSS_H
#define AX_SERVICES_ACROSS_H

#include "registry/others.h"
#include "services/members.h"

struct agent;
struct service;

/* a->others_at_ns has come. True: an address was taken, or there was none left to take. */
bool across_due(struct agent *a, uint64_t now_ns);

/* An address is free again: names whose apps could have none are looked at again. */
void across_again(struct agent *a);

/* How many apps of other nodes have the service's name. */
size_t across_members(struct agent *a, const struct service *s);

/* Whether a member of another node gets connections to that port of its own; of 0 (a list for all
 * ports) those do that no app of this node has a part in. True for all others. */
bool across_serves(const struct service_member *m, uint16_t port, uint8_t proto, bool local);

/* The ports at which members listen, of a service without ports of its own: into s->ports. *gone
 * (malloc'ed): those that were in it and are no longer. -ENOMEM: nothing has changed. */
int across_ports(struct service *s, const struct service_member *m, size_t n,
		 struct other_port **gone, size_t *n_gone);
/* One of those that are gone has its list still: it is gone the next time, too. -ENOMEM. */
int across_port_stays(struct service *s, const struct other_port *p);

#endif
