/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listener that takes no connection, for programs outside ax that come for an app which
 * connections start (sockops/door.bpf.h). */
#ifndef AX_APPS_DOOR_H
#define AX_APPS_DOOR_H

struct agent;

/* Makes it, unless it is there. Without it such programs are refused, as the log says. */
void door_open(struct agent *a);
void door_close(struct agent *a);

#endif
