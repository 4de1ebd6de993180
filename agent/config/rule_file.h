/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A rule file: sets, balancers, default, classes, rules, mode, priority of one interface. */
#ifndef AX_CONFIG_RULE_FILE_H
#define AX_CONFIG_RULE_FILE_H

#include "rules/list.h"
#include "yaml/errors.h"

/* All errors of the text are collected. Returns 0, to be freed with rule_list_free(); -EINVAL with
 * at least one error in *errs; -ENOMEM. The files of its sets are not read (rule_list_read_sets()).
 * d: the list's direction, if the text does not say it. */
int rule_file_parse(const char *text, size_t len, enum xdp_direction d, struct rule_list *l,
		    struct config_errors *errs);

#endif
