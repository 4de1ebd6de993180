/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's state and what its parts offer each other. One thread, no locks.
 *
 *   agent.c     start, loop, end          control_server.c  the socket's clients
 *   apps.c      running apps              requests.c        what clients ask for
 *   register.c  how an app comes to be
 *   adopt.c     apps of an earlier agent  views.c           the lists of `ax get`
 *   vips.c      who owns an address       events.c          readers of events
 *   services.c  services and backends     reconcile.c       config files
 *   policy.c    labels and rules          spawn.c           apps that the agent itself starts
 *   anchors.c   addresses for v6-only binds
 *   names.c     the DNS zone              pool.c            addresses from the pools
 *   health.c    checks of backends        xdp_section.c     the config's interfaces
 *                                         probes_section.c  the config's probes
 *   triggers.c  signed datagrams
 */
#ifndef AX_DAEMON_AGENT_PRIV_H
#define AX_DAEMON_AGENT_PRIV_H

#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>

#include "daemon/agent.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "dns/dns.h"
#include "base/loop.h"
#include "net/netlink.h"

struct agent;
struct app;
struct service;
struct client;

/* --- pool.c: bit map of a pool's addresses; the first is the host's --- */
struct pool {
	struct prefix prefix; /* len 0: no such pool */
	unsigned char *used;
	uint32_t size, in_use, next;
};
int pool_init(struct pool *p, const struct prefix *prefix);
void pool_free(struct pool *p);
struct ax_addr pool_host(const struct pool *p);
/* -ENOSPC when none is left. */
int pool_take(struct pool *p, struct ax_addr *ret);
/* Marks or clears one address; those outside of the pool are ignored. */
void pool_mark(struct pool *p, const struct ax_addr *addr, bool used);

/* --- policy.c --- */
struct policy {
	struct {
		char *text;
		uint32_t refs;
		bool held; /* one of refs: known from the last agent */
	} labels[AX_LABELS_MAX];
	struct config_rule *rules; /* the config's */
	size_t n_rules;
	bool changed; /* since policy_save() */
};
/* Takes a reference on each label's bit. -ENOSPC with a sentence when there are too many. */
int policy_ref(struct policy *p, const struct labels *l, struct ax_party *ret, struct error *e);
void policy_unref(struct policy *p, const struct labels *l);
/* The rule bits of a party with these labels, into ret->from and ret->to. */
void policy_rules(const struct policy *p, const struct labels *l, struct ax_party *ret);
uint64_t policy_allow_mask(const struct policy *p);
/* Keeps the numbering of the labels for the next agent, which must not give a bit that running
 * apps carry to another label: written if it changed, read at start, and then released. */
void policy_save(struct agent *a);
void policy_load(struct agent *a);
void policy_release(struct agent *a);

/* --- vips.c: every address of ours, who owns it, and what the kernel was told --- */
struct vip {
	struct ax_addr addr;
	bool host;		   /* the instance's own */
	struct app *app;	   /* the running app whose own it is */
	struct service *service;   /* the service that is reached by it */
	struct declared *declared; /* the app of the config that is not running */
	struct ax_vip told;	   /* the kernel's entry; kind 0: none */
	bool bindable;		   /* an address on lo */
	struct nl_route route;	   /* the kernel's route; dst.len 0: none */
};
struct vip *vip_find(struct agent *a, const struct ax_addr *addr);
/* Finds or makes. NULL: out of memory. */
struct vip *vip_get(struct agent *a, const struct ax_addr *addr);
/* Tells the kernel of the address if there is one and we know it; for owners that come and go. */
int vip_resync(struct agent *a, const struct ax_addr *addr, struct error *e);
void vip_free_all(struct agent *a);
/* Tells the kernel what became of the address, and forgets it when nobody owns it any more. */
int vip_sync(struct agent *a, struct vip *v, struct error *e);

/* --- declared apps: entries of the config's `apps:` --- */
struct declared {
	struct config_app *conf; /* the config's */
	struct ax_addr ip4, ip6;
	struct ax_party party;
	struct labels labels; /* whose bits it holds, a copy: the config's may change */
	bool referenced;      /* holds label bits and addresses */
};

/* --- apps.c --- */
#define APP_BUCKETS 4096
enum app_state {
	APP_STARTING,
	APP_RUNNING,
	APP_STOPPING,
	APP_ENDED, /* in a.lingering: no process, but the kernel still sends what it wrote */
};

struct app {
	struct app *next; /* in a.apps, ordered by id */
	uint32_t id;
	enum app_state state;
	struct app_spec spec; /* spec.name is the name; ip4 and ip6 as asked for */
	struct ax_addr vip4, vip6;
	struct ax_party party;
	struct service *service; /* the one it forms with others, or NULL */
	char *config_key;
	char *cgroup; /* path */
	uint64_t cgroup_id;
	int watch;		   /* inotify descriptor of its cgroup.events, -1 */
	int pid;		   /* the command's */
	int launcher_pid;	   /* the supervisor of a detached app */
	struct loop_item launcher; /* its pidfd */
	unsigned ifindex;
	uint64_t netns_cookie;
	int64_t since; /* UNIX seconds */
	uint32_t restarts;
	int exit_status; /* -1: not known */
	bool empty;	 /* its cgroup has no process any more */
	int netns_fd;	 /* a private app's network namespace, -1 */
	uint64_t linger_until_ns, linger_check_ns;
	uint64_t kill_at_ns; /* SIGKILL then; 0: never */
	bool no_restart;     /* stopped on purpose */
	bool replaced;	     /* the config's new version of it starts when it is gone */
	bool cut;	     /* its record had no room for the whole command */
	struct app *id_next, *watch_next; /* in a.by_id and a.by_watch */
	uint32_t anchor;		  /* see anchors.c, 0: none */
	bool has_labels;		  /* holds bits of the policy */
};
struct app *app_by_id(struct agent *a, uint32_t id);
struct app *app_by_name(struct agent *a, const char *name); /* the first */
struct app *app_by_watch(struct agent *a, int watch);
/* Registers an app: name, addresses, cgroup, tables. `spec` is taken over. */
int app_register(struct agent *a, struct app_spec *spec, const char *config_key, struct app **ret,
		 struct error *e);
/* Connects a private app's network namespace. */
int app_attach(struct agent *a, struct app *app, int netns_fd, struct error *e);
int app_started(struct agent *a, struct app *app, int pid, int launcher_pid, struct error *e);
/* Asks its processes to end; they are killed after timeout_ms. */
void app_stop(struct agent *a, struct app *app, uint32_t timeout_ms);
/* Undoes an app that has no process; its network only when the kernel has sent what it wrote. */
void app_remove(struct agent *a, struct app *app);
/* Undoes the network of an app that has ended, and frees it. */
void app_release(struct agent *a, struct app *app);
/* The same for whoever has ended and still holds this address. */
void app_release_addr(struct agent *a, const struct ax_addr *addr);
/* Looks after the apps that linger. */
void app_linger(struct agent *a, uint64_t now_ns);
/* Its cgroup may have become empty. */
void app_check(struct agent *a, struct app *app);
void app_exited(struct agent *a, struct app *app, int status);
int app_save(const struct app *app);				    /* its record */
int app_tell(struct agent *a, struct app *app);			    /* its map entries */
int app_publish(struct agent *a, struct app *app, struct error *e); /* addresses and all */
void app_link(struct agent *a, struct app *app); /* into the list and the names */
int app_watch(struct agent *a, struct app *app, struct error *e);
void app_free(struct app *app);
void agent_mac(const struct agent *a, uint8_t ret[6]);
/* A descriptor of its network namespace, or a negative errno. */
int app_netns(const struct app *app);
const char *app_state_name(enum app_state s);
void agent_timers(struct agent *a); /* arms the timer for the next deadline */
void agent_on_timer(struct agent *a);
int agent_update_hold(struct agent *a);
/* Deletes a device a little later, should it still be there. */
void doom_device(struct agent *a, unsigned ifindex);
int agent_update_egress(struct agent *a, struct error *e);

/* --- anchors.c: where v6-only wildcard binds of host-mode apps without IPv6 go (ctl.h) --- */
struct anchors {
	unsigned char *used; /* a bit for each, by number */
	uint32_t size, made; /* bits; addresses that exist */
};
/* Gives the app an anchor if it may need one. Never fails: without one, such binds may collide. */
void anchor_take(struct agent *a, struct app *app);
void anchor_adopt(struct agent *a, uint32_t anchor);
void anchor_release(struct agent *a, struct app *app);

/* --- adopt.c --- */
int adopt_apps(struct agent *a, struct error *e);
/* Removes from the kernel whatever belongs to nobody: table entries, devices, routes. */
int adopt_sweep(struct agent *a, struct error *e);
int flush_instance(const struct instance *inst, struct error *e);

/* --- services.c --- */
struct service {
	struct service *next;
	uint32_t id;
	char *name;
	struct config_service *conf; /* declared: the config's; else NULL */
	struct ax_addr vip4, vip6;
	uint32_t members;     /* of one that apps form */
	struct probe *probes; /* health.c */
};
struct service *service_by_name(struct agent *a, const char *name);
int service_declare(struct agent *a, struct config_service *conf, struct error *e);
/* A declared service gets another configuration; what is the same is not touched. */
int service_change(struct agent *a, struct service *s, struct config_service *conf,
		   struct error *e);
void service_remove(struct agent *a, struct service *s);
/* Declares the config's services that could not be before. */
void services_retry(struct agent *a);
/* Makes the service that `owner` and further apps form (or finds it). */
int service_of_app(struct agent *a, struct app *owner, struct service **ret, struct error *e);
/* For adoption: the service and its members, with nothing told to the kernel yet. */
int service_adopt(struct agent *a, const char *name, const struct ax_addr *ip4,
		  const struct ax_addr *ip6, struct service **ret);
void service_join(struct agent *a, struct service *s, struct app *app);
void service_leave(struct agent *a, struct app *app);
/* Writes the backends of all services that an app may serve, or of all (NULL). */
int services_sync(struct agent *a, const struct app *app, struct error *e);
/* Whether the app is a backend of any service. */
bool service_affects(struct agent *a, const struct app *app);
int service_sync(struct agent *a, struct service *s, struct error *e);
/* Whether any of its backends is a running private app. */
bool service_has_private(const struct agent *a, const struct service *s);
/* Opens the device to which services with private backends are routed, or takes it over. */
/* Takes over the last agent's, before the programs are told anything. */
void service_device_adopt(struct agent *a);
int service_device_open(struct agent *a);
void service_device_close(struct agent *a); /* when nothing is routed to it any more */
/* Routes the services that the app serves anew: it has its device now. */
int services_route(struct agent *a, const struct app *app, struct error *e);
bool service_device_is(const struct agent *a, const char *name);
struct service_member {
	const struct app *app; /* NULL: a fixed address */
	struct ax_addr addr;
	uint16_t port; /* host byte order, 0: the target's */
	uint32_t weight;
	bool declared;	    /* an app of the config that does not run */
	bool draining;	    /* an app that is to end: no new connections */
	bool checked, down; /* health.h */
	const char *why; /* the last check failed, or there is none; lives as long as its probe */
};
/* Whether new connections go there. */
static inline bool member_serves(const struct service_member *m)
{
	return !m->draining && !m->down;
}
/* The backends of one family (or of both, v4 and v6) as a malloc'ed array. Those that do not serve
 * are among them. */
int service_members(struct agent *a, const struct service *s, struct service_member **ret,
		    size_t *n);

/* --- spawn.c --- */
struct spawn { /* an app that the agent is to start (again) */
	struct spawn *next;
	struct app_spec spec;
	char *config_key;
	uint32_t restarts;
	uint64_t at_ns; /* 0: it was started and waits for its launch */
	bool stale;	/* the config has changed meanwhile */
	int pid;
};
int spawn_app(struct agent *a, const struct app_spec *spec, const char *config_key,
	      uint32_t restarts, uint32_t delay_ms);
/* Starts what is due; returns the next deadline, 0: none. */
uint64_t spawn_due(struct agent *a, uint64_t now_ns);
void spawn_reap(struct agent *a); /* SIGCHLD */
/* The restarts counted for an app that was launched by this process, 0: not ours. */
uint32_t spawn_restarts(struct agent *a, const char *config_key, const char *name);
/* Drops the starts that are due of an app, by its name. Returns how many. */
size_t spawn_cancel(struct agent *a, const char *name);
/* A launch that is under way has an old config: what comes of it is replaced. */
void spawn_mark_stale(struct agent *a, const char *config_key);
struct app *app_of_config(struct agent *a, const char *key);
void spawn_free_all(struct agent *a);

/* --- reconcile.c --- */
/* Computes the difference between `next` and what is declared now, and applies it unless dry_run.
 * *next is taken over or freed in any case; *holds says which (it may hold though not all of it
 * could be done). The diff goes to *diff (JSON array). */
int reconcile(struct agent *a, struct config *next, bool dry_run, json_t **diff, bool *holds,
	      struct error *e);
/* Ends apps of the config that it does not have any more, or has otherwise, since an agent that
 * is gone started them. */
void reconcile_adopted(struct agent *a);
int reconcile_file(struct agent *a, const char *path, struct error *e);
/* Declares or undeclares the config's app. */
int declare_app(struct agent *a, struct config_app *conf, struct error *e);
struct declared *declared_find(struct agent *a, const char *name);
/* Starts the config's app of that key if it has a command. */
int declared_start(struct agent *a, const char *key);
/* The config's app of that key, or NULL. */
const struct config_app *declared_key(struct agent *a, const char *key);
int declared_sync(struct agent *a, struct declared *d, struct error *e);
int agent_tell_ctl(struct agent *a);
/* The instance's /96 for anchors (ctl.h). */
void agent_anchor_prefix(const struct instance *inst, struct ax_addr *ret);

/* --- control_server.c --- */
int control_listen(struct agent *a, struct error *e);
void control_on_listen(struct agent *a);
void control_on_client(struct agent *a, struct client *c, uint32_t events);
struct client *client_of(struct loop_item *item);
/* Queue an answer (takes the reference), with a descriptor that is duplicated (-1: none). */
void client_reply(struct client *c, json_t *reply, int fd);
void client_error(struct client *c, int code, const char *text);
void client_ok(struct client *c);
void clients_app_gone(struct agent *a, const struct app *app);
void clients_event(struct agent *a, json_t *event);
size_t clients_watching(struct agent *a);
void clients_close_all(struct agent *a);
struct client_state {	    /* what requests.c keeps about a client */
	uint32_t launch_id; /* launched, not yet started; 0: none */
	bool events;
	uint32_t *stopping; /* ids that its stop waits for */
	size_t n_stopping;
	json_t *stopped; /* its answer */
	unsigned uid;
	int pid;
};
struct client_state *client_state(struct client *c);

/* --- requests.c --- */
void request_handle(struct agent *a, struct client *c, json_t *request, int fd);
void request_client_gone(struct agent *a, struct client *c);

/* --- views.c --- */
json_t *view_get(struct agent *a, const char *what, struct error *e);
json_t *view_status(struct agent *a);
json_t *json_addr(const struct ax_addr *addr);
/* The name that an address goes by, or NULL. */
const char *name_of_addr(struct agent *a, const struct ax_addr *addr);

/* --- events.c --- */
int events_open(struct agent *a);
int events_update(struct agent *a); /* readers came or went */
void events_on_ring(struct agent *a);
void events_on_timer(struct agent *a);
void events_app(struct agent *a, const char *what, const struct app *app);
void events_trigger(struct agent *a, const char *name, int pid, const char *ifname,
		    const struct ax_capture *c);
/* app NULL: a fixed address. */
void events_health(struct agent *a, const struct service *s, const struct app *app,
		   const struct ax_addr *addr, uint16_t port, bool down, const char *why);

/* --- names.c: an index of names, and the DNS zone made of it --- */
struct name {
	char *text;
	struct app *app; /* the first running one of that name */
	struct service *service;
	struct declared *declared;
};
struct name *name_find(struct agent *a, const char *text);
struct name *name_get(struct agent *a, const char *text); /* finds or makes; NULL: no memory */
void name_put(struct agent *a, struct name *n); /* frees it when nobody has that name any more */
void name_free_all(struct agent *a);
int names_open(struct agent *a, struct error *e);
int names_set_upstreams(struct agent *a, struct error *e);

/* --- triggers.c --- */
struct triggers;
/* The config's triggers hold now. What is wrong with one is said, the others hold. */
int triggers_apply(struct agent *a, struct error *e);
/* What came in on an interface, from whomever. */
void triggers_take(struct agent *a, const char *ifname, const struct ax_capture *c,
		   const uint8_t *data);
/* Whether the process was a trigger's. */
bool triggers_reap(struct agent *a, int pid, int status);
void triggers_view(const struct agent *a, json_t *counters);
void triggers_free(struct agent *a);

/* --- xdp_section.c --- */
struct xdp_plan;    /* what an apply does to interfaces */
struct xdp_managed; /* an interface that this agent, or one before it, put a list on */
/* Reads what the config's interfaces name, and compares it with what the kernel has. *ret is to be
 * freed also after a failure. */
int xdp_plan_make(struct agent *a, const struct config *next, json_t *diff, struct xdp_plan **ret,
		  struct error *e);
void xdp_plan_free(struct xdp_plan *p);
/* Whether it names files, which the agent reads as root. */
bool xdp_section_reads_files(const struct config *c);
/* When the config holds. All of it is tried; the first failure is returned. */
int xdp_plan_apply(struct agent *a, struct xdp_plan *p, struct error *e);
/* Which interfaces an earlier agent had. */
void xdp_section_load(struct agent *a);
/* The service's backends may be others now, or in another state. */
void xdp_section_service(struct agent *a, const struct service *s);
void xdp_section_on_link(struct agent *a);
void xdp_section_on_timer(struct agent *a);
void xdp_section_on_triggers(struct agent *a, struct loop_item *item);
json_t *xdp_section_view(const struct agent *a);
void xdp_section_free(struct agent *a);
/* Takes the instance's dataplanes off all interfaces. */
int xdp_section_flush(const struct instance *inst, struct error *e);

/* --- probes_section.c --- */
struct probe_failed; /* a probe of the config that is not there as it is to be */
/* When the config holds. All of it is tried; the first failure is returned. */
int probes_apply(struct agent *a, struct error *e);
/* An app has its cgroup, but nothing is executed yet: probes on apps of its name see it. */
void probes_app(struct agent *a, const struct app *app);
json_t *probes_view(const struct agent *a);
void probes_free(struct agent *a);

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
	struct doomed {
		unsigned ifindex;
		uint64_t at_ns;
	} * doomed; /* devices of apps that are gone, see doom_device() */
	size_t n_doomed;
	struct client *clients;
	struct dns_server *dns;
	bool holding;
	bool starting;	 /* the config's conflicts with what runs are worked around, not refused */
	bool undeclared; /* a service could not be declared: tried again when an app is gone */
	bool had_egress;
	struct loop_item health_timer; /* fd -1: no service has had a check */
	uint64_t health_at_ns;	       /* when it fires, 0: it does not */
	size_t n_probes;
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
