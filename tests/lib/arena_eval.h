/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges a packet by a compiled arena, written from what include/xdp.h says and not from the
 * programs. Every access has to lie in the arena.
 */
#ifndef AX_TESTS_ARENA_EVAL_H
#define AX_TESTS_ARENA_EVAL_H

#include <stdint.h>

#include "compile/compile.h"
#include "tests/lib/matcher.h"

/* The arena's rule. */
uint32_t eval_rule(const struct arena *a, const struct ax_layout *l, const struct match_packet *p);

/* What the packet has of the list's payloads, as struct ax_payload has it. */
uint32_t eval_payload(const struct ax_layout *l, const struct match_packet *p);

/* Which of the list's marks it has: bits. */
uint32_t eval_marks(const struct ax_layout *l, const struct match_packet *p);

/* The value of AX_FIELD_NAME, as struct ax_name has it. */
uint32_t eval_name(const struct arena *a, const struct ax_layout *l, const struct match_packet *p);

/* What that rule does. */
const struct ax_action *eval_action(const struct arena *a, const struct ax_layout *l,
				    uint32_t rule);

#endif
