/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "registry/forbidden.h"
#include "datapath/datapath.h"
#include "net/sock_diag.h"

static int note(void *arg, const struct ax_unjudged *found)
{
	struct forbidden *f = arg;
	const struct sock_conn one = {found->local, found->remote, found->cookie, found->ifindex};

	return sock_conns_add(&f->found, &one);
}

void forbidden_note(struct forbidden *before)
{
	if (before->dp && datapath_forbidden_each(before->dp, note, before))
		before->found.n = 0;
}

/* A socket may have been connected elsewhere meanwhile. */
static int compare(const void *x, const void *y)
{
	const struct sock_conn *a = x, *b = y;
	int r = memcmp(&a->cookie, &b->cookie, sizeof(a->cookie));

	return r ? r : memcmp(&a->remote, &b->remote, sizeof(a->remote));
}

static bool was_before(const struct forbidden *before, const struct sock_conn *one)
{
	return before->found.n &&
	       bsearch(one, before->found.v, before->found.n, sizeof(*one), compare);
}

void forbidden_end(struct forbidden *before)
{
	struct forbidden now = {0};
	size_t n = 0;
	int r;

	if (!before->dp)
		return;
	r = datapath_forbidden_each(before->dp, note, &now);
	if (before->found.n)
		qsort(before->found.v, before->found.n, sizeof(*before->found.v), compare);
	for (size_t i = 0; i < now.found.n; i++)
		if (!was_before(before, &now.found.v[i]))
			now.found.v[n++] = now.found.v[i];
	before->ended = n && !r ? socks_end_conns(-1, now.found.v, n) : r;
	forbidden_free(&now);
}

void forbidden_free(struct forbidden *f)
{
	free(f->found.v);
	f->found = (struct sock_conns){0};
}
