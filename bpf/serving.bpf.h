/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who listens at an endpoint. BPF only. */
#ifndef AX_SERVING_BPF_H
#define AX_SERVING_BPF_H

#include <stdbool.h>

#include "maps.bpf.h"

/* Some app has waited at a service's own address, and may have flows since then that have to be
 * translated (include/service.h). */
extern bool waited_any;

/* NULL: nobody. `vip` is that of the endpoint's address: a socket that its app left behind, and
 * that somebody holds on to, does not serve the address's next owner. Nor does one of an app that
 * is about to end, and to be started again by whoever comes now, nor one that cannot be found yet.
 */
static __always_inline struct ax_server *server_of(const struct ax_endpoint *ep,
						   const struct ax_vip *vip)
{
	struct ax_server *s;

	if (vip->kind != AX_VIP_APP || (vip->flags & AX_VIP_TELL))
		return NULL;
	s = bpf_map_lookup_elem(&servers, ep);
	return s && s->app == vip->id && s->since_ns ? s : NULL;
}

/* Whether the app has any server: then a port where it has none is one that it does not serve. */
static __always_inline bool serves(__u32 app)
{
	__u32 *n = bpf_map_lookup_elem(&app_servers, &app);

	return n && *n;
}

/* Whether connections to who has that address wait of themselves: they start it, or have started it
 * and it has no server yet. */
static __always_inline bool is_to_start(const struct ax_vip *vip)
{
	if (!(vip->flags & AX_VIP_WAITS))
		return false;
	return vip->flags & AX_VIP_TELL || vip->kind != AX_VIP_APP || !serves(vip->id);
}

/* Another node's app. */
static __always_inline bool is_elsewhere(const struct ax_vip *vip)
{
	return vip->kind == AX_VIP_REMOTE || vip->kind == AX_VIP_ACROSS;
}

/* Of another node's app that node knows whether it listens: here it is taken for served. */
static __always_inline bool is_serving(const struct ax_endpoint *ep, const struct ax_vip *vip)
{
	return is_elsewhere(vip) || server_of(ep, vip);
}

/* Of an app that runs, here or on another node. */
static __always_inline bool is_running(const struct ax_vip *vip)
{
	return vip->kind == AX_VIP_APP || vip->kind == AX_VIP_REMOTE;
}

/* Whether what is sent to that address, a service's or one that apps share, gets to the app whose
 * address `be` is. */
static __always_inline bool leads_to(const struct ax_vip *vip, const struct ax_vip *be)
{
	if (vip->flags & AX_VIP_MIXED)
		return true;
	return vip->flags & AX_VIP_BY_DEVICE ? be->ifindex != 0 : !be->ifindex;
}

/* An address that ax gives out, and nobody has now. */
static __always_inline bool is_nobodys(const struct ax_addr *addr)
{
	struct ax_prefix p = {.len = 128, .addr = *addr};

	return bpf_map_lookup_elem(&reserved, &p) && !bpf_map_lookup_elem(&vips, addr);
}

#endif
