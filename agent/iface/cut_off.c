// SPDX-License-Identifier: GPL-2.0-or-later
/* Warnings of what a new list cuts off: the caller's session, and what answers this host. */
#include <net/if.h>
#include <sys/ioctl.h>

#include "net/netlink.h"
#include "packet/text.h"
#include "iface/ssh_session.h"
#include "iface/priv.h"

#define FROM4	      "192.0.2.1" /* of nobody: RFC 5737, RFC 3849 */
#define FROM6	      "2001:db8::1"
#define ANSWERED_PORT 40000u
/* Somebody else, who answers from another port to another one. */
#define OTHER4	   "203.0.113.1"
#define OTHER6	   "2001:db8:ffff::1"
#define OTHER_PORT 50000u

/* The new generation, and the one that it replaces. */
struct cutting {
	const char *ifname;
	const struct generation *new, *old; /* old: may be NULL */
	const struct xdp_load_options *o;
};

static void say(const struct cutting *c, const char *text)
{
	if (c->o->say)
		c->o->say(c->o->arg, text);
}

/* What becomes of a packet of that state (AX_STATE_UNASKED: as it is now); false: that cannot be
 * told. */
static bool judge(const struct generation *g, const char *packet, enum ax_state state,
		  struct ax_explain *x)
{
	autofree uint8_t *frame = NULL, *out = NULL;
	struct error ignored = {0};
	size_t len, out_len;
	struct packet p;
	uint32_t action;
	int r;

	if (packet_parse(packet, &p, &ignored))
		return false;
	r = packet_build(&p, &frame, &len);
	packet_free(&p);
	*x = (struct ax_explain){.state = (uint8_t)state, .minute = AX_TIME_UNKNOWN};
	return !r && !generation_explain(g, frame, len, x, &action, &out, &out_len);
}

/* Client's and server's address, in text, with their ports. */
static bool session_of(const struct xdp_load_options *o, char ssh[128], char client[64],
		       char server[64], unsigned *cport, unsigned *sport)
{
	return o->session >= 0 && ssh_session(o->session, ssh, 128) &&
	       sscanf(ssh, "%63s %u %63s %u", client, cport, server, sport) == 4;
}

static void check_session(const struct cutting *c)
{
	char ssh[128], client[64], server[64], text[512], name[PLACE_MAX];
	bool out = place_is_egress(c->ifname);
	unsigned cport, sport;
	struct ax_explain x;

	if (!session_of(c->o, ssh, client, server, &cport, &sport))
		return;
	place_make(name, c->ifname, DIRECTION_INGRESS);
	snprintf(text, sizeof(text),
		 strchr(client, ':') ? "tcp [%s]:%u > [%s]:%u flags ack"
				     : "tcp %s:%u > %s:%u flags ack",
		 out ? server : client, out ? sport : cport, out ? client : server,
		 out ? cport : sport);
	/* what is for this host is not routed, and a connection that stands not challenged */
	if (!judge(c->new, text, AX_STATE_UNASKED, &x) || x.verdict == AX_VERDICT_PASS ||
	    x.verdict == AX_VERDICT_ROUTE || x.verdict == AX_VERDICT_CHALLENGE)
		return;
	snprintf(text, sizeof(text),
		 "warning: if your SSH session (%s) comes in by %s, this list cuts it off%s", ssh,
		 name, c->o->confirm_ms ? "" : "; apply it with --confirm 30s to get back in");
	say(c, text);
}

static bool own_ipv4(const char *ifname, struct ax_addr *ret)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq rq = {0};
	__be16 port;

	snprintf(rq.ifr_name, sizeof(rq.ifr_name), "%s", ifname);
	return fd >= 0 && ioctl(fd, SIOCGIFADDR, &rq) == 0 &&
	       !addr_from_sockaddr(&rq.ifr_addr, ret, &port);
}

/* Of others than its neighbours: not fe80::/10. */
static int take_ipv6(void *arg, const struct ax_addr *addr)
{
	struct ax_addr *ret = arg;

	if (addr->b[0] == 0xfe && (addr->b[1] & 0xc0) == 0x80)
		return 0;
	*ret = *addr;
	return 1;
}

/* An address of the interface that others talk to. False: it has none of the family. (Not by
 * getifaddrs(), which asks for all interfaces.) */
static bool own_address(const char *ifname, int family, struct ax_addr *ret)
{
	struct nl *nl CLEANUP(nl_closep) = NULL;
	unsigned ifindex = if_nametoindex(ifname);

	if (family == AF_INET)
		return own_ipv4(ifname, ret);
	return ifindex && !nl_open(&nl) && nl_addr6_each(nl, ifindex, take_ipv6, ret) == 1;
}

/* What answers a host that asked. */
static const struct answer {
	const char *to, *proto;
	unsigned sport, other;
	const char *flags;
} answers[] = {
	{"TCP connections", "tcp", 443, 5222, " flags syn,ack"},
	{"DNS queries", "udp", 53, 3478, ""},
};
#define LET_IN "{state: established, action: pass}"

/* *all: by the default, or a rule that holds for everything. */
static bool is_dropped(const struct generation *g, const char *packet, bool *all)
{
	struct ax_explain x;

	if (!judge(g, packet, AX_STATE_ESTABLISHED, &x) || x.verdict != AX_VERDICT_DROP ||
	    x.decided != AX_DECIDED_RULE || x.rule > g->layout.rules)
		return false;
	*all = ((const struct ax_action *)(g->data + g->layout.actions))[x.rule].flags &
	       AX_ACTION_CATCH_ALL;
	return true;
}

/* Whoever answers: a rule about one port, or about some who send, was meant so. */
static bool drops_answers(const struct generation *g, const struct answer *a,
			  const struct ax_addr *own)
{
	char address[ADDR_STRLEN], packet[160];
	const char *const format =
		addr_is_v4(own) ? "%s %s:%u > %s:%u%s" : "%s [%s]:%u > [%s]:%u%s";
	bool all;

	addr_format(own, address);
	snprintf(packet, sizeof(packet), format, a->proto, addr_is_v4(own) ? FROM4 : FROM6,
		 a->sport, address, ANSWERED_PORT, a->flags);
	if (!is_dropped(g, packet, &all))
		return false;
	snprintf(packet, sizeof(packet), format, a->proto, addr_is_v4(own) ? OTHER4 : OTHER6,
		 a->other, address, OTHER_PORT, a->flags);
	return all || is_dropped(g, packet, &all);
}

static bool cuts_answer(const struct cutting *c, const struct answer *a)
{
	struct ax_addr own;

	for (int v6 = 0; v6 < 2; v6++) {
		if (!own_address(c->ifname, v6 ? AF_INET6 : AF_INET, &own))
			continue;
		if (drops_answers(c->new, a, &own) && !(c->old && drops_answers(c->old, a, &own)))
			return true;
	}
	return false;
}

static void check_answers(const struct cutting *c)
{
	char text[400];

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (!cuts_answer(c, &answers[i]))
			continue;
		snprintf(text, sizeof(text),
			 "warning: this list drops the answers to this host's own %s that come in "
			 "by %s; to let them in: %s",
			 answers[i].to, c->ifname, LET_IN);
		say(c, text);
	}
}

/* Whose packets it looks at: of the session, and between FROM4 or FROM6 and the own addresses. */
struct looked_at {
	struct ax_addr addr[6];
	size_t n;
	unsigned port[6];
	size_t n_ports;
};

static void look_at(struct looked_at *l, const char *address)
{
	if (!addr_parse(address, &l->addr[l->n]))
		l->n++;
}

static void find_looked_at(const char *ifname, const struct xdp_load_options *o,
			   struct looked_at *l)
{
	char ssh[128], client[64], server[64];
	unsigned cport, sport;

	if (session_of(o, ssh, client, server, &cport, &sport)) {
		look_at(l, client);
		look_at(l, server);
		l->port[l->n_ports++] = cport;
		l->port[l->n_ports++] = sport;
	}
	look_at(l, FROM4);
	look_at(l, FROM6);
	l->n += own_address(ifname, AF_INET, &l->addr[l->n]);
	l->n += own_address(ifname, AF_INET6, &l->addr[l->n]);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		l->port[l->n_ports++] = answers[i].sport;
	l->port[l->n_ports++] = ANSWERED_PORT;
}

static bool holds_any(const struct rule_set_def *s, const struct looked_at *l)
{
	for (size_t i = 0; i < s->n; i++) {
		for (size_t k = 0; k < l->n && s->kind == SET_PREFIXES; k++)
			if (prefix_contains(&s->prefixes[i], &l->addr[k]))
				return true;
		for (size_t k = 0; k < l->n_ports && s->kind == SET_PORTS; k++)
			if (s->ports[i].lo <= l->port[k] && l->port[k] <= s->ports[i].hi)
				return true;
	}
	return false;
}

bool xdp_may_cut_off(const char *ifname, const struct set_change *ch, size_t n,
		     const struct xdp_load_options *o)
{
	struct looked_at l = {0};

	find_looked_at(ifname, o, &l);
	for (size_t i = 0; i < n; i++)
		if (holds_any(ch[i].elements, &l))
			return true;
	return false;
}

void xdp_warn_cut_off(const char *ifname, const struct generation *new,
		      const struct generation *old, const struct xdp_load_options *o)
{
	const struct cutting c = {.ifname = ifname, .new = new, .old = old, .o = o};

	check_session(&c);
	if (!place_is_egress(ifname))
		check_answers(&c);
}
