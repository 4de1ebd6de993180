// SPDX-License-Identifier: GPL-2.0-or-later
/* The other nodes. */
#include <net/if.h>
#include <sys/ioctl.h>
#include <time.h>

#include "checkup/ping.h"
#include "checkup/priv.h"
#include "net/neighbour.h"
#include "net/netlink.h"

#define MTU_USUAL 1500
/* So long after a handshake WireGuard takes no packet by it (REJECT_AFTER_TIME). */
#define HANDSHAKE_GOOD_S 180
#define DISCARD_PORT	 9

/* What is found out about an address of one of them: each has two, of which the second, for its
 * blocks of IPv6, may be zero. */
struct way {
	struct ax_addr addr;
	bool six;
	int no_hop; /* a negative errno: there is no route to its address */
	struct next_hop hop;
	char device[IF_NAMESIZE];
	unsigned mtu; /* of that */
};

struct looking {
	struct nl *nl;
	int fd;		  /* for ioctl() */
	struct way *ways; /* two for each node */
	struct ping *pings;
	int no_ping;	  /* ping_all() */
	uint64_t dropped; /* by rp_filter, while these were asked */
};

static void looking_free(struct looking *l)
{
	if (l->nl)
		nl_close(l->nl);
	if (l->fd >= 0)
		close(l->fd);
	free(l->ways);
	free(l->pings);
}

/* --- what the kernel says --- */

static unsigned mtu_of(int fd, const char *device)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.15s", device);
	return ioctl(fd, SIOCGIFMTU, &ifr) < 0 ? MTU_USUAL : (unsigned)ifr.ifr_mtu;
}

/* What it has learnt of the way by now; 0: not known. */
static unsigned known_mtu(const struct ax_addr *addr)
{
	struct sockaddr_storage to;
	socklen_t to_len = addr_to_sockaddr(addr, htons(9), &to), len = sizeof(int);
	autoclose int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu = 0, r;

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, to_len) < 0)
		return 0;
	r = addr_is_v4(addr) ? getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len)
			     : getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len);
	if (r < 0)
		return 0;
	return mtu > 0 ? (unsigned)mtu : 0;
}

/* How many packets this network namespace has dropped because of rp_filter: a line of names, and
 * one of numbers. */
static uint64_t dropped_by_filter(void)
{
	autofree char *text = NULL;
	char *names, *values, *name, *value, *more_names, *more_values;

	if (file_read("/proc/net/netstat", 1u << 16, &text))
		return 0;
	names = strstr(text, "TcpExt:");
	values = names ? strstr(names + 1, "TcpExt:") : NULL;
	if (!values)
		return 0;
	values[-1] = 0;
	values[strcspn(values, "\n")] = 0;
	name = strtok_r(names, " \n", &more_names);
	value = strtok_r(values, " \n", &more_values);
	while (name && value) {
		if (streq(name, "IPReversePathFilter"))
			return strtoull(value, NULL, 10);
		name = strtok_r(NULL, " \n", &more_names);
		value = strtok_r(NULL, " \n", &more_values);
	}
	return 0;
}

static void find_way(struct looking *l, const struct ax_addr *addr, bool six, struct way *w)
{
	w->addr = *addr;
	w->six = six;
	w->no_hop = addr_is_zero(addr) ? -EDESTADDRREQ : next_hop_find(l->nl, addr, &w->hop);
	if (w->no_hop || !if_indextoname(w->hop.ifindex, w->device))
		snprintf(w->device, sizeof(w->device), "?");
	w->mtu = mtu_of(l->fd, w->device);
}

/* --- judgements --- */

static void check_state(struct check *c)
{
	const char *state = c->node->state ? c->node->state : "unknown";

	if (streq(state, "up"))
		checkup_found(c, FINDING_OK, "lease", NULL,
			      "it is registered, and its lease is kept");
	else if (streq(state, "away"))
		checkup_found(c, FINDING_BAD, "lease", NULL,
			      "its lease has ended: its agent does not run, or does not reach "
			      "etcd; if it "
			      "does not come back, delete the keys of its blocks in etcd");
	else
		checkup_found(
			c, FINDING_NOTE, "lease", NULL,
			"whether it is there is not known: this node does not hear of the cluster");
}

/* Whether something came back from there. */
static bool check_address(struct check *c, const struct looking *l, const struct way *w,
			  const struct ping *p)
{
	const char *what = w->six ? "address6" : "address";
	char addr[ADDR_STRLEN];

	addr_format(&w->addr, addr);
	if (w->no_hop == -EDESTADDRREQ)
		checkup_found(c, FINDING_NOTE, what, NULL, "it has said none yet");
	else if (w->no_hop)
		checkup_found(c, FINDING_BAD, what, NULL, "there is no way to %s: %s", addr,
			      w->no_hop == -EADDRINUSE ? "it is this machine's own"
						       : strerror(-w->no_hop));
	else if (p->answered)
		checkup_found(c, FINDING_OK, what, NULL, "%s answers after %.1f ms, by %s", addr,
			      p->rtt_us / 1000.0, w->device);
	else if (!p->tcp)
		checkup_found(c, l->no_ping ? FINDING_OK : FINDING_NOTE, what, NULL,
			      "%s answers TCP, by %s%s", addr, w->device,
			      l->no_ping ? "" : "; echo requests (ICMP) it does not answer");
	else
		checkup_found(c, FINDING_BAD, what, NULL, "%s does not answer: %s", addr,
			      strerror(-p->tcp));
	return !w->no_hop && (p->answered || !p->tcp);
}

static void check_mtu(struct check *c, const struct looking *l, const struct way *w,
		      const struct ping *p)
{
	unsigned known = p->answered ? known_mtu(&w->addr) : 0;
	const char *what = w->six ? "mtu6" : "mtu";
	char fix[128];

	if (!p->answered) {
		checkup_found(c, FINDING_NOTE, what, NULL,
			      "how large packets may be on the way is not known%s",
			      l->no_ping ? ": finding out needs root" : "");
	} else if (p->size >= w->mtu) {
		checkup_found(c, FINDING_OK, what, NULL, "packets of %u bytes get there, %s's MTU",
			      w->mtu, w->device);
	} else if (known && known < w->mtu) {
		checkup_found(
			c, FINDING_NOTE, what, NULL,
			"packets of %u bytes get there, %s takes %u: a router on the way says so, "
			"and each connection finds it out",
			known, w->device, w->mtu);
	} else {
		snprintf(fix, sizeof(fix), "ip link set dev %s mtu %u", w->device, p->size);
		checkup_found(
			c, FINDING_BAD, what, fix,
			"packets of %u bytes get there, those of %u, %s's MTU, vanish: connections "
			"stand still as soon as they have much to send",
			p->size, w->mtu, w->device);
	}
}

/* What comes from there has to come by the interface that leads there: rp_filter drops it
 * otherwise, and the programs do not believe it. */
static void check_interface(struct check *c, const struct looking *l, const struct way *w,
			    const struct ping *p, bool came)
{
	bool believed = !c->c->ways || c->c->tunnel; /* wherever they come in */
	const char *what = w->six ? "interface6" : "rp-filter";
	char other[IF_NAMESIZE] = "?", addr[ADDR_STRLEN];

	addr_format(&w->addr, addr);
	if (p->answered && p->ifindex && p->ifindex != w->hop.ifindex) {
		if_indextoname(p->ifindex, other);
		checkup_found(
			c, believed ? FINDING_NOTE : FINDING_BAD, what, NULL,
			"packets from %s come by %s, and the way there is by %s: %s; have both "
			"nodes route each other by one network",
			addr, other, w->device,
			believed ? w->six ? "which does no harm"
					  : "a strict rp_filter would drop them"
				 : "those of its apps are not believed");
	} else if (!came && l->dropped && !w->no_hop && !w->six) { /* (IPv6 has no such filter) */
		checkup_found(c, FINDING_BAD, what, NULL,
			      "this machine dropped %llu packets meanwhile that came by another "
			      "interface "
			      "than the way back leads by (rp_filter, strict): have both nodes "
			      "route each "
			      "other by one network",
			      (unsigned long long)l->dropped);
	} else if (p->answered) {
		checkup_found(c, FINDING_OK, what, NULL,
			      "its packets come by %s, by which it is reached", w->device);
	}
}

static void check_route(struct check *c, const struct looking *l, const struct way *w,
			const struct checkup_way *block)
{
	char text[ADDR_STRLEN], device[IF_NAMESIZE] = "?", via[ADDR_STRLEN];
	struct next_hop hop;
	int r;

	prefix_format(&block->prefix, text);
	if (!block->there) {
		checkup_found(c, FINDING_BAD, "routes", NULL,
			      "there is no way to its block %s: %.180s", text,
			      block->why ? block->why : "the agent does not say why");
		return;
	}
	if (!c->c->routed) {
		checkup_found(c, FINDING_OK, "routes", NULL,
			      "apps in its block %s are reached by translation", text);
		return;
	}
	r = next_hop_find(l->nl, &block->prefix.addr, &hop);
	if (c->c->tunnel && !r && if_indextoname(hop.ifindex, device) &&
	    streq(device, c->c->tunnel)) {
		checkup_found(c, FINDING_OK, "routes", NULL, "its block %s is routed into %s", text,
			      device);
		return;
	}
	if (!c->c->tunnel && !r && !w->no_hop && hop.ifindex == w->hop.ifindex &&
	    addr_eq(&hop.addr, &w->hop.addr)) {
		checkup_found(c, FINDING_OK, "routes", NULL, "its block %s is routed to it by %s",
			      text, w->device);
		return;
	}
	if (!r)
		if_indextoname(hop.ifindex, device);
	checkup_found(c, FINDING_BAD, "routes", NULL,
		      "its block %s is routed elsewhere (%s%s%s), in spite of ax's route: look at "
		      "'ip rule' "
		      "and 'ip route get %.*s'",
		      text, r ? strerror(-r) : device, r ? "" : " via ",
		      r ? "" : addr_format(&hop.addr, via), (int)strcspn(text, "/"), text);
}

/* (an own answer it never gets: addresses that are no app's are not let through at the other end)
 */
bool checkup_wake(const struct checkup_cluster *c)
{
	bool any = false;

	for (size_t i = 0; i < c->n_nodes && c->tunnel; i++) {
		const struct checkup_node *n = &c->nodes[i];
		struct sockaddr_storage to;

		for (size_t k = 0; k < n->n_ways && n->is_peer; k++) {
			socklen_t len =
				addr_to_sockaddr(&n->ways[k].prefix.addr, htons(DISCARD_PORT), &to);
			autoclose int fd = -1;

			if (!n->ways[k].there)
				continue;
			fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			any |= fd >= 0 && sendto(fd, "", 0, 0, (struct sockaddr *)&to, len) == 0;
			break;
		}
	}
	return any;
}

static void check_handshake(struct check *c)
{
	const struct checkup_node *n = c->node;
	int64_t ago = time(NULL) - n->handshake_s;
	char addr[ADDR_STRLEN], since[48] = "ever";

	if (!n->is_peer)
		return; /* why not its ways say */
	if (n->handshake_s && ago < HANDSHAKE_GOOD_S) {
		checkup_found(c, FINDING_OK, "wireguard", NULL, "its last handshake was %lld s ago",
			      (long long)(ago < 0 ? 0 : ago));
		return;
	}
	if (n->handshake_s)
		snprintf(since, sizeof(since), "for %lld s", (long long)ago);
	checkup_found(c, FINDING_BAD, "wireguard", NULL,
		      "no handshake has come about %s: UDP has to reach port %u of %s (is there a "
		      "firewall?), and the node there has to have this one as a peer",
		      since, n->wireguard_port, addr_format(&n->addr, addr));
}

static void check_clock(struct check *c)
{
	int64_t ahead = c->c->clock_s - c->node->clock_s;

	if (!c->node->clock_known || !c->c->clock_known)
		return;
	if (checkup_clock(ahead) == FINDING_OK)
		checkup_found(c, FINDING_OK, "clock", NULL, "it has this node's time");
	else
		checkup_found(c, checkup_clock(ahead), "clock", NULL,
			      "its clock is %lld s %s this node's: keep both by NTP",
			      (long long)(ahead < 0 ? -ahead : ahead),
			      ahead < 0 ? "behind" : "ahead of");
}

/* One of its addresses. */
static void check_way(struct check *c, const struct looking *l, size_t at)
{
	const struct way *w = &l->ways[at];
	const struct ping *p = &l->pings[at];
	bool came = check_address(c, l, w, p);

	check_interface(c, l, w, p, came);
	if (came)
		check_mtu(c, l, w, p);
}

static void check_node(struct check *c, const struct looking *l, size_t i)
{
	c->node = &c->c->nodes[i];
	check_state(c);
	check_way(c, l, 2 * i);
	if (!addr_is_zero(&c->node->addr6))
		check_way(c, l, 2 * i + 1);
	for (size_t k = 0; k < c->node->n_ways; k++) {
		const struct checkup_way *block = &c->node->ways[k];

		check_route(c, l, &l->ways[2 * i + !addr_is_v4(&block->prefix.addr)], block);
	}
	check_handshake(c);
	if (c->c->ways && !c->node->n_ways && c->node->state && streq(c->node->state, "up"))
		checkup_found(c, FINDING_NOTE, "routes", NULL,
			      "it has no block of the pool yet, so no apps that others reach");
	check_clock(c);
}

/* What nobody leads to is not asked. */
static void find_ways(struct looking *l, const struct checkup_node *nodes, size_t n)
{
	for (size_t i = 0; i < 2 * n; i++) {
		const struct checkup_node *node = &nodes[i / 2];
		struct way *w = &l->ways[i];

		find_way(l, i % 2 ? &node->addr6 : &node->addr, i % 2, w);
		l->pings[i] = (struct ping){.mtu = w->mtu};
		if (!w->no_hop)
			l->pings[i].addr = w->addr;
	}
}

int checkup_nodes(struct check *c, struct error *e)
{
	CLEANUP(looking_free) struct looking l = {.fd = -1};
	size_t n = c->c->n_nodes;
	int r = nl_open(&l.nl);

	if (!n)
		return 0;
	if (r)
		return error_set(e, r, "no netlink socket: %s", strerror(-r));
	l.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	l.ways = calloc(2 * n, sizeof(*l.ways));
	l.pings = calloc(2 * n, sizeof(*l.pings));
	if (!l.ways || !l.pings)
		return error_set(e, -ENOMEM, "out of memory");
	find_ways(&l, c->c->nodes, n);
	l.dropped = dropped_by_filter();
	l.no_ping = ping_all(l.pings, 2 * n);
	if (l.no_ping == -ENOMEM)
		return error_set(e, l.no_ping, "out of memory");
	l.dropped = dropped_by_filter() - l.dropped;
	for (size_t i = 0; i < n; i++)
		check_node(c, &l, i);
	c->node = NULL;
	return 0;
}
