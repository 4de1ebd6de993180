/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config's interfaces (`xdp:`): each gets its list, and keeps it. */
#ifndef AX_SECTIONS_XDP_SECTION_H
#define AX_SECTIONS_XDP_SECTION_H

#include <jansson.h>
#include "machine/instance.h"
#include "base/loop.h"
#include "config/config.h"

struct agent;
struct service;
struct xdp_plan; /* what an apply does to interfaces */

/* Reads what the config's interfaces name, and compares it with what the kernel has. *ret is to be
 * freed also after a failure. */
int xdp_plan_make(struct agent *a, const struct config *next, json_t *diff, struct xdp_plan **ret,
		  struct error *e);
void xdp_plan_free(struct xdp_plan *p);

/* Whether it names files, which the agent reads as root. */
bool xdp_section_reads_files(const struct config *c);

/* When the config holds. All of it is tried; the first failure is returned. */
int xdp_plan_apply(struct agent *a, struct xdp_plan *p, struct error *e);

/* Returns 0 or a negative errno. */
int xdp_section_open(struct agent *a);

/* Which interfaces an earlier agent had. */
void xdp_section_load(struct agent *a);

/* The service's backends may be others now, or in another state. */
void xdp_section_service(struct agent *a, const struct service *s);
void xdp_section_on_link(struct agent *a);
void xdp_section_on_timer(struct agent *a);
void xdp_section_on_triggers(struct agent *a, struct loop_item *item);
json_t *xdp_section_view(const struct agent *a);
void xdp_section_free(struct agent *a);

/* Takes the instance's dataplanes off all interfaces. */
int xdp_section_flush(const struct instance *inst, struct error *e);

#endif
