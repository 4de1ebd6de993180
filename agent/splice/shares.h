/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many members each app may have: whoever fills the map leaves room for the others. Looks at
 * records only. */
#ifndef AX_SPLICE_SHARES_H
#define AX_SPLICE_SHARES_H

#include "base/util.h"
#include "splicing.h"

/* Sockets of one app; and how many it may have in any case, while half of the map is in use. */
#define SHARES_APP_MAX	8192
#define SHARES_APP_SURE 64

struct shares {
	struct share *v; /* by app */
	size_t n, total;
};

/* Who has how many by these records. 0 or -ENOMEM. */
int shares_open(const struct ax_splice_conn *conns, size_t n, struct shares *ret);
void shares_close(struct shares *s);
/* Room for one more of each (two, if they are one app), who are in the records. */
bool shares_take(struct shares *s, uint32_t app, uint32_t other);

#endif
