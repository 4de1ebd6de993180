/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "iface/ways.h"

#include <bpf/bpf.h>

#include "datapath/xdp_datapath.h"
#include "iface/priv.h"
#include "net/guard.h"
#include "net/nft.h"

bool ways_sysctl(int family, const char *name, const char *key)
{
	autofree char *value = NULL;
	char path[128];

	/* '/' because a name may have dots */
	snprintf(path, sizeof(path), "/proc/sys/net/ipv%d/conf/%s/%s", family, name, key);
	return file_read(path, 16, &value) == 0 && value[0] != '0';
}

bool ways_forwards6(const struct ways *w, const struct ether_link *l)
{
	return w->ipv6 || ways_sysctl(6, l->name, "force_forwarding"); /* Linux 6.17 */
}

int ways_look(const struct place *here, struct ways *ret)
{
	*ret = (struct ways){.here = here,
			     .ipv6 = ways_sysctl(6, "all", "forwarding"),
			     .guarded = nft_table_exists(GUARD_TABLE) == 1};
	return nl_ether_links(here->nl, &ret->links, &ret->n);
}

void ways_free(struct ways *w)
{
	free(w->links);
	*w = (struct ways){0};
}

const struct ether_link *ways_link(const struct ways *w, unsigned ifindex)
{
	for (size_t i = 0; ifindex && i < w->n; i++)
		if (w->links[i].ifindex == ifindex)
			return &w->links[i];
	return NULL;
}

/* --- which --- */

/* Kernels before 6.3 do not say: the other end of the pair is to be looked at. */
static bool veth_takes_frames(const struct ways *w, const struct ether_link *l)
{
	CLEANUP(place_close) struct place place = {.fd = -1};
	struct device d, peer;

	if (device_load(w->here, NULL, l->ifindex, &d) || device_peer(&d, &place, &peer))
		return false;
	return peer.native || device_has(&peer, ETHTOOL_FEATURE_GRO);
}

static bool takes_frames(const struct ways *w, const struct ether_link *l)
{
	uint64_t xdp;

	if (!ethtool_xdp_features(w->here->et, l->ifindex, &xdp))
		return xdp & ETHTOOL_XDP_SEND;
	if (streq(l->kind, "veth"))
		return veth_takes_frames(w, l);
	/* drivers that had XDP then made room for frames of others with a program of their own */
	return l->native != 0;
}

/* Of an interface, or of the device below it. */
static const char *why_not_here(const struct ether_link *l)
{
	if (l->ours)
		return "is ax's own";
	if (!l->up)
		return "is down";
	/* a VRF has a table of its own, which is asked; others decide what becomes of frames */
	if (*l->part_of && !streq(l->part_of, "vrf"))
		return "is part of another interface";
	return NULL;
}

static const char *why_not_device(const struct ways *w, const struct ether_link *l)
{
	const char *why = why_not_here(l);

	if (why)
		return why;
	if (streq(l->kind, "bridge"))
		return "is a bridge, of whose ports the kernel chooses";
	if (takes_frames(w, l))
		return NULL;
	return streq(l->kind, "veth")
		       ? "is a veth with neither GRO nor an XDP program at its other end"
		       : "has a driver that takes no frames from XDP, or none without an XDP "
			 "program "
			 "of its own there";
}

const char *ways_why_not(const struct ways *w, const struct ether_link *l,
			 const struct ether_link **to)
{
	const struct ether_link *below = l;
	const char *why = why_not_here(l);

	if (!why && streq(l->kind, "vlan")) {
		below = ways_link(w, l->link);
		if (!below)
			return "is a VLAN of a device in another network namespace";
		if (streq(below->kind, "vlan"))
			return "is a VLAN of a VLAN";
	}
	if (!why)
		why = why_not_device(w, below);
	if (why && below != l && !l->ours)
		return streq(why, "is a bridge, of whose ports the kernel chooses")
			       ? "is a VLAN of a bridge, of whose ports the kernel chooses"
			       : "is a VLAN of a device that takes no frames from XDP";
	*to = below;
	return why;
}

const char *ways_why_not_in(const struct ways *w, const struct ether_link *l)
{
	const struct ether_link *below = streq(l->kind, "vlan") ? ways_link(w, l->link) : l;

	if (l->ours || (below && below->ours))
		return "is ax's own";
	if (*l->part_of && !streq(l->part_of, "vrf"))
		return "is part of another interface";
	return below ? NULL : "is a VLAN of a device in another network namespace";
}

bool ways_has_vlans(const struct ways *w, unsigned ifindex)
{
	for (size_t i = 0; i < w->n; i++)
		if (streq(w->links[i].kind, "vlan") && w->links[i].link == ifindex)
			return true;
	return false;
}

/* --- telling the programs --- */

struct entry {
	struct ax_way_key key;
	struct ax_way way;
};
struct entries {
	struct entry *v;
	size_t n;
	uint64_t here;
};

static void add_in(const struct ways *w, const struct ether_link *l, struct entries *e)
{
	bool vlan = streq(l->kind, "vlan");
	struct entry *new = &e->v[e->n];

	if (ways_why_not_in(w, l))
		return;
	*new = (struct entry){
		.key = {.netns_cookie = e->here,
			.ifindex = vlan ? l->link : l->ifindex,
			.vlan = vlan ? l->vlan : AX_VLAN_NONE,
			.kind = AX_WAY_IN},
		.way = {.ifindex = l->ifindex,
			.vlan = vlan ? l->vlan : AX_VLAN_NONE,
			.ethertype_be = vlan ? l->ethertype_be : 0,
			.flags = (uint16_t)((ways_forwards6(w, l) ? 0 : AX_WAY_NO_IPV6) |
					    (*l->part_of ? AX_WAY_VRF : 0))},
	};
	memcpy(new->way.mac, l->mac, sizeof(l->mac));
	e->n++;
}

static void add_out(const struct ways *w, const struct ether_link *l, struct entries *e)
{
	const struct ether_link *to;

	if (w->guarded || ways_why_not(w, l, &to))
		return;
	e->v[e->n++] = (struct entry){
		.key = {.netns_cookie = e->here, .ifindex = l->ifindex, .kind = AX_WAY_OUT},
		.way = {.ifindex = to->ifindex,
			.vlan = to == l ? AX_VLAN_NONE : l->vlan,
			.ethertype_be = to == l ? 0 : l->ethertype_be},
	};
}

static bool is_among(const struct entries *e, const struct ax_way_key *key)
{
	for (size_t i = 0; i < e->n; i++)
		if (!memcmp(&e->v[i].key, key, sizeof(*key)))
			return true;
	return false;
}

/* What is not so any more goes first. */
static int write_map(void *arg, int map)
{
	const struct entries *e = arg;
	struct ax_way_key key, next;
	bool any = bpf_map_get_next_key(map, NULL, &next) == 0;

	while (any) {
		key = next;
		any = bpf_map_get_next_key(map, &key, &next) == 0;
		if (key.netns_cookie == e->here && !is_among(e, &key))
			bpf_map_delete_elem(map, &key);
	}
	for (size_t i = 0; i < e->n; i++)
		if (bpf_map_update_elem(map, &e->v[i].key, &e->v[i].way, 0) < 0)
			return -errno;
	return 0;
}

static int any_map(void *arg, int map)
{
	(void)map;
	*(bool *)arg = true;
	return 1;
}

int xdp_ways(const struct instance *inst)
{
	CLEANUP(place_close) struct place here = {.fd = -1};
	struct ways w CLEANUP(ways_free) = {0};
	struct entries e = {.here = xdp_own_netns_cookie()};
	bool any = false;
	int r;

	datapath_xdp_ways_each(inst, any_map, &any);
	if (!any)
		return 0;
	r = place_open(-1, &here);
	r = r ? r : ways_look(&here, &w);
	if (r)
		return r;
	e.v = calloc(2 * w.n + 1, sizeof(*e.v));
	if (!e.v)
		return -ENOMEM;
	for (size_t i = 0; i < w.n; i++) {
		add_in(&w, &w.links[i], &e);
		add_out(&w, &w.links[i], &e);
	}
	r = datapath_xdp_ways_each(inst, write_map, &e);
	free(e.v);
	return r;
}
