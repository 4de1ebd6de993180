/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and words that are nearly the one that was asked for ("did you mean"). */
#ifndef AX_BASE_NEAR_H
#define AX_BASE_NEAR_H

#include "base/util.h"

/* The closest of `candidates` to `word` (edit distance at most a third of it), or NULL. */
const char *nearest_word(const char *word, const char *const *candidates, size_t n);

/* The same for names that come one by one: the best of those that were looked at. Start with
 * near_start(). */
struct near {
	const char *want;
	size_t best; /* a distance must be less */
	char name[128];
};
void near_start(struct near *n, const char *want);
/* True: it is better than all before, and kept. */
bool near_look(struct near *n, const char *name);

#endif
