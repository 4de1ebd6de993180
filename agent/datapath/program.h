/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An XDP program on an interface, whoever put it there. */
#ifndef AX_DATAPATH_PROGRAM_H
#define AX_DATAPATH_PROGRAM_H

#include "base/util.h"

/* The name of the program that a repair puts on an interface; it passes everything. */
#define PASS_PROGRAM "ax_pass"

struct xdp_program_info { /* in the order in which they run */
	char name[32];
	uint32_t id;
	uint32_t priority;
	bool ours;
};

#endif
