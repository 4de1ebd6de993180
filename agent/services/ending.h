/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections through a service to some backends, which are ended, so that their programs connect
 * anew. It takes 10 us for each, and as much for each app, so it is a work (base/work.h), which
 * begins when those before it have ended.
 */
#ifndef AX_SERVICES_ENDING_H
#define AX_SERVICES_ENDING_H

#include "base/address.h"

struct agent;
struct service;

struct ending_backend {
	struct ax_addr addr;
	uint16_t port;	    /* 0: any */
	struct ax_addr vip; /* of the service that was asked for; zero: the ending's */
	bool whole;	    /* the service goes to no other port of that address any more */
};

struct ending {
	struct agent *a;
	/* the service as it was: it may be another one, or gone, between two slices */
	char *service;
	struct ax_addr vip4, vip6; /* zero: none, or each backend has its own */
	bool tcp, udp;		   /* which: sockets of apps and the host, and outside ax UDP */
	bool outside_tcp;	   /* TCP outside ax, too (outside.h) */
	struct ending_backend *b;  /* in order, once it has begun */
	size_t n;
	/* Asked each time before any is ended: whether that backend is still one of these. */
	bool (*holds)(const struct ending *e, const struct ending_backend *b);
	/* At the end. */
	void (*done)(const struct ending *e);
	char *what; /* theirs, malloc'ed or NULL */
	uint32_t ended;

	/* its own */
	struct ending *next; /* of those that were started and have not begun */
	uint32_t *apps;	     /* private ones, by id */
	size_t n_apps;
	int netns;		 /* the one that is looked at, -1: the host's */
	struct sock_conn *conns; /* the connections to them there */
	size_t n_conns, size;
	bool outside; /* there may be clients outside ax */
	struct ax_endpoint
		*ports; /* of the host, by which the service is exposed; address 0: any */
	size_t n_ports;
	struct ending_flow *flows; /* outside.c */
	size_t n_flows, flows_size;
};

/* For so many backends at most, without one. NULL: out of memory. */
struct ending *ending_new(struct agent *a, const struct service *s, size_t most);
void ending_free(struct ending *e);
/* Takes it over; without a queue of works all is done at once. False: out of memory, it is freed.
 */
bool ending_start(struct ending *e);

/* For outside.c: one more that is to be ended in the netns that is looked at, 0 or -ENOMEM. */
int ending_note(struct ending *e, const struct ax_endpoint *local, const struct ax_endpoint *remote,
		uint64_t cookie);
/* For outside.c: the service that was asked for, as struct ending_backend has it; and whether that
 * is one of the backends, by its port or any. */
struct ax_addr ending_vip(const struct ending *e, const struct ax_addr *asked);
bool ending_has(const struct ending *e, const struct ending_backend *b);

/* By the service's address, the backend's, then port. */
int ending_compare(const struct ending_backend *x, const struct ending_backend *y);

#endif
