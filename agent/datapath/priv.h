/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of this room only. */
#ifndef AX_DATAPATH_PRIV_H
#define AX_DATAPATH_PRIV_H

#include "datapath/datapath.h"

enum datapath_map {
	MAP_APPS,
	MAP_NETNS_APPS,
	MAP_VIPS,
	MAP_PARTIES,
	MAP_PARTY_RULES,
	MAP_RULE_SETS,
	MAP_OUTSIDE_RULES,
	MAP_RULE_PORTS,
	MAP_PORT_RULES,
	MAP_RULE_HITS,
	MAP_RULE_MARKS,
	MAP_SERVICES,
	MAP_BACKENDS,
	MAP_RINGS,
	MAP_AFFINITY,
	MAP_AFFINITY_COUNTS,
	MAP_SERVERS,
	MAP_LOOPBACK_SERVERS,
	MAP_UDP_CLIENTS,
	MAP_WILD_PORTS,
	MAP_APP_SERVERS,
	MAP_ACCEPTS,
	MAP_SOURCES,
	MAP_LEARNT,
	MAP_LEAVERS,
	MAP_LISTED,
	MAP_FAILING,
	MAP_RESERVED,
	MAP_OPEN_CONNS,
	MAP_LISTENERS,
	MAP_LOOPBACK_LISTENERS,
	MAP_OWN_CONNS,
	MAP_DOOR,
	MAP_KNOCKS,
	MAP_ASKED,
	MAP_HELD,
	MAP_ESTABLISHED,
	MAP_REPLIES,
	MAP_FLOWS,
	MAP_NEW_FLOWS,
	MAP_UDP_FLOWS,
	MAP_DATAGRAMS,
	MAP_AWAITED,
	MAP_HANDED,
	MAP_PICKED,
	MAP_VISITORS,
	MAP_NEWCOMERS,
	MAP_DNS_SOURCES,
	MAP_DNS_GONE,
	MAP_SEEN,
	MAP_EXPOSED,
	MAP_EXPOSED_PORTS,
	MAP_FRAGMENTS,
	MAP_LOCAL_ADDRS,
	MAP_ACROSS_CTL,
	MAP_ACROSS_NODES,
	MAP_ACROSS_TO,
	MAP_ACROSS_SERVED,
	MAP_ACROSS_APPS,
	MAP_ACROSS_CAME,
	MAP_ACROSS_FLOWS,
	MAP_ACROSS_SLOTS,
	MAP_ACROSS,
	MAP_CTL,
	MAP_COUNTERS,
	MAP_EVENTS,
	MAPS
};

#define PIN_PATH_MAX	      512 /* of a pin, with its directory */
#define DATAPATH_PROGRAMS_MAX 48

struct ring_buffer;
struct bpf_link;
struct dataplane;

struct datapath {
	const struct instance *inst;
	struct dataplane *skel;
	int map[MAPS]; /* descriptors; owned by the skeleton */
	int from_app;  /* programs of the fabric, -1: not loaded; owned by the skeleton */
	int to_app;
	int to_service;
	int from_outside;
	int to_outside;
	int from_balancer;
	int from_backends;
	int from_nodes;
	int from_tunnel;
	int across;
	struct bpf_link *conns; /* NULL: off */
	struct bpf_link *dual_udp;
	struct bpf_link *udp_conns;
	struct bpf_link *accepted;
	struct bpf_link *unjudged_udp, *unjudged_tcp, *forbidden_udp;
	struct bpf_link *held;
	bool straight;	    /* ax_straight is attached */
	uint32_t *udp_told; /* the programs' */
	uint32_t *held_any, *held_told;
	uint32_t *servers_watched, *servers_told;
	bool *accepts_any;
	bool *failing_any;
	bool *across_any;
	uint64_t *dns_gone_n, *dns_gone_lost_ns, *dns_gone_at; /* include/service.h */
	uint32_t *failing_told;
	__u64 *seen_last;
	uint32_t *seen_added;
	struct ring_buffer *ring;
	int (*event)(void *arg, const struct ax_event *ev);
	void *event_arg;
	uint64_t netns_cookie; /* of the namespace that it was opened in, the host's */
	uint32_t next_list;    /* id of the next service endpoint's backend list */
	char cgroup_path[4096];
	char pin_dir[256];
	struct feature_report features[DATAPATH_PROGRAMS_MAX];
	size_t n_features;
};

/* libbpf's output goes through the logger. */
void datapath_log_libbpf(void);

/* lists.c: services of an earlier agent keep the ids of their backend lists. */
int datapath_take_lists(struct datapath *dp);

/* lists.c: drops what is of a generation that no service names. */
int datapath_sweep_lists(struct datapath *dp);

/* xdp_exposed.c: keeps the copy that XDP lists have, if there is one. 0, or a negative errno. */
int xdp_exposed_put(const struct datapath *dp, const struct ax_exposed_key *key);
void xdp_exposed_drop(const struct datapath *dp, const struct ax_exposed_key *key);
int xdp_exposed_ports(const struct datapath *dp, uint32_t word, uint64_t bits);
int xdp_exposed_copy(const struct datapath *dp); /* all of it */

/* maps.c: what the programs need before they run. */
int datapath_tell_host(struct datapath *dp);

/* iter.c: runs an iterator that writes records of this size in a network namespace (-1: the
 * caller's), and calls f for each, until that returns non-zero, and returns that. iter may be NULL:
 * -EOPNOTSUPP. */
int datapath_iter_each(const struct bpf_link *iter, int netns_fd, size_t size,
		       int (*f)(void *arg, const void *record), void *arg);

/* maps.c: one element, and all of a hash map (f: 1 to delete, 0 to keep, or a negative errno). */
int map_set(struct datapath *dp, enum datapath_map m, const void *key, const void *value);
int map_get(struct datapath *dp, enum datapath_map m, const void *key, void *value);
int map_del(struct datapath *dp, enum datapath_map m, const void *key);
int map_walk(struct datapath *dp, enum datapath_map m, size_t key_size, size_t value_size,
	     int (*f)(void *arg, const void *key, const void *value), void *arg);

/* across.c: forgets a private app's connection, whose place the caller gives back. */
void across_flow_del(struct datapath *dp, const struct ax_across_ends *nodes);

/* The verifier's or libbpf's last warning; "" if there was none. */
const char *datapath_last_word(void);

struct bpf_object;
/* Loads one program of an object that is open, with small maps. 0, or a negative errno and *f says
 * why. */
int datapath_try(struct bpf_object *obj, const char *program, struct feature_report *f);

/* hidden.c: -EEXIST, with a sentence, if the cgroup has the programs of a dataplane whose pins are
 * not there. */
int datapath_check_hidden(const char *cgroup_path, const char *pin_dir, struct error *e);

#endif
