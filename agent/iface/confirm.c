// SPDX-License-Identifier: GPL-2.0-or-later
/* What becomes of a list that is on an interface: editing, confirming, rolling back, unloading. */
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "iface/priv.h"

int xdp_edit(const struct instance *inst, const char *ifname,
	     int (*edit)(void *arg, struct rule_list *l, struct error *e), void *arg,
	     const struct xdp_load_options *o, struct error *e)
{
	autoclose int lock = -1;
	struct datapath_xdp d;
	struct generation g = {.prog = -1, .arena = -1};
	struct rule_list l;
	unsigned ifindex;
	char dir[256];
	int r;

	rule_list_init(&l);
	datapath_xdp_init(&d);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, e);
	if (!r)
		r = generation_get(&d, AX_JUMP_CURRENT, &g);
	if (!r)
		r = xdp_generation_list(&g, &l);
	if (r && !e->code)
		error_set(e, r, "cannot read the rules of %s: %s", ifname, strerror(-r));
	generation_close(&g);
	datapath_xdp_close(&d);
	if (!r)
		r = edit(arg, &l, e);
	if (!r)
		r = xdp_apply_locked(inst, ifname, &l, o, e);
	rule_list_free(&l);
	return r;
}

int xdp_confirm(const struct instance *inst, const char *ifname, struct error *e)
{
	autoclose int lock = -1;
	struct datapath_xdp d;
	unsigned ifindex;
	char dir[256];
	int r;

	datapath_xdp_init(&d);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, e);
	if (r)
		return r;
	if (!__atomic_exchange_n(&d.root->deadline_ns, 0, __ATOMIC_ACQ_REL))
		r = error_set(
			e, -ENOENT,
			"nothing waits for a confirmation on %s: it was confirmed, or the time "
			"was up and the former rules are back",
			ifname);
	else
		generation_set(&d, AX_JUMP_PREVIOUS, NULL);
	datapath_xdp_close(&d);
	return r;
}

int xdp_rollback(const struct instance *inst, const char *ifname, struct error *e)
{
	autoclose int lock = -1;
	struct datapath_xdp d;
	unsigned ifindex;
	char dir[256];
	int r;

	datapath_xdp_init(&d);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, e);
	if (r)
		return r;
	if (!d.root->deadline_ns) {
		r = error_set(e, -ENOENT, "nothing waits for a confirmation on %s", ifname);
	} else {
		__atomic_store_n(&d.root->deadline_ns, 1, __ATOMIC_RELEASE); /* it is long over */
		r = xdp_settle(&d);
		if (r == -ENOENT)
			r = xdp_remove_all(dir, ifindex, e);
	}
	datapath_xdp_close(&d);
	return r && !e->code ? error_set(e, r, "cannot go back: %s", strerror(-r)) : r;
}

static void forget_neighbours(const struct instance *inst, const char *ifname,
			      const struct datapath_xdp *d)
{
	struct generation g;
	struct rule_list l;

	if (generation_get(d, AX_JUMP_CURRENT, &g))
		return;
	if (!xdp_generation_list(&g, &l)) {
		xdp_neighbours(inst, ifname, &l, NULL);
		rule_list_free(&l);
	}
	generation_close(&g);
}

/* The program that a repair left there for what others send; nobody else would take it off. */
static int remove_stub(unsigned ifindex)
{
	struct datapath_xdp_programs p;
	int r = datapath_xdp_programs(ifindex, 0, &p);

	if (r)
		return r;
	if (p.dispatcher || p.n != 1 || !streq(p.v[0].name, PASS_PROGRAM))
		r = -ENOENT;
	else
		r = bpf_xdp_detach(
			(int)ifindex,
			p.mode == ATTACH_GENERIC ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE, NULL);
	datapath_xdp_programs_free(&p);
	return r;
}

static bool is_pinned(const struct instance *inst, const char *ifname)
{
	struct error ignored = {0};
	char dir[256];

	return !datapath_xdp_dir(inst, ifname, false, dir, sizeof(dir), &ignored) &&
	       !access(dir, F_OK);
}

int xdp_unload(const struct instance *inst, const char *ifname, struct error *e)
{
	autoclose int lock = -1;
	struct datapath_xdp d;
	bool pinned = is_pinned(inst, ifname);
	unsigned ifindex;
	char dir[256];
	int r;

	datapath_xdp_init(&d);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, e);
	if (!r)
		forget_neighbours(inst, ifname, &d);
	datapath_xdp_close(&d);
	if (r == -ENOENT && pinned && !is_pinned(inst, ifname)) {
		/* what nobody had confirmed, or what an interface of this name left */
		*e = (struct error){0};
		return 0;
	}
	if (r == -ENODEV && !access(dir, F_OK)) { /* it took its program along */
		*e = (struct error){0};
		return datapath_xdp_remove(dir);
	}
	if (r == -ENOENT && !place_is_egress(ifname) && !remove_stub(ifindex)) {
		*e = (struct error){0};
		return 0;
	}
	r = r ? r : xdp_remove_all(dir, ifindex, e);
	if (!r) /* without a program, it may take no frames any more that others' lists route */
		xdp_ways(inst);
	return r;
}
