/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fetch program run here and not in the kernel, for a thread that is stopped. */
#ifndef AX_PROBES_FETCH_EVALUATE_H
#define AX_PROBES_FETCH_EVALUATE_H

#include "probes/fetch/fetch.h"

struct fetch_thread {
	const void *registers; /* as struct pt_regs begins */
	size_t n_registers;    /* bytes */
	uint32_t pid, tid;
	int (*read)(void *arg, uint64_t address, void *to, size_t len); /* below 0: not there */
	void *arg;
};
/* The values become those of a record of `size` bytes. Its length; 0: they do not fit. What only
 * the kernel knows (call stacks, the entry's values) is a fault. */
size_t fetch_evaluate(const struct fetch *f, const struct fetch_thread *t,
		      struct ax_probe_record *ret, size_t size);

#endif
