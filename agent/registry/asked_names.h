/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By which name an app has asked the DNS for an address outside, for whoever is told that it was
 * refused it. The last ones of each app: who asks for many pushes out its own. */
#ifndef AX_REGISTRY_ASKED_NAMES_H
#define AX_REGISTRY_ASKED_NAMES_H

#include "addr.h"

struct app;
struct asked_names;

#define ASKED_NAMES 64 /* of one app */

/* Out of memory: it is not remembered. */
void asked_name_note(struct app *app, const struct ax_addr *addr, const char *name);
/* The last one, or NULL; lives until the next is noted. */
const char *asked_name(const struct app *app, const struct ax_addr *addr);
void asked_names_free(struct asked_names *n);

#endif
