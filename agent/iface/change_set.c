// SPDX-License-Identifier: GPL-2.0-or-later
/* Elements of sets, changed in the arena of the list that judges. */
#include "iface/priv.h"

#define CHANGES_MAX 1024 /* more are compiled as fast */

static int change_generation(const struct generation *g, const struct set_change *ch, size_t n,
			     struct set_changed *ret)
{
	struct generation_view w CLEANUP(generation_view_close) = {0};
	int r = g->layout.journal ? generation_view_open(g, true, &w) : -ENOENT;

	return r ? 0 : arena_change_sets(&w.v, ch, n, ret);
}

static size_t count(const struct set_change *ch, size_t n)
{
	size_t all = 0;

	for (size_t i = 0; i < n; i++)
		all += ch[i].elements->n;
	return all;
}

int xdp_change_sets(const struct instance *inst, const char *ifname, const struct set_change *ch,
		    size_t n, const struct xdp_load_options *o, struct set_changed *ret)
{
	autoclose int lock = -1;
	struct generation g = {.prog = -1, .arena = -1};
	struct error ignored = {0};
	struct datapath_xdp d;
	unsigned ifindex;
	char dir[256];
	int r;

	if (count(ch, n) > CHANGES_MAX)
		return 0;
	datapath_xdp_init(&d);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, &ignored);
	/* what waits for its confirmation stays as it is, and what cuts off is warned of */
	if (!r && !d.root->deadline_ns && !xdp_may_cut_off(ifname, ch, n, o) &&
	    !generation_get_layout(&d, AX_JUMP_CURRENT, &g))
		r = change_generation(&g, ch, n, ret);
	generation_close(&g);
	datapath_xdp_close(&d);
	return r > 0;
}

/* --- a list that differs from the one that judges in elements only --- */

static bool same_but_elements(const struct rule_list *old, const struct rule_list *new)
{
	struct rule_list x = *old, y = *new;

	if (old->n_sets != new->n_sets)
		return false;
	for (size_t i = 0; i < old->n_sets; i++)
		if (!streq(old->sets[i].name, new->sets[i].name) ||
		    old->sets[i].kind != new->sets[i].kind ||
		    old->sets[i].timed != new->sets[i].timed)
			return false;
	x.n_sets = y.n_sets = 0;
	return rule_list_eq(&x, &y);
}

/* What comes to sets and what goes: first all that comes, so that nothing is missing meanwhile. */
struct difference {
	struct rule_set_def *elements; /* of each change */
	struct set_change *ch;
	struct set_changed *done;
	size_t n;
};

static void difference_free(struct difference *d)
{
	for (size_t i = 0; i < d->n; i++)
		set_free(&d->elements[i]);
	free(d->elements);
	free(d->ch);
	free(d->done);
}

static int add_difference(struct difference *d, const struct rule_set_def *from,
			  const struct rule_set_def *to, bool gone)
{
	struct rule_set_def *found = &d->elements[d->n];
	int r = set_missing(from, to, CHANGES_MAX, found);

	if (r < 0 || !found->n)
		return r;
	d->ch[d->n++] = (struct set_change){to->name, gone, found};
	return 0;
}

static int difference_of(const struct rule_list *old, const struct rule_list *new,
			 struct difference *d)
{
	size_t room = 2 * new->n_sets + 1;
	int r = 0;

	d->elements = calloc(room, sizeof(*d->elements));
	d->ch = calloc(room, sizeof(*d->ch));
	d->done = calloc(room, sizeof(*d->done));
	if (!d->elements || !d->ch || !d->done)
		return -ENOMEM;
	for (size_t i = 0; i < new->n_sets &&r == 0; i++)
		r = add_difference(d, &old->sets[i], &new->sets[i], false);
	for (size_t i = 0; i < new->n_sets &&r == 0; i++)
		r = add_difference(d, &new->sets[i], &old->sets[i], true);
	return r;
}

bool xdp_change_elements(const struct generation *g, const char *ifname,
			 const struct rule_list *old, const struct rule_list *new,
			 const struct xdp_load_options *o)
{
	struct difference d CLEANUP(difference_free) = {0};

	return g->layout.journal && same_but_elements(old, new) && !difference_of(old, new, &d) &&
	       d.n && count(d.ch, d.n) <= CHANGES_MAX && !xdp_may_cut_off(ifname, d.ch, d.n, o) &&
	       change_generation(g, d.ch, d.n, d.done) > 0;
}
