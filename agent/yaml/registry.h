/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has what: keys of which each may be taken once, and by which line. */
#ifndef AX_YAML_REGISTRY_H
#define AX_YAML_REGISTRY_H

#include "base/util.h"

/* Remembers keys (any bytes) and the line that took each one. */
struct registry {
	void *root;
};
struct claim {
	const void *key;
	size_t len;
	unsigned line;
	int owner; /* the caller's enum */
};
/* Returns 1 when the key is taken, with that claim in *earlier; else takes it and returns 0. */
int registry_claim(struct registry *reg, const struct claim *c, struct claim *earlier);
void registry_free(struct registry *reg);

#endif
