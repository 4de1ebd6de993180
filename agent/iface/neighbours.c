// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel keeps the link-layer addresses on the way to balancers' backends resolved for as long
 * as some list sends there: XDP itself cannot ask for one.
 */
#include "net/neighbour.h"
#include "iface/priv.h"

/* Addresses, sorted, each once; some are to stay. */
struct targets {
	struct target {
		struct ax_addr addr;
		bool kept;
	} * v;
	size_t n;
};

static int target_cmp(const void *x, const void *y)
{
	return memcmp(&((const struct target *)x)->addr, &((const struct target *)y)->addr,
		      sizeof(struct ax_addr));
}

static size_t count(const struct rule_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_balancers; i++)
		n += l->balancers[i].n;
	return n;
}

static int targets_of(const struct rule_list *l, struct targets *t)
{
	size_t n = 0;

	t->n = 0;
	t->v = calloc(count(l) + 1, sizeof(*t->v));
	if (!t->v)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_balancers; i++)
		for (size_t k = 0; k < l->balancers[i].n; k++)
			t->v[n++].addr = l->balancers[i].backends[k].addr;
	qsort(t->v, n, sizeof(*t->v), target_cmp);
	for (size_t i = 0; i < n; i++)
		if (!t->n || target_cmp(&t->v[t->n - 1], &t->v[i]))
			t->v[t->n++] = t->v[i];
	return 0;
}

static void keep_those_of(struct targets *t, const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_balancers; i++) {
		for (size_t k = 0; k < l->balancers[i].n; k++) {
			struct target want = {.addr = l->balancers[i].backends[k].addr}, *at;

			at = bsearch(&want, t->v, t->n, sizeof(*t->v), target_cmp);
			if (at)
				at->kept = true;
		}
	}
}

/* The flag is one for all who need it: what another interface's list sends to stays as well. Each
 * list is read once. */
static int keep_those_of_others(struct targets *t, const struct instance *inst, const char *ifname)
{
	struct error ignored = {0};
	struct strv names = {0};
	int r = xdp_interfaces(inst, &names, &ignored);

	for (size_t i = 0; i < names.n; i++) {
		struct xdp *x;

		if (streq(names.v[i], ifname) || xdp_open(inst, names.v[i], &x, &ignored))
			continue;
		if (!xdp_refresh(x))
			keep_those_of(t, &x->list);
		xdp_close(x);
	}
	strv_free(&names);
	return r;
}

static bool some_go(const struct targets *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->v[i].kept)
			return true;
	return false;
}

static void let_go(struct nl *nl, const struct instance *inst, const char *ifname,
		   const struct rule_list *old, const struct rule_list *now)
{
	struct targets t;

	if (targets_of(old, &t))
		return;
	if (now)
		keep_those_of(&t, now);
	if (some_go(&t) && !keep_those_of_others(&t, inst, ifname))
		for (size_t i = 0; i < t.n; i++)
			if (!t.v[i].kept)
				neighbour_manage(nl, &t.v[i].addr, false, NULL);
	free(t.v);
}

void xdp_neighbours(const struct instance *inst, const char *ifname, const struct rule_list *old,
		    const struct rule_list *now)
{
	struct nl *nl CLEANUP(nl_closep) = NULL;

	if (!(old && old->n_balancers) && !(now && now->n_balancers))
		return;
	if (nl_open(&nl))
		return;
	/* what fails here shows as packets without a neighbour in the counters */
	for (size_t i = 0; now && i < now->n_balancers; i++)
		for (size_t k = 0; k < now->balancers[i].n; k++)
			neighbour_manage(nl, &now->balancers[i].backends[k].addr, true, NULL);
	if (old && old->n_balancers)
		let_go(nl, inst, ifname, old, now);
}
