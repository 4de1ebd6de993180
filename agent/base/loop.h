/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's epoll loop. Every descriptor has a kind; agent.c handles all kinds in one switch.
 * A loop_item is embedded in its owner's struct (LOOP_OWNER gets back to it). One event is taken
 * per epoll_wait() on purpose: a handler may close any other descriptor and free its owner without
 * leaving a stale event behind in a batch.
 */
#ifndef AX_BASE_LOOP_H
#define AX_BASE_LOOP_H

#include <sys/epoll.h>
#include "base/util.h"

enum loop_kind {
	LOOP_SIGNAL,	     /* signalfd */
	LOOP_CONTROL_LISTEN, /* the control socket */
	LOOP_CONTROL_REST,   /* armed only when there is no descriptor for who connects to it */
	LOOP_CONTROL_TURN,   /* readable while requests wait */
	LOOP_CONTROL_CLIENT, /* one connection to it */
	LOOP_CGROUP,	     /* inotify on the apps' cgroup.events */
	LOOP_LAUNCHER,	     /* pidfd of the process that supervises a detached app */
	LOOP_APP_TIMER,	     /* stop time-outs and restart delays */
	LOOP_EVENT_RING,     /* the dataplane's event ring buffer */
	LOOP_EVENT_TIMER,    /* armed only while somebody reads events */
	LOOP_DNS_UDP,	     /* queries */
	LOOP_DNS_LISTEN,     /* TCP listener */
	LOOP_DNS_CLIENT,     /* TCP connection of a client */
	LOOP_DNS_UPSTREAM,   /* socket to an upstream resolver */
	LOOP_DNS_TIMER,	     /* armed only while queries or connections are open */
	LOOP_HEALTH,	     /* connection to a backend */
	LOOP_HEALTH_TIMER,   /* armed only while there is something to check */
	LOOP_LINK,	     /* links that come and go; only while the config has interfaces */
	LOOP_TABLES,	     /* changes of nf_tables; only while apps have egress */
	LOOP_INGRESS,	     /* the host's links and addresses; only while ports are exposed */
	LOOP_XDP_TIMER,	     /* armed only while an interface is to get a new list */
	LOOP_TRIGGERS,	     /* an interface's ring of signed datagrams */
	LOOP_SPLICE_GATE,    /* what the gate's process says */
	LOOP_SPLICE_EVENTS,  /* a connection that may be spliced was established */
	LOOP_SPLICE_TIMER,   /* armed only while connections may still come to be spliced */
	LOOP_SPLICE_BEAT,    /* armed only while some are */
	LOOP_ETCD,	     /* connection to the cluster's etcd */
	LOOP_ETCD_TIMER,     /* armed only while a cluster is configured */
	LOOP_WORK,	     /* readable when a long work is to go on */
};

struct loop_item {
	enum loop_kind kind;
	int fd;
};

#define LOOP_OWNER(item, type, member) ((type *)(void *)((char *)(item)-offsetof(type, member)))

/* All return 0 or a negative errno. The loop owns nothing: closing is the caller's job. */
int loop_open(void); /* returns the epoll descriptor */
int loop_add(int epoll_fd, struct loop_item *item, uint32_t events);
int loop_mod(int epoll_fd, struct loop_item *item, uint32_t events);
void loop_del(int epoll_fd, struct loop_item *item);
/* Waits for ever. Returns 0 with one item and its events, or a negative errno (never -EINTR). */
int loop_wait(int epoll_fd, struct loop_item **item, uint32_t *events);

#endif
