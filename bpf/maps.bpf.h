/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maps of the dataplane, for BPF programs only: types here, definitions in bpf/maps.bpf.c
 * (the linker refuses a second definition, or one of another size). All are pinned by the agent.
 */
#ifndef AX_MAPS_BPF_H
#define AX_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "across.h"
#include "app.h"
#include "awaited.h"
#include "ctl.h"
#include "event.h"
#include "expose.h"
#include "seen.h"
#include "service.h"

#ifndef AX_MAP /* the defining unit sets it to nothing */
#define AX_MAP extern
#endif

/* Elements are allocated as they come: an agent with ten apps should not hold memory for 64 Ki. */
#define AX_MAX_APPS	65536
#define AX_MAX_VIPS	131072
#define AX_MAX_SERVICES 131072
#define AX_MAX_BACKENDS 262144 /* chunks of 16 */
#define AX_MAX_RINGS	131072 /* chunks of 512 */

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS);
	__type(key, __u64);
	__type(value, struct ax_app);
} apps SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS);
	__type(key, __u64);
	__type(value, struct ax_netns_app);
} netns_apps SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_VIPS);
	__type(key, struct ax_addr);
	__type(value, struct ax_vip);
} vips SEC(".maps");

/* Devices of apps that have a rule list for what leaves by them, which ax xdp writes. */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS);
	__type(key, __u32); /* ifindex */
	__type(value, __u32);
} listed SEC(".maps");

/* An array: elements of a hash table are replaced, and what was read of an old one may be
 * another's by then. */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_PARTIES_MAX);
	__type(key, __u32);
	__type(value, struct ax_party);
} parties SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_RULE_SETS *AX_PARTIES_MAX);
	__type(key, __u32);
	__type(value, struct ax_party_rules);
} party_rules SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_RULE_SETS);
	__type(key, __u32);
	__type(value, struct ax_rule_set);
} rule_sets SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_RULE_SETS *(AX_OUTSIDE_MAX + AX_LEARNT_MAX));
	__type(key, struct ax_outside_key);
	__type(value, struct ax_party_rules);
} outside_rules SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_LEARNT_MAX);
	__type(key, struct ax_learnt_key);
	__type(value, struct ax_learnt);
} learnt SEC(".maps");

/* The agent empties it when the rules are others. */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_LEAVERS_MAX);
	__type(key, struct ax_awaited_key);
	__type(value, struct ax_awaited);
} leavers SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_RULE_SETS * 2 * AX_PORT_BLOCKS);
	__type(key, __u32);
	__type(value, struct ax_port_block);
} rule_ports SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_RULE_SETS *AX_PORT_CLASSES);
	__type(key, __u32);
	__type(value, struct ax_rule_bits);
} port_rules SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_RULE_SETS *AX_RULES_MAX);
	__type(key, __u32);
	__type(value, struct ax_rule_hits);
} rule_hits SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_RULE_SETS *AX_RULES_MAX);
	__type(key, __u32);
	__type(value, struct ax_rule_mark);
} rule_marks SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_SERVICES);
	__type(key, struct ax_endpoint);
	__type(value, struct ax_service);
} services SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_BACKENDS);
	__type(key, struct ax_list_key);
	__type(value, struct ax_backends);
} backends SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_RINGS);
	__type(key, struct ax_list_key);
	__type(value, struct ax_ring);
} rings SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_AFFINITY_MAX);
	__type(key, struct ax_affinity_key);
	__type(value, struct ax_affinity);
} affinity SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS + AX_MAX_SERVICES);
	__type(key, __u64);
	__type(value, __u32);
} affinity_counts SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_endpoint);
	__type(value, struct ax_server);
} servers SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_app_endpoint);
	__type(value, __u32);
} loopback_servers SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_app_endpoint);
	__type(value, __u32);
} udp_clients SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_endpoint);
	__type(value, struct ax_wild);
} wild_ports SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS + 1);
	__type(key, __u32);
	__type(value, __u32);
} app_servers SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS);
	__type(key, __u32);
	__type(value, __u64);
} accepts SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_APPS);
	__type(key, __u32);
	__type(value, struct ax_source);
} sources SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_FAILING_MAX);
	__type(key, struct ax_endpoint);
	__type(value, struct ax_failing);
} failing SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 64);
	__type(key, struct ax_prefix);
	__type(value, __u32);
} reserved SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_endpoint);
	__type(value, __u32);
} open_conns SEC(".maps");

/* Listening TCP sockets of host-mode apps, and their dual-stack UDP sockets, for sk_lookup. */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_endpoint);
	__type(value, __u64);
} listeners SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_app_endpoint);
	__type(value, __u64);
} loopback_listeners SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct ax_flow_key);
	__type(value, __u32);
} own_conns SEC(".maps");

/* The agent's listeners that take no connection, for IPv4 and for IPv6 (agent/apps/door.c). */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} door SEC(".maps");

/* When the agent was told last that somebody has come for the address (CLOCK_MONOTONIC). */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ax_addr);
	__type(value, __u64);
} knocks SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_asked);
} asked SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_held);
} held SEC(".maps");

/* When a connection was established (only while somebody reads events). */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} established SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_replies);
} replies SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ax_flow_key);
	__type(value, struct ax_flow);
} flows SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ax_flow_key);
	__type(value, struct ax_flow);
} new_flows SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct ax_flow_key);
	__type(value, struct ax_flow);
} udp_flows SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct ax_flow_key);
	__type(value, __u32);
} datagrams SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_AWAITED_MAX);
	__type(key, struct ax_awaited_key);
	__type(value, struct ax_awaited);
} awaited SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SEEN_MAX);
	__type(key, struct ax_seen_key);
	__type(value, struct ax_seen);
} seen SEC(".maps");

/* TCP of programs on other machines to private apps, by way of this host. */
AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_VISITORS_MAX);
	__type(key, struct ax_awaited_key);
	__type(value, struct ax_awaited);
} visitors SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct ax_flow_key);
	__type(value, __u32);
} newcomers SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_endpoint);
	__type(value, __u32);
} dns_sources SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_DNS_GONE_MAX);
	__type(key, struct ax_endpoint);
	__type(value, struct ax_dns_gone);
} dns_gone SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ax_flow_key);
	__type(value, struct ax_endpoint);
} handed SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ax_flow_key);
	__type(value, struct ax_picked);
} picked SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_EXPOSED_MAX);
	__type(key, struct ax_exposed_key);
	__type(value, struct ax_exposed);
} exposed SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_FRAGMENTS_MAX);
	__type(key, struct ax_exposed_fragment_key);
	__type(value, struct ax_exposed_fragment);
} fragments SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_EXPOSED_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} exposed_ports SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct ax_addr);
	__type(value, __u32);
} local_addrs SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_across_ctl);
} across_ctl SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct ax_addr);
	__type(value, __u32);
} across_nodes SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_SERVERS_MAX);
	__type(key, struct ax_endpoint);
	__type(value, struct ax_endpoint);
} across_to SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * AX_ACROSS_PORTS);
	__type(key, __u32);
	__type(value, struct ax_endpoint);
} across_served SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_MAX_VIPS);
	__type(key, struct ax_across_app);
	__type(value, struct ax_addr);
} across_apps SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct ax_flow_key);
	__type(value, struct ax_across_came);
} across_came SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * AX_ACROSS_FLOWS_MAX);
	__type(key, struct ax_across_ends);
	__type(value, struct ax_across_flow);
} across_flows SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_ACROSS_FLOWS_MAX);
	__type(key, struct ax_across_slot);
	__type(value, struct ax_across_ends);
} across_slots SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ax_across);
} across SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_ctl);
} ctl SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

AX_MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

#endif
