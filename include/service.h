/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services, their backends, and the servers that listen. */
#ifndef AX_SERVICE_H
#define AX_SERVICE_H

#include <linux/types.h>
#include "addr.h"
#include "app.h"

/* What chooses a backend: bpf/choose.bpf.h. Names: agent/config/strategy.c. */
enum ax_strategy {
	AX_STRATEGY_RANDOM = 0,
	AX_STRATEGY_ROUND_ROBIN = 1,
	AX_STRATEGY_LEAST_CONNECTIONS = 2,
	AX_STRATEGY_MAGLEV = 3, /* by the client's address or name; ring: agent/base/maglev.h */
	AX_STRATEGIES,
};

enum ax_service_flag {
	AX_SERVICE_BY_APP = 1 << 0,   /* a client keeps its backend: by the app's name, or */
	AX_SERVICE_BY_SRC = 1 << 1,   /* by its address; who is outside ax always by that */
	AX_SERVICE_PER_SEND = 1 << 2, /* each datagram of an unconnected socket for itself */
	/* for an agent whose config does not have the service any more: what is ended then */
	AX_SERVICE_ENDS_TCP = 1 << 3,
	AX_SERVICE_ENDS_UDP = 1 << 4,
	AX_SERVICE_HASH_APP = 1 << 5, /* maglev: an app's name decides, not its address */
};
#define AX_SERVICE_AFFINITY (AX_SERVICE_BY_APP | AX_SERVICE_BY_SRC)

/*
 * Map `services`: struct ax_endpoint -> service. A port of 0 in the key stands for every port
 * that has no entry of its own (services that several apps form by sharing a name or an address).
 */
struct ax_service {
	__u32 id;	   /* of this endpoint's backend list */
	__u32 generation;  /* of its backends; see struct ax_list_key */
	__u32 backends;	   /* how many it has */
	__u32 ring;	   /* slots of its ring; 0: none, since all its backends weigh the same */
	__u32 strategy;	   /* enum ax_strategy */
	__u32 wait_ms;	   /* how long a connect waits for a server; 0: not at all */
	__u32 next;	   /* round-robin counter, advanced by the programs */
	__u32 flags;	   /* enum ax_service_flag */
	__u32 affinity_ms; /* without a connection for so long a client has no backend any more */
};
_Static_assert(sizeof(struct ax_service) == 36, "struct ax_service is a map value");

/*
 * Maps `backends` and `rings`, in chunks: a list of many is written with few calls. All chunks of a
 * new generation are written before the service's value names it, and those of the old one removed
 * after, so that a connect never sees half a list.
 */
struct ax_list_key {
	__u32 service;
	__u32 generation;
	__u32 chunk;
};
_Static_assert(sizeof(struct ax_list_key) == 12, "struct ax_list_key is a map key");

struct ax_backend {
	struct ax_addr addr;
	__be16 port_be; /* 0: the port that the client asked for */
	__u16 weight;	/* as the config has it, 1 to 1000 */
	__u32 app;	/* id of the app, 0: a fixed address */
};
_Static_assert(sizeof(struct ax_backend) == 24, "struct ax_backend is part of a map value");

#define AX_SERVICE_BACKENDS_MAX 65535 /* a ring's slot has 16 bits */
#define AX_BACKENDS_CHUNK	16

struct ax_backends {
	struct ax_backend b[AX_BACKENDS_CHUNK];
};
_Static_assert(sizeof(struct ax_backends) == 384, "struct ax_backends is a map value");

/* Where a connect looks first: a slot is the index of a backend. After that it looks at backends in
 * their order. */
#define AX_RING_CHUNK 512

struct ax_ring {
	__u16 backend[AX_RING_CHUNK];
};
_Static_assert(sizeof(struct ax_ring) == 1024, "struct ax_ring is a map value");

/*
 * Map `affinity`: which backend a client of a service with affinity has. By the list's id, which
 * outlives every change of the list, and the agent.
 *
 * Nobody may fill it for others. Entries of apps are counted for each app, those of programs
 * outside ax for each list, since they choose their addresses as they like; apps have one half of
 * the map, and who is outside the other. Whoever gets no entry is sent by a hash of what he is: he
 * keeps his backend as long as the list stays as it is.
 *
 * Map `affinity_counts`: AX_AFFINITY_OWNER() -> how many entries. Of number 0 of a kind: of all.
 */
struct ax_affinity_key {
	__u32 list;
	__u32 named; /* 1: client is two words of the app's name */
	struct ax_addr client;
};
_Static_assert(sizeof(struct ax_affinity_key) == 24, "struct ax_affinity_key is a map key");

struct ax_affinity {
	__u64 backend; /* AX_AFFINITY_BACKEND bits of its address and port, and how often it has
			  changed: who chooses another one does it in one step */
	__u64 seen_ns; /* CLOCK_MONOTONIC of about the last connection */
	__u32 index;   /* where it stood in the list last */
	__u32 app;     /* the entry is counted for it; 0: for the list, a program outside ax has it
			*/
};
_Static_assert(sizeof(struct ax_affinity) == 24, "struct ax_affinity is a map value");
#define AX_AFFINITY_BACKEND (~0xffull)

#define AX_AFFINITY_MAX	     131072
#define AX_AFFINITY_HALF     (AX_AFFINITY_MAX / 2)
#define AX_AFFINITY_APP_MAX  4096 /* of one app, while its half is half empty, and else */
#define AX_AFFINITY_APP_SURE 64
#define AX_AFFINITY_SRC_MAX  16384 /* of one list's clients outside ax, and so on */
#define AX_AFFINITY_SRC_SURE 256

#define AX_AFFINITY_APP		       1ull
#define AX_AFFINITY_SRC		       2ull
#define AX_AFFINITY_OWNER(kind, n)     ((kind) << 32 | (n))
#define AX_AFFINITY_OWNER_LIST(number) AX_AFFINITY_OWNER(AX_AFFINITY_SRC, (number) + 1ull)

/*
 * Map `open_conns`: struct ax_endpoint of a backend -> __u32, how many connections are open to it
 * through services whose strategy asks for that (choose_counts() of bpf/choose.bpf.h). By endpoint
 * and not by slot: a count outlives every change of the lists.
 */

/*
 * Map `servers`: struct ax_endpoint -> who listens there: only under an app's own address, and
 * believed only while that app has it (a socket can outlive its app). Filled by the sockops listen
 * callback and post_bind, removed at close.
 */
struct ax_server {
	__u32 app;
	__u32 sockets; /* listening ones, SO_REUSEPORT makes several: AX_SERVER_SOCKET for each, and
			  AX_SERVER_ELSEWHERE for each that sits on the app's other address (a
			  dual-stack one in host mode), so that nothing but map `listeners` finds it
			*/
	__u64 since_ns; /* CLOCK_BOOTTIME; 0: not yet, since its socket is not in map `listeners`
			   yet, where whoever comes would not find it, and be refused */
};
_Static_assert(sizeof(struct ax_server) == 16, "struct ax_server is a map value");

#define AX_SERVER_SOCKET	1u
#define AX_SERVER_ELSEWHERE	(1u << 16)
#define AX_SERVER_SOCKETS(n)	((n)&0xffff)
#define AX_SERVER_ELSEWHERES(n) ((n) >> 16)

/*
 * Map `loopback_servers`: who listens on a loopback address in the host's network namespace -> how
 * many sockets. Each host-mode app has its own: what it says there is heard by no lookup of
 * another. The wildcard of a family as its address: whoever asked for that, wherever bind() has put
 * it, is reached by the app's own connections to every loopback address of that family.
 *
 * Map `loopback_listeners`, by the same key: the TCP ones, for sk_lookup; and under app 0 those
 * that sit on the wildcard in truth, which the kernel finds by every address of the host.
 *
 * Sockets that share a port (SO_REUSEPORT) have a key each in it and in map `listeners`: the
 * endpoint's `pad` numbers them, from 0 on, and a number is free again when its socket is closed.
 * Of more than AX_LISTENERS_MAX the others are found only while one of those is open. UDP sockets
 * are all under 0, where the agent puts another one when the last is closed.
 */
#define AX_LISTENERS_MAX 256
struct ax_app_endpoint {
	__u32 app;
	struct ax_endpoint ep;
};
_Static_assert(sizeof(struct ax_app_endpoint) == 24, "struct ax_app_endpoint is a map key");

/*
 * Map `wild_ports`: a wildcard and a UDP port at which a host-mode app's socket is in truth, since
 * it was bound to port 0 -> whose it is. The kernel finds it by every address of this machine:
 * sk_lookup keeps away who may not have it. (Not of SO_REUSEADDR, which shares it with others.)
 * connect() to AF_UNSPEC gives the port back, and no hook sees that: the socket is asked whether it
 * has it still, or whoever has the port next would lose what is sent there.
 */
struct ax_wild {
	struct ax_addr vip; /* the app's address, of that family if it has one */
	__u64 sock;	    /* where the kernel has it; 0: not told yet */
	__u32 app;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_wild) == 32, "struct ax_wild is a map value");

/*
 * Map `udp_clients`, by the same key: at what UDP ports from ephemeral_first on the app's own
 * addresses are its sockets' -> how many sockets. Filled by post_bind, and at the first datagram of
 * a socket that the kernel gave its port. Who sits on no port there is nobody to sk_lookup: else
 * the kernel would find any wildcard socket of the host by the app's address.
 *
 * Map `dns_sources`: where a host-mode app's socket asks the agent's DNS from, if that is not the
 * app's own address (it was bound before) -> the app's id. A socket keeps its place as long as it
 * has its port: who asks on from elsewhere by the same socket is refused.
 *
 * Map `dns_gone` (LRU): what was in it, and when it went. What was sent before may be read
 * later, and is the app's, and not this host's. The latest AX_DNS_GONE_SURE are there; when they
 * went stands in `dns_gone_at`, a ring of which `dns_gone_n` were written: who might be one of
 * those before is not known.
 *
 * Map `app_servers`: app id -> entries of these four maps that its sockets stand for; 0 -> those of
 * all. (Those for a wildcard come with one for an address, and only alone do they count.)
 * The agent makes an app's entry and removes it. Nobody has more than AX_APP_SERVERS_MAX, and
 * while half of `servers` is in use nobody gets more than AX_APP_SERVERS_SURE: whoever fills the
 * map leaves room for the others.
 */
struct ax_dns_gone {
	__u64 at_ns; /* CLOCK_MONOTONIC */
	__u32 app;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_dns_gone) == 16, "struct ax_dns_gone is a map value");

#define AX_DNS_GONE_MAX	 16384
#define AX_DNS_GONE_SURE 8192 /* (of the others some are in lists of CPUs) */

#define AX_SERVERS_MAX	    131072
#define AX_APP_SERVERS_MAX  8192
#define AX_APP_SERVERS_SURE 64
_Static_assert(AX_APP_SERVERS_MAX <= 0xffff, "one app's sockets fit half a word of ax_server");

/*
 * Socket storage `asked`: what the app said where the switch put something else in its place.
 * Peer: connect() to a service, answered by getpeername() and recvfrom(). Local: bind() to an
 * address that stands for its own one, answered by getsockname().
 */
enum ax_asked_flag {
	AX_ASKED_LOCAL = 1 << 0,     /* (a wildcard: as long as it is not connected) */
	AX_ASKED_UDP = 1 << 1,	     /* unconnected: it has a storage `replies` */
	AX_ASKED_COUNT = 1 << 2,     /* TCP that counts for its backend once its SYN is made */
	AX_ASKED_COUNTED = 1 << 3,   /* counted in `open_conns` under real_peer */
	AX_ASKED_ELSEWHERE = 1 << 4, /* served[1] is not the address that the socket sits on */
	AX_ASKED_SHARED = 1 << 5,    /* UDP that lets others have its address and port as well */
	AX_ASKED_ANY4 = 1 << 6,	     /* bound to the wildcard of IPv4, in the host's netns */
	AX_ASKED_ANY6 = 1 << 7,	     /* and of IPv6 */
	AX_ASKED_OWN = 1 << 8,	     /* its SYN says whose it is: own_conns */
	AX_ASKED_TIMEOUT = 1 << 9,   /* its TCP_USER_TIMEOUT is the wait's, until it is connected */
	AX_ASKED_CLIENT = 1 << 10,   /* served[0] (IPv4), served[1] (IPv6): of map `udp_clients` */
	AX_ASKED_ONLY6 = 1 << 11,    /* bound to port 0 with IPV6_V6ONLY */
	AX_ASKED_BOUND = 1 << 12,    /* TCP in the host's netns that bind() was called for */
	AX_ASKED_WATCHED = 1 << 13,  /* TCP whose failure is counted in `failing` */
	AX_ASKED_ACROSS = 1 << 14,  /* TCP that is translated on its way to or from another node: in
				       host mode it has a storage `across` */
	AX_ASKED_SERVICE = 1 << 15, /* TCP that waits at a service's own address */
	AX_ASKED_REUSES = 1 << 16,  /* UDP bound to a wildcard and port 0 with SO_REUSEADDR */
	AX_ASKED_PLACE = 1 << 17,   /* TCP whose entry of `dns_sources` has its place before it is
				       made */
};
_Static_assert((AX_ASKED_LOCAL ^ AX_ASKED_UDP ^ AX_ASKED_COUNT ^ AX_ASKED_COUNTED ^
		AX_ASKED_ELSEWHERE ^ AX_ASKED_SHARED ^ AX_ASKED_ANY4 ^ AX_ASKED_ANY6 ^
		AX_ASKED_OWN ^ AX_ASKED_TIMEOUT ^ AX_ASKED_CLIENT ^ AX_ASKED_ONLY6 ^
		AX_ASKED_BOUND ^ AX_ASKED_WATCHED ^ AX_ASKED_ACROSS ^ AX_ASKED_SERVICE ^
		AX_ASKED_REUSES ^ AX_ASKED_PLACE) == (1 << 18) - 1,
	       "each flag has a bit of its own");

struct ax_asked {
	struct ax_endpoint peer;      /* all zero: not translated */
	struct ax_endpoint real_peer; /* where it went instead; of an accepted connection that
					 counts: the backend that it came to */
	struct ax_addr local;	      /* valid with AX_ASKED_LOCAL */
	__u32 flags;		      /* enum ax_asked_flag; changed by atomic operations */
	__u32 app; /* who bound it in the host's netns, or whose netns it listens in; 0: none */
	struct ax_endpoint served[4]; /* entries of map `servers` (of a loopback address, and from
					 the third on: of `loopback_servers`, with
					 AX_ASKED_CLIENT of `wild_ports`, too) that the socket
					 stands for; port 0: none */
	__u64 hold_until_ns; /* SYNs are held back until a server listens or this CLOCK_MONOTONIC
				time has come; 0: not held */
	struct ax_endpoint dns_source; /* entry of map `dns_sources` that the socket stands for;
					  port 0: none */
	__u32 dns_app; /* whose; of TCP: who gets one when the SYN is made, 0: nobody */
};
_Static_assert(sizeof(struct ax_asked) == 176, "struct ax_asked is a map value");

/*
 * A connect that waits for a service waits for the backend that was chosen, if it is the only one.
 * Else it is led nowhere: it asks for the service's own address, as programs outside ax do, and its
 * SYN goes on when somebody listens there whom it may have, whoever that is then.
 *
 * Socket storage `held`: the SYN of a connect that waits, for the agent, which sends it once more
 * when somebody listens: TCP itself would try again at intervals of a second, or, before Linux
 * 6.15, of as long as it has waited.
 */
#define AX_HELD_MAX 100 /* headers of IPv6 and TCP, with all their options */

enum ax_held_why {
	AX_HELD_READY = 1,  /* somebody listens now */
	AX_HELD_WANTED = 2, /* the app is to be started */
	AX_HELD_NEVER = 3,  /* the app could not be started: whoever is there now may refuse it */
};

struct ax_held {
	struct ax_endpoint to;
	__u32 app;		  /* whose connect it is */
	__u16 len;		  /* of the packet; 0: none was made yet, or it carries data */
	__u8 implied;		  /* 1: it waits because of AX_VIP_WAITS alone */
	__u8 why;		  /* enum ax_held_why, for the agent */
	__u8 packet[AX_HELD_MAX]; /* from its IP header on, without a checksum */
};
_Static_assert(sizeof(struct ax_held) == 128, "struct ax_held is a map value");

/*
 * Map `failing`: struct ax_endpoint of a backend -> how many TCP connections of apps to it have
 * failed, of those backends alone for which the agent has made an entry (passive health checks).
 * Refused, timed out or reset by the other end, that is: what the app itself ends is no failure.
 */
struct ax_failing {
	__u32 count;
	__u32 error; /* errno of the last one */
};
_Static_assert(sizeof(struct ax_failing) == 8, "struct ax_failing is a map value");
#define AX_FAILING_MAX 65536

/*
 * Map `accepts`: app id -> __u64, how many connections it has accepted, of those apps alone for
 * which the agent has made an entry.
 */

/*
 * Maps `flows`, `new_flows` and `udp_flows` (LRU): flows of programs outside ax, and of apps that
 * have waited at its address, to a service with private backends, which no connect hook translates.
 * One entry for each direction: (client, service)
 * -> (client's other port, backend) and (client's other port, backend) -> (client, service). The
 * backend sees the client's address and a port that no flow of the client's has that goes to the
 * backend itself: below those that the kernel gives to clients.
 *
 * A client may take such a port later, for a connection to the backend itself: the backend cannot
 * tell that from the flow, so it sees it from another port, too (AX_FLOW_DIRECT). The key of what
 * the client sends is (client, backend) like the one of what the backend answers to the other flow:
 * AX_FLOW_DIRECT in its peer's `pad` is the difference.
 *
 * An entry that was pushed out by newer ones ends its flow. So connections that are open have a map
 * of their own, `flows`, which neither datagrams nor SYNs of anybody can fill; those that are not
 * yet open, or closed, are in `new_flows`.
 */
struct ax_flow_key {
	struct ax_endpoint client;
	struct ax_endpoint peer;
};
_Static_assert(sizeof(struct ax_flow_key) == 40, "struct ax_flow_key is a map key");

enum ax_flow_state {
	AX_FLOW_ANSWERED = 1 << 0, /* the backend has answered the SYN, */
	AX_FLOW_OPEN = 1 << 1,	   /* and the client that */
	AX_FLOW_FIN_CLIENT = 1 << 2,
	AX_FLOW_FIN_APP = 1 << 3,
	AX_FLOW_FINS = AX_FLOW_FIN_CLIENT | AX_FLOW_FIN_APP,
	AX_FLOW_RESET = 1 << 4,
	AX_FLOW_COUNTS = 1 << 5, /* to a service whose strategy counts what is open */
};

enum ax_flow_kind {
	AX_FLOW_SERVICE = 0,
	AX_FLOW_EXPOSED = 1, /* the peer is a port of the host, see expose.h */
	AX_FLOW_DIRECT = 2,  /* the peer is the app itself */
};

struct ax_flow {
	struct ax_endpoint to; /* who is in the place of the key's peer */
	__be16 client_port_be; /* and of the client's port */
	__u8 state;	       /* enum ax_flow_state, the same in both directions */
	__u8 kind;	       /* enum ax_flow_kind, too */
	__u32 seen;	       /* CLOCK_MONOTONIC, in 2^30 ns */
};
_Static_assert(sizeof(struct ax_flow) == 28, "struct ax_flow is a map value");

/* How long a flow may be idle, in seconds (nearly: 2^30 ns). */
#define AX_FLOW_LIFE_OPEN   7440
#define AX_FLOW_LIFE_UDP    300
#define AX_FLOW_LIFE_NEW    60
#define AX_FLOW_LIFE_CLOSED 1

/*
 * Map `datagrams` (LRU), of the same key: (client, app) of datagrams that came to a private app
 * from outside ax, and are not a service's: their answers may leave though the app has no egress.
 */

/*
 * Map `handed` (LRU), of the same types: connections that sk_lookup handed to a host-mode backend
 * of a service whose strategy counts, (client, service) -> backend, until they are accepted.
 * Whoever sends SYNs of nobody fills it: what is pushed out is not counted, and nothing else is
 * lost.
 */

/*
 * Map `picked` (LRU), of the same key: connections for which a program on packets has chosen a
 * backend in host mode, of a service that has private ones, too; sk_lookup gives them to that one,
 * and a SYN that comes again has the same. While the service has that list of backends.
 */
struct ax_picked {
	struct ax_endpoint to;
	__u32 generation; /* of the list */
	__u32 seen;	  /* CLOCK_MONOTONIC, in 2^30 ns */
};
_Static_assert(sizeof(struct ax_picked) == 28, "struct ax_picked is a map value");

/*
 * Map `newcomers` (LRU), of the same key: (client, app) of TCP that came to a private app from
 * another machine, whose client has not shown that it got the app's answer, or whose beginning is
 * not known: anybody may send such segments in others' names, and they push out each other alone.
 * Those who have are in map `visitors` (awaited.h), where each app has its own. What acknowledges
 * the app's answer (host byte order), 0: it has not answered. A visitor that was pushed out comes
 * back, as a newcomer, with the client's next segment.
 */

/*
 * Map `own_conns` (LRU), of the same key -> app id: connections of host-mode apps to a loopback
 * address where the app itself listens on the wildcard, and to a port that is exposed somewhere, to
 * which connect() has not led them; from before the SYN until it is answered. And datagrams of
 * those without IPv6 to themselves, from one port of their anchor to another.
 */

/*
 * Socket storage `replies`: where replies to an unconnected socket come from -> whom it had asked.
 * Each socket has its own, so that none pushes out what another waits for: a ring of those whom it
 * has asked of late. (Its size is what the kernel allocates in 2 KiB.)
 */
#define AX_REPLIES_MAX 48

struct ax_reply {
	struct ax_endpoint from; /* port 0: none */
	struct ax_endpoint asked;
};

struct ax_replies {
	__u32 n; /* ever written; the next one is at n % AX_REPLIES_MAX */
	struct ax_reply r[AX_REPLIES_MAX];
};
_Static_assert(sizeof(struct ax_replies) == 1924, "struct ax_replies is a map value");

#endif
