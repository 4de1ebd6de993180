/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internet checksums of whole packets. */
#ifndef AX_TESTS_CHECKSUMS_H
#define AX_TESTS_CHECKSUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of big-endian words; whether it is that of data with its checksum in it. */
uint64_t sum_up(const void *data, size_t len);
bool sums_to_zero(uint64_t sum);
/* What is written into a header for it. */
uint16_t sum_folded(uint64_t sum);

/* Whether all checksums of an IP packet are right, of a quoted IPv4 header too. */
bool ip_sums_right(const uint8_t *ip, size_t len);

#endif
