/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What makes packets vanish or programs be refused on an interface, asked before it happens:
 * drivers, NAPI on a veth's peer, checksum offload, MTU and queues.
 */
#ifndef AX_IFACE_PREFLIGHT_H
#define AX_IFACE_PREFLIGHT_H

#include "base/finding.h"
#include "machine/instance.h"
#include "datapath/kernel.h"
#include "rules/list.h"

/*
 * Checks an interface for what the rules of a list do there (NULL: for itself, as `ax doctor IFACE`
 * does). The instance (NULL: none) says which backends are apps of this machine. report is called
 * for each finding. With fix, what can be repaired is repaired. Returns the number of findings that
 * stay bad, or a negative errno with *e set.
 */
int preflight(const struct instance *inst, const char *ifname, const struct rule_list *l,
	      enum xdp_mode mode, bool fix, void (*report)(void *arg, const struct finding *f),
	      void *arg, struct error *e);

#endif
