/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config as plain structs, and their life. parse.h makes them of a file's text. */
#ifndef AX_CONFIG_CONFIG_H
#define AX_CONFIG_CONFIG_H

#include "base/address.h"
#include "base/labels.h"
#include "config/cluster.h"
#include "config/egress.h"
#include "config/policy.h"
#include "rules/list.h"
#include "base/strv.h"
#include "base/util.h"
#include "config/defaults.h"

enum net_mode { NET_PRIVATE, NET_HOST };
/* Whose queries for names outside are forwarded: of those who may reach the outside, or of all. */
enum dns_forward { DNS_FORWARD_EGRESS, DNS_FORWARD_ALL };
/* Where programs outside ax find names of apps and services. */
enum host_names { HOST_NAMES_OFF, HOST_NAMES_HOSTS, HOST_NAMES_RESOLVED, HOST_NAMES_RESOLVCONF };
/* As the file has it: "hosts". */
const char *host_names_word(enum host_names h);
enum restart_policy { RESTART_NO, RESTART_ON_FAILURE, RESTART_ALWAYS };
/* Whether local TCP connections are spliced. Of apps and services SPLICE_AUTO is: they say nothing.
 * How words of several of them add up: splice/policy.h. */
enum splice_mode { SPLICE_AUTO, SPLICE_ON, SPLICE_OFF, SPLICE_FORCED };

/* A port of the host by which programs outside reach an app or a service, see expose.h. */
#define EXPOSE_DEVICE_MAX 15
struct expose {
	struct ax_addr addr;		    /* of the host; zero: all of the family */
	sa_family_t family;		    /* AF_UNSPEC: both */
	uint8_t proto;			    /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t host_port;		    /* host byte order, and so is */
	uint16_t port;			    /* the app's or the service's */
	char device[EXPOSE_DEVICE_MAX + 1]; /* only what comes in by it; "": whatever comes */
};
struct expose_list {
	struct expose *v;
	size_t n;
};
void expose_list_free(struct expose_list *l);
int expose_list_copy(const struct expose_list *from, struct expose_list *to);
bool expose_list_eq(const struct expose_list *a, const struct expose_list *b);

/* What an app is to be: the flags of `ax run` and the keys of a config `apps:` entry. */
struct app_spec {
	char *name;	    /* NULL: made from the command */
	struct ax_addr ip4; /* zero: from the pool (or none for ip6 when there is no pool) */
	struct ax_addr ip6;
	struct labels labels; /* empty: the policy's default labels */
	char *user;	      /* name or number; NULL: the caller's */
	enum net_mode net;
	struct strv env; /* KEY=VALUE, added to the environment */
	struct strv command;
	char *directory; /* working directory; NULL: the caller's (root's: /) */
	uint32_t wait_ms;
	struct egress egress;
	bool detach;
	enum restart_policy restart;
	enum splice_mode splice;
	bool splice_emulation; /* its splice(2) is done by a process of ax's */
	uint64_t memory;       /* bytes; 0: no limit, as of the next two */
	uint32_t cpus;	       /* thousandths of a processor */
	uint32_t pids;
	struct strv volumes; /* see limits.h */
	bool read_only;	     /* the machine's files */
	struct expose_list expose;
};
void app_spec_free(struct app_spec *s);
int app_spec_copy(const struct app_spec *from, struct app_spec *to);
bool app_spec_eq(const struct app_spec *a, const struct app_spec *b);

/* One entry of `apps:`; `key` is the entry's name in the file and the app's unless `name:` is
 * given. Without a command it only declares the app: its name, address and settings, which
 * `ax run --name` takes over. */
struct config_app {
	char *key;
	struct app_spec spec;
	bool on_connect;  /* started by the first connection to it, and not before */
	uint32_t idle_ms; /* then: ended after so long without connections; 0: never */
};

struct service_port {
	uint16_t port;	 /* host byte order */
	uint16_t target; /* the backend's port; equal to port unless given */
	uint8_t proto;	 /* IPPROTO_TCP or IPPROTO_UDP */
};

struct service_backend {
	char *app;		/* by app name, or */
	struct labels labels;	/* apps that carry all of these, or */
	struct ax_addr address; /* a fixed address, */
	uint16_t more;		/* and so many behind it */
	uint16_t port;	  /* with an address: its port (host byte order), 0: the target port */
	uint32_t weight;  /* 1..1000, 1 unless given */
	char *zone;	  /* where it is; NULL: near, as of every app */
	bool has_quic_id; /* for balancers of packets, */
	uint16_t quic_id; /* what its connection ids of QUIC say */
};

/* One of its fixed addresses, 0 to `more`: a range stays one entry, however many it has. */
struct ax_addr service_backend_address(const struct service_backend *b, uint32_t i);

/* CHECK_PASSIVE is CHECK_TCP of backends that are suspected, or down. */
enum check_type { CHECK_NONE, CHECK_TCP, CHECK_HTTP, CHECK_EXEC, CHECK_PASSIVE };

/* How the agent finds out whether a backend serves, see health.h. */
struct service_check {
	enum check_type type;
	uint16_t port;	     /* host byte order; 0: where the service sends TCP connections */
	uint16_t status;     /* http: what the backend must answer; 0: anything of 200 to 399 */
	char *path;	     /* http: what is asked for; NULL: / */
	struct strv command; /* exec: good if it ends with 0 */
	char *user;	     /* exec: who runs it; NULL: nobody */
	uint32_t every_ms, timeout_ms;
	uint16_t fall, rise; /* so many in a row make it down, and up again */
	uint16_t passive;    /* so many failed connections make a check due at once, and its failure
			      * final; 0: they are not counted */
	uint32_t window_ms;  /* within this */
};
void service_check_free(struct service_check *c);
int service_check_copy(const struct service_check *from, struct service_check *to);
bool service_check_eq(const struct service_check *a, const struct service_check *b);

/* Which clients of a service keep their backend: those of an app's name, or of an address. */
enum service_affinity { AFFINITY_NONE, AFFINITY_APP, AFFINITY_SRC };
/* What decides with strategy maglev: the client's address, or an app's name. */
enum service_hash { HASH_SRC, HASH_APP };
/* What datagrams of a socket that is not connected do: stay with one backend, or not. */
enum service_udp { UDP_AFFINITY, UDP_PER_SEND };
/* Which sockets end that are connected to a backend that is removed or down: UDP ones, TCP as well,
 * or none. */
enum service_on_remove { ON_REMOVE_UDP, ON_REMOVE_DESTROY, ON_REMOVE_KEEP };

struct config_service {
	char *name;
	struct ax_addr ip4; /* zero: from the pool */
	struct ax_addr ip6;
	struct service_port *ports;
	size_t n_ports; /* 0: every port, untranslated */
	struct service_backend *backends;
	size_t n_backends;
	uint32_t strategy; /* enum ax_strategy of include/service.h */
	enum service_hash hash;
	uint32_t wait_ms;
	uint32_t drain_ms;	/* deadline of backends that drain; 0: none */
	uint32_t slow_start_ms; /* how long a backend that comes takes to its full share */
	enum service_affinity affinity;
	uint32_t affinity_timeout_ms; /* 0: CONFIG_AFFINITY_TIMEOUT_MS */
	enum service_udp udp;
	enum service_on_remove on_remove;
	enum splice_mode splice;
	struct service_check check;
	struct expose_list expose;
};
void config_service_free(struct config_service *s);
int config_service_copy(const struct config_service *from, struct config_service *to);
bool config_service_eq(const struct config_service *a, const struct config_service *b);

/* A list of an interface of the `xdp:` section. It has the section's sets and balancers too. */
struct config_interface {
	char *name;	  /* its place, see base/place.h */
	char *rules_file; /* NULL: the list is all given; else a rule file has all of it, and the
			     list here only what the section shares, and the direction */
	struct rule_list list;
};
void config_interface_free(struct config_interface *i);
int config_interface_copy(const struct config_interface *from, struct config_interface *to);
bool config_interface_eq(const struct config_interface *a, const struct config_interface *b);

/* A command that a signed datagram starts, see trigger.h. */
struct config_trigger {
	char *name;
	char *key_file;
	char *user; /* NULL: nobody */
	struct strv command;
	uint32_t window_ms; /* how far the sender's clock may be off */
};
void config_trigger_free(struct config_trigger *t);
int config_trigger_copy(const struct config_trigger *from, struct config_trigger *to);
bool config_trigger_eq(const struct config_trigger *a, const struct config_trigger *b);

/* An entry of `probes:`, and what `ax trace add` names, see probes/named/named.h. */
struct config_probe {
	char *name;
	char *probe;	   /* the canonical text, see probes/text/spec.h */
	uint32_t action;   /* enum trace_action of probes/fetch/fetch.h */
	uint32_t last;	   /* watch: so many records are kept */
	int64_t linear[3]; /* hist, latency: least, greatest, step; step 0: powers of two */
	uint32_t pid;	   /* only this process, 0: all */
	char *app;	   /* only this app's processes, by name or number, or */
	char *cgroup;	   /* only those below this directory; NULL: all */
	char *types;	   /* a file with what functions take and return; NULL: none */
	struct strv armed_by, disarmed_by; /* probes */
	bool per_thread, exact;
	bool enabled;
};
void config_probe_free(struct config_probe *p);
int config_probe_copy(const struct config_probe *from, struct config_probe *to);
bool config_probe_eq(const struct config_probe *a, const struct config_probe *b);
struct config {
	/* agent: */
	char *socket; /* NULL: the instance's default */
	struct prefix pool4;
	struct prefix pool6; /* len 0: no IPv6 addresses from a pool */
	char *dns_domain;    /* without dots at the ends, lower case */
	bool dns;	     /* answer DNS at all */
	enum dns_forward dns_forward;
	uint32_t dns_keep_ms; /* addresses of names that rules speak of hold so long at least */
	struct ax_addr *dns_upstreams;
	__be16 *dns_upstream_ports_be;
	size_t n_dns_upstreams; /* 0: those of /etc/resolv.conf */
	bool host_access;	/* programs outside ax may reach VIPs */
	enum host_names host_names;
	char *zone;	    /* of this machine; NULL: backends are equally near */
	uint64_t logs_size; /* bytes, of each detached app */
	bool logs_to_journal;
	enum splice_mode splice;

	struct config_cluster cluster;

	struct config_app *apps;
	size_t n_apps;
	struct config_service *services;
	size_t n_services;

	struct labels default_labels; /* policy: labels: */
	bool policy_audit;	      /* its deny rules only count */
	struct config_rule *rules;
	size_t n_rules;
	struct config_egress *egress; /* see egress.h */
	size_t n_egress;

	/* xdp: */
	struct config_interface *interfaces;
	size_t n_interfaces;
	struct config_trigger *triggers;
	size_t n_triggers;

	struct config_probe *probes;
	size_t n_probes;
};

/* A config with every default set, as if the file were empty. */
int config_init(struct config *c);
void config_free(struct config *c);

#endif
