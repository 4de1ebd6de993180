/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's side of signed triggers (packet/trigger.h). */
#ifndef AX_SECTIONS_TRIGGERS_H
#define AX_SECTIONS_TRIGGERS_H

#include <jansson.h>
#include "base/util.h"

struct agent;
struct ax_capture;

/* The config's triggers hold now. What is wrong with one is said, the others hold. */
int triggers_apply(struct agent *a, struct error *e);

/* What came in on an interface, from whomever. */
void triggers_take(struct agent *a, const char *ifname, const struct ax_capture *c,
		   const uint8_t *data);

/* Whether the process was a trigger's; status: as waitpid() has it. */
bool triggers_reap(struct agent *a, int pid, int status);

/* Adds what became of datagrams to the counters of `ax status`. */
void triggers_view(const struct agent *a, json_t *counters);
void triggers_free(struct agent *a);

#endif
