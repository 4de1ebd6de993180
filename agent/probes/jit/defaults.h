/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_JIT_DEFAULTS_H
#define AX_PROBES_JIT_DEFAULTS_H

#define JIT_CODES_MAX	   (1u << 20)	/* pieces of code that are read from a file */
#define JIT_CODE_MAX	   (256u << 20) /* bytes of one */
#define JIT_MOVE_STEPS	   (1u << 27)	/* to find what was moved, in one file */
#define JIT_RUN_PAGES	   64		/* pages side by side that are written as one piece */
#define JIT_PAGES_MAX	   (1u << 20)	/* of one process that are told apart */
#define JIT_PAGES_ALL	   (2u << 20)	/* of all processes, up to 96 bytes for each */
#define JIT_LOOK_PAGES	   (1u << 16)	/* of one range that are looked at again */
#define JIT_DEFAULT_MAX_MB 1024		/* of all that is kept */

#endif
