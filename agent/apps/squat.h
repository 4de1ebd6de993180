/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs outside ax can bind an address that nobody has yet (IP_FREEBIND), and a host-mode app
 * could not bind there any more: such addresses are passed over.
 *
 * The kernel tells who has bound an address by a walk over all its TCP sockets, which takes as long
 * as a whole launch where there are tens of thousands. There, an app of a large pool gets an
 * address that nobody can foresee, of which it is asked only what is told at once (who listens, and
 * UDP); the walk is done a little later, beside the loop. When it finds somebody on an address that
 * was given to nobody, every launch walks again.
 */
#ifndef AX_APPS_SQUAT_H
#define AX_APPS_SQUAT_H

#include "base/util.h"

struct agent;
struct app;
struct ax_addr;
struct pool;

/* An address of the pool that nobody has bound. Whoever has bound many in a row is not sat out but
 * jumped over. -ENOSPC. */
int squat_take_free(struct agent *a, const struct app *app, struct pool *p, struct ax_addr *ret);

/* An address that was asked for is had whoever has bound it: the log says who that is. */
void squat_warn(const struct app *app, const struct ax_addr *addr);

/* Ends what TCP still does for the last app in host mode that had the address, and which would keep
 * its ports from this one: closes that nobody answers, TIME-WAIT. (A private app's is gone with its
 * network; and the pool comes round to an address late.) */
void squat_end_last(const struct app *app, const struct ax_addr *addr);

/* Does the walk when it is time, and when that is; 0: none is wanted. */
void squat_due(struct agent *a, uint64_t now_ns);
uint64_t squat_deadline(const struct agent *a);

#endif
