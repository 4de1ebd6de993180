/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent's parts share. One thread, no locks. What is a part's own stands in its file: here
 * is no more than a pointer to it. */
#ifndef AX_REGISTRY_STATE_H
#define AX_REGISTRY_STATE_H

#include <signal.h>
#include <sys/resource.h>

#include "machine/instance.h"
#include "config/config.h"
#include "ctl.h"
#include "allot/policy.h"
#include "allot/pool.h"
#include "registry/service_device.h"

struct agent;
struct app;
struct name;
struct remote;
struct service;
struct shared_source;

/* What is told to those who must not be known. Set before anything is there. */
struct hooks {
	/* The app is out of all lists, and about to be freed (now, or when it has lingered). */
	void (*app_gone)(struct agent *a, struct app *app);
	/* Whether a declared service may have an address that it asks for: no other node has it. 0,
	 * or -EADDRINUSE with a sentence. */
	int (*service_address)(struct agent *a, const struct ax_addr *addr, const char *service,
			       struct error *e);
	/* The service has other backends, or they are in another state. */
	void (*service_changed)(struct agent *a, const struct service *s);
	/* Somebody listens while connects wait, or may have begun to. */
	void (*awaited)(struct agent *a);
	/* A program outside ax has come for who has that address. */
	void (*knocked)(struct agent *a, const struct ax_addr *addr);
	/* Connections to backends that the kernel counts for have failed. */
	void (*failing)(struct agent *a);
	/* Somebody listens, or does not any more (only while datapath_servers_watch() is on). */
	void (*listeners)(struct agent *a);
	/* What other nodes know of an app has changed: it listens, or does not any more (as above),
	 * is drained, or is to end. */
	void (*servers)(struct agent *a);
	/* a->nodes has changed, and the kernel is to know. A negative errno with a sentence.
	 */
	int (*nodes)(struct agent *a, struct error *e);
	/* The cluster has that config: it is to hold beside this node's, or nothing changes.
	 * Within a work. A negative errno with a sentence. */
	int (*shared_config)(struct agent *a, const struct shared_source *source, struct error *e);
};

/* Looks after connects that wait, see apps/held.c. */
struct held {
	uint64_t at_ns, rest_ns; /* the next one, 0: none; and not before then */
	unsigned again;		 /* so many more */
	unsigned rest_looks;	 /* and of those that ended before all were sent */
};

/* Looks after services with backends that are away, see services/near.c. */
struct near {
	uint64_t at_ns, rest_ns; /* the next one, 0: none; and not before then */
	size_t services;	 /* that are looked at */
	uint32_t round;
	bool looking, again; /* one is under way or to come, and one after it */
};

struct agent {
	/* how it was started */
	const struct instance *inst;
	struct instance own; /* *inst with the config's socket path */
	const char *config_path;
	sigset_t caller_mask;
	struct rlimit caller_files;
	int64_t since_boot; /* seconds */

	/* the machine */
	int epoll;
	char cgroup[4096]; /* the instance's, a path */
	struct datapath *dp;
	struct nl *nl;
	unsigned lo;
	uint64_t netns_cookie; /* of the host's network namespace */
	bool has_ipv6;
	struct ax_addr host4, host6;
	struct ax_ctl ctl; /* see instance_ctl.h */

	/* what holds, and what is given out */
	struct config config;
	struct config_source *source; /* its text, config/edit.h; NULL: not known */
	struct policy policy;
	const struct config *added_config;     /* services besides it; NULL: none */
	const struct added_rules *added_rules; /* rules among its; NULL: none */
	const struct config *shared_config;    /* the cluster's, with rules, too; NULL: none */
	struct config_rule *rules;	       /* the policy's, see in_force.h */
	size_t n_rules;
	struct config_egress *sources; /* of the config's, those that have one */
	size_t n_sources;
	struct pool pool4, pool6;
	struct prefix nodes[2 * (1 + CONFIG_PEERS_MAX)]; /* pools of clusters whose apps are routed
							    to, of both families */
	size_t n_nodes;
	struct remote *remotes; /* those of other nodes, see remotes.h */
	uint32_t next_remote;
	size_t n_untold; /* of them, whom the programs do not know as they are, or not at all */

	/* see apps/squat.h; times of CLOCK_MONOTONIC */
	bool squatted;		  /* the last walk found somebody */
	uint64_t squat_look_ns;	  /* the next one; 0: none, UINT64_MAX: it is under way */
	uint64_t squat_looked_ns; /* the last one */

	bool starting;	/* the config's conflicts with what runs are worked around, not refused */
	pid_t applying; /* who has a config applied; 0: nobody */
	struct json_t *warnings; /* for them: sentences; NULL: nobody waits for any */

	/* who is there */
	struct app *apps;      /* those that run, ordered by id */
	struct app *lingering; /* see linger.h */
	size_t n_apps;	       /* that run */
	struct service *services;
	size_t n_services;
	uint32_t next_service;

	/* looked at once a turn of the loop */
	bool timers_stale;	   /* a deadline came or went: the timer is armed anew */
	bool names_changed;	   /* somebody may have come to one, or lost it */
	uint64_t host_names_at_ns; /* they are written down then (host_names.h), 0: never */
	bool name_added;	   /* or has a way to it: whoever asks DNS and waits is answered */
	bool splice_stale;	   /* who is there, or what they say of splicing, is another */
	bool address_freed;	   /* services that could not be declared are tried again */

	bool apps_wait; /* some app waits for servers, whomever it asks */

	bool others_refused;   /* a service of names that other nodes have got no address */
	uint64_t others_at_ns; /* services of names that other nodes have are made then, 0: never */
	uint64_t others_rest_ns;     /* and not before */
	uint64_t failing_at_ns;	     /* failed connections are looked at then, 0: never */
	uint64_t affinity_at_ns;     /* clients of services are forgotten then, 0: never */
	uint64_t ramps_at_ns;	     /* shares of services grow then (services/ramp.h), 0: never */
	uint64_t checks_sweep_at_ns; /* see sections/check_commands.h; 0: never */

	struct hooks hooks;

	/* each is the one of its file */
	void *vips;	   /* tsearch(3) tree of struct vip by address */
	void *names;	   /* and of struct name by text */
	void *other_addrs; /* and of others.c's by address */
	struct name *stale_names, *stale_last;
	struct work *work;  /* changes, in their order; NULL: what takes long is done at once */
	struct work *reads; /* long answers, beside them */
	struct added_services *added;	     /* NULL: none */
	struct added_policy *added_policy;   /* the same */
	struct shared_services *shared;	     /* NULL: none */
	struct added_services *added_before; /* of the former agent, while this one starts */
	struct anchors *anchors;
	struct cluster *cluster; /* NULL: this node is in none */
	struct app_index *app_index;
	struct control_server *control;
	struct declared_list *declared;
	struct dns_server *dns; /* NULL: the config wants none */
	struct doomed *doomed;
	struct door *door; /* apps/door.h; NULL: none was wanted */
	bool door_failed;
	struct drain *drains;
	struct ending *endings; /* that have not begun, the last one first: services/ending.h */
	struct events *events;
	struct ingress *ingress;
	struct health *health;
	struct held held;
	struct near near;
	struct host_resolver *host_resolver; /* NULL: it has never been told anything */
	struct needs *needs;
	struct probe_failed *probes_failed;
	struct service_device service_device;
	struct spawn *spawns;
	struct splicing *splicing;
	struct triggers *triggers;
	struct verdicts *verdicts;	     /* NULL: nobody watches them */
	struct verdict_names *verdict_names; /* NULL: the agent starts */
	struct watches *watches;
	struct xdp_section *xdp;
};

#endif
