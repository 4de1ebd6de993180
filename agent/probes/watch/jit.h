/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_WATCH_JIT_H
#define AX_PROBES_WATCH_JIT_H

#include "jit_event.h"
#include "probes/watch/watch.h"

int watch_jit_load(const struct watch_options *o, struct watch **ret, struct error *e);

#endif
