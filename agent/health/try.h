/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One try of a check: connect, and for http ask and read the answer's first bytes; or the run of a
 * command. */
#ifndef AX_HEALTH_TRY_H
#define AX_HEALTH_TRY_H

#include "base/address.h"
#include "base/loop.h"
#include "config/config.h"

#define HEALTH_ANSWER_MAX 64 /* of the status line; what else comes is read and dropped */

enum try_outcome {
	TRY_GOES_ON, /* the loop tells more, or nobody could be asked */
	TRY_GOOD,
	TRY_BAD, /* try.why says why */
};

struct health_command { /* that runs */
	int pid;	/* leads a process group */
	int output;	/* a pipe with what it says */
	char *cgroup;	/* a path, malloc'ed: where it and all that it starts is */
};

struct health_try {
	struct loop_item item; /* LOOP_HEALTH; the socket or the command's output, -1: none */
	int pid;	       /* exec: the command's; 0: none runs */
	char *cgroup;
	char *request; /* what is left to send is at sent */
	size_t sent, got;
	char answer[HEALTH_ANSWER_MAX]; /* of exec: the beginning of its output */
	char why[96]; /* of the last failure; "": the last one was good, or there was none */
};

/* Takes a socket over, and connects it to the address; port in host byte order. `name` is what
 * http asks for as its host. */
enum try_outcome try_start(struct health_try *t, int epoll, int fd, const struct ax_addr *addr,
			   uint16_t port, const struct service_check *c, const char *name);

/* Takes over what *c has. */
enum try_outcome try_watch(struct health_try *t, int epoll, const struct health_command *c);

/* The command has ended; status: as waitpid() has it. */
enum try_outcome try_ended(struct health_try *t, int status);

/* Neither connected nor running. */
static inline bool try_rests(const struct health_try *t)
{
	return t->item.fd < 0 && !t->pid;
}

/* Its socket is ready, or there is output. */
enum try_outcome try_on_socket(struct health_try *t, int epoll, const struct service_check *c);

/* A failure that the caller has found. */
enum try_outcome try_failed(struct health_try *t, const char *what, int error);

/* Closes the socket, kills the command and what it has started; why stays. */
void try_end(struct health_try *t, int epoll);

#endif
