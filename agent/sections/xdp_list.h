/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What xdp_section.c needs of lists: reading, comparing, and the backends that services give. */
#ifndef AX_SECTIONS_XDP_LIST_H
#define AX_SECTIONS_XDP_LIST_H

#include "config/config.h"
#include "iface/iface.h"

struct agent;

/* The list of a config's interface with the contents of all files that it names; *l is
 * initialised. Balancers of services have no backends yet. Paths of the config are relative to
 * `dir`, those of a rules file to that file's directory. */
int xdp_list_read(const struct config_interface *c, const char *dir, struct rule_list *l,
		  struct error *e);
/* Gives the balancers that name a service that service's backends, as they are now. */
int xdp_list_set_backends(struct agent *a, struct rule_list *l, bool *changed, struct error *e);
/* The names of those services (replaces what is in *names). */
int xdp_list_services(const struct rule_list *l, struct strv *names);
bool xdp_list_has_triggers(const struct rule_list *l);
/* The list that the kernel has for the interface of that name as it is now. -ENOENT: none. */
int xdp_list_of_kernel(const struct instance *inst, const char *ifname, struct rule_list *l,
		       struct error *e);
/* Whether that is this one, to the byte. */
int xdp_list_is_loaded(const struct instance *inst, const char *ifname, const struct rule_list *l,
		       bool *same, struct error *e);
/* What is new, in words: "+ RULE; - RULE; default pass -> drop". "": nothing. Backends that come
 * from services do not count. malloc'ed, NULL: out of memory. */
char *xdp_list_diff(const struct rule_list *old, const struct rule_list *new);

#endif
