/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The config file: YAML text to a plain struct. No side effects: nothing is opened, looked up in
 * the system or applied here, so that it can be fuzzed and dry-run.
 */
#ifndef AX_CONFIG_PARSE_H
#define AX_CONFIG_PARSE_H

#include "config/config.h"
#include "yaml/errors.h"

/*
 * Parses `text` into *c (initialised by the callee; to be freed with config_free() on success).
 * All errors of the text are collected. Returns 0; -EINVAL with at least one error in *errs;
 * -ENOMEM. On failure *c needs no freeing.
 */
int config_parse(const char *text, size_t len, struct config *c, struct config_errors *errs);

#endif
