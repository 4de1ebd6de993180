/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-2-4, as its authors describe it (Aumasson and Bernstein 2012). */
#ifndef AX_TESTS_SIPHASH_H
#define AX_TESTS_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Of whole words of 8 bytes, on a little-endian machine. */
uint64_t siphash(const uint64_t key[2], const void *data, size_t len);

#endif
