/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be said of a probe that stays (`probes:` of the config, `ax trace add`) without a look
 * at the machine. */
#ifndef AX_CONFIG_PROBES_H
#define AX_CONFIG_PROBES_H

#include "config/config.h"

/* What cannot be right, whatever the machine has. `probe` and those that arm are made canonical,
 * with paths that are relative to `dir`; NULL: those are a mistake. -EINVAL with a sentence. */
int config_probe_check(struct config_probe *p, const char *dir, struct error *e);
int config_probe_check_name(const char *name, struct error *e);
int config_probe_parse_action(const char *s, uint32_t *ret, struct error *e);
const char *config_probe_action_name(uint32_t action);
/* "LEAST,GREATEST,STEP" */
int config_probe_parse_linear(const char *s, int64_t ret[3], struct error *e);

#endif
