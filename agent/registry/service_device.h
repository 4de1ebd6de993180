/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device to which services with private backends are routed (xdp/service.bpf.c). */
#ifndef AX_REGISTRY_SERVICE_DEVICE_H
#define AX_REGISTRY_SERVICE_DEVICE_H

#include "base/util.h"

struct agent;

struct service_device {	 /* in struct agent */
	uint32_t routes; /* that lead to it */
};

/* Takes over the last agent's, before the programs are told anything. */
void service_device_adopt(struct agent *a);

/* Opens it, if it is not there. */
int service_device_open(struct agent *a);

/* The name of its other end, where balancers' packets to apps go in and apps' answers come out. */
void service_device_peer(const struct agent *a, char ret[16]);

/* Lets NAT balancers (include/balance.h) reach apps by it: from now on there are addresses that
 * they send from, and the programs are told. And the end of that. */
int service_device_take_balancers(struct agent *a, struct error *e);
int service_device_drop_balancers(struct agent *a, struct error *e);

/* A route has another device than it had, 0: there is or was none. The last one to leave closes it.
 */
void service_device_routed(struct agent *a, unsigned was, unsigned now);

/* Closes it if nothing is routed to it. */
void service_device_settle(struct agent *a);

/* Whether a device of that name is one of the pair. */
bool service_device_is(const struct agent *a, const char *name);

#endif
