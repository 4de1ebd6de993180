/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is exposed at an address of the host, for programs on sockets and on packets. BPF only. */
#ifndef AX_EXPOSED_BPF_H
#define AX_EXPOSED_BPF_H

#include <linux/in.h>

#include "endpoint.bpf.h"
#include "maps.bpf.h"

/* Whether anything is exposed by that port, at whatever address. */
static __always_inline bool port_is_exposed(__be16 port_be, __u8 proto)
{
	__u32 port = bpf_ntohs(port_be), word = AX_EXPOSED_WORD(port, proto == IPPROTO_UDP);
	__u64 *bits = bpf_map_lookup_elem(&exposed_ports, &word);

	return bits && *bits & AX_EXPOSED_BIT(port);
}

/* NULL: nothing. Whether the address is the host's is the caller's to know. */
static __always_inline const struct ax_exposed *exposed_at(const struct ax_endpoint *at,
							   __u32 ifindex)
{
	struct ax_exposed_key key = {.at = *at};
	const struct ax_exposed *x;

	if (!port_is_exposed(at->port_be, at->proto))
		return NULL;
	x = bpf_map_lookup_elem(&exposed, &key);
	if (x)
		return x;
	addr_set_wildcard(&key.at.addr, &at->addr);
	x = bpf_map_lookup_elem(&exposed, &key);
	if (x)
		return x;
	key.ifindex = ifindex;
	return bpf_map_lookup_elem(&exposed, &key);
}

#endif
