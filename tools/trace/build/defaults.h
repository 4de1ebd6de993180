/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times and sizes of ax trace build. */
#ifndef AX_TOOLS_TRACE_BUILD_DEFAULTS_H
#define AX_TOOLS_TRACE_BUILD_DEFAULTS_H

#define BUILD_POLL_MS	    20		 /* how long records lie in the ring, unless it fills */
#define BUILD_END_MS	    10000	 /* for a command to end that was told to */
#define BUILD_LABEL_MAX	    512		 /* bytes of a text in a graph */
#define BUILD_COMMAND_SHOWN 60		 /* of a command in its box */
#define BUILD_PROGRAM_SHOWN 16		 /* of which, where it is shortened, for its first word */
#define BUILD_GRAPH_BOXES   100		 /* of a graph that can be read */
#define BUILD_GRAPH_EDGES   4		 /* for each of them */
#define BUILD_CACHES_MAX    64		 /* of compilers, that are told from other files */
#define BUILD_DATABASE_MAX  (256u << 20) /* bytes that make prints */

#endif
