/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of the control socket ask for; control.h describes each request. */
#ifndef AX_DAEMON_REQUESTS_H
#define AX_DAEMON_REQUESTS_H

#include <jansson.h>

struct agent;
struct app;
struct client;

/* The control server's handlers (control/server.h); arg: the agent. */
void request_handle(void *arg, struct client *c, json_t *request, int fd);
void request_client_gone(void *arg, struct client *c);
void request_free_kept(void *kept);

/* An app is gone: those who wait for its end get their answer. */
void requests_app_gone(struct agent *a, const struct app *app);

#endif
