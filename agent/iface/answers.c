// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * NAT's answers come in by any interface: every list of an instance looks for them as soon as one
 * of its lists has a NAT balancer.
 */
#include <sys/mman.h>

#include "iface/priv.h"

int xdp_answers_note(const struct datapath_xdp *d, const struct xdp_binding *b,
		     const struct rule_list *l)
{
	size_t size = AX_NAT_FAMILIES * sizeof(uint64_t), n = 0; /* arrays align to 8 bytes */
	uint64_t *masks;

	if (!xdp_has_nat(l))
		return 0;
	masks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, d->map[XDP_MAP_NAT_SOURCES],
		     0);
	if (masks == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < l->n_balancers; i++) {
		const struct balancer *bal = &l->balancers[i];

		for (size_t k = 0; k < bal->n; k++, n++) {
			bool v4 = addr_is_v4(&bal->backends[k].addr);
			const struct ax_addr *own = v4 ? &bal->source4 : &bal->source6;
			const struct real_binding *r = &b->reals[n];

			if (r->app || addr_is_zero(own))
				own = &r->source;
			/* another interface's list may be doing the same */
			if (bal->mode == BALANCE_NAT && !addr_is_zero(own))
				__atomic_fetch_or((uint32_t *)&masks[v4 ? 0 : 1],
						  1u << (own->b[15] & 31), __ATOMIC_RELAXED);
		}
	}
	munmap(masks, size);
	return 0;
}

static int keep(void *arg, struct rule_list *l, struct error *e)
{
	(void)arg;
	(void)l;
	(void)e;
	return 0;
}

/* Whether the list of an interface looks for answers. */
static bool looks(const struct instance *inst, const char *ifname)
{
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	struct error ignored = {0};

	return xdp_open(inst, ifname, &x, &ignored) || x->g.layout.nat || x->g.layout.answers;
}

void xdp_answers_spread(const struct instance *inst, const char *ifname,
			const struct xdp_load_options *o)
{
	/* what it would lose was said when it was put there */
	const struct xdp_load_options again = {.force = true, .session = -1};
	struct strv names = {0};
	struct error e = {0};

	if (xdp_interfaces(inst, &names, &e))
		return;
	for (size_t i = 0; i < names.n; i++) {
		char text[400];

		e = (struct error){0};
		if (streq(names.v[i], ifname) || place_is_egress(names.v[i]) ||
		    looks(inst, names.v[i]) || !xdp_edit(inst, names.v[i], keep, NULL, &again, &e))
			continue;
		snprintf(
			text, sizeof(text),
			"answers of NAT's backends that come in by %.20s are not turned back until "
			"its list is applied again: %.256s",
			names.v[i], e.text);
		if (o->say)
			o->say(o->arg, text);
	}
	strv_free(&names);
}
