/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that takes long, beside the loop: nobody else waits for it. A work runs on a stack of its
 * own in the loop's thread, in slices: between two of them, where it says so, the loop goes round.
 * One begins when the one before it has ended, so that none meets another half done; but whoever
 * else changes the agent's state may have come in between two slices. Root's come first, and other
 * users' take turns: nobody waits for all that somebody else has asked for.
 *
 * What cannot be cut in slices (a system call that waits for the kernel, a parser) a work has done
 * by a thread, which must not touch the agent's state.
 */
#ifndef AX_BASE_WORK_H
#define AX_BASE_WORK_H

#include "base/loop.h"
#include "base/util.h"

struct work; /* one queue of works: those of another one go on beside them */

int work_open(int epoll, struct work **ret);
/* What has not ended by then never does. */
void work_close(struct work *w);

/* Begins f(arg), or has it begin, for the user who asks for it: 0 is root, and the agent itself.
 * -ENOMEM: it never will. */
int work_start(struct work *w, unsigned uid, void (*f)(void *arg), void *arg);
/* Nothing has begun, and nothing of root's is going to. */
bool work_is_idle(const struct work *w);

/* For the loop: LOOP_WORK. */
void work_on_loop(struct loop_item *item);

/* --- for what may be part of a work; outside of one, and with w NULL, nothing is cut --- */

/* Here others may come in, if the slice is over. */
void work_pause(struct work *w);
/* Has f(arg) done by a thread, and returns when it is. */
void work_offload(struct work *w, void (*f)(void *arg), void *arg);
/* Within what is done by a thread: f(arg) is done by the loop's. */
void work_in_loop(struct work *w, void (*f)(void *arg), void *arg);

#endif
