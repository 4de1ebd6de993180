// SPDX-License-Identifier: GPL-2.0-or-later
#include "yaml/registry.h"

#include <search.h>

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->key, y->key, x->len);
}

int registry_claim(struct registry *reg, const struct claim *c, struct claim *earlier)
{
	void *found = tfind(c, &reg->root, compare_claims);
	autofree struct claim *copy = NULL;

	if (found) {
		*earlier = **(struct claim **)found;
		return 1;
	}
	copy = malloc(sizeof(*copy) + c->len);
	if (!copy)
		return -ENOMEM;
	*copy = *c;
	copy->key = memcpy(copy + 1, c->key, c->len);
	if (!tsearch(copy, &reg->root, compare_claims))
		return -ENOMEM;
	take_ptr(&copy);
	return 0;
}

void registry_free(struct registry *reg)
{
	tdestroy(reg->root, free);
	reg->root = NULL;
}
