/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between server.c and listen.c only. */
#ifndef AX_CONTROL_SERVER_PRIV_H
#define AX_CONTROL_SERVER_PRIV_H

#include "control/server.h"

#define CLIENT_FDS_MAX 4

struct chunk {
	struct chunk *next;
	struct reply data;
	size_t off;
	int fd; /* goes with the first byte, -1: none */
};

/* A long request that a thread reads. */
struct parse {
	struct client *c; /* NULL: gone */
	struct work *work;
	bool begun; /* a thread has the line */
	char *line;
	size_t len;
	json_t *j;
	int r;
	struct error e;
};

struct client {
	struct client *next;
	struct control_server *s;
	struct loop_item item;
	struct client *next_waiting;
	char *in;
	size_t in_at, in_len, in_size; /* what was read and not yet taken is at [in_at, in_len) */
	size_t line;		       /* length of the first line there, 0: none that is whole */
	int fds[CLIENT_FDS_MAX];       /* received, not yet taken by a request */
	size_t n_fds;
	struct chunk *out, **out_tail;
	size_t out_len;
	uint64_t events_lost;
	bool closing, busy;
	unsigned watches;    /* enum watch */
	bool held;	     /* its request takes longer: see client_hold() */
	struct parse *parse; /* what its next request will be; NULL: it is known */
	bool waiting;	     /* for its turn */
	bool too_long;	     /* the rest of this line is thrown away */
	unsigned uid;
	int pid;
	void *kept;
};

struct control_server {
	struct control_ops ops;
	int epoll;
	struct loop_item listen;
	struct loop_item turn; /* an eventfd, readable while somebody waits for a turn */
	struct loop_item rest; /* a timerfd: when to accept again */
	int spare;	       /* a descriptor to give up when there is no other */
	struct client *clients;
	struct client *waiting, **waiting_tail;
	unsigned served; /* whose request was the last one of a turn */
};

/* Closes a client's socket, whatever its user has left in it. fd: -1 is none. */
void socket_close(int fd, unsigned uid);
/* Whether one more of this user may come. */
bool server_has_place(const struct control_server *s, unsigned uid);

#endif
