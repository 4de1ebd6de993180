/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with the kernel's types (BTF), walked where it is: libbpf's copies and tables of it,
 * which are megabytes, take a quarter of the start of a small trace. */
#ifndef AX_PROBES_BTF_TYPES_FILE_H
#define AX_PROBES_BTF_TYPES_FILE_H

#include <linux/btf.h>

#include "base/util.h"

struct types_file {
	char *at;
	size_t size;
	bool mapped;
	const char *first, *end; /* of the types, the first of which has the number 1 */
	const char *names, *names_end;
};

/* False: it is not there, or is not understood. It is to be closed all the same. */
bool types_file_open(struct types_file *t);
void types_file_close(struct types_file *t);
/* The type behind one, NULL: it is the last one, or what follows is not understood. */
const struct btf_type *types_file_next(const struct types_file *t, const struct btf_type *b);
const struct btf_type *types_file_first(const struct types_file *t);
/* A name that begins there; "": there is none. */
const char *types_file_name(const struct types_file *t, uint32_t offset);

#endif
