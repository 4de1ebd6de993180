/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A list of strings. */
#ifndef AX_BASE_STRV_H
#define AX_BASE_STRV_H

#include "base/util.h"

struct strv {
	char **v; /* NULL-terminated, also when empty (then v may be NULL) */
	size_t n;
};
int strv_add(struct strv *s, const char *item);
int strv_copy(const struct strv *from, struct strv *to);
void strv_free(struct strv *s);
bool strv_eq(const struct strv *a, const struct strv *b);

#endif
