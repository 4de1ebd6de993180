/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses that other nodes have claimed, for apps and declared services. */
#include <search.h>

#include "cluster/priv.h"
#include "registry/state.h"

static int holder_cmp(const void *x, const void *y)
{
	return addr_cmp(&((const struct holder *)x)->addr, &((const struct holder *)y)->addr);
}

const struct holder *holders_find(const struct cluster *c, const struct ax_addr *addr)
{
	const struct holder key = {.addr = *addr};
	void **found = tfind(&key, &c->holders, holder_cmp);

	return found ? *found : NULL;
}

static struct holder *get(struct cluster *c, const struct ax_addr *addr)
{
	const struct holder key = {.addr = *addr};
	void **found = tfind(&key, &c->holders, holder_cmp);
	struct holder *h = found ? *found : calloc(1, sizeof(*h));

	if (found || !h)
		return h;
	h->addr = *addr;
	if (tsearch(h, &c->holders, holder_cmp))
		return h;
	free(h);
	return NULL;
}

static void drop(struct cluster *c, struct holder *h)
{
	tdelete(h, &c->holders, holder_cmp);
	free(h);
	c->a->address_freed = true; /* for services that could not have it */
}

int holders_put(struct cluster *c, const struct record_address *rec)
{
	struct holder *h = get(c, &rec->addr);

	if (!h)
		return -ENOMEM;
	memcpy(h->node, rec->node, sizeof(h->node));
	memcpy(h->name, rec->app, sizeof(h->name));
	h->service = rec->service;
	h->read = c->read_anew;
	return 0;
}

void holders_gone(struct cluster *c, const struct ax_addr *addr)
{
	const struct holder key = {.addr = *addr};
	void **found = tfind(&key, &c->holders, holder_cmp);

	if (found)
		drop(c, *found);
}

struct sweep {
	const struct cluster *c;
	struct holder *gone; /* a list: the tree is walked */
};

static void sweep(const void *at, VISIT which, void *arg)
{
	struct holder *h = *(struct holder *const *)at;
	struct sweep *s = arg;

	if ((which != postorder && which != leaf) || h->read == s->c->read_anew)
		return;
	h->next_gone = s->gone;
	s->gone = h;
}

void holders_read(struct cluster *c)
{
	struct sweep s = {.c = c};

	twalk_r(c->holders, sweep, &s);
	while (s.gone) {
		struct holder *h = s.gone;

		s.gone = h->next_gone;
		drop(c, h);
	}
}

void holders_free(struct cluster *c)
{
	tdestroy(c->holders, free);
	c->holders = NULL;
}
