/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients outside ax of backends whose connections are ended (ending.h): no socket of theirs can be
 * ended here. Their datagrams have a flow (struct ax_flow), and TCP has one to a private backend,
 * and the backend's socket in any case. A flow that is forgotten leads to another backend with the
 * client's next packet; a backend's socket that is ended resets the client's.
 */
#ifndef AX_SERVICES_OUTSIDE_H
#define AX_SERVICES_OUTSIDE_H

#include "services/ending.h"

struct ax_conn;

/* For the loop: by which ports of the host the service is exposed, or was. 0 or -ENOMEM. */
int outside_ports(struct ending *e, const struct service *s);

/* --- for a thread --- */

/* Forgets UDP flows; counts those that lived. */
void outside_forget_datagrams(struct ending *e);
/* Notes TCP flows to private backends that are open, and forgets those that were not answered. */
void outside_note_flows(struct ending *e);
/* Notes TCP that backends in host mode have accepted. */
void outside_note_accepted(struct ending *e);
/* Whether that is the backend's socket of one of those flows. */
bool outside_has(const struct ending *e, const struct ax_conn *c);

#endif
