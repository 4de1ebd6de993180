/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs fetch programs on a program that is stopped. x86-64 only. */
#ifndef AX_TESTS_PROBE_FETCH_H
#define AX_TESTS_PROBE_FETCH_H

#include "probes/fetch/evaluate.h"
#include "tests/lib/probe_programs.h"

#ifdef __x86_64__
struct fetch_run {
	const struct stopped *s;
	uint64_t saved[AX_PROBE_SAVED];
	char text[4096]; /* of all values: "a=1 b=\"x\"" */
};

/* What is kept of a function's entry. */
void run_entry(struct fetch_run *r, const struct fetch *f);
/* The text of all values. */
void run_values(struct fetch_run *r, const struct fetch *f);
#endif

#endif
