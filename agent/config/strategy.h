/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The strategies of services by name. Their numbers are in include/service.h, what they do in
 * bpf/choose.bpf.h. */
#ifndef AX_CONFIG_STRATEGY_H
#define AX_CONFIG_STRATEGY_H

#include "base/util.h"

/* The name of an enum ax_strategy; "?" of another number. */
const char *strategy_name(uint32_t strategy);
/* False, and *ret is left alone: there is no such strategy. */
bool strategy_parse(const char *s, uint32_t *ret);
/* The i-th name, NULL behind the last. */
const char *strategy_nth(size_t i);
/* All names as a sentence has them: "a, b or c". Cut short at `size`. */
void strategy_list(char *buf, size_t size);

#endif
