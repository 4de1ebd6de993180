/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The suite's own tables of behaviours; those of the agent's gate stand in agent/splice. */
#ifndef AX_TESTS_SPLICE_BEHAVIOURS_H
#define AX_TESTS_SPLICE_BEHAVIOURS_H

#include "splice/behaviour.h"

/* Each ends with an entry without a name. */
extern const struct behaviour behaviours_read[], behaviours_wait[], behaviours_end[],
	behaviours_write[], behaviours_full[], behaviours_move[], behaviours_uring[],
	behaviours_option[], behaviours_layer[];

/* What the programs do to a run's connections. */
enum mode {
	MODE_TCP,      /* no program is near */
	MODE_MEMBER,   /* both ends are in a sockhash, whose program passes everything on */
	MODE_REDIRECT, /* the program hands what it may to the other end */
	MODES,
};

#endif
