/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of `ax trace jit` tell user space: memory that becomes executable. */
#ifndef AX_JIT_EVENT_H
#define AX_JIT_EVENT_H

#include <linux/types.h>
#include "trace_event.h"

#define AX_JIT_PAGE	  4096
#define AX_JIT_PAGES_MAX  16384 /* of one range that are copied at once */
#define AX_JIT_RANGES_MAX 32	/* of one process that are copied when it ends */

enum ax_jit_kind {
	AX_JIT_MMAP = 1,
	AX_JIT_MPROTECT,
	AX_JIT_PROGRAM, /* execve(): its memory is another one from now on */
	AX_JIT_FORK,	/* its memory is as that of `parent` */
	AX_JIT_END,
	AX_JIT_GONE, /* what was executable and writable there is so no more */
};

struct ax_jit_event {
	struct ax_watch_head head;
	__u64 address, length; /* whole pages */
	__u32 kind;	       /* enum ax_jit_kind */
	__u32 prot;	       /* PROT_*, as they were asked for */
	__u32 number, parent;  /* processes, as the reader's pid namespace has them; 0: not there */
	__u32 shared;	       /* it may be written through another mapping */
	__u32 file;	       /* it is a file's, maybe one without a name (memfd) */
	__u32 hidden;	       /* it may not be read by the process itself: copies may be missing */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_jit_event) == 168, "struct ax_jit_event is read by user space");

/* One page as it was at that time. Told before the event that it belongs to, of which it is part.
 */
struct ax_jit_page {
	__u64 no_time; /* 0 */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 address;
	__u32 number; /* of the process, as above */
	__u32 tid;
	__u8 data[AX_JIT_PAGE];
};
_Static_assert(sizeof(struct ax_jit_page) == 32 + AX_JIT_PAGE,
	       "struct ax_jit_page is read by user space");

/* What of a process can be written while it is executable. */
struct ax_jit_range {
	__u64 start, end;
};
struct ax_jit_ranges {
	__u64 n;   /* may be more than there are */
	__u64 own; /* some became so since the process was forked */
	struct ax_jit_range v[AX_JIT_RANGES_MAX];
};
_Static_assert(sizeof(struct ax_jit_ranges) == 16 + 16 * AX_JIT_RANGES_MAX,
	       "struct ax_jit_ranges is a map's value");

#endif
