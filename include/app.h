/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps and virtual IPs, as the programs on sockets and packets see them. */
#ifndef AX_APP_H
#define AX_APP_H

#include <linux/types.h>
#include "addr.h"
#include "party.h"

enum ax_app_flag {
	AX_APP_HOST = 1 << 0,	  /* shares the host's network namespace */
	AX_APP_EGRESS = 1 << 1,	  /* may reach addresses that are not ax's, if no rule says no */
	AX_APP_SOURCE = 1 << 2,	  /* map `sources` has by what address the outside sees it */
	AX_APP_CONFINED = 1 << 3, /* may not ping all of them */
};

/* Map `apps`: cgroup id -> app. Addresses that an app does not have are all zero. */
struct ax_app {
	__u32 id;
	__u32 flags;	     /* enum ax_app_flag */
	struct ax_addr vip4; /* its own addresses */
	struct ax_addr vip6;
	struct ax_addr shared4; /* the address of the service that it serves by translation */
	struct ax_addr shared6;
	__u32 wait_ms; /* how long its connects wait for a server; 0: not at all */
	__u32 anchor;  /* last word (host byte order) of its address below ctl.anchor6, 0: none */
	__u32 party;   /* index in `parties` */
	__u32 name[2]; /* a hash of its name: those of one name are one client (affinity) */
};
_Static_assert(sizeof(struct ax_app) == 92, "struct ax_app is a map value");

/* Map `sources`: id of an app in host mode -> addresses of the host; all zero: the route's. */
struct ax_source {
	struct ax_addr v4;
	struct ax_addr v6;
};
_Static_assert(sizeof(struct ax_source) == 32, "struct ax_source is a map value");

enum ax_vip_kind {
	AX_VIP_APP = 1,	     /* an app's own address */
	AX_VIP_DECLARED = 2, /* of an app in the config that has not been started */
	AX_VIP_SERVICE = 3,  /* a service's address, which no app owns */
	AX_VIP_HOST = 4,     /* the instance's own address: the agent's DNS, and the host to apps */
	AX_VIP_BALANCER = 5, /* where NAT balancers send from to apps, which answer to it */
	AX_VIP_REMOTE = 6,   /* an app's of another node of the cluster, reached by a route */
	AX_VIP_ACROSS = 7,   /* the same, reached by translation alone: no packet has it */
};

enum ax_vip_flag {
	AX_VIP_LOCAL = 1 << 0,	  /* lives in the host's network namespace (host-mode app) */
	AX_VIP_SERVICES = 1 << 1, /* map `services` has entries for this address */
	AX_VIP_EGRESS = 1 << 2,	  /* the owner may reach addresses that are not ax's, or */
	AX_VIP_LEAVES = 1 << 3,	  /* some of them, by rules */
	/* a service's: what is sent to it goes to private backends, by the services' device; else
	   sk_lookup gives it to such in host mode. A private app's that shares it with private
	   ones, while apps wait: so does TCP of private apps where its owner does not listen */
	AX_VIP_BY_DEVICE = 1 << 4,
	/* a service's, which has backends of both modes, or had: the address is this host's, as of
	   one in host mode, and what goes to private ones is taken off on the way to it */
	AX_VIP_MIXED = 1 << 5,
	/* of an app that is started by connections: */
	AX_VIP_WAITS = 1 << 8, /* connects wait for it, though nobody has asked for that */
	AX_VIP_TELL = 1 << 9,  /* it does not run, or ends: it serves nobody, who waits is told */
};
#define AX_VIP_WAIT_MS 30000 /* with AX_VIP_WAITS, where no longer wait is asked for */

/* Map `vips`: address -> what it is. */
struct ax_vip {
	__u32 kind;  /* enum ax_vip_kind */
	__u32 flags; /* enum ax_vip_flag */
	__u32 id;    /* app or service id */
	/* host end of a private app's veth pair; AX_VIP_REMOTE: by which its packets come in; else
	 * 0 */
	__u32 ifindex;
	struct ax_addr twin; /* the owner's address of the other family, or zero */
	__u32 party;	     /* index in `parties` */
};
_Static_assert(sizeof(struct ax_vip) == 36, "struct ax_vip is a map value");

/* Map `netns_apps`: network namespace cookie of a private app -> its addresses and identity, and
 * that of the host -> nothing but zeros. A namespace that is not there is nobody's: whatever
 * addresses it has, no packet of ax gets there. */
struct ax_netns_app {
	__u32 id; /* 0: the host's */
	__u32 pad;
	struct ax_addr vip4;
	struct ax_addr vip6;
};
_Static_assert(sizeof(struct ax_netns_app) == 40, "struct ax_netns_app is a map value");

#endif
