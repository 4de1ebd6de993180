/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes of what follows processes: for its loader and for the programs. */
#ifndef AX_PROBES_FOLLOW_DEFAULTS_H
#define AX_PROBES_FOLLOW_DEFAULTS_H

#define FOLLOW_PROCESSES  65536	    /* that are followed at a time */
#define FOLLOW_FILES	  8192	    /* that are known; of more, some are told again */
#define FOLLOW_RING_BYTES (1 << 17) /* of files that are told; a power of two */

#endif
