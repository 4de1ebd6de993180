/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes of the maps of an interface that depend on its list (map_size.c); entries. */
#ifndef AX_IFACE_DEFAULTS_H
#define AX_IFACE_DEFAULTS_H

#define IFACE_COUNTERS_MIN   1024  /* of rules */
#define IFACE_COUNTERS_MAX   65536 /* four times the rules of the longest list */
#define IFACE_UNUSED_ENTRIES 64	   /* of a table that no rule of the list leads to */
#define IFACE_SOURCES	     65536 /* addresses that limits of each source count */
#define IFACE_CPU_QUEUE	     2048  /* frames that wait for a CPU; more are dropped */

#endif
