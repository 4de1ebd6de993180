/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rule lists as the tests write them. */
#ifndef AX_TESTS_RULE_LISTS_H
#define AX_TESTS_RULE_LISTS_H

#include "rules/list.h"

/* Of a rule file's text, which must be right. The caller frees it. */
struct rule_list rule_list_of(const char *text);

#endif
