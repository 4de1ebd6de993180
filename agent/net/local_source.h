/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel must allow for exposed ports of private apps: that answers to programs of this
 * machine come in by lo from an address of this machine (accept_local) and from loopback ones
 * (route_localnet). Both are set for lo alone, by which nothing comes in from elsewhere. What they
 * were is kept in <run_dir>/expose, and put back by whoever is the last instance that has one.
 */
#ifndef AX_NET_LOCAL_SOURCE_H
#define AX_NET_LOCAL_SOURCE_H

#include "machine/instance.h"

int local_source_on(const struct instance *inst);
void local_source_restore(const struct instance *inst);

/* Forwarding for one of ax's devices, where only what its program lets through is forwarded; or as
 * this host has it for new ones. */
void local_source_device(const char *device, bool on);

/* Forwarding once more for the devices of all instances with exposed ports, whose run_dirs are in
 * `parent`: switching it off for the host took it from them. */
void local_source_devices(const char *parent);

#endif
