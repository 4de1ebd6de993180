/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where sockets of host-mode apps ask the agent's DNS from, if that is not the app's own address.
 * By all of the endpoint: another program may have the same port at another address of the host. An
 * entry takes a place of its app's share (server.bpf.h), so that none pushes out another's.
 */
#ifndef AX_ASKER_BPF_H
#define AX_ASKER_BPF_H

#include <linux/errno.h>

#include "server.bpf.h"

/* (Before the entry goes: the agent looks at both, in the other order.) */
static __always_inline void tell_gone(const struct ax_endpoint *at, __u32 app)
{
	struct ax_dns_gone gone = {.at_ns = bpf_ktime_get_ns(), .app = app};

	bpf_map_update_elem(&dns_gone, at, &gone, BPF_ANY);
}

/* The socket is there no more: whoever is next is another asker. */
static __always_inline void forget_asker(struct ax_asked *a)
{
	struct ax_endpoint at = a->dns_source;
	__u32 *app;

	if (!at.port_be)
		return;
	tell_gone(&at, a->dns_app);
	if (!__sync_lock_test_and_set(endpoint_word(&a->dns_source), 0))
		return;
	app = bpf_map_lookup_elem(&dns_sources, &at);
	if (app && *app == a->dns_app)
		bpf_map_delete_elem(&dns_sources, &at);
	share_return(a->dns_app);
}

static __always_inline bool is_asker_at(const struct ax_asked *a, const struct ax_endpoint *at,
					__u32 app)
{
	__u32 *known;

	if (a->dns_app != app || !endpoint_eq(&a->dns_source, at))
		return false;
	known = bpf_map_lookup_elem(&dns_sources, at);
	return known && *known == app;
}

/* 0, or a negative errno: who is not known is not to ask, as it would be taken for this host, which
 * may ask for more. A global function: the verifier judges it once, and not with all that its
 * callers did before. */
__weak __noinline int asker_at(struct ax_asked *a, const struct ax_endpoint *at, __u32 app)
{
	struct ax_endpoint key; /* a map's key is on the stack */

	if (!a || !at)
		return -EINVAL;
	key = *at;
	if (!key.port_be || is_asker_at(a, &key, app))
		return 0;
	/* the socket may be connected there yet */
	if (a->dns_source.port_be == key.port_be && !addr_eq(&a->dns_source.addr, &key.addr))
		return -EADDRNOTAVAIL;
	forget_asker(a);
	if (!share_take(app)) {
		count(AX_COUNT_SERVERS_REFUSED);
		return -ENOBUFS;
	}
	if (bpf_map_update_elem(&dns_sources, &key, &app, BPF_ANY)) {
		share_return(app);
		count(AX_COUNT_SERVERS_REFUSED);
		return -ENOBUFS;
	}
	a->dns_app = app;
	a->dns_source.addr = key.addr;
	if (__sync_val_compare_and_swap(endpoint_word(&a->dns_source), 0, *endpoint_word(&key)))
		share_return(app); /* another thread was faster */
	return 0;
}

#endif
