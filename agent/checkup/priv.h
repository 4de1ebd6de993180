/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef AX_CHECKUP_PRIV_H
#define AX_CHECKUP_PRIV_H

#include "checkup/checkup.h"

/* Clocks that differ by more are worth a word; by so much, certificates and signed datagrams are
 * taken for what they are not. */
#define CLOCK_NOTE_S 2
#define CLOCK_BAD_S  30

struct check {
	const struct checkup_cluster *c;
	const struct checkup_node *node; /* NULL: this one */
	checkup_fn report;
	void *arg;
	int bad;
};

/* fix: NULL where none is known. */
void checkup_found(struct check *c, enum finding_state state, const char *what, const char *fix,
		   const char *fmt, ...) PRINTF(5, 6);
enum finding_state checkup_clock(int64_t ahead_s);

/* nodes.c. 0 or a negative errno with a sentence. */
int checkup_nodes(struct check *c, struct error *e);

#endif
