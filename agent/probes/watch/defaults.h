/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times of the programs of ax trace exec, open, tcp, build, hypercall and jit. */
#ifndef AX_PROBES_WATCH_DEFAULTS_H
#define AX_PROBES_WATCH_DEFAULTS_H

#define WATCH_RING_BYTES     (4 << 20) /* records on their way; a power of two */
#define WATCH_WAKE_FRACTION  4	       /* a reader is woken when this part of the ring is full */
#define WATCH_POLL_MS	     5	       /* how often a reader looks for records */
#define WATCH_TREE_ENTRIES   65536 /* processes that are watched, with those that they started */
#define WATCH_RUNNING_MAX    65536 /* exec: processes whose times are known */
#define WATCH_HYPERCALL_ROWS 16384 /* hypercall: lines of its table */
#define WATCH_JIT_RING	     (32u << 20) /* jit: bytes of pages on their way; a power of two */
#define WATCH_JIT_POLL_MS    20		 /* a reader is woken by what becomes executable */

/* profile and offcpu */
#define WATCH_STACKS	      16384 /* different call stacks, of programs and of the kernel */
#define WATCH_STACK_KEYS      16384 /* different pairs of them */
#define WATCH_WAITING	      32768 /* threads that wait */
#define WATCH_KNOWN_PROCESSES 8192
#define WATCH_PROFILE_RING \
	(1 << 20) /* bytes of records on their way; of copies as many as are needed, */
#define WATCH_PROFILE_RING_MAX (64u << 20) /* up to this */
#define WATCH_PROFILE_POLL_MS  20	   /* how often a reader looks for records */

#endif
