/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's end of the control socket: peers are checked, lines cut, answers queued. What
 * requests mean is their handler's. */
#ifndef AX_CONTROL_SERVER_H
#define AX_CONTROL_SERVER_H

#include <jansson.h>

#include "base/loop.h"
#include "base/util.h"
#include "control/reply.h"

struct control_server;
struct work;
struct client;

struct control_ops {
	/* fd: came with the request (attach, "sealed"), -1: none; it is closed afterwards. */
	void (*request)(void *arg, struct client *c, json_t *request, int fd);
	/* The client is gone: answers to it are dropped, and it watches no events. */
	void (*gone)(void *arg, struct client *c);
	/* Frees what client_keep() was given; also at the end, when nobody is told of a `gone`. */
	void (*free_kept)(void *kept);
	void *arg;
	struct work *work; /* reads long requests; NULL: they are read at once */
};

/* Listens at the path, whatever is there; *ret has to be closed. */
int control_listen(int epoll, const char *path, const struct control_ops *ops,
		   struct control_server **ret, struct error *e);
void control_server_close(struct control_server *s);

/* For the loop: LOOP_CONTROL_LISTEN, _REST, _TURN and _CLIENT. */
void control_on_listen(struct control_server *s);
void control_on_rest(struct control_server *s);
void control_on_turn(struct control_server *s);
void control_on_client(struct loop_item *item, uint32_t events);

/* Queue an answer (takes the reference), with a descriptor that is duplicated (-1: none). The
 * client, and others with it, may be gone afterwards. */
void client_reply(struct client *c, json_t *j, int fd);
void client_error(struct client *c, int code, const char *text);
void client_ok(struct client *c);

/* The same for what reply_make() made: takes the text. */
void client_reply_made(struct client *c, struct reply *reply);
/* For the handler of a request that is answered later: the client's next one waits for that. */
void client_hold(struct client *c);

/* Who it is, as the kernel says. */
unsigned client_uid(const struct client *c);
int client_pid(const struct client *c);
/* Bytes that its requests may have. */
size_t client_line_max(const struct client *c);

/* What the handler keeps about a client, NULL at first. */
void client_keep(struct client *c, void *kept);
void *client_kept(const struct client *c);

/* The first client (NULL), or the one after that one; NULL: no more. s NULL: there are none. */
struct client *client_next(const struct control_server *s, const struct client *c);

/* Which events it gets, how many do, and one event for all of them (takes no reference). */
enum watch { WATCH_EVENTS = 1 << 0, WATCH_VERDICTS = 1 << 1 };
void client_watch(struct client *c, unsigned kinds);
size_t clients_watching(const struct control_server *s, unsigned kind);
void clients_event(struct control_server *s, unsigned kind, json_t *event);
/* One for this one alone, within a request of its own: what was before it came. */
void client_event(struct client *c, const json_t *event);

#endif
