/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose datagrams apps await: whom they have asked, where rules would refuse the answers as
 * questions; to whom they have connected, where rules may forget that they let them; and who has
 * connected to them. */
#ifndef AX_AWAITED_H
#define AX_AWAITED_H

#include <linux/types.h>
#include "addr.h"

/*
 * Map `awaited`: each app has AX_AWAITED_SETS of these and no more, so that who asks from many
 * ports pushes out what is its own. Its address is known by who it is and by the family of whom it
 * has asked.
 */
#define AX_AWAITED_SETS 64 /* a power of 2 */
#define AX_AWAITED_WAYS 8
#define AX_AWAITED_MAX	16384 /* sets of all apps */
/* Map `leavers`: the same of TCP of private apps to the outside that a rule has let through,
 * without an end: it goes on when the rule has forgotten the address of a name. */
#define AX_LEAVERS_SETS 512 /* a power of 2 */
#define AX_LEAVERS_MAX	8192
/* Map `visitors`: the same of TCP that came to a private app from another machine, whose client
 * (.from) has shown that it got the app's answer: what the app sends goes on to it. */
#define AX_VISITORS_SETS 2048 /* a power of 2 */
#define AX_VISITORS_MAX	 16384
struct ax_awaited_key {
	__u32 app;
	__u32 set;
};
_Static_assert(sizeof(struct ax_awaited_key) == 8, "struct ax_awaited_key is a map key");

struct ax_await {
	struct ax_endpoint
		from;	/* who was asked; port 0: what later fragments go by. .proto 0: free */
	__be16 port_be; /* the app's */
	__u16 pad;
	__u32 seen; /* units of 2^30 ns (flow_now()) */
};
struct ax_awaited {
	struct ax_await v[AX_AWAITED_WAYS];
};
_Static_assert(sizeof(struct ax_awaited) == 28 * AX_AWAITED_WAYS,
	       "struct ax_awaited is a map value");

#endif
