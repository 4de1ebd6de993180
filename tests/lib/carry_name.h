/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: payloads that carry a name. */
#ifndef AX_TESTS_CARRY_NAME_H
#define AX_TESTS_CARRY_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "xdp.h"

#define CARRIED_MAX 600

/* The payload of a packet that carries the name so; without a dot at its end, "" is the root.
 * Returns its length. */
size_t carry_name(enum ax_name_kind kind, const char *name, uint8_t to[CARRIED_MAX]);

#endif
