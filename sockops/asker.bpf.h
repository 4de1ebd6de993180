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

extern bool tcp_askers; /* TCP has taken places */
extern __u64 dns_gone_n, dns_gone_lost_ns, dns_gone_at[AX_DNS_GONE_SURE];

/* (Before the entry goes: the agent looks at both, in the other order; and at the ring last, which
 * has what may push others out before it does.) */
static __always_inline void tell_gone(const struct ax_endpoint *at, __u32 app)
{
	struct ax_dns_gone gone = {.at_ns = bpf_ktime_get_ns(), .app = app};

	dns_gone_at[__sync_fetch_and_add(&dns_gone_n, 1) % AX_DNS_GONE_SURE] = gone.at_ns;
	if (bpf_map_update_elem(&dns_gone, at, &gone, BPF_ANY))
		dns_gone_lost_ns = gone.at_ns;
}

/*
 * TCP's place is taken when it connects: nobody can refuse its SYN any more, which may be made much
 * later (TCP_FASTOPEN_CONNECT), or by others at the same time. False: there is none.
 */
static __always_inline bool place_take(struct ax_asked *a, __u32 app)
{
	if (!share_take(app))
		return false;
	a->dns_app = app;
	tcp_askers = true;
	if (__sync_fetch_and_or(&a->flags, AX_ASKED_PLACE) & AX_ASKED_PLACE)
		share_return(app); /* another thread was faster */
	return true;
}

static __always_inline bool place_use(struct ax_asked *a)
{
	return __sync_fetch_and_and(&a->flags, ~AX_ASKED_PLACE) & AX_ASKED_PLACE;
}

/* No SYN is to be made, or none yet, of what was connected to. */
static __always_inline void place_return(struct ax_asked *a)
{
	if (a->flags & AX_ASKED_PLACE && place_use(a))
		share_return(a->dns_app);
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
	if (!place_use(a) && !share_take(app)) {
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
