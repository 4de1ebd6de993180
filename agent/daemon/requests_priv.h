/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of requests share: what is kept of a client, and a handler for each request that
 * has a file of its own. Of this room only. */
#ifndef AX_DAEMON_REQUESTS_PRIV_H
#define AX_DAEMON_REQUESTS_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

struct agent;
struct app;
struct client;

struct client_state {	    /* what is kept about a client */
	uint32_t launch_id; /* launched, not yet started; 0: none */
	uint32_t entering;  /* an app that is to get another process; 0: none */
	uint32_t *stopping; /* ids that its stop waits for */
	size_t n_stopping;
	json_t *stopped;	      /* its answer */
	struct apply_work *apply;     /* that it waits for */
	struct launch_work *launch;   /* the same */
	struct get_work *get;	      /* the same */
	struct service_work *service; /* the same */
	struct explain_work *explain; /* the same */
	struct expect_work *expect;   /* the same */
};

/* NULL: out of memory, and the client has been told. */
struct client_state *client_state_get(struct client *c);

/* Calls f for every app of that name, or the one with that id. Returns how many there were. */
size_t each_app_named(struct agent *a, const char *text,
		      void (*f)(struct agent *a, struct app *app, void *arg), void *arg);
void no_such_app(struct client *c, const char *text);

/* (Most lists are so short that a thread would take longer.) */
#define REQUEST_ROWS_AT_ONCE 200

/* fd: what came with the request, -1: none; it is the caller's. */
void request_get(struct agent *a, struct client *c, json_t *j, int fd);
void request_status(struct agent *a, struct client *c, json_t *j, int fd);
void request_apply(struct agent *a, struct client *c, json_t *j, int fd);
void request_config_history(struct agent *a, struct client *c, json_t *j, int fd);
void request_service(struct agent *a, struct client *c, json_t *j, int fd);
void request_policy(struct agent *a, struct client *c, json_t *j, int fd);
void request_enter(struct agent *a, struct client *c, json_t *j, int fd);
void request_explain(struct agent *a, struct client *c, json_t *j, int fd);
void request_expect(struct agent *a, struct client *c, json_t *j, int fd);
void request_remove(struct agent *a, struct client *c, json_t *j, int fd);

/* Who has entered that app (0: none) has put its process there, or will not. */
void request_entered(struct agent *a, uint32_t id);

/* The client has gone: what it asked for goes on, and nobody is answered. */
void request_apply_orphan(struct apply_work *w);
void request_get_orphan(struct get_work *w);
void request_explain_orphan(struct explain_work *w);
void request_expect_orphan(struct expect_work *w);
void request_service_orphan(struct service_work *w);

#endif
