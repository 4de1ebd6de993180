/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps that have ended and whose network stays until the kernel has sent what they wrote. */
#ifndef AX_APPS_LINGER_H
#define AX_APPS_LINGER_H

#include "base/address.h"

struct agent;
struct app;

/* Whether the app's sockets have something left to send. */
bool app_has_to_linger(struct agent *a, const struct app *app);

/* An app that is out of the list lingers from now on. */
void app_linger(struct agent *a, struct app *app);

/* Undoes the network of an app that has ended, and frees it. */
void app_release(struct agent *a, struct app *app);

/* The same for whoever has ended and still holds this address. */
void app_release_addr(struct agent *a, const struct ax_addr *addr);

/* Looks after those whose time it is. */
void linger_due(struct agent *a, uint64_t now_ns);

/* The next deadline, 0: none. */
uint64_t linger_deadline(const struct agent *a);

#endif
