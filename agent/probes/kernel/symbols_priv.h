/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_KERNEL_SYMBOLS_PRIV_H
#define AX_PROBES_KERNEL_SYMBOLS_PRIV_H

#include "probes/kernel/symbols.h"

/* Where what the kernel says is read. "": not to be had. */
struct kernel_files {
	char symbols[64];
	char traceable[128]; /* available_filter_functions */
	char blacklist[128];
};
int kernel_functions_from(const struct kernel_files *k, const char *module, const char *glob,
			  int (*f)(void *arg, const char *name, const char *module,
				   uint64_t address),
			  void *arg, struct error *e);
bool kernel_probeable_from(const struct kernel_files *k, const char *name);

#endif
