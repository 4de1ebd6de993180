/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of the control socket ask for; control.h describes each request. */
#ifndef AX_DAEMON_REQUESTS_H
#define AX_DAEMON_REQUESTS_H

#include <jansson.h>

struct agent;
struct client;

void request_handle(struct agent *a, struct client *c, json_t *request, int fd);
void request_client_gone(struct agent *a, struct client *c);

#endif
