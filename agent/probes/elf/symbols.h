/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A binary's functions in a table, for those who read code: probes/elf and probes/place. */
#ifndef AX_PROBES_ELF_SYMBOLS_H
#define AX_PROBES_ELF_SYMBOLS_H

#include "probes/elf/binary.h"
#include "probes/elf/image.h"

/* A name of a function; several can have the same address. */
struct function {
	uint64_t address, size;
	const char *name;
	char *demangled; /* with its arguments */
	bool tried;	 /* to demangle it */
	bool ifunc;	 /* the address is what chooses the implementation */
	uint8_t rank;	 /* of the names of one address the lowest is the one to show */
};

/* Where the jumps and calls of one piece of code go, sorted. */
struct targets {
	uint64_t block; /* which, plus one; 0: none */
	uint64_t *v;
	size_t n;
};
#define TARGETS_BLOCKS 4 /* functions are placed in their order, so a few are enough */

struct binary {
	char *path;
	char *root;    /* "/proc/PID/root", "" */
	char *look_in; /* what may be its debug data, too; NULL */
	struct image image;
	bool go;
	bool loaded, loaded_more; /* symbols: of the file itself, of debug data */
	bool has_symtab;
	bool sorted;
	struct function *functions;
	size_t n_functions, max_functions;
	const char **imports; /* names of functions that other files have */
	size_t n_imports, max_imports;
	void **texts; /* what names point into */
	size_t n_texts, max_texts;
	struct targets targets[TARGETS_BLOCKS];
	uint64_t read; /* bytes of code that were looked at */
};

int symbols_load(struct binary *b);	 /* of the file */
int symbols_load_more(struct binary *b); /* of its debug data, too; sorts */
void symbols_sort(struct binary *b);
/* The first one at this address, or the last ones before it; NULL. Sorted first. */
const struct function *symbols_at(const struct binary *b, uint64_t address);
/* The index of the first one that starts behind the address. Sorted first. */
size_t symbols_behind(const struct binary *b, uint64_t address);
/* Where the function that starts there ends at the latest. */
uint64_t symbols_end(struct binary *b, uint64_t address, uint64_t size);
/* The size that one of the names of that address has, 0: none. */
uint64_t symbols_size(const struct binary *b, uint64_t address);
/* With its arguments; NULL: it is not mangled. Kept with the function. */
const char *symbols_demangled(struct function *f);

/* False: so much code was looked at that functions must overlap over and over. */
bool binary_may_read(struct binary *b, uint64_t len);

#endif
