/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Elements that are in a set for a time: put there, removed, and shown. */
#ifndef AX_TOOLS_XDP_SET_TIMED_H
#define AX_TOOLS_XDP_SET_TIMED_H

#include "tools/xdp/common.h"

/* Puts elements into a set for so many milliseconds, and says so. A set that takes none for a time
 * yet does from then on. -ENOENT: the interface has no such set. */
int set_hold(struct cmd *c, const char *ifname, const char *set,
	     const struct rule_set_def *elements, uint32_t ms, const struct xdp_load_options *o,
	     struct error *e);
/* Prints them, a line each with the time left, or appends them to `to`. */
int set_put_timed(struct xdp *x, const char *set, json_t *to, struct error *e);
/* How many there are. */
int set_count_timed(struct xdp *x, const char *set, size_t *n, struct error *e);

#endif
