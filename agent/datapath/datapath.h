/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dataplane in the kernel: loading, pinning, upgrading and typed access to its maps. All state
 * is the kernel's; this struct holds descriptors only, and closing it changes nothing.
 * Addresses and ports are in network byte order, as the maps have them.
 */
#ifndef AX_DATAPATH_DATAPATH_H
#define AX_DATAPATH_DATAPATH_H

#include "across.h"
#include "addr.h"
#include "app.h"
#include "ctl.h"
#include "event.h"
#include "expose.h"
#include "machine/instance.h"
#include "service.h"
#include "base/util.h"

struct datapath;
struct nl;

/*
 * Loads the programs and attaches them to the instance's cgroup and to the caller's network
 * namespace; with maps and links that an earlier agent pinned, those are taken over and the
 * programs replaced under them (bpf_link_update), so that no connection notices. A program that
 * this kernel refuses is left out, see datapath_features(); without the required ones, among them
 * all that judge, it fails, and what an earlier agent attached stays. *fresh says that nothing was
 * there to take over.
 */
int datapath_open(const struct instance *inst, const char *cgroup_path, struct datapath **ret,
		  bool *fresh, struct error *e);
void datapath_close(struct datapath *dp);
/* Unpins everything of the instance, which detaches it. Not an error when there is nothing. */
int datapath_remove(const struct instance *inst, struct error *e);

struct feature_report {
	const char *name;
	bool on;
	bool required;
	char why[160];	   /* the kernel's word, when it is off */
	const char *cost;  /* what is lost without it */
	const char *needs; /* since which Linux version, or which option */
};
/* Loads each real program by itself and calls report for it, until that returns non-zero.
 * Nothing stays loaded. */
int datapath_doctor(int (*report)(void *arg, const struct feature_report *f), void *arg,
		    struct error *e);
/* The features as they were found when this dataplane was opened. */
size_t datapath_features(const struct datapath *dp, const struct feature_report **ret);
/* The descriptor of a loaded program, for running it on a packet; it stays the dataplane's.
 * Negative: there is no such program, or this kernel refused it. */
int datapath_program_fd(const struct datapath *dp, const char *name);

/* --- tables; all return 0 or a negative errno. Deleting what is not there is no error. --- */
int datapath_ctl_get(struct datapath *dp, struct ax_ctl *ret);
int datapath_ctl_set(struct datapath *dp, const struct ax_ctl *c);
int datapath_app_set(struct datapath *dp, uint64_t cgroup, const struct ax_app *a);
/* By what addresses the outside sees an app in host mode; both zero: none was chosen. */
int datapath_source_set(struct datapath *dp, uint32_t app, const struct ax_source *s);
int datapath_app_del(struct datapath *dp, uint64_t cgroup);
int datapath_netns_del(struct datapath *dp, uint64_t cookie);
int datapath_netns_set(struct datapath *dp, uint64_t cookie, const struct ax_netns_app *a);
int datapath_vip_set(struct datapath *dp, const struct ax_addr *addr, const struct ax_vip *v);
int datapath_vip_get(struct datapath *dp, const struct ax_addr *addr, struct ax_vip *v);
int datapath_vip_del(struct datapath *dp, const struct ax_addr *addr);

/* Returns when no program runs any more that has begun before: what was told last is all that any
 * of them goes by. Takes some milliseconds. */
void datapath_wait_for_programs(void);

struct datapath_backend {
	struct ax_backend be;
	uint32_t weight; /* at least 1 */
};
struct datapath_service {
	uint32_t strategy; /* enum ax_strategy */
	uint32_t wait_ms;
	uint32_t flags; /* enum ax_service_flag */
	uint32_t affinity_ms;
};
/* Replaces a service's endpoint and its backends; connects see the old list or the new one.
 * -E2BIG: more than AX_SERVICE_BACKENDS_MAX; -ENOSPC: all services have as many as there is room
 * for. Nothing is changed then. */
int datapath_service_set(struct datapath *dp, const struct ax_endpoint *ep,
			 const struct datapath_service *s, const struct datapath_backend *b,
			 size_t n);
int datapath_service_del(struct datapath *dp, const struct ax_endpoint *ep);

/* Forgets the backends of clients whose time-out is over or whose service is gone, and, where the
 * apps' half is nearly full, those of apps that are; not of who has connected since it was called,
 * so that a thread may. Returns how many are left, or a negative errno. */
int datapath_affinity_sweep(struct datapath *dp, bool (*app)(void *arg, uint32_t id), void *arg);
/* How many clients have one, for each list: a malloc'ed array of *n, by datapath_service_list(). */
int datapath_affinity_tally(struct datapath *dp, uint32_t **ret, size_t *n);
/* Calls f for each backend that the kernel has of an endpoint, until it returns anything but 0. 0
 * if there is no such endpoint. */
int datapath_backends_each(struct datapath *dp, const struct ax_endpoint *ep,
			   int (*f)(void *arg, const struct ax_backend *b), void *arg);
/* Calls f for each endpoint with its enum ax_service_flag, until it returns anything but 0. */
int datapath_services_each(struct datapath *dp,
			   int (*f)(void *arg, const struct ax_endpoint *ep, uint32_t flags),
			   void *arg);
/* The number of an endpoint's list; a negative errno. */
int64_t datapath_service_list(struct datapath *dp, const struct ax_endpoint *ep);

/* Forgets whatever is recorded of apps, addresses and services for which keep() says false (what a
 * dead agent left behind), and the servers and namespaces of app ids that are not kept. */
struct datapath_keep {
	bool (*app)(void *arg, uint32_t id);
	bool (*cgroup)(void *arg, uint64_t cgroup);
	bool (*vip)(void *arg, const struct ax_addr *addr);
	bool (*service)(void *arg, const struct ax_endpoint *ep);
	void *arg;
};
int datapath_sweep(struct datapath *dp, const struct datapath_keep *keep);

/* The prefixes in which nobody but an address's owner binds, in place of the former ones. */
int datapath_reserve(struct datapath *dp, const struct ax_prefix *list, size_t n);

/* Forgets the servers of an app that is gone, if sockets of it live on; host: it shared the host's
 * network namespace. */
int datapath_servers_drop(struct datapath *dp, uint32_t app, bool host);
/* Calls f for each, until that returns non-zero (-ECANCELED then, or its negative errno). */
int datapath_servers_each(struct datapath *dp,
			  int (*f)(void *arg, const struct ax_endpoint *ep,
				   const struct ax_server *s),
			  void *arg);
/* From now on AX_EVENT_SERVERS says that they are to be looked at, or no more. It does not come
 * again before this is called again: before each look. */
void datapath_servers_watch(struct datapath *dp, bool on);
/* TCP connections of ax in a network namespace (-1: the caller's). -EOPNOTSUPP: see doctor. */
int datapath_conns_each(struct datapath *dp, int netns_fd,
			int (*f)(void *arg, const struct ax_conn *c), void *arg);
/* UDP sockets that are connected through a service: their two ends, and what was asked. */
int datapath_udp_conns_each(struct datapath *dp, int netns_fd,
			    int (*f)(void *arg, const struct ax_conn *c), void *arg);
/* TCP of programs outside ax with apps in host mode, in the caller's network namespace. */
int datapath_accepted_each(struct datapath *dp, int (*f)(void *arg, const struct ax_accepted *c),
			   void *arg);
/* Sockets of apps in host mode, of one protocol, that are connected to what is exposed and were not
 * judged for it, in the caller's network namespace. */
int datapath_unjudged_each(struct datapath *dp, uint8_t proto,
			   int (*f)(void *arg, const struct ax_unjudged *u), void *arg);
/* UDP sockets of apps in host mode that are connected to whom the rules that hold now forbid them,
 * in the caller's network namespace. */
int datapath_forbidden_each(struct datapath *dp, int (*f)(void *arg, const struct ax_unjudged *u),
			    void *arg);
/* A flow of a program outside ax (struct ax_flow). */
struct datapath_flow {
	struct ax_endpoint client;
	struct ax_endpoint asked; /* the service, or the exposed port of this host */
	struct ax_endpoint backend;
	__be16 seen_port_be; /* the client's port, as the backend sees it */
	uint8_t kind;	     /* enum ax_flow_kind */
	uint8_t state;	     /* enum ax_flow_state */
	bool lives;	     /* it has not been idle for too long */
};
/* Asks f about each flow of a protocol, whether it is to be forgotten: the client's next packet
 * begins another one. It is asked about one flow up to four times, and half of these with `asked`
 * and `backend` exchanged. Returns how many that lived were forgotten, or a negative errno. */
int datapath_flows_each(struct datapath *dp, uint8_t proto,
			bool (*f)(void *arg, const struct datapath_flow *flow), void *arg);
/* Hands sk_lookup the UDP servers of host-mode apps that the kernel would not find by itself
 * (sockops/dual_udp.bpf.c): to be called after AX_EVENT_DUAL_UDP, which does not come again before,
 * in the host's network namespace. */
int datapath_dual_udp(struct datapath *dp);
/* Calls f with the SYN of each connect that waits for who listens by now, until that returns
 * non-zero, and returns that: to be called after AX_EVENT_AWAITED, which does not come again
 * before. */
int datapath_held_each(struct datapath *dp, int (*f)(void *arg, const struct ax_held *h),
		       void *arg);
/* How many connections an app has accepted since this was first asked. */
int datapath_accepts(struct datapath *dp, uint32_t app, uint64_t *ret);
/* From now on failed connections to that backend are counted. -E2BIG: there are too many. */
int datapath_failing_add(struct datapath *dp, const struct ax_endpoint *backend);
/* Hands over each backend with what was counted since the last time (which may be nothing); f says
 * whether it still is to be. To be called after AX_EVENT_FAILING, which does not come again before.
 */
int datapath_failing_each(struct datapath *dp,
			  bool (*f)(void *arg, const struct ax_endpoint *backend,
				    const struct ax_failing *counted),
			  void *arg);
void datapath_accepts_drop(struct datapath *dp, uint32_t app);
/* The family's listener that takes no connection (apps/door.c): whoever comes for an app that
 * connections start goes there, and AX_EVENT_KNOCK tells of it. It is forgotten with the socket. */
int datapath_door_set(struct datapath *dp, int family, int fd);
/* Whether an app serves the endpoint, which is one of its own address. */
bool datapath_is_served(struct datapath *dp, const struct ax_endpoint *ep);
int datapath_counters(struct datapath *dp, uint64_t ret[AX_COUNTERS]);
const char *datapath_counter_name(unsigned counter);

/* --- exposed ports (include/expose.h) --- */
int datapath_exposed_get(struct datapath *dp, const struct ax_exposed_key *key,
			 struct ax_exposed *ret);
int datapath_exposed_set(struct datapath *dp, const struct ax_exposed_key *key,
			 const struct ax_exposed *x);
int datapath_exposed_del(struct datapath *dp, const struct ax_exposed_key *key);
/* Forgets those for which keep() says false. */
int datapath_exposed_sweep(struct datapath *dp,
			   bool (*keep)(void *arg, const struct ax_exposed_key *key), void *arg);
/* Which of 64 ports there are, see AX_EXPOSED_WORD. */
int datapath_exposed_ports(struct datapath *dp, uint32_t word, uint64_t bits);
/* The addresses of this machine are these now, in place of the former ones. 1: they were others; 0;
 * or a negative errno. */
int datapath_local_addrs(struct datapath *dp, const struct ax_addr *list, size_t n);

/* --- packets --- */
/* Attaches the fabric to the host end of a private app's veth pair, or replaces it there. */
int datapath_fabric_attach(struct datapath *dp, struct nl *nl, unsigned ifindex);
/* The same for the device to which services with private backends are routed. -EOPNOTSUPP. */
int datapath_service_attach(struct datapath *dp, struct nl *nl, unsigned ifindex);
/* And there and at its other end, for what NAT balancers send to apps and get from there.
 * -EOPNOTSUPP. */
int datapath_balancer_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, unsigned peer);
/* The program for exposed ports at one of the host's interfaces, by a number that is the instance's
 * own: others' programs there stay. With `answers` also that for what apps in host mode answer.
 * *made: the interface had no place for such programs (clsact) before. -EOPNOTSUPP. */
int datapath_outside_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle,
			    bool answers, bool *made);
void datapath_outside_detach(struct nl *nl, unsigned ifindex, uint32_t handle);
/* The same for the program that looks at the sources of what comes from other nodes. */
int datapath_nodes_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle,
			  bool *made);
/* In its place at a device by which nothing comes but what apps of other nodes send to this one's:
 * the program goes with it. */
int datapath_tunnel_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle);
/* In its place, for connections that are translated: the one that reads who they are of. */
int datapath_across_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle,
			   bool *made);
/* Either of them. */
void datapath_nodes_detach(struct nl *nl, unsigned ifindex, uint32_t handle);

/* --- connections that are translated between nodes (include/across.h) --- */
int datapath_across_get(struct datapath *dp, struct ax_across_ctl *ret);
int datapath_across_set(struct datapath *dp, const struct ax_across_ctl *c);
/* The addresses of all other nodes, in place of the former ones, of which it is known that they
 * were. */
int datapath_across_nodes(struct datapath *dp, const struct ax_addr *list, size_t n);
/* Whose number of a node that is; and where a server of another node is reached, and whom a port of
 * this one is for. NULL: nobody's, nowhere, nobody. */
int datapath_across_app(struct datapath *dp, const struct ax_across_app *who,
			const struct ax_addr *addr);
int datapath_across_to(struct datapath *dp, const struct ax_endpoint *server,
		       const struct ax_endpoint *at);
int datapath_across_served(struct datapath *dp, uint32_t port, const struct ax_endpoint *server);
/* Calls f for each port of this node's until it returns non-zero: a negative errno is returned. */
int datapath_across_each(struct datapath *dp,
			 int (*f)(void *arg, uint32_t port, const struct ax_endpoint *server),
			 void *arg);
/* Forgets the connections of a private app that is gone. */
void datapath_across_app_end(struct datapath *dp, uint32_t app);
/* Forgets what is known of other nodes but where they were, and with `all` that and what is known
 * of this one, too. */
int datapath_across_clear(struct datapath *dp, bool all);
/* Attaches or detaches the program that holds SYNs back. */
int datapath_hold(struct datapath *dp, bool on);
/* The same of the one that keeps packets of confined apps from detours. -EOPNOTSUPP: this kernel
 * has refused it. */
int datapath_straight(struct datapath *dp, bool on);

/* --- DNS: the programs ax_dns_udp and ax_dns_tcp are filters for the server's sockets --- */
/* A queue of theirs was found empty: each asker may fill its part of it again. */
void datapath_dns_turn(struct datapath *dp);
/* The host-mode app that asks from a port of the host's own address, or had it when it asked, not
 * before `since_ns`; 0: none. */
#define DATAPATH_ASKER_UNKNOWN UINT32_MAX /* it may have been one, or none */
uint32_t datapath_dns_asker(struct datapath *dp, const struct ax_endpoint *from, uint64_t since_ns);

/* --- events --- */
/* Descriptor to poll; records are consumed with datapath_events_read(). */
int datapath_events_fd(struct datapath *dp);
int datapath_events_read(struct datapath *dp, int (*f)(void *arg, const struct ax_event *ev),
			 void *arg);

#endif
