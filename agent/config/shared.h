/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all nodes of a cluster have besides their own configs: services and rules. No side effects,
 * as parse.h. */
#ifndef AX_CONFIG_SHARED_H
#define AX_CONFIG_SHARED_H

#include "config/config.h"
#include "yaml/errors.h"

#define CONFIG_SHARED_MAX (256u << 10) /* bytes of a text; a longer one is an error */

/*
 * As config_parse(), of a text that has `services:` and `policy: rules:` alone, and no commands:
 * who writes the registry is not to run any on the nodes.
 */
int config_shared_parse(const char *text, size_t len, struct config *c, struct config_errors *errs);

#endif
