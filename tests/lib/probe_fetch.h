/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs fetch programs as the interpreter does, on a program that is stopped. x86-64 only. */
#ifndef AX_TESTS_PROBE_FETCH_H
#define AX_TESTS_PROBE_FETCH_H

#include "probes/fetch/fetch.h"
#include "tests/lib/probe_programs.h"

#ifdef __x86_64__
struct fetch_run {
	const struct stopped *s;
	uint64_t acc, stack[AX_PROBE_STACK];
	unsigned depth;
	uint64_t saved[AX_PROBE_SAVED];
	uint64_t len; /* of the text that was read last */
	uint8_t put[512];
	size_t n_put;
	char text[4096]; /* of all values: "a=1 b=\"x\"" */
};

/* Of an entry's operations what is kept, of others the text of all values. */
void run_ops(struct fetch_run *r, const struct fetch *f, const struct ax_probe_op *ops, size_t n);
#endif

#endif
