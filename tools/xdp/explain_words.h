/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was decided about a packet, and why, in words: of ax xdp explain and ax xdp dump. */
#ifndef AX_TOOLS_XDP_EXPLAIN_WORDS_H
#define AX_TOOLS_XDP_EXPLAIN_WORDS_H

#include <stdbool.h>
#include <stdio.h>

#include "iface/iface.h"

/* "pass", "drop", or what else a rule says. */
const char *explain_verdict(const struct xdp_explanation *x);
/* The name of its reason; NULL: it has none. */
const char *explain_reason(const struct xdp_explanation *x);
/* A rule, or the default, decided. */
bool explain_by_rule(const struct xdp_explanation *x);
/* It is an ICMP error, for whose flow the rules were asked. */
bool explain_is_error(const struct xdp_explanation *x);
/* Why, in a sentence without its end. */
void explain_put_why(const struct xdp_explanation *x, FILE *to);
/* What an XDP program returned; never NULL. */
const char *explain_action(uint32_t action);

#endif
