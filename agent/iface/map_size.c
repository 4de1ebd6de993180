// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How big an interface's maps need to be for a list, and making them so. A map cannot grow: a
 * bigger one takes its place together with the next generation, and what the old one had counted
 * is carried over.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "iface/defaults.h"
#include "iface/priv.h"

static bool limits_sources(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].per_source)
			return true;
	return false;
}

static bool has_flow_sets(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_sets; i++)
		if (l->sets[i].kind == SET_FLOWS)
			return true;
	return false;
}

bool xdp_has_nat(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_balancers; i++)
		if (l->balancers[i].mode == BALANCE_NAT)
			return true;
	return false;
}

static bool has_action(const struct rule_list *l, enum ax_verdict v)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].verdict == v)
			return true;
	return false;
}

bool xdp_routes(const struct rule_list *l)
{
	return has_action(l, AX_VERDICT_ROUTE);
}

bool xdp_challenges(const struct rule_list *l)
{
	return has_action(l, AX_VERDICT_CHALLENGE);
}

bool xdp_asks_exposed(const struct rule_list *l)
{
	return l->policy[AX_REASON_EXPOSED] != AX_POLICY_RULES || xdp_challenges(l);
}

void xdp_sizes(const struct rule_list *l, size_t more_rules, bool nat, bool flows,
	       uint32_t sizes[XDP_MAPS])
{
	/* old and new rules count at the same time, and some room saves the next growth */
	size_t rules = 2 * (l->n_rules + 1) + more_rules;
	uint32_t counters = IFACE_COUNTERS_MIN;
	bool exposed = xdp_asks_exposed(l);

	while (counters < rules && counters < IFACE_COUNTERS_MAX)
		counters *= 2;
	memset(sizes, 0, XDP_MAPS * sizeof(*sizes));
	sizes[XDP_MAP_RULE_COUNTS] = sizes[XDP_MAP_LIMITS] = sizes[XDP_MAP_CARRIED] = counters;
	sizes[XDP_MAP_FLOWS4] = sizes[XDP_MAP_FLOWS6] =
		l->n_balancers ? AX_BALANCE_FLOWS : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_NAT] = sizes[XDP_MAP_NAT_OPENING] =
		nat ? AX_BALANCE_FLOWS : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_NAT_FRAGMENTS] = nat ? AX_NAT_FRAGMENTS : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_NAT_SOURCES] = nat ? AX_NAT_FAMILIES : 1;
	sizes[XDP_MAP_EXPOSED] = exposed ? AX_XDP_EXPOSED : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_EXPOSED_PORTS] = exposed ? AX_EXPOSED_WORDS : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_TRACKED_TCP] = flows ? AX_TRACKED_TCP : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_TRACKED_OTHER] = flows ? AX_TRACKED_OTHER : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_BEGUN] = flows ? AX_BEGUN_ENTRIES : 1;
	sizes[XDP_MAP_WAYS] = xdp_routes(l) || xdp_challenges(l) ? AX_WAYS : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_HELD_FLOWS] = has_flow_sets(l) ? AX_TIMED_ELEMENTS : IFACE_UNUSED_ENTRIES;
	sizes[XDP_MAP_SOURCE_LIMITS] = limits_sources(l) ? IFACE_SOURCES : IFACE_UNUSED_ENTRIES;
}

static int info_of(int map, struct bpf_map_info *info)
{
	uint32_t len = sizeof(*info);

	*info = (struct bpf_map_info){0};
	return bpf_obj_get_info_by_fd(map, info, &len) < 0 ? -errno : 0;
}

uint32_t xdp_map_entries(int map)
{
	struct bpf_map_info info;

	return info_of(map, &info) ? 0 : info.max_entries;
}

static int bigger(int map, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	struct bpf_map_info info;
	int r = info_of(map, &info);

	if (r)
		return r;
	o.map_flags = info.map_flags;
	r = bpf_map_create(info.type, info.name, info.key_size, info.value_size, entries, &o);
	return r < 0 ? -errno : r;
}

/* Rate limits and what was carried over before go on; counters start anew. */
static int copy_array(int from, int to, uint32_t n, size_t size)
{
	autofree void *value = malloc(size);

	if (!value)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_lookup_elem(from, &i, value) < 0 ||
		    bpf_map_update_elem(to, &i, value, 0) < 0)
			return -errno;
	return 0;
}

static int grow_one(const struct instance *inst, struct datapath_xdp *d, enum xdp_map m,
		    uint32_t entries, struct xdp_growth *g, struct error *e)
{
	uint32_t was = xdp_map_entries(d->map[m]);
	autoclose int fd = -1;
	int r = 0;

	if (!entries || was >= entries)
		return 0;
	if (datapath_xdp_is_shared(m))
		fd = datapath_xdp_shared(inst, m, e);
	else
		fd = bigger(d->map[m], entries);
	if (fd < 0)
		return fd;
	if (m == XDP_MAP_LIMITS)
		r = copy_array(d->map[m], fd, was, sizeof(uint64_t));
	else if (m == XDP_MAP_CARRIED)
		r = copy_array(d->map[m], fd, was, sizeof(struct ax_rule_count));
	if (r)
		return r;
	g->old[m] = d->map[m];
	d->map[m] = take_fd(&fd);
	return 0;
}

void xdp_growth_init(struct xdp_growth *g)
{
	for (int m = 0; m < XDP_MAPS; m++)
		g->old[m] = -1;
}

void xdp_growth_free(struct xdp_growth *g)
{
	for (int m = 0; m < XDP_MAPS; m++)
		close_fd(&g->old[m]);
}

int xdp_grow(const struct instance *inst, struct datapath_xdp *d, const uint32_t sizes[XDP_MAPS],
	     struct xdp_growth *g, struct error *e)
{
	int r = 0;

	for (int m = 0; m < XDP_MAPS && !r; m++)
		r = grow_one(inst, d, m, sizes[m], g, e);
	return r ? error_set(e, r, "cannot make the XDP dataplane's tables bigger: %s",
			     strerror(-r))
		 : 0;
}

/* Adds what the former counters have to what is carried. Nobody counts there any more. */
static int carry_counts(const struct datapath_xdp *d, int old)
{
	int cpus = libbpf_num_possible_cpus();
	autofree struct ax_rule_count *each = cpus < 0 ? NULL : calloc((size_t)cpus, sizeof(*each));
	uint32_t n = xdp_map_entries(old);

	if (cpus < 0)
		return cpus;
	if (!each)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct ax_rule_count sum;

		if (bpf_map_lookup_elem(old, &i, each) < 0 ||
		    bpf_map_lookup_elem(d->map[XDP_MAP_CARRIED], &i, &sum) < 0)
			return -errno;
		for (int c = 0; c < cpus; c++) {
			sum.packets += each[c].packets;
			sum.bytes += each[c].bytes;
			sum.limited += each[c].limited;
			sum.failed += each[c].failed;
		}
		if (bpf_map_update_elem(d->map[XDP_MAP_CARRIED], &i, &sum, 0) < 0)
			return -errno;
	}
	return 0;
}

int xdp_grown(const struct datapath_xdp *d, const struct xdp_growth *g, const uint16_t *fresh,
	      size_t n_fresh, struct error *e)
{
	const struct ax_rule_count none = {0};
	int r = 0;

	/* these two grow together, or this has been done before (xdp_mend()) */
	if (g->old[XDP_MAP_RULE_COUNTS] >= 0 && g->old[XDP_MAP_CARRIED] >= 0)
		r = carry_counts(d, g->old[XDP_MAP_RULE_COUNTS]);
	/* names that are new have nothing of what their counter's last owner left */
	for (size_t i = 0; i < n_fresh && !r; i++) {
		uint32_t key = fresh[i];

		if (bpf_map_update_elem(d->map[XDP_MAP_CARRIED], &key, &none, 0) < 0)
			r = -errno;
	}
	/* what was carried first, the counters last: xdp_mend() sees how far this came */
	for (int m = XDP_MAPS - 1; m >= 0 && !r; m--)
		if (g->old[m] >= 0)
			r = datapath_xdp_repin(d, m);
	return r ? error_set(e, r,
			     "the new list judges, but its tables could not be put in place: %s",
			     strerror(-r))
		 : 0;
}

static uint32_t id_of(int map)
{
	struct bpf_map_info info;

	return info_of(map, &info) ? 0 : info.id;
}

/* The map that the generation has in the place of a pinned one. */
static int take_used(struct datapath_xdp *d, const struct generation *now, enum xdp_map m,
		     struct xdp_growth *g)
{
	autoclose int used = generation_map(now, m);

	if (used < 0)
		return used;
	if (id_of(used) == id_of(d->map[m]))
		return 0;
	g->old[m] = d->map[m];
	d->map[m] = take_fd(&used);
	return 0;
}

/* Tables without counters need no care: what is pinned is small, and will grow again. */
int xdp_mend(struct datapath_xdp *d)
{
	struct xdp_growth g CLEANUP(xdp_growth_free);
	struct error ignored = {0};
	struct generation now;
	int r = generation_get_layout(d, AX_JUMP_CURRENT, &now);

	xdp_growth_init(&g);
	if (r)
		return r;
	r = take_used(d, &now, XDP_MAP_RULE_COUNTS, &g);
	if (!r)
		r = take_used(d, &now, XDP_MAP_LIMITS, &g);
	if (!r && g.old[XDP_MAP_RULE_COUNTS] >= 0)
		r = grow_one(NULL, d, XDP_MAP_CARRIED, xdp_map_entries(d->map[XDP_MAP_RULE_COUNTS]),
			     &g, &ignored);
	generation_close(&now);
	return r ? r : xdp_grown(d, &g, NULL, 0, &ignored);
}
