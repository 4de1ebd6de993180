/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that are the same in every run. */
#ifndef AX_TESTS_RANDOM_H
#define AX_TESTS_RANDOM_H

#include <stdint.h>

extern uint64_t random_state; /* set it first */

uint32_t random_number(void);

#endif
