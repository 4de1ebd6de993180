/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may ask the agent for what. The socket lets in root and members of group ax
 * (control/server.h); members may look, and stop what runs as themselves. What makes processes or
 * changes the config is root's.
 */
#ifndef AX_DAEMON_PERMISSIONS_H
#define AX_DAEMON_PERMISSIONS_H

#include <stdbool.h>

struct app;
struct client;

/* True: the client is not root, and has been told. */
bool only_root(struct client *c);
/* Root any app, others what runs as themselves. */
bool may_stop(const struct client *c, const struct app *app);
/* Starts that are due, of apps that do not run: they are nobody's yet but root's. */
bool may_cancel_start(const struct client *c);

#endif
