/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket's clients: peers are checked, lines cut, answers queued. */
#ifndef AX_DAEMON_CONTROL_SERVER_H
#define AX_DAEMON_CONTROL_SERVER_H

#include <jansson.h>
#include "base/loop.h"

struct agent;
struct app;
struct client;

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

#endif
