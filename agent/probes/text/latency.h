/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What measures time, as text: FUNCTION's entry to its return, or
 *   PROBE [if CONDITION] [on VALUE] to PROBE [if CONDITION] [by VALUE ...] [on VALUE]
 * in the same thread, or with the same value. No side effects.
 */
#ifndef AX_PROBES_TEXT_LATENCY_H
#define AX_PROBES_TEXT_LATENCY_H

#include "probes/text/spec.h"

struct latency {
	struct probe_spec specs[2]; /* where the time ends; where it begins */
	struct probe_spec on[2];    /* each has the value as its only argument, or none */
	size_t n;		    /* 1: a function */
};
/* On failure there is nothing to free. */
int latency_parse(const char *text, struct latency *l, struct error *e);
void latency_free(struct latency *l);
/* The canonical text, which parses into an equal one. malloc'ed. */
char *latency_format(const struct latency *l);

#endif
