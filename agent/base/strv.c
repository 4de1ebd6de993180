// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/strv.h"

int strv_add(struct strv *s, const char *item)
{
	autofree char *copy = strdup(item);
	char **v = copy ? realloc(s->v, (s->n + 2) * sizeof(*v)) : NULL;

	if (!v)
		return -ENOMEM;
	s->v = v;
	v[s->n++] = take_ptr(&copy);
	v[s->n] = NULL;
	return 0;
}

int strv_copy(const struct strv *from, struct strv *to)
{
	struct strv copy = {0};

	for (size_t i = 0; i < from->n; i++) {
		if (strv_add(&copy, from->v[i]) < 0) {
			strv_free(&copy);
			return -ENOMEM;
		}
	}
	*to = copy;
	return 0;
}

void strv_free(struct strv *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strv){0};
}

bool strv_eq(const struct strv *a, const struct strv *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!streq(a->v[i], b->v[i]))
			return false;
	return true;
}
