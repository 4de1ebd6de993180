/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks judge whom an app says that it asks for. A source route takes the packet to somebody else
 * first: by setsockopt() (IP_OPTIONS, IPV6_RTHDR), which may come behind the hook, or beside a
 * datagram (IP_RETOPTS, IPV6_RTHDR), where no hook sees it. What private apps send is judged by its
 * packets; for an app in host mode that may not go everywhere these are looked at here. Attached
 * only while there is one, and not for how it is: who may go everywhere may do so by a detour.
 */
#include <linux/if_ether.h>

#include "switch.bpf.h"

#define IPV4_PLAIN   0x45 /* no option */
#define IPV6_ROUTING 43

/* Of the socket that sends it: programs on packets may not ask for the current process. */
static __noinline const struct ax_app *app_of_packet(struct __sk_buff *skb)
{
	for (int level = 1; level < CGROUP_DEPTH_MAX; level++) {
		__u64 id = bpf_skb_ancestor_cgroup_id(skb, level);
		const struct ax_app *app;

		if (!id)
			return NULL;
		app = bpf_map_lookup_elem(&apps, &id);
		if (app)
			return app;
	}
	return NULL;
}

/* (Extension headers in front of a routing header want a privilege.) */
static __always_inline bool takes_detour(const struct __sk_buff *skb)
{
	const __u8 *ip = (const __u8 *)(long)skb->data;

	if (ip + 20 > (const __u8 *)(long)skb->data_end)
		return false;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return ip[0] != IPV4_PLAIN;
	return ip[6] == IPV6_ROUTING;
}

SEC("cgroup_skb/egress")
int ax_straight(struct __sk_buff *skb)
{
	const struct ax_app *app;

	if (!takes_detour(skb))
		return 1;
	app = app_of_packet(skb);
	if (!app || !(app->flags & AX_APP_HOST) || !(app->flags & AX_APP_CONFINED))
		return 1;
	count(AX_COUNT_NO_EGRESS);
	return 0;
}
