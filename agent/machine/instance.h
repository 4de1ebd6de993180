/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of everything that belongs to one instance (--instance NAME), in one place. */
#ifndef AX_MACHINE_INSTANCE_H
#define AX_MACHINE_INSTANCE_H

#include "base/util.h"

#define INSTANCE_DEFAULT  "ax"
#define INSTANCE_NAME_MAX 8 /* "<instance>-<app id>" must fit an interface name */

struct instance {
	char name[INSTANCE_NAME_MAX + 1];
	char run_dir[64];      /* /run/ax/<name> */
	char socket_path[108]; /* <run_dir>/control.sock unless the config or --socket says
				  otherwise */
	char lock_path[96];    /* <run_dir>/lock */
	char log_dir[96];      /* <run_dir>/log: output of detached apps */
	char device_prefix[INSTANCE_NAME_MAX + 2]; /* "<name>-" */
	char dns_device[16], dns_peer[16];	   /* the pair that systemd-resolved is told of */
	char tunnel_device[16];			   /* WireGuard's, to other nodes */
	uint32_t route_metric; /* marks our routes: derived from the name, 24 bits */
};

/* Name: [a-z][a-z0-9]*, at most INSTANCE_NAME_MAX characters; NULL: the default. */
/* Of its devices, all alike. */
void instance_mac(const struct instance *i, uint8_t ret[6]);
int instance_init(struct instance *i, const char *name, struct error *e);

#endif
