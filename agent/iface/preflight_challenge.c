/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The preflight check of rules with `action challenge`: what the kernel does with cookies in this
 * network namespace, and what that means for who is challenged. Without cookies nobody is: that is
 * repaired if that was asked for. How much of TCP they carry is said only; what it costs to change
 * that is for the host's administrator to weigh.
 */
#include "iface/preflight_priv.h"
#include "iface/priv.h"
#include "iface/ways.h"

#define SYNCOOKIES "net.ipv4.tcp_syncookies"
#define TIMESTAMPS "net.ipv4.tcp_timestamps"

/* -1: there is none. */
static int number_in(const char *path)
{
	autofree char *value = NULL;

	return file_read(path, 16, &value) ? -1 : atoi(value);
}

static void check_syncookies(struct check *c)
{
	static const char path[] = "/proc/sys/net/ipv4/tcp_syncookies";
	int value = number_in(path), r = 1;

	if (value < 0) {
		found(c, FINDING_BAD, "challenge", "",
		      "this kernel has no SYN cookies (CONFIG_SYN_COOKIES): no SYN is challenged");
	} else if (value == 0) {
		if (c->fix)
			r = file_write(path, "2");
		found_repair(c, r, FINDING_BAD, "challenge", "sysctl -w " SYNCOOKIES "=2",
			     "the kernel makes no SYN cookies (" SYNCOOKIES
			     "=0): no SYN is challenged");
	} else if (value == 1) {
		found(c, FINDING_NOTE, "challenge", "sysctl -w " SYNCOOKIES "=2",
		      "a SYN is challenged only while its listening socket's queue is full "
		      "(" SYNCOOKIES "=1): until then it waits there for its ACK");
	} else {
		found(c, FINDING_OK, "challenge", "", "every SYN is challenged");
	}
}

static void check_timestamps(struct check *c)
{
	int value = number_in("/proc/sys/net/ipv4/tcp_timestamps");

	if (value == 2)
		return;
	found(c, FINDING_NOTE, "challenge", "sysctl -w " TIMESTAMPS "=2",
	      "connections that were challenged have neither window scaling nor SACK: the kernel "
	      "%s (" TIMESTAMPS "=%d)",
	      value == 1 ? "adds to the time stamps, which would carry them, what nobody is told"
			 : "has no time stamps, which would carry them",
	      value);
}

/* Connection tracking sees the ACK first. */
static void check_tracking(struct check *c)
{
	if (number_in("/proc/sys/net/netfilter/nf_conntrack_tcp_loose") != 0)
		return;
	found(c, FINDING_NOTE, "challenge", "sysctl -w net.netfilter.nf_conntrack_tcp_loose=1",
	      "connection tracking takes connections of which it saw no SYN for invalid "
	      "(net.netfilter.nf_conntrack_tcp_loose=0): where a rule of nft or iptables drops "
	      "such, who was challenged gets none");
}

static const char *why_not(const struct ways *w, const struct ether_link *in)
{
	const char *why;

	if (!in)
		return "has no Ethernet headers";
	why = ways_why_not_in(w, in);
	if (!why && *in->part_of)
		return "is part of a VRF";
	return why;
}

void check_challenges(struct check *c, const struct rule_list *l)
{
	const struct ether_link *in;
	const char *why;
	struct ways w;

	if (!l || !xdp_challenges(l))
		return;
	if (ways_look(&c->here, &w)) {
		found(c, FINDING_NOTE, "challenge", "", "the host's interfaces cannot be asked");
		return;
	}
	in = ways_link(&w, c->dev.ifindex);
	c->vlans |= ways_has_vlans(&w, c->dev.ifindex);
	why = why_not(&w, in);
	if (why)
		found(c, FINDING_BAD, "challenge", "",
		      "%s %s: no SYN that comes in there is challenged", c->dev.name, why);
	ways_free(&w);
	if (why)
		return;
	check_syncookies(c);
	check_timestamps(c);
	check_tracking(c);
}
