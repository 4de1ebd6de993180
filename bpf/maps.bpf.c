/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one definition of every map. */
#define AX_MAP
#include "maps.bpf.h"
#include "open_conns.bpf.h"

bool outside_counts;
__u32 udp_told;
__u32 held_any, held_told;
__u32 servers_watched, servers_told;
bool accepts_any;
bool failing_any;
bool waited_any;
bool across_any;
bool tcp_askers;
__u64 dns_gone_n, dns_gone_lost_ns, dns_gone_at[AX_DNS_GONE_SURE];
__u32 failing_told;
__u64 seen_last;
__u32 seen_added;

char LICENSE[] SEC("license") = "GPL";
