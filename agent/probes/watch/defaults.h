/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times of the programs of ax trace exec, open and tcp. */
#ifndef AX_PROBES_WATCH_DEFAULTS_H
#define AX_PROBES_WATCH_DEFAULTS_H

#define WATCH_RING_BYTES    (4 << 20) /* records on their way; a power of two */
#define WATCH_WAKE_FRACTION 4	      /* a reader is woken when this part of the ring is full */
#define WATCH_POLL_MS	    5	      /* how often a reader looks for records */
#define WATCH_TREE_ENTRIES  65536     /* processes that are watched, with those that they started */
#define WATCH_RUNNING_MAX   65536     /* exec: processes whose times are known */

#endif
