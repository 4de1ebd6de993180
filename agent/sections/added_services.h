/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services that `ax service` has added at run time: beside those of the config, which leaves them
 * alone, and recorded in the instance's directory for the next agent. What they say is kept in the
 * config's words and read by its parser. A config that declares the same name takes the service
 * over.
 */
#ifndef AX_SECTIONS_ADDED_SERVICES_H
#define AX_SECTIONS_ADDED_SERVICES_H

#include <jansson.h>

#include "base/util.h"

struct agent;
struct config;
struct config_service;

/* Those of an earlier agent, beside that config: for the rules alone, which are told first. */
void added_read(struct agent *a, const struct config *next);
/* Those of an earlier agent: declares them, as far as it goes. After the config's. */
void added_load(struct agent *a);
void added_free(struct agent *a); /* memory only */

/* NULL: none of that name was added. */
const struct config_service *added_find(const struct agent *a, const char *name);

/* Adds a service with these words (keys of the config's `services:`). -EEXIST and others, with a
 * sentence; nothing is changed then. */
int added_add(struct agent *a, const char *name, json_t *words, struct error *e);
/* The words replace those of the same keys. -ENOENT, -EPERM: the config declares it. */
int added_set(struct agent *a, const char *name, json_t *words, struct error *e);
int added_del(struct agent *a, const char *name, struct error *e);

/* The config has that service now. */
void added_taken_over(struct agent *a, const char *name);

/* Declares those that could not be before. */
void added_retry(struct agent *a);

#endif
