/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF objects that ax carries are packed (zstd, tools/build/skeleton.sh): they would be two
 * fifths of the program otherwise, and most commands load none. */
#ifndef AX_BASE_PACKED_H
#define AX_BASE_PACKED_H

#include <stddef.h>

/* The bytes of what was packed, *size of them, or NULL with *size 0 and errno (ENOMEM, EBADMSG).
 * They are the thread's until its next call of either. */
const void *unpacked(const void *packed, size_t packed_size, size_t *size);
/* Frees what the thread's last call gave: libbpf needs an object's bytes while it opens it, and
 * keeps none of them. */
void unpacked_free(void);

#endif
