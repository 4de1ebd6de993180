/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which version of a page is known: a table of addresses and what their bytes come to. */
#ifndef AX_PROBES_JIT_PAGES_H
#define AX_PROBES_JIT_PAGES_H

#include "base/util.h"

struct jit_page {
	uint64_t address; /* 0: none */
	uint64_t sum[2];
};
struct jit_pages {
	struct jit_page *v;
	size_t n, size; /* a power of two, or 0 */
};
/* True: it is new, or has changed. Also if there is no memory to know it the next time. */
bool jit_pages_see(struct jit_pages *p, uint64_t address, const uint8_t *data);
/* Whether any version is known of a page in that range. */
bool jit_pages_know(const struct jit_pages *p, uint64_t start, uint64_t end);
int jit_pages_copy(struct jit_pages *to, const struct jit_pages *from);
void jit_pages_free(struct jit_pages *p);

#endif
