/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The preflight check of rules with `action route`. Nothing of it makes packets vanish: what cannot
 * be routed in the driver is left to the kernel, and slower. So it is only said, and never
 * repaired: what a host forwards is its administrator's to decide.
 */
#include "iface/preflight_priv.h"
#include "iface/priv.h"
#include "iface/ways.h"

struct routing {
	struct check *c;
	struct ways w;
	const struct ether_link *in;
};

static void check_family(const struct routing *r, int family)
{
	struct check *c = r->c;
	char fix[FIX_SIZE];

	snprintf(fix, sizeof(fix), "sysctl -w net/ipv%d/conf/%s/forwarding=1", family,
		 c->dev.quoted);
	if (!ways_sysctl(family, c->dev.name, "forwarding"))
		found(c, FINDING_NOTE, "forwarding", fix,
		      "forwarding of IPv%d is off on %s: none that comes in there is routed",
		      family, c->dev.name);
	else if (family == 6 && !ways_forwards6(&r->w, r->in))
		found(c, FINDING_NOTE, "forwarding", "sysctl -w net.ipv6.conf.all.forwarding=1",
		      "forwarding of IPv6 is on on %s, but off for all: the kernel forwards none, "
		      "so "
		      "none is routed",
		      c->dev.name);
}

/* What is larger than an interface's MTU the kernel answers, or takes to pieces. */
static void check_mtu(struct check *c, const struct ether_link *l, uint32_t route_mtu)
{
	struct device d;

	if (device_load(&c->here, NULL, l->ifindex, &d)) /* gone just now */
		return;
	if (d.mtu < c->dev.mtu)
		found(c, FINDING_NOTE, "route-mtu", "",
		      "packets that are larger than %u, the MTU of %s, are left to the kernel, and "
		      "up to %u come from %s",
		      d.mtu, l->name, c->dev.mtu, c->dev.name);
	if (route_mtu && route_mtu < d.mtu)
		found(c, FINDING_NOTE, "route-mtu", "",
		      "a route to %s has an MTU of %u that is not locked: packets are routed up to "
		      "the interface's; write 'mtu lock %u' in the route",
		      l->name, route_mtu, route_mtu);
}

static int on_device(void *arg, const struct route_device *d)
{
	const struct routing *r = arg;
	const struct ether_link *l = ways_link(&r->w, d->ifindex), *to;
	const char *why;

	if (!l || l == r->in)
		return 0;
	why = ways_why_not(&r->w, l, &to);
	if (why) {
		found(r->c, FINDING_NOTE, "route", "",
		      "%s, to which routes lead, %s: what goes there is left to the kernel",
		      l->name, why);
		return 0;
	}
	found(r->c, FINDING_OK, "route", "", "packets are routed to %s%s%s", l->name,
	      to == l ? "" : ", by ", to == l ? "" : to->name);
	check_mtu(r->c, l, d->mtu);
	return 0;
}

void check_routes(struct check *c, const struct rule_list *l)
{
	struct routing r = {.c = c};
	const char *why = NULL;

	if (!l || !xdp_routes(l))
		return;
	if (ways_look(&c->here, &r.w)) {
		found(c, FINDING_NOTE, "route", "", "the host's interfaces cannot be asked");
		return;
	}
	r.in = ways_link(&r.w, c->dev.ifindex);
	c->vlans |= ways_has_vlans(&r.w, c->dev.ifindex);
	if (!r.in)
		why = "has no Ethernet headers";
	else
		why = ways_why_not_in(&r.w, r.in);
	if (why)
		found(c, FINDING_NOTE, "route", "", "%s %s: nothing that comes in there is routed",
		      c->dev.name, why);
	else if (r.w.guarded)
		found(c, FINDING_NOTE, "route", "sysctl -w net.ipv4.ip_forward=1",
		      "it was an agent that switched forwarding on, for apps alone: nothing else "
		      "is "
		      "routed unless it was on before");
	if (!why) {
		check_family(&r, 4);
		check_family(&r, 6);
		nl_route_devices(c->here.nl, on_device, &r);
	}
	ways_free(&r.w);
}
