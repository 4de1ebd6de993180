// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/shares.h"

struct share {
	uint32_t app;
	size_t has;
};

static int compare(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->app < y->app ? -1 : x->app > y->app;
}

int shares_open(const struct ax_splice_conn *conns, size_t n, struct shares *ret)
{
	struct share *v = calloc(n + 1, sizeof(*v));

	*ret = (struct shares){.v = v};
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct share){.app = conns[i].app,
				      .has = conns[i].flags & AX_SPLICE_MEMBER ? 1 : 0};
		ret->total += v[i].has;
	}
	qsort(v, n, sizeof(*v), compare);
	for (size_t i = 0; i < n; i++) {
		if (ret->n && v[ret->n - 1].app == v[i].app)
			v[ret->n - 1].has += v[i].has;
		else
			v[ret->n++] = v[i];
	}
	return 0;
}

void shares_close(struct shares *s)
{
	free(s->v);
	*s = (struct shares){0};
}

static bool take(struct shares *s, uint32_t app)
{
	const struct share key = {.app = app};
	struct share *of = bsearch(&key, s->v, s->n, sizeof(key), compare);

	if (!of || s->total >= AX_SPLICE_MEMBERS_MAX)
		return false;
	if (of->has >= SHARES_APP_SURE &&
	    (of->has >= SHARES_APP_MAX || s->total >= AX_SPLICE_MEMBERS_MAX / 2))
		return false;
	of->has++;
	s->total++;
	return true;
}

bool shares_take(struct shares *s, uint32_t app, uint32_t other)
{
	const struct share key = {.app = app};
	struct share *of;

	if (!take(s, app))
		return false;
	if (take(s, other))
		return true;
	of = bsearch(&key, s->v, s->n, sizeof(key), compare);
	of->has--;
	s->total--;
	return false;
}
