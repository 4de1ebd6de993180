/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is new about a config: of an entry in a few words for a person, of a section whether
 * anything is. */
#ifndef AX_CONFIG_DIFF_H
#define AX_CONFIG_DIFF_H

#include "config/config.h"

void config_describe_app(char *buf, size_t size, const struct app_spec *o,
			 const struct app_spec *n);
void config_describe_service(char *buf, size_t size, const struct config_service *o,
			     const struct config_service *n);

bool config_rules_same(const struct config *o, const struct config *n);
bool config_egress_same(const struct config *o, const struct config *n);
bool config_upstreams_same(const struct config *o, const struct config *n);

#endif
