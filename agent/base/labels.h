/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of labels: sorted, distinct key=value strings. */
#ifndef AX_BASE_LABELS_H
#define AX_BASE_LABELS_H

#include "base/util.h"

struct labels {
	char **items; /* "key=value", sorted by strcmp, no key twice */
	size_t n;
};

/* "k=v,k2=v2". Keys and values: [A-Za-z0-9._/-], 1 to 63 characters, the value may be empty.
 * On failure -EINVAL with the sentence in *e, and *ret is left alone. */
int labels_parse(const char *s, struct labels *ret, struct error *e);
/* Adds one; a second value for a key is -EEXIST. */
int labels_add(struct labels *l, const char *key, const char *value, struct error *e);
void labels_free(struct labels *l);
int labels_copy(const struct labels *from, struct labels *to);
bool labels_has(const struct labels *l, const char *item);
/* Every label of `part` is in `whole`; an empty part is in everything. */
bool labels_subset(const struct labels *part, const struct labels *whole);
bool labels_eq(const struct labels *a, const struct labels *b);
/* "k=v,k2=v2", malloc'ed; NULL only when memory is out. */
char *labels_format(const struct labels *l);

#endif
