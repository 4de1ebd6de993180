/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that read ELF share with each other, and with nobody else. */
#ifndef AX_PROBES_ELF_PRIV_H
#define AX_PROBES_ELF_PRIV_H

#include "probes/elf/symbols.h"

/* Functions with longer names are left out. */
#define FUNCTION_NAME_MAX 8192

/* find_file.c: the file, and its path for the kernel. */
int binary_find(const char *name, int pid, char **path, char **root, int *fd, struct error *e);

/* symbols.c */
int symbols_of_image(struct binary *b, const struct image *im);
int symbols_add(struct binary *b, const struct function *f);
int symbols_keep(struct binary *b, void *text); /* frees it when it fails */
/* The tables of symbols, functions and data, as long as addresses of some are looked for. */
#define VALUES_STEPS_MAX (64u << 20) /* symbols that are looked at */
struct values {
	Elf64_Sym *symbols[2];
	char *names[2];
	size_t n[2], names_len[2], n_tables;
	bool loaded;
	uint64_t steps;
};
int values_find(struct binary *b, struct values *v, const char *name, uint64_t *value);
void values_free(struct values *v);

/* debug_file.c: names from .gnu_debugdata or a separate debug file. */
int binary_debug_symbols(struct binary *b);
/* go_functions.c: names from Go's own table. */
int binary_go_symbols(struct binary *b);

#endif
