/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is right in a config by its form, and hardly meant. */
#ifndef AX_CONFIG_HINTS_H
#define AX_CONFIG_HINTS_H

#include "config/config.h"

/* A sentence for each, in the file's order, which begins with the key that it is about; `text` is
 * say()'s for as long as it runs. */
void config_hints(const struct config *c, void (*say)(void *arg, const char *text), void *arg);

#endif
