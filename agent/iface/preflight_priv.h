/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the preflight check share. */
#ifndef AX_IFACE_PREFLIGHT_PRIV_H
#define AX_IFACE_PREFLIGHT_PRIV_H

#include "datapath/xdp_datapath.h"
#include "net/ethtool.h"
#include "net/netlink.h"
#include "iface/preflight.h"

/* --- preflight_device.c --- */

/* A network namespace with sockets in it. */
struct place {
	int fd; /* -1: the caller's own */
	struct nl *nl;
	struct ethtool *et;
	char prefix[160]; /* what a command that is to run there begins with, "" or with a blank */
};
int place_open(int netns_fd, struct place *ret);
void place_close(struct place *p);

struct device {
	const struct place *place; /* NULL: there is no such device */
	char name[16];
	char quoted[64]; /* the name for a command */
	char kind[32];	 /* the driver's name, else the kind of link, else "" */
	unsigned ifindex, mtu;
	bool up, veth;
	uint32_t native, generic, offloaded; /* ids of XDP programs, 0: none */
	uint32_t features;		     /* bits by enum ethtool_feature */
	struct ethtool_queues queues;
	bool knows_xdp; /* the kernel says what XDP can do there: */
	uint64_t xdp;	/* enum ethtool_xdp_feature */
	unsigned link;	/* veth: the peer, */
	int link_nsid;	/* in the namespace that has this number here, -1: in the same one */
};
static inline bool device_has(const struct device *d, enum ethtool_feature f)
{
	return d->features & 1u << f;
}
/* By name, or with NULL by number. -ENODEV. */
int device_load(const struct place *p, const char *name, unsigned ifindex, struct device *ret);
/* A veth's other end. *p is filled with its place, to be closed by the caller whatever happened.
 * -ENOENT: it is in a network namespace that cannot be found. */
int device_peer(const struct device *d, struct place *p, struct device *ret);

/* Attaches a program that lets everything pass. -EBUSY: there is one. */
int device_attach_pass(const struct device *d);

/* --- preflight.c and preflight_rules.c --- */

struct check {
	struct place here, there; /* there: the peer's */
	struct device dev, peer;
	int peer_error; /* veth: why the peer is not known */
	bool generic;	/* programs will run in generic mode */
	enum xdp_mode mode;
	bool fix;
	void (*report)(void *arg, const struct finding *f);
	void *arg;
	int bad;
	bool others;	/* what is found now is about other lists */
	unsigned *seen; /* numbers of targets that were looked at, */
	size_t n_seen;
	struct strv devices, balancers; /* and the names by which rules called them */
	struct datapath_apps apps;
	bool nat;   /* some list of the instance has NAT, whose answers may come in here */
	bool vlans; /* the list routes or challenges, and there are VLANs of the interface */
};

void found(struct check *c, enum finding_state state, const char *what, const char *fix,
	   const char *fmt, ...) PRINTF(5, 6);
/* Reports a finding that was or could be repaired: r is 0 (repaired), 1 (nobody tried), or the
 * error of the attempt. `bad` is its state when it stays. */
void found_repair(struct check *c, int r, enum finding_state bad, const char *what, const char *fix,
		  const char *fmt, ...) PRINTF(6, 7);
#define FIX_SIZE 256

/* What the rules of a list do there. NULL: what any list might. Returns 0 or -ENOMEM. */
int check_rules(struct check *c, const struct rule_list *l);
/* preflight_route.c: where rules with `action route` route, and what is left to the kernel. */
void check_routes(struct check *c, const struct rule_list *l);
/* preflight_challenge.c: what rules with `action challenge` need of the kernel. */
void check_challenges(struct check *c, const struct rule_list *l);

#endif
