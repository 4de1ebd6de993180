/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Of the kernel's types those that a program names, for libbpf to move what it reads (CO-RE)
 * without all the others: it looks at each of them for every struct that is named.
 */
#ifndef AX_PROBES_BTF_FEW_TYPES_H
#define AX_PROBES_BTF_FEW_TYPES_H

#include <bpf/libbpf.h>

#include "base/util.h"

struct few_types {
	int fd; /* to be closed when the programs are loaded */
	char path[32];
};
#define FEW_TYPES_NONE ((struct few_types){.fd = -1})

/* Structs, unions and enums by the names that they have in a program's types, with what is inside
 * of them; pointers lead to nothing. Modules' types are not among them, and no numbers of types can
 * be asked for. Less than 0: it does without. */
int few_types_of(const struct btf *program, struct few_types *ret);
void few_types_close(struct few_types *t);

/* The same of a skeleton's programs, whose X__elf_bytes() it is given. What it returns is for
 * btf_custom_path of X__open_opts(), and lives as long as *ret; NULL: it does without. */
const char *few_types_path(const void *(*elf_bytes)(size_t *size), struct few_types *ret);
/* No type at all: for a program that this time is not to come to where it reads what is moved.
 * Libbpf leaves there what the verifier would refuse if it came by. */
const char *few_types_none(struct few_types *ret);

#endif
