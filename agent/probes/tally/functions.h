/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs at the entries and returns of functions of programs and libraries. */
#ifndef AX_PROBES_TALLY_FUNCTIONS_H
#define AX_PROBES_TALLY_FUNCTIONS_H

#include <bpf/libbpf.h>

#include "base/strv.h"
#include "probes/watch/priv.h"

/* One of a table that ends with a name of NULL. */
struct function_wanted {
	const char *name;
	uint32_t cookie;
	bool only_entry;
};

/* Programs that are at functions: those of a skeleton, and where the functions are. */
struct functions_parts {
	struct watch_parts watch; /* without attach() and detach() */
	struct bpf_program *enter, *leave;
	const struct function_wanted *wanted;
	/* Where they are usually; some may be missing. "": the program itself. Ends with NULL. */
	const char *const *libraries;
	const struct strv *files; /* instead of them: each has to have some, unless it is empty */
	/* Whose: of the processes that are watched; else as a program that is started finds them */
	bool of_pids;
	const char *what; /* completes "FILE has none of the functions that " */
};
/* As watch_load(). -ENOENT: the functions are nowhere. */
int functions_load(const struct functions_parts *p, const struct watch_options *o,
		   struct watch **ret, struct error *e);

#endif
