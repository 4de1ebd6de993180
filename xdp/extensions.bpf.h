/* SPDX-License-Identifier: GPL-2.0-or-later */
/* IPv6's extension headers for programs on tc that read a packet by its network header. BPF only.
 */
#ifndef AX_EXTENSIONS_BPF_H
#define AX_EXTENSIONS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "parse.bpf.h"

/* The innermost header of an IPv6 packet, as skip_extensions() finds it, wherever the packet's
 * bytes lie: p->proto, and p->l4_off behind the IP header's begin. False: it is not there, or
 * behind too many. A global function: the verifier looks at it once. */
__weak __noinline int read_extensions(struct __sk_buff *skb, struct packet *p)
{
	__u32 off = sizeof(struct ipv6hdr), proto, frag = 0;

	if (!skb || !p)
		return false;
	proto = p->proto;
	for (int i = 0; i <= AX_IPV6_HEADERS_MAX; i++) {
		struct ipv6_frag h;
		__u32 is_frag, len;

		if (!is_extension(proto) || frag & 0xfff8) {
			p->proto = (__u8)proto;
			p->later = frag & 0xfff8;
			p->l4_off = (__u16)off;
			return true;
		}
		if (bpf_skb_load_bytes_relative(skb, off, &h, sizeof(h), BPF_HDR_START_NET))
			return false;
		is_frag = equal(proto, IPPROTO_FRAGMENT);
		len = (h.reserved & (is_frag - 1)) * 4;
		len += len & (equal(proto, IPPROTO_AH) - 1);
		frag |= bpf_ntohs(h.offset) & -is_frag;
		proto = h.next;
		off += 8 + len;
	}
	return false;
}

#endif
