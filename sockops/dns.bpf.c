/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may ask the agent's DNS, and how much of its sockets' queues one asker may fill: a filter on
 * those sockets, which runs before anything is queued. Apps are known by their address, which is
 * believed only from their side; of all others only this host is answered, if it may reach apps.
 */
#include "switch.bpf.h"

#define QUERY_MAX    4096 /* DNS_QUERY_MAX of agent/dns/server.h */
#define ASKER_WINDOW 256  /* datagrams, or new connections, of one asker in the queue */
#define WINDOW_NS    1000000000ull

/* Raised by the agent whenever it has found a queue empty: all of it has room again. */
volatile __u32 dns_turn;

struct asker {
	__u32 turn;
	__u32 n;
	__u64 since_ns; /* however slow the agent is, this old ones count no more */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64); /* the app's id, 0: the host; and the protocol above it */
	__type(value, struct asker);
} dns_askers SEC(".maps");

static __always_inline int source_of(struct __sk_buff *skb, struct ax_addr *ret)
{
	__be32 v4;

	if (skb->protocol != bpf_htons(0x0800)) /* saddr of struct ipv6hdr, and of struct iphdr */
		return bpf_skb_load_bytes_relative(skb, 8, ret, sizeof(*ret), BPF_HDR_START_NET);
	if (bpf_skb_load_bytes_relative(skb, 12, &v4, sizeof(v4), BPF_HDR_START_NET))
		return -1;
	addr_set_v4(ret, v4);
	return 0;
}

/* The host-mode app whose socket this comes from, 0: none. */
static __always_inline __u32 app_of_port(struct __sk_buff *skb, const struct ax_addr *source,
					 bool tcp)
{
	struct ax_endpoint key = {.addr = *source, .proto = tcp ? IPPROTO_TCP : IPPROTO_UDP};
	__u32 *id;

	if (bpf_skb_load_bytes(skb, 0, &key.port_be, sizeof(key.port_be)))
		return 0;
	id = bpf_map_lookup_elem(&dns_sources, &key);
	return id ? *id : 0;
}

/* The asker's id, 0: the host; -1: nobody who is answered. */
static __always_inline __s64 asker_of(struct __sk_buff *skb, bool tcp)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_addr source;
	struct ax_vip *vip;
	__u32 id;

	if (!c || source_of(skb, &source))
		return -1;
	vip = bpf_map_lookup_elem(&vips, &source);
	if (vip && vip->kind == AX_VIP_APP) {
		if (skb->ifindex != (vip->ifindex ? vip->ifindex : LO_IFINDEX))
			return -1;
		return vip->id;
	}
	if (skb->ifindex != LO_IFINDEX)
		return -1;
	id = app_of_port(skb, &source, tcp);
	if (!id && !c->host_access)
		return -1;
	return id;
}

static __always_inline bool has_room(__u64 key)
{
	struct asker *a = bpf_map_lookup_elem(&dns_askers, &key), fresh = {};
	__u64 now = bpf_ktime_get_ns();

	if (!a) {
		fresh.turn = dns_turn;
		fresh.since_ns = now;
		bpf_map_update_elem(&dns_askers, &key, &fresh, BPF_NOEXIST);
		return true;
	}
	/* two CPUs at once may let one more through */
	if (a->turn != dns_turn || now - a->since_ns > WINDOW_NS) {
		a->turn = dns_turn;
		a->since_ns = now;
		a->n = 0;
	}
	return __sync_fetch_and_add(&a->n, 1) < ASKER_WINDOW;
}

/* A segment of a connection that stands, which takes no place: it had one when it began. */
static __always_inline bool is_later_segment(struct __sk_buff *skb)
{
	__u8 flags = 0;

	return bpf_skb_load_bytes(skb, 13, &flags, sizeof(flags)) == 0 && !(flags & 0x02);
}

static __always_inline int admit(struct __sk_buff *skb, bool tcp)
{
	__s64 id;

	/* of this machine; who may not ask has no connection */
	if (tcp && skb->ifindex == LO_IFINDEX && is_later_segment(skb))
		return skb->len;
	id = asker_of(skb, tcp);
	if (id < 0 || (!tcp && skb->len > 8 + QUERY_MAX))
		return 0;
	if (tcp && is_later_segment(skb))
		return skb->len;
	return has_room((__u64)id | (tcp ? 1ull << 32 : 0)) ? skb->len : 0;
}

SEC("socket")
int ax_dns_udp(struct __sk_buff *skb)
{
	return admit(skb, false);
}

SEC("socket")
int ax_dns_tcp(struct __sk_buff *skb)
{
	return admit(skb, true);
}
