/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names for programs outside ax: agent.host-names of the config. */
#ifndef AX_DAEMON_HOST_NAMES_H
#define AX_DAEMON_HOST_NAMES_H

#include "base/util.h"

struct agent;

/* Writes the names if they are to be known, some time after they changed; the next deadline, 0:
 * none. */
void host_names_due(struct agent *a, uint64_t now_ns);
uint64_t host_names_deadline(const struct agent *a);

/* They may have. */
void host_names_changed(struct agent *a);

/* Takes back what this or an earlier agent of the instance wrote. */
void host_names_remove(struct agent *a);

#endif
