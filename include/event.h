/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of the ring buffer `events` and of the connection iterator. */
#ifndef AX_EVENT_H
#define AX_EVENT_H

#include <linux/types.h>
#include "addr.h"

enum ax_event_type {
	AX_EVENT_LISTEN = 1,
	AX_EVENT_UNLISTEN = 2,
	AX_EVENT_CONNECT = 3, /* established, by the client */
	AX_EVENT_ACCEPT = 4,  /* established, by the server */
	AX_EVENT_CLOSE = 5,
	/* for the agent alone, and at once: */
	AX_EVENT_DUAL_UDP = 6, /* see sockops/dual_udp.bpf.c */
	AX_EVENT_AWAITED = 7,  /* who waits is to be looked at: see sockops/held.bpf.c */
	AX_EVENT_FAILING = 8,  /* map `failing` is to be looked at */
	AX_EVENT_SERVERS = 9,  /* and map `servers`: see sockops/server.bpf.h */
	AX_EVENT_KNOCK = 10, /* a program outside ax has come for `local`: see sockops/door.bpf.h */
};

struct ax_event {
	__u32 type;    /* enum ax_event_type */
	__u32 app;     /* id, 0: not known */
	__u64 time_ns; /* CLOCK_BOOTTIME */
	struct ax_endpoint local;
	struct ax_endpoint remote;
	struct ax_endpoint asked; /* the service that was asked for, or the exposed port of this
				     host, or all zero */
	__u32 srtt_us;		  /* smoothed round trip time (close only) */
	__u64 sent;		  /* payload bytes that were acknowledged (close only) */
	__u64 received;		  /* payload bytes that arrived (close only) */
	__u64 duration_ns;	  /* since it was established; 0: not known */
};
_Static_assert(sizeof(struct ax_event) == 104, "struct ax_event is read by user space");

/* One connection, written by the iterator over TCP sockets. */
struct ax_conn {
	struct ax_endpoint local;
	struct ax_endpoint remote;
	struct ax_endpoint asked; /* the service that was asked for, or all zero */
	__u32 state;		  /* TCP_ESTABLISHED ... of include/net/tcp_states.h */
	__u32 uid;
	__u32 srtt_us;
	__u64 sent;
	__u64 received;
	__u64 cookie; /* the socket's */
	/* the two ends as its packets have them: others, if it is translated between nodes */
	struct ax_endpoint wire_local, wire_remote;
};
_Static_assert(sizeof(struct ax_conn) == 136, "struct ax_conn is read by user space");

/* One of a program outside ax with an app in host mode, written by another one. */
struct ax_accepted {
	struct ax_endpoint local; /* not the app's own: a service's address, or the host's */
	struct ax_endpoint remote;
	struct ax_addr app; /* its own address, of that family */
	__u64 cookie;	    /* the socket's */
};
_Static_assert(sizeof(struct ax_accepted) == 64, "struct ax_accepted is read by user space");

/* A socket of an app in host mode that is connected, or connecting, to whom it was not judged for:
 * an exposed port of this machine, or whom a new rule forbids. Written by three more. */
struct ax_unjudged {
	struct ax_endpoint local, remote;
	__u64 cookie;
	__u32 ifindex; /* of the interface that it is bound to, or 0 */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_unjudged) == 56, "struct ax_unjudged is read by user space");

#endif
