/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a rule list means, in the plainest form: rule by rule, condition by condition. It shares
 * nothing with the compiler and the programs, which are held against it.
 */
#ifndef AX_TESTS_MATCHER_H
#define AX_TESTS_MATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/list.h"
#include "tests/lib/match_packet.h"

/* The list's set of that name. */
const struct rule_set_def *match_set(const struct rule_list *l, const char *name);

/* Whether a rule has a condition on a field. */
bool match_has(const struct rule *r, enum ax_field f);

/* The first rule of the list that matches, or n_rules: the default. */
size_t match_first(const struct rule_list *l, const struct match_packet *p);

#endif
