/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's DNS: authoritative for its domain (and for single-label names that it knows, since
 * host-mode apps have no search domain of ours), PTR for the virtual IPs, everything else is
 * forwarded to the upstreams. DNS messages are read and written by ldns.
 */
#ifndef AX_DNS_DNS_H
#define AX_DNS_DNS_H

#include "base/address.h"
#include "base/loop.h"
#include "base/util.h"
#include "dns/defaults.h"

#define DNS_NAME_MAX 64

/* What the agent knows of a name; at most one address per family (names resolve to the stable
 * VIP), and the ports for SRV. */
struct dns_name_info {
	struct ax_addr ip4; /* zero: none */
	struct ax_addr ip6;
	struct dns_srv {
		uint8_t proto; /* IPPROTO_TCP or IPPROTO_UDP */
		uint16_t port; /* host byte order */
	} srv[16];
	size_t n_srv;
};

/* Who asks, and what they may. */
struct dns_rights {
	struct ax_addr self; /* the same for all addresses of one asker: what is open is shared by
				askers, so that nobody takes it all */
	bool forward;	     /* names that are not the zone's are asked for at the upstreams; else
				they do not exist */
	bool judged;	     /* each of those names only if may_ask() lets it */
	bool told;	     /* learn() is told of the answers */
	uint32_t app;	     /* for these */
	uint32_t wait_ms;    /* how long a query may wait for a name that nobody has yet */
};

/* An address of a name, by an upstream's answer. */
struct dns_learnt {
	struct ax_addr addr;
	uint32_t ttl_s; /* the shortest of the records that lead to it */
};
#define DNS_LEARNT_MAX 128 /* of one answer */

struct dns_zone {
	const char *domain; /* "ax.internal": lower case, no dots at the ends */
	/* `name` is lower case, without the domain: a label, or two (NAME.CLUSTER). Returns true
	 * when the name exists. */
	bool (*lookup)(void *arg, const char *name, struct dns_name_info *ret);
	/* Whether there are names below that label, whatever they are; NULL: there are none. */
	bool (*encloses)(void *arg, const char *label);
	/* Whether a name exists and can be connected to, for those who wait for that; NULL: as soon
	 * as lookup() knows it. */
	bool (*ready)(void *arg, const char *name);
	/* Adds the ports of a name that exists, for SRV; NULL: lookup() has given them. */
	void (*ports)(void *arg, const char *name, struct dns_name_info *ret);
	/* The name (without domain) of a virtual IP, false when it is not ours. */
	bool (*reverse)(void *arg, const struct ax_addr *addr, char name[DNS_NAME_MAX]);
	/* True when the address lies in ax's pools: unknown ones get NXDOMAIN, not a forward. */
	bool (*owns)(void *arg, const struct ax_addr *addr);
	/* Who asks from there, by IPPROTO_UDP or IPPROTO_TCP. False: nobody who is answered. NULL:
	 * each address is an asker of its own, who may everything. */
	bool (*asker)(void *arg, const struct ax_addr *from, __be16 port_be, uint8_t proto,
		      struct dns_rights *ret);
	bool (*may_ask)(void *arg, const struct dns_rights *who, const char *name);
	/* Before the answer goes out. */
	void (*learn)(void *arg, const struct dns_rights *who, const char *name,
		      const struct dns_learnt *v, size_t n);
	void *arg;
	/* Addresses of ns.dns.<domain>, the name server that SOA and NS speak of; zero: none.
	 * dns_server_open() fills in those that it listens on where they are zero. */
	struct ax_addr ns4;
	struct ax_addr ns6;
};

/*
 * One query to one answer, without any I/O (the fuzz target's entry).
 * Returns the answer's length in `out`; 0: the query is not for us, forward it; -EBADMSG: not a
 * query that deserves an answer, drop it (and so for -ENOMEM, and -EMSGSIZE where out_size is too
 * small). `max_udp` is what the transport allows (0: TCP); over it the answer is cut at a record
 * boundary and carries TC (additional records go first, and without TC).
 */
int dns_answer(const struct dns_zone *zone, const uint8_t *query, size_t len, uint8_t *out,
	       size_t out_size, size_t max_udp);

struct dns_server;
struct dns_upstream {
	struct ax_addr addr;
	__be16 port_be;
};
struct dns_config {
	struct ax_addr listen4; /* zero: none */
	struct ax_addr listen6;
	__be16 port_be; /* tried first; when taken, any free port (the same for all) is used */
	struct dns_zone zone;
	const struct dns_upstream *upstreams;
	size_t n_upstreams;
	int udp_filter, tcp_filter; /* BPF programs for the sockets, 0: none; the caller's */
	void (*drained)(void *arg); /* a socket's queue was found empty; NULL: nobody asks */
	void *arg;
};

/*
 * Sockets are opened non-blocking, CLOEXEC, and added to the loop. The TCP ones have SO_REUSEADDR;
 * UDP does not: there it would let two agents share a port, and steal each other's queries. The
 * strings and upstreams of the config are copied.
 */
int dns_server_open(int epoll_fd, const struct dns_config *c, struct dns_server **ret,
		    struct error *e);
void dns_server_close(struct dns_server *s);
__be16 dns_server_port(const struct dns_server *s);
/* Replaces the upstreams (config reload); one that is this very server is left out. */
int dns_server_set_upstreams(struct dns_server *s, const struct dns_upstream *u, size_t n);
/* A name came, or is ready: whoever waits for it is answered. */
void dns_server_names_added(struct dns_server *s);
/* For the loop: false, if it is of another kind than LOOP_DNS_*. */
/* The datagram that is being read, or the connection, came to its socket after this
 * (CLOCK_MONOTONIC). */
uint64_t dns_sent_after(const struct dns_server *s);
bool dns_on_loop(struct loop_item *item, uint32_t events);

/* The nameservers of a resolv.conf text (loopback ones included). Returns how many were put into
 * ret (at most max). */
size_t dns_upstreams_from_resolv_conf(const char *text, struct dns_upstream *ret, size_t max);

#endif
