/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config's services (`services:`): what an apply makes of them. */
#ifndef AX_SECTIONS_SERVICES_SECTION_H
#define AX_SECTIONS_SERVICES_SECTION_H

#include "config/config.h"

struct agent;

/* The service is as `next` has it: declared if it was not (old NULL, or it could not be), changed
 * if it is another. What stays the same stands on next's memory afterwards. -EEXIST, -EADDRINUSE
 * and others with a sentence; services_section_retry() tries again. */
int services_section_put(struct agent *a, const struct config_service *old,
			 struct config_service *next, struct error *e);

/* The config does not have it any more (next: NULL), or as `next` has it: what it exposes no more
 * is free for others then. */
void services_section_drop(struct agent *a, const struct config_service *old,
			   const struct config_service *next);

/* Declares the config's services that could not be before. */
void services_section_retry(struct agent *a);

#endif
