/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that read ELF share with each other, and with nobody else. */
#ifndef AX_PROBES_ELF_SYMBOLS_H
#define AX_PROBES_ELF_SYMBOLS_H

#include <elf.h>

#include "probes/elf/binary.h"

/* More of one section than this is not read: no table of symbols is as big. */
#define IMAGE_LOAD_MAX (256u << 20)
/* Functions with longer names are left out. */
#define FUNCTION_NAME_MAX 8192

/*
 * An ELF file, read piece by piece and never mapped: a file that is cut off while it is mapped
 * kills the reader with SIGBUS.
 */
struct image {
	int fd;	      /* -1: it is in memory */
	uint8_t *mem; /* malloc'ed */
	uint64_t size;
	uint16_t machine, type;
	Elf64_Phdr *segments;
	size_t n_segments;
	Elf64_Shdr *sections;
	size_t n_sections;
	char *names; /* of the sections */
	size_t names_len;
};

/* Both take over what they are given, also when they fail. `path` is for messages. */
int image_open(struct image *im, int fd, const char *path, struct error *e);
int image_open_memory(struct image *im, uint8_t *mem, size_t size, const char *path,
		      struct error *e);
void image_close(struct image *im);

/* All or nothing: -ENOEXEC when the file does not have it. */
int image_read(const struct image *im, uint64_t offset, void *buf, size_t len);
/* malloc'ed, with a NUL behind. */
int image_load(const struct image *im, uint64_t offset, uint64_t len, void **ret);
const Elf64_Shdr *image_section(const struct image *im, const char *name);
int image_section_load(const struct image *im, const Elf64_Shdr *s, void **ret, size_t *len);
/* By program headers. `executable`: only what is mapped executable. */
bool image_offset(const struct image *im, uint64_t address, bool executable, uint64_t *offset);
bool image_address(const struct image *im, uint64_t offset, uint64_t *address);
/* A range of addresses that the program maps readable. */
bool image_readable(const struct image *im, uint64_t address, uint64_t len);
/* The build-id's length, 0: it has none. */
size_t image_build_id(const struct image *im, uint8_t *id, size_t max);
/* The next note at *at of a section of notes. */
struct note {
	uint32_t type;
	const char *name;
	size_t name_len;
	const uint8_t *desc;
	size_t desc_len;
};
bool note_next(const uint8_t *notes, size_t len, size_t *at, struct note *ret);

static inline uint64_t get_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}
static inline uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

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
	char *root; /* "/proc/PID/root", "" */
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

/* A file that is open already, which it takes over, also when it fails. `path` is for messages and,
 * behind `root` ("", "/proc/PID/root"), where its debug file is looked for. */
int binary_open_fd(int fd, const char *path, const char *root, struct binary **ret,
		   struct error *e);

/* find_file.c: the file, and its path for the kernel. */
int binary_find(const char *name, int pid, char **path, char **root, int *fd, struct error *e);

/* symbols.c */
int symbols_load(struct binary *b);	 /* of the file */
int symbols_load_more(struct binary *b); /* of its debug data, too; sorts */
int symbols_sort(struct binary *b);
int symbols_of_image(struct binary *b, const struct image *im);
int symbols_add(struct binary *b, const struct function *f);
int symbols_keep(struct binary *b, void *text); /* frees it when it fails */
/* The first one at this address, or the last ones before it; NULL. Sorted first. */
const struct function *symbols_at(const struct binary *b, uint64_t address);
/* The index of the first one that starts behind the address. Sorted first. */
size_t symbols_behind(const struct binary *b, uint64_t address);
/* Where the function that starts there ends at the latest. */
uint64_t symbols_end(struct binary *b, uint64_t address, uint64_t size);
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

/* demangle.c: NULL: it is not mangled. */
char *demangle(const char *name, bool arguments);

/* place.c: false: so much code was looked at that functions must overlap over and over. */
bool code_may_read(struct binary *b, uint64_t len);
/* ifunc.c: the addresses of functions that the one at `address` can return. */
int place_implementations(struct binary *b, uint64_t address, uint64_t size, uint64_t *ret,
			  size_t max);

#endif
