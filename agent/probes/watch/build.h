/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programs of ax trace build. Their records: build_event.h. */
#ifndef AX_PROBES_WATCH_BUILD_H
#define AX_PROBES_WATCH_BUILD_H

#include "build_event.h"
#include "probes/watch/watch.h"

#define WATCH_BUILD_RING_BYTES (16 << 20)

/* pid: of the process that is followed, with all that it starts. ring: of records on their way, a
 * power of two. */
int watch_build_load(int pid, uint32_t ring, struct watch **ret, struct error *e);
/* How many processes that are followed have not ended. */
size_t watch_build_running(struct watch *w);

#endif
