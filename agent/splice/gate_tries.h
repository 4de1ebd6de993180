/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the gate tries, and what is made of it. A machine with much else to do lets a behaviour look
 * as if it differed: what differs is tried again, by TCP too, and is found to differ only when it
 * did so each time.
 */
#ifndef AX_SPLICE_GATE_TRIES_H
#define AX_SPLICE_GATE_TRIES_H

#include "splice/behaviour.h"
#include "splice/gate.h"

/* So often, before it is judged: on a machine with nothing else to do, and on others. */
#define GATE_TRIES	2
#define GATE_TRIES_SLOW 3
#define GATE_TRIED_MAX	256

/* In this order. The second time by TCP is for machines with much else to do: what it shows must
 * not depend on the moment either. */
enum gate_part { PART_TCP, PART_MEMBER, PART_REDIRECTED, PART_TCP_AGAIN, GATE_PARTS };

/* A variant of a behaviour. */
struct gate_tried {
	const struct behaviour *behaviour;
	int family; /* AF_INET or AF_INET6 */
	bool nonblock;
	bool differed[GATE_MODES];		/* each time so far; of GATE_TCP: in any mode */
	char words[GATE_PARTS][GATE_WORDS_MAX]; /* what was seen the last time, printable */
};
struct gate_tries {
	struct gate_tried of[GATE_TRIED_MAX];
	size_t n;
	bool slow; /* the machine had much else to do; set by who runs them */
};

/* All behaviours, each in its variants; nothing is known yet. */
void gate_tries_all(bool ipv6, struct gate_tries *ret);
/* Is it to be run in that part? */
bool gate_tried_wanted(const struct gate_tried *t, enum gate_part part);
/*
 * Has parts run until it is known what differs. `run` puts what it saw of each that is wanted into
 * words[part], the nth time from 0; of parts of which nothing is wanted it is not called. Returns
 * 0, or what `run` did, as soon as that is not 0.
 */
int gate_tries_judge(struct gate_tries *t,
		     int (*run)(void *arg, struct gate_tries *t, enum gate_part part, unsigned nth),
		     void *arg);
/* Afterwards: what was found to differ. */
void gate_tries_result(const struct gate_tries *t, struct gate_result *ret);

/*
 * Of TCP's first run of all behaviours, which took so many ms when the waits and pauses in them
 * were what they are at a slowness of 1 (behaviour.h): the slowness of the nth time from 0.
 */
unsigned gate_slowness(int tcp_ms, unsigned nth);

#endif
