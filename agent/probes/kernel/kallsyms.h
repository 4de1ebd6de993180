/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's list of its symbols, a line at a time: it is never held whole. */
#ifndef AX_PROBES_KERNEL_KALLSYMS_H
#define AX_PROBES_KERNEL_KALLSYMS_H

#include "base/util.h"

#define KALLSYMS "/proc/kallsyms"

struct kallsym {
	uint64_t address; /* 0: hidden */
	char type;	  /* as nm says: 't' and 'w' are code, capitals of all files */
	const char *name;
	const char *module; /* "": the kernel itself; "bpf" and "__builtin__ftrace": made by it */
};
/* f returns non-zero to end, which is returned. -errno: the file cannot be read. */
int kallsyms_read(const char *path, int (*f)(void *arg, const struct kallsym *s), void *arg);
static inline bool kallsym_is_code(const struct kallsym *s)
{
	return strchr("tTwW", s->type) != NULL;
}

#endif
