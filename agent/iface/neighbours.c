// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel keeps the link-layer addresses on the way to balancers' backends resolved for as long
 * as some list sends there: XDP itself cannot ask for one.
 */
#include "net/neighbour.h"
#include "iface/priv.h"

static bool sends_to(const struct rule_list *l, const struct ax_addr *addr)
{
	for (size_t i = 0; l && i < l->n_balancers; i++)
		for (size_t k = 0; k < l->balancers[i].n; k++)
			if (addr_eq(&l->balancers[i].backends[k].addr, addr))
				return true;
	return false;
}

/* The flag is one for all who need it: whether another interface's list sends there too. */
static bool others_send_to(const struct instance *inst, const char *ifname,
			   const struct ax_addr *addr)
{
	struct error ignored = {0};
	struct strv names = {0};
	bool r = false;

	if (xdp_interfaces(inst, &names, &ignored))
		return true;
	for (size_t i = 0; i < names.n && !r; i++) {
		struct xdp *x;

		if (streq(names.v[i], ifname) || xdp_open(inst, names.v[i], &x, &ignored))
			continue;
		r = sends_to(&x->list, addr);
		xdp_close(x);
	}
	strv_free(&names);
	return r;
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
	for (size_t i = 0; old && i < old->n_balancers; i++) {
		for (size_t k = 0; k < old->balancers[i].n; k++) {
			const struct ax_addr *addr = &old->balancers[i].backends[k].addr;

			if (!sends_to(now, addr) && !others_send_to(inst, ifname, addr))
				neighbour_manage(nl, addr, false, NULL);
		}
	}
}
