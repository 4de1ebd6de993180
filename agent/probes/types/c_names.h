/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of a function's parameters in the text of its declaration: compilers leave them out of
 * the debug data of what is only declared. */
#ifndef AX_PROBES_TYPES_C_NAMES_H
#define AX_PROBES_TYPES_C_NAMES_H

#include "base/util.h"

struct c_name {
	const char *s; /* within the text */
	size_t len;    /* 0: it has none */
};
/* Where `function` is declared on that line of the text, or a few further on: the number of its
 * parameters, of which at most `max` are in `v`. -ENOENT: it is not. */
int c_parameter_names(const char *text, size_t len, uint32_t line, const char *function,
		      struct c_name *v, size_t max);

#endif
