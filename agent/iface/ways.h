/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of this host's interfaces lists with `action route` route between, and lists with `action
 * challenge` answer by (include/route.h). */
#ifndef AX_IFACE_WAYS_H
#define AX_IFACE_WAYS_H

#include "iface/preflight_priv.h"
#include "net/ether_links.h"

/* What there is now. */
struct ways {
	const struct place *here; /* borrowed */
	struct ether_link *links;
	size_t n;
	bool ipv6;    /* net.ipv6.conf.all.forwarding */
	bool guarded; /* the kernel forwards for ax's apps alone (net/guard.h): nothing is routed */
};
int ways_look(const struct place *here, struct ways *ret);
void ways_free(struct ways *w);

/* NULL: there is none, or it has no Ethernet headers. */
const struct ether_link *ways_link(const struct ways *w, unsigned ifindex);
/* Whether what a sysctl of an interface stands for is on: net.ipv4.conf.NAME.KEY (family 4 or 6).
 */
bool ways_sysctl(int family, const char *name, const char *key);
/* Whether the kernel forwards IPv6 that comes in by it, if the interface's own sysctl is on. */
bool ways_forwards6(const struct ways *w, const struct ether_link *l);
/* Whether there are VLANs of an interface. */
bool ways_has_vlans(const struct ways *w, unsigned ifindex);
/* Why frames for an interface are left to the kernel, as the end of a sentence that begins with its
 * name. NULL: they are not; *to is the device that they are handed to. */
const char *ways_why_not(const struct ways *w, const struct ether_link *l,
			 const struct ether_link **to);
/* The same of what comes in by it, as far as that depends on the interface. */
const char *ways_why_not_in(const struct ways *w, const struct ether_link *l);

#endif
