/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The preflight check of what rules do with packets: where they are sent, and in what state. */
#include "net/neighbour.h"
#include "iface/preflight_priv.h"

static const char *rule_name(const struct rule_list *l, size_t i, char buf[96])
{
	if (l->rules[i].name)
		snprintf(buf, 96, "rule '%.63s'", l->rules[i].name);
	else
		snprintf(buf, 96, "rule %zu", i + 1);
	return buf;
}

/* 1: it was not looked at before. */
static int first_look(struct check *c, unsigned ifindex)
{
	unsigned *seen;

	for (size_t i = 0; i < c->n_seen; i++)
		if (c->seen[i] == ifindex)
			return 0;
	seen = reallocarray(c->seen, c->n_seen + 1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	c->seen = seen;
	c->seen[c->n_seen++] = ifindex;
	return 1;
}

/* The same for names: many rules may have few targets. */
static int first_named(struct strv *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (streq(names->v[i], name))
			return 0;
	return strv_add(names, name) ? -ENOMEM : 1;
}

/* --- targets --- */

/* The largest frames that come: a veth's are those that its peer sends. */
static unsigned source_mtu(const struct check *c)
{
	return c->peer.place && c->peer.mtu < c->dev.mtu ? c->peer.mtu : c->dev.mtu;
}

/*
 * The receiving end of a veth pair takes redirected frames only by its NAPI poll, which it has when
 * it has a native program or GRO is on. Before Linux 6.3 they were thrown away in silence. What is
 * sent back (XDP_TX, `back`) is put in its queue also when only GRO is on, but then nothing wakes
 * it up: it lies there until some other frame comes along.
 */
static void check_napi(struct check *c, const struct device *to, const struct device *peer,
		       enum finding_state bad, const char *who, bool back)
{
	char fix[FIX_SIZE];
	int r = 1;

	if (peer->native || (!back && device_has(peer, ETHTOOL_FEATURE_GRO))) {
		found(c, FINDING_OK, "napi", "", "%s, the other end of %s, takes redirected frames",
		      peer->name, to->name);
		return;
	}
	if (back)
		snprintf(fix, sizeof(fix), "ax doctor %s --rules FILE --fix", c->dev.quoted);
	else
		snprintf(fix, sizeof(fix), "%sethtool -K %s gro on", peer->place->prefix,
			 peer->quoted);
	if (c->fix) {
		if (!back)
			r = ethtool_set_feature(peer->place->et, peer->ifindex, ETHTOOL_FEATURE_GRO,
						true);
		if (r)
			r = device_attach_pass(peer);
	}
	found_repair(c, r, bad, "napi", fix, "%s %s, but %s, its other end, has %s%s", who,
		     to->name, peer->name,
		     back ? "no XDP program" : "neither GRO nor an XDP program",
		     bad == FINDING_BAD ? ": what is sent there is lost" : "");
}

static void check_veth_target(struct check *c, const struct device *to, enum finding_state bad,
			      const char *who, bool back)
{
	CLEANUP(place_close) struct place place = {.fd = -1};
	struct device peer = {0};
	unsigned mtu = source_mtu(c);
	char fix[FIX_SIZE];
	int r = device_peer(to, &place, &peer);

	if (r) {
		found(c, FINDING_NOTE, "napi", "",
		      "the other end of %s cannot be looked at (%s): without GRO or an XDP program "
		      "there, what is redirected to %s is lost",
		      to->name,
		      r == -ENOENT ? "no process or name holds its network namespace"
				   : strerror(-r),
		      to->name);
		return;
	}
	if (!peer.up) {
		snprintf(fix, sizeof(fix), "%sip link set dev %s up", place.prefix, peer.quoted);
		found(c, bad, "link", fix, "%s %s, but %s, its other end, is down", who, to->name,
		      peer.name);
	}
	if (!c->generic)
		check_napi(c, to, &peer, bad, who, back);
	if (!c->generic && to->queues.rx < peer.queues.tx) {
		snprintf(fix, sizeof(fix), "%sethtool -L %s tx %u", place.prefix, peer.quoted,
			 to->queues.rx);
		found(c, bad, "queues", fix,
		      "%s %s, whose %u rx queues are fewer than the %u tx queues of its other end "
		      "%s: since Linux 6.3 it takes no redirected frames",
		      who, to->name, to->queues.rx, peer.queues.tx, peer.name);
	}
	if (peer.mtu < mtu && peer.mtu < to->mtu) {
		snprintf(fix, sizeof(fix), "%sip link set dev %s mtu %u", place.prefix, peer.quoted,
			 mtu);
		found(c, bad, "mtu", fix,
		      "%s %s, but %s, its other end, has MTU %u: larger frames are lost, and up to "
		      "%u come from %s",
		      who, to->name, peer.name, peer.mtu, mtu, c->dev.name);
	}
}

/* Drivers that make room for frames of others' when they have a program of their own. */
static void check_driver_target(struct check *c, const struct device *to, enum finding_state bad,
				const char *who)
{
	char fix[FIX_SIZE];
	int r = 1;

	if (to->knows_xdp ? to->xdp & ETHTOOL_XDP_SEND : to->native != 0) {
		found(c, FINDING_OK, "target", "", "%s takes redirected frames", to->name);
		return;
	}
	if (to->knows_xdp && !(to->xdp & ETHTOOL_XDP_BASIC)) {
		/* Of the interface itself it was said already. */
		if (bad != FINDING_NOTE)
			found(c, bad, "target", "",
			      "%s %s, whose driver (%s) takes no redirected frames: use generic "
			      "mode",
			      who, to->name, to->kind[0] ? to->kind : "none");
		return;
	}
	if (!to->knows_xdp && !streq(to->kind, "virtio_net")) {
		found(c, FINDING_NOTE, "target", "",
		      "%s %s: its driver (%s) may need an XDP program there before it takes "
		      "redirected frames",
		      who, to->name, to->kind[0] ? to->kind : "none");
		return;
	}
	snprintf(fix, sizeof(fix), "ax doctor %s --rules FILE --fix", c->dev.quoted);
	/* On the interface that is asked about, it would be in the way of others. */
	if (c->fix && bad != FINDING_NOTE)
		r = device_attach_pass(to);
	found_repair(c, r, bad, "target", fix,
		     "%s %s, whose driver (%s) takes redirected frames only with an XDP program of "
		     "its own",
		     who, to->name, to->kind);
}

static void check_target(struct check *c, const struct device *to, enum finding_state bad,
			 const char *who)
{
	unsigned mtu = source_mtu(c);
	char fix[FIX_SIZE];

	if (!to->up) {
		snprintf(fix, sizeof(fix), "ip link set dev %s up", to->quoted);
		found(c, bad, "link", fix, "%s %s, which is down", who, to->name);
	}
	if (to->mtu < mtu) {
		snprintf(fix, sizeof(fix), "ip link set dev %s mtu %u", to->quoted, mtu);
		found(c, bad, "mtu", fix,
		      "%s %s with MTU %u: larger frames are lost, and up to %u come from %s", who,
		      to->name, to->mtu, mtu, c->dev.name);
	}
	if (to->veth)
		check_veth_target(c, to, bad, who, false);
	else if (!c->generic)
		check_driver_target(c, to, bad, who);
}

static int check_redirect(struct check *c, const struct rule_list *l, size_t i)
{
	const char *target = l->rules[i].target;
	struct device to = {0};
	char name[96], who[128];
	int r = first_named(&c->devices, target);

	if (r <= 0)
		return r;
	if (device_load(&c->here, target, 0, &to)) {
		found(c, FINDING_BAD, "target", "", "%s redirects to %s, which does not exist",
		      rule_name(l, i, name), target);
		return 0;
	}
	r = first_look(c, to.ifindex);
	if (r <= 0)
		return r;
	snprintf(who, sizeof(who), "%s redirects to", rule_name(l, i, name));
	check_target(c, &to, FINDING_BAD, who);
	return 0;
}

/* What is sent back to a veth's other end comes there as what is redirected does. */
static int check_reflect(struct check *c, const struct rule_list *l, size_t i)
{
	char name[96], who[128];
	int r = c->dev.veth && !c->generic ? first_look(c, c->dev.ifindex) : 0;

	if (r <= 0)
		return r;
	snprintf(who, sizeof(who), "%s sends back to", rule_name(l, i, name));
	check_veth_target(c, &c->dev, FINDING_BAD, who, true);
	return 0;
}

/* An app of this machine: the agent leads balancers there, and their answers back. */
static int check_app(struct check *c, const struct balancer *b, const struct ax_addr *addr)
{
	struct device to = {0};
	char buf[ADDR_STRLEN], who[128];
	int r;

	addr_format(addr, buf);
	if (b->mode != BALANCE_NAT) {
		found(c, FINDING_BAD, "apps", "",
		      "balancer '%.63s': its backend %s is an app of this machine, which takes no "
		      "tunnels and cannot answer: give the balancer 'mode: nat'",
		      b->name, buf);
		return 0;
	}
	if (!c->apps.ifindex ||
	    addr_is_zero(addr_is_v4(addr) ? &c->apps.source4 : &c->apps.source6)) {
		found(c, FINDING_BAD, "apps", "",
		      "balancer '%.63s': its backend %s is an app of this machine, which cannot "
		      "answer: the agent leads balancers of its config there, so put this list "
		      "under "
		      "xdp: there",
		      b->name, buf);
		return 0;
	}
	r = first_look(c, c->apps.ifindex);
	if (r <= 0)
		return r;
	if (device_load(&c->here, NULL, c->apps.ifindex, &to) || (!to.native && !to.generic)) {
		found(c, FINDING_BAD, "apps", "ax config apply FILE",
		      "balancer '%.63s': its backend %s is an app of this machine, which cannot "
		      "answer: the list that turns answers back is gone",
		      b->name, buf);
		return 0;
	}
	snprintf(who, sizeof(who), "balancer '%.63s' sends to", b->name);
	check_veth_target(c, &to, FINDING_BAD, who, false);
	return 0;
}

static int check_backend(struct check *c, const struct balancer *b, const struct ax_addr *addr)
{
	struct next_hop hop = {0};
	struct device to = {0};
	char buf[ADDR_STRLEN], who[128];
	int r = next_hop_find(c->here.nl, addr, &hop);

	if (r) {
		found(c, r == -EADDRINUSE ? FINDING_NOTE : FINDING_BAD, "route", "",
		      r == -EADDRINUSE ? "balancer '%.63s': its backend %s is this machine's own "
					 "address"
				       : "balancer '%.63s': there is no route to its backend %s",
		      b->name, addr_format(addr, buf));
		return 0;
	}
	r = first_look(c, hop.ifindex);
	if (r <= 0 || device_load(&c->here, NULL, hop.ifindex, &to))
		return r < 0 ? r : 0; /* or it went away just now */
	snprintf(who, sizeof(who), "balancer '%.63s' sends to", b->name);
	if (hop.ifindex != c->dev.ifindex)
		check_target(c, &to, FINDING_BAD, who);
	else if (to.veth && !c->generic)
		check_veth_target(c, &to, FINDING_BAD, who, true);
	return 0;
}

/* The kernel knows no way for packets of an interface on which forwarding is off. */
static void check_forwarding(struct check *c, const struct balancer *b, int family)
{
	char path[128], fix[128];
	autofree char *value = NULL;
	int r = -ENOENT;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv%d/conf/%s/forwarding", family, c->dev.name);
	/* '/' because a name may have dots */
	snprintf(fix, sizeof(fix), "sysctl -w net/ipv%d/conf/%s/forwarding=1", family,
		 c->dev.quoted);
	if (file_read(path, 16, &value) < 0 || value[0] != '0')
		return;
	if (c->fix)
		r = file_write(path, "1");
	found_repair(c, c->fix ? r : 1, FINDING_BAD, "forwarding", fix,
		     "forwarding of IPv%d is off on %s: the kernel tells no way to the backends of "
		     "balancer '%.63s' for what comes in there",
		     family, c->dev.name, b->name);
}

/* What goes by a tunnel to a host-mode app comes to this machine's own stack as it is. */
static bool is_app(const struct check *c, const struct balancer *b, const struct ax_addr *addr)
{
	enum datapath_app app = datapath_apps_find(&c->apps, addr);

	return app == DATAPATH_APP_PRIVATE || (app == DATAPATH_APP_HOST && b->mode == BALANCE_NAT);
}

static int check_balancer(struct check *c, const struct rule_list *l, const char *name)
{
	const struct balancer *b = rule_list_balancer(l, name);
	bool v4 = false, v6 = false;
	int r = b ? first_named(&c->balancers, name) : 0;

	if (r <= 0)
		return r;
	r = 0;
	for (size_t i = 0; i < b->n && !r; i++)
		if (!b->backends[i].down) {
			if (is_app(c, b, &b->backends[i].addr)) {
				r = check_app(c, b, &b->backends[i].addr);
				continue;
			}
			r = check_backend(c, b, &b->backends[i].addr);
			v4 |= addr_is_v4(&b->backends[i].addr);
			v6 |= !addr_is_v4(&b->backends[i].addr);
		}
	if (v4)
		check_forwarding(c, b, 4);
	if (v6)
		check_forwarding(c, b, 6);
	return r;
}

/* What is too big for the way to a backend is answered where it came from. */
static void check_answers(struct check *c, const struct rule_list *l)
{
	char who[128];

	for (size_t i = 0; l && i < l->n_rules; i++) {
		if (l->rules[i].verdict != AX_VERDICT_BALANCE)
			continue;
		/* looked at already, if backends are behind it too or rules send back there */
		if (c->dev.veth && !c->generic && first_look(c, c->dev.ifindex) > 0) {
			snprintf(who, sizeof(who), "balancer '%.63s' answers what is too big by",
				 l->rules[i].target);
			check_veth_target(c, &c->dev, FINDING_NOTE, who, true);
		}
		return;
	}
}

static bool has_nat(const struct rule_list *l)
{
	for (size_t i = 0; l && i < l->n_balancers; i++)
		if (l->balancers[i].mode == BALANCE_NAT)
			return true;
	return false;
}

/* --- what comes from local stacks --- */

/* Whether the rule's packets leave XDP without what the kernel knew of their checksums. In generic
 * mode it stays with them, but what a rule rewrites it does not know of. */
static bool needs_checksums(const struct check *c, const struct rule *r)
{
	/* (what answers a SYN has checksums of its own) */
	if (r->verdict == AX_VERDICT_PASS || r->verdict == AX_VERDICT_DROP ||
	    r->verdict == AX_VERDICT_CHALLENGE)
		return false;
	if (c->generic) /* what is only routed keeps it */
		return r->checksum || r->rewrite & (AX_REWRITE_DST | AX_REWRITE_DPORT) ||
		       r->verdict == AX_VERDICT_BALANCE;
	return !r->checksum;
}

static void put_checksums(struct check *c, const struct rule *first, const char *name)
{
	const struct device *peer = &c->peer;
	bool sure = first && !c->generic;
	char fix[FIX_SIZE];
	int r = 1;

	snprintf(fix, sizeof(fix), "%sethtool -K %s tx off", peer->place->prefix, peer->quoted);
	/* A note about what rules may do is repaired if that was asked for. */
	if (c->fix && (sure || !first))
		r = ethtool_set_feature(peer->place->et, peer->ifindex, ETHTOOL_FEATURE_TX_CHECKSUM,
					false);
	found_repair(c, r, sure ? FINDING_BAD : FINDING_NOTE, "tx-checksum", fix,
		     "%s, the other end, leaves checksums to be finished later: packets from the "
		     "programs behind it arrive broken%s where %s sends them on%s",
		     peer->name, c->generic ? " on other machines" : "", first ? name : "XDP",
		     sure && (first->verdict == AX_VERDICT_REDIRECT ||
			      first->verdict == AX_VERDICT_ROUTE)
			     ? ", unless it has 'checksum recompute'"
			     : "");
}

static void check_checksums(struct check *c, const struct rule_list *l)
{
	static const struct rule answers = {.verdict = AX_VERDICT_BALANCE};
	const struct rule *first = NULL;
	char name[96] = "";

	if (!c->peer.place)
		return;
	for (size_t i = 0; l && i < l->n_rules && !first; i++) {
		if (!needs_checksums(c, &l->rules[i]))
			continue;
		first = &l->rules[i];
		rule_name(l, i, name);
	}
	/* A NAT balancer's answers are turned back on every interface with a list. */
	if (!first && l && (c->nat || has_nat(l))) {
		first = &answers;
		c->others = !has_nat(l);
		snprintf(name, sizeof(name), "%s",
			 c->others ? "the balancer of another list" : "a balancer");
	}
	if (l && !first)
		return;
	if (device_has(&c->peer, ETHTOOL_FEATURE_TX_CHECKSUM))
		put_checksums(c, first, name);
	else
		found(c, FINDING_OK, "tx-checksum", "",
		      "what programs behind %s send has whole checksums", c->peer.name);
	c->others = false;
}

/* In generic mode what a local stack left to be cut into segments arrives in one piece. */
static void check_segments(struct check *c, const struct rule_list *l)
{
	const struct device *peer = &c->peer;
	bool redirects = false;
	char fix[FIX_SIZE];
	int r = 1;

	for (size_t i = 0; l && i < l->n_rules; i++)
		redirects |= l->rules[i].verdict == AX_VERDICT_REDIRECT;
	if (!c->generic || !redirects || !peer->place || !device_has(peer, ETHTOOL_FEATURE_GSO))
		return;
	snprintf(fix, sizeof(fix), "%sethtool -K %s gso off tso off", peer->place->prefix,
		 peer->quoted);
	if (c->fix) {
		r = ethtool_set_feature(peer->place->et, peer->ifindex, ETHTOOL_FEATURE_TSO, false);
		if (!r)
			r = ethtool_set_feature(peer->place->et, peer->ifindex, ETHTOOL_FEATURE_GSO,
						false);
	}
	found_repair(c, r, FINDING_BAD, "gso", fix,
		     "%s, the other end, sends packets larger than its MTU, which are lost when a "
		     "rule redirects them in generic mode",
		     peer->name);
}

/* A tag that is kept beside the frame is none to XDP: `vlan` conditions see the frame as untagged.
 */
static void check_tags(struct check *c, const struct rule_list *l)
{
	const struct device *d = c->peer.place ? &c->peer : &c->dev;
	bool peer = d == &c->peer, asked = c->vlans;
	enum ethtool_feature f = peer ? ETHTOOL_FEATURE_TX_VLAN : ETHTOOL_FEATURE_RX_VLAN;
	char fix[FIX_SIZE];
	int r = 1;

	for (size_t i = 0; l && i < l->n_rules; i++)
		asked |= l->rules[i].in[AX_FIELD_VLAN].n;
	if ((l && !asked) || !d->place || !device_has(d, f))
		return;
	snprintf(fix, sizeof(fix), "%sethtool -K %s %s off", d->place->prefix, d->quoted,
		 peer ? "txvlan" : "rxvlan");
	if (c->fix)
		r = ethtool_set_feature(d->place->et, d->ifindex, f, false);
	found_repair(c, r, FINDING_NOTE, "vlan", fix,
		     "%s%s keeps VLAN tags beside the frames: rules see those as untagged", d->name,
		     peer ? ", the other end," : "");
}

int check_rules(struct check *c, const struct rule_list *l)
{
	int r = 0;

	for (size_t i = 0; l && i < l->n_rules && !r; i++) {
		if (l->rules[i].verdict == AX_VERDICT_REDIRECT)
			r = check_redirect(c, l, i);
		else if (l->rules[i].verdict == AX_VERDICT_REFLECT ||
			 l->rules[i].verdict == AX_VERDICT_CHALLENGE)
			r = check_reflect(c, l, i);
		else if (l->rules[i].verdict == AX_VERDICT_BALANCE)
			r = check_balancer(c, l, l->rules[i].target);
	}
	check_routes(c, l);
	check_challenges(c, l);
	check_answers(c, l);
	/* Any list may have a rule that sends to this interface from another one. */
	if (!l)
		check_target(c, &c->dev, FINDING_NOTE, "rules of other interfaces may redirect to");
	check_checksums(c, l);
	check_segments(c, l);
	check_tags(c, l);
	return r;
}
