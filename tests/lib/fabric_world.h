/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who there is when the programs between apps and the host are tested: apps with devices,
 * addresses, labels and rules in a dataplane of the test's own. */
#ifndef AX_TESTS_FABRIC_WORLD_H
#define AX_TESTS_FABRIC_WORLD_H

#include "datapath/datapath.h"
#include "machine/instance.h"
#include "net/netlink.h"

/* Who is who. APP and PEER share a label. */
enum who {
	APP,
	PEER,
	STRANGER, /* with a label of its own */
	DENIED,	  /* shares APP's label; rule 0 denies it APP, rule 2 would allow it */
	FRIEND,	  /* shares no label; rule 1 allows it APP */
	EGRESS,	  /* may reach the outside */
	PRIVATE,  /* those above: private apps, each with a device */
	HOSTED = PRIVATE,
	DECLARED,
	HOST,
	VIPS, /* those above: known to the kernel */
	OUTSIDE = VIPS,
	MULTICAST,
	BROADCAST,
	MAPPED, /* APP's IPv4 address in an IPv6 header */
	WHO
};

struct fabric_world {
	struct instance inst;
	char cgroup[4096];
	struct datapath *dp;
	struct nl *nl;
	int from_app, to_app, to_service;
	struct ax_addr addr[WHO][2]; /* IPv4, IPv6 */
	unsigned device[PRIVATE];
	unsigned far; /* the app's end of APP's device */
};
extern struct fabric_world world;

/* For cmocka. */
int fabric_setup(void **state);
int fabric_teardown(void **state);

#endif
