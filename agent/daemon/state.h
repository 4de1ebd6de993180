/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent's parts share. One thread, no locks. */
#ifndef AX_DAEMON_STATE_H
#define AX_DAEMON_STATE_H

#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>

#include "config/config.h"
#include "ctl.h"
#include "base/instance.h"
#include "base/loop.h"
#include "daemon/anchors.h"
#include "daemon/policy.h"
#include "daemon/pool.h"

#define APP_BUCKETS 4096

struct agent {
	const struct instance *inst;
	struct instance own; /* *inst with the config's socket path */
	const char *config_path;
	int epoll;
	int lock_fd;
	struct loop_item signals, listen, inotify, timer, ring, ring_timer;
	sigset_t caller_mask;
	struct rlimit caller_files;
	bool quit;
	struct datapath *dp;
	struct nl *nl;
	unsigned lo;
	uint64_t netns_cookie; /* of the host's network namespace */
	char cgroup[4096];
	struct config config;
	struct pool pool4, pool6;
	struct ax_addr host4, host6;
	struct ax_ctl ctl;
	bool has_ipv6;
	struct policy policy;
	struct anchors anchors;
	void *vips;  /* tsearch(3) tree of struct vip by address */
	void *names; /* and of struct name by text */
	struct app *apps;
	struct app *lingering;
	struct app *by_id[APP_BUCKETS], *by_watch[APP_BUCKETS];
	size_t n_apps;
	uint32_t next_id;
	struct service *services;
	size_t n_services;
	uint32_t next_service;
	uint32_t service_routes; /* addresses that are routed to the services' device */
	struct declared *declared;
	size_t n_declared;
	struct spawn *spawns;
	struct doomed *doomed; /* devices.c */
	size_t n_doomed;
	struct client *clients;
	struct dns_server *dns;
	bool timers_stale; /* a deadline came or went: the loop arms its timer anew */
	bool holding;
	bool starting;	 /* the config's conflicts with what runs are worked around, not refused */
	bool undeclared; /* a service could not be declared: tried again when an app is gone */
	bool had_egress;
	struct loop_item health_timer; /* fd -1: no service has had a check */
	uint64_t health_at_ns;	       /* when it fires, 0: it does not */
	size_t n_checks;
	struct triggers *triggers;
	struct xdp_managed *managed;
	struct probe_failed *probes_failed;
	struct loop_item links, xdp_timer; /* fd -1: the config has had no interfaces */
	char *health_was;		   /* record of the last agent, while this one starts */
	uint64_t events_lost;		   /* the counter when it was last looked at */
	int64_t since;
	pid_t applying;	  /* who has a config applied; 0: nobody */
	json_t *warnings; /* for them: sentences; NULL: nobody waits for any */
};

#endif
