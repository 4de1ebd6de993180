/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which packets to look at, in the words of rules: of ax xdp dump and ax xdp top. */
#ifndef AX_TOOLS_XDP_FILTER_H
#define AX_TOOLS_XDP_FILTER_H

#include "rules/rule.h"
#include "tools/lib/options.h"

/* The conditions of a rule, without what it does. *text (malloc'ed): the words in one line; NULL:
 * there are none, and *ret is empty. -EINVAL with a sentence. */
int cmd_xdp_filter(char **words, size_t n, struct rule *ret, char **text, struct error *e);

extern const struct words cmd_xdp_filter_words;

#endif
