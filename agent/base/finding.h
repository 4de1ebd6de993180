/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `ax doctor` has found out about one thing. */
#ifndef AX_BASE_FINDING_H
#define AX_BASE_FINDING_H

#include <stdbool.h>

enum finding_state {
	FINDING_OK,
	FINDING_NOTE, /* worth knowing: slower, or another program is there */
	FINDING_BAD,  /* packets will be lost or a program refused */
	FINDING_FIXED,
};

struct finding {
	enum finding_state state;
	bool others;	  /* what another list does, not that which was asked about */
	const char *what; /* a short name: "napi", "tx-checksum", "mtu", "queues", "program" ... */
	char why[256];	  /* what is so, and what follows from it */
	char fix[256];	  /* a command that repairs it, "": none is needed or known */
};

#endif
