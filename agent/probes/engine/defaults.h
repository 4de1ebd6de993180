/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times of the interpreter: for its loader and for the program itself. */
#ifndef AX_PROBES_ENGINE_DEFAULTS_H
#define AX_PROBES_ENGINE_DEFAULTS_H

/* The table of probes that count (ax trace count, hist, stats, latency): different keys. What comes
 * later is dropped, and said to be. */
#define ENGINE_TABLE_ENTRIES	65536
#define ENGINE_RING_BYTES	(2 << 20) /* records on their way; a power of two */
#define ENGINE_CALLS		32768 /* functions that were entered and have not returned yet */
#define ENGINE_STACKS		8192  /* different call stacks */
#define ENGINE_STACK_COPIES	(8 << 20) /* 300 of them on their way; a power of two */
#define ENGINE_THREAD_STATES	16384	  /* threads that are armed, and states of each */
#define ENGINE_MAP_VARIABLES	262144	  /* the same, and of all that is in maps */
#define ENGINE_TEXT_VARIABLES	8192	  /* texts in variables */
#define ENGINE_THREAD_VARIABLES 32768	  /* of all threads that live, once they are not 0 */

/* Links without uprobe_multi and kprobe_multi: each costs a tenth of a second to detach. */
#define ENGINE_PERF_LINKS_MAX  64
#define ENGINE_TRACEPOINTS_MAX 512  /* of tracepoints whose fields are wanted */
#define ENGINE_CLOSERS	       31   /* threads that help to detach them, and wait together */
#define ENGINE_EVENTS_AT_ONCE  16   /* tracepoints whose end is waited for, 40 ms each */
#define ENGINE_GONE_MS	       2000 /* for links to end when pinned ones are removed */

#endif
