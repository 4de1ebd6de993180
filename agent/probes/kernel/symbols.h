/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of the kernel, and which of them take probes. */
#ifndef AX_PROBES_KERNEL_SYMBOLS_H
#define AX_PROBES_KERNEL_SYMBOLS_H

#include "base/util.h"

/*
 * Functions whose names match the glob, in the kernel (module "" or "vmlinux"), in a module, or in
 * all (NULL); sorted by address, which is 0 where the kernel hides them. A name can be there more
 * than once. Of what a glob matches only functions that take probes: those that tracefs lists in
 * available_filter_functions where that can be read (only they take kprobe_multi and fentry), and
 * none of the kernel's blacklist. A name alone is only looked up. f returns non-zero to end, which
 * is returned; its `module` is "" for the kernel itself. -ENOENT: none matches (with "did you
 * mean").
 */
int kernel_functions(const char *module, const char *glob,
		     int (*f)(void *arg, const char *name, const char *module, uint64_t address),
		     void *arg, struct error *e);

/* The address of anything that has a name in the kernel. -ENOENT; -EPERM: it is hidden. */
int kernel_symbol_address(const char *name, uint64_t *ret, struct error *e);

/* False: the kernel says that it takes no kprobe there (its blacklist, where that can be read). Of
 * functions with the same name: of any of them. */
bool kernel_symbol_probeable(const char *name);

#endif
