/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UDP of host-mode apps that is on a wildcard in truth (struct ax_wild). BPF only. */
#ifndef AX_WILD_BPF_H
#define AX_WILD_BPF_H

#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "endpoint.bpf.h"
#include "maps.bpf.h"

/* (what is behind ___ is no part of the name to libbpf: sockops/kernel.bpf.h has more of it) */
struct sock_common___wild {
	__u16 skc_num; /* the port, 0: none */
} __attribute__((preserve_access_index));

/* NULL: nobody's; or its socket has given the port back. A frame of its own: stack is short where
 * this is asked. */
static __noinline __attribute__((unused)) const struct ax_wild *
wild_at_port(const struct ax_addr *like, __u32 port_be)
{
	struct ax_endpoint at = {.port_be = (__be16)port_be, .proto = IPPROTO_UDP};
	const struct sock_common___wild *skc;
	const struct ax_wild *w;
	__u16 port = 0;

	addr_set_wildcard(&at.addr, like);
	w = bpf_map_lookup_elem(&wild_ports, &at);
	if (!w || !w->sock)
		return w;
	skc = (const struct sock_common___wild *)w->sock;
	/* (memory that is another's by now has another number there, or the read fails) */
	bpf_core_read(&port, sizeof(port), &skc->skc_num);
	return port == bpf_ntohs((__be16)port_be) ? w : NULL;
}

#endif
