/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that read debug data share with each other, and with nobody else. */
#ifndef AX_PROBES_TYPES_DWARF_PRIV_H
#define AX_PROBES_TYPES_DWARF_PRIV_H

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "probes/types/dwarf.h"

#define DWARF_DEPTH_MAX 64 /* of entries within each other, and of types behind names */

struct dwarf_segment {
	uint64_t offset, address, size;
	bool executable;
};
/* Where the code of a unit or function is. */
struct dwarf_span {
	uint64_t low, high;
	size_t index; /* of units or functions */
};
struct dwarf_unit {
	Dwarf_Die die;
	int language;
};
struct dwarf_code {
	Dwarf_Die die;
	uint64_t entry;
};

struct dwarf_named {
	const char *name;
	Dwarf_Die die;
	int language;
	bool declared; /* only that: parameters may have no names */
};

struct dwarf {
	struct type_source types; /* first: what types point to is this */
	char *path;
	char *root; /* "/proc/PID/root", "" */
	bool tried;
	struct error failure; /* why there is nothing, if it was tried */

	int fd, debug_fd; /* the second: of a file of debug data, -1: the file has its own */
	Elf *elf, *debug_elf;
	uint8_t *image; /* of the file that has the data: zeroes are behind it */
	size_t image_len;
	Elf *data;
	Dwarf *dw;
	Dwarf_CFI *eh_frame, *debug_frame;
	uint16_t machine;
	bool fixed;  /* runs at the addresses that the file has */
	bool object; /* was not linked */
	struct dwarf_segment *segments;
	size_t n_segments;

	struct dwarf_unit *units;
	size_t n_units;
	struct dwarf_span *unit_spans; /* sorted */
	size_t n_unit_spans;
	/* functions with code of the unit that was asked for last */
	size_t functions_unit;
	struct dwarf_code *functions;
	size_t n_functions, max_functions;
	struct dwarf_span *function_spans; /* sorted */
	size_t n_function_spans, max_function_spans;
	/* functions by name, sorted, once one is looked for */
	struct dwarf_named *named;
	size_t n_named, max_named;

	struct dwarf_go *go; /* types by what Go knows of them; NULL: nobody asked */

	char *other; /* a file that may have its debug data, too; NULL: none is known */
};

/* --- dwarf_open.c --- */
bool dwarf_to_offset(const struct dwarf *d, uint64_t address, uint64_t *offset);
bool dwarf_to_address(const struct dwarf *d, uint64_t offset, uint64_t *address);

/* The file's own debug data, of code or of declarations only; relocated if it is an object. */
int dwarf_load_given(struct dwarf *d, struct error *e);

/* Whether a file is an ELF file that has such a section. */
bool dwarf_file_has(const char *path, const char *section);

/* --- dwarf_relocate.c --- */
/* Of an object file: puts into its debug data what a linker would. `image`: the whole file. */
void dwarf_relocate(Elf *elf, uint16_t machine, uint8_t *image, size_t size);

/* --- dwarf_units.c --- */
int dwarf_index_units(struct dwarf *d);
void dwarf_free_units(struct dwarf *d);
/* NULL: none that is known has code there. */
struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t address);
/* The entries of one level, with their number bounded: f returns non-zero to end. */
int dwarf_children(Dwarf_Die *parent, int (*f)(void *arg, Dwarf_Die *die), void *arg);
/* The entries that the address is in: the function, blocks in it, functions inlined into it. */
struct dwarf_scopes {
	struct dwarf_unit *unit;
	uint64_t entry; /* of the function */
	Dwarf_Die dies[DWARF_DEPTH_MAX];
	size_t n;
};
/* -ENOENT: no function is known there. */
int dwarf_scopes_at(struct dwarf *d, uint64_t address, struct dwarf_scopes *ret);
/* Of attributes that are strings; also of what the entry is a copy of. NULL: none. */
const char *dwarf_text(Dwarf_Die *die, unsigned attribute);
/* An entry's own name or that of what it is a copy of. NULL: none. */
const char *dwarf_name(Dwarf_Die *die);
/* The entry that one is an instance or definition of, and so on up to the first. */
void dwarf_origin(Dwarf_Die *die, Dwarf_Die *ret);
bool dwarf_flag(Dwarf_Die *die, unsigned attribute);
/* Of attributes that are places; also of what the entry is a copy of. */
bool dwarf_place(Dwarf_Die *die, unsigned attribute, Dwarf_Attribute *ret);
/* Of attributes that are numbers; also of what the entry is a copy of. */
bool dwarf_number(Dwarf_Die *die, unsigned attribute, uint64_t *ret);
bool dwarf_language_is_c(int language);
bool dwarf_language_is_cxx(int language);
/* The file that an entry is declared in; NULL: not known. */
const char *dwarf_declared_in(Dwarf_Die *die);

/* --- dwarf_types.c --- */
void dwarf_init_types(struct dwarf *d);
/* The type of a variable, parameter, member or function; void where there is none. */
int dwarf_type_of(struct dwarf *d, Dwarf_Die *die, struct ctype *ret);
/* How many elements an array has in its dimension of that number. -ENOENT: it has fewer. */
int dwarf_array_count(Dwarf_Die *die, unsigned dimension, uint64_t *ret);

/* The type that an entry itself is. */
int dwarf_type_at_die(struct dwarf *d, Dwarf_Die *die, struct ctype *ret);

/* --- dwarf_go.c --- */
void dwarf_free_go(struct dwarf *d);

/* --- dwarf_written.c --- */
int dwarf_written(struct type_source *s, struct written *w);
int dwarf_type_parameter(struct type_source *s, const struct ctype *t, size_t which,
			 struct ctype *ret);
/* A function by its name, its own or as symbols have it. -ENOENT. */
int dwarf_prototype_named(struct dwarf *d, const char *name, struct prototype *ret);
/* What a function's entry says of it. */
void dwarf_prototype_of(struct dwarf *d, Dwarf_Die *die, int language, struct prototype *ret);

/* --- dwarf_where.c --- */
struct dwarf_context {
	struct dwarf *d;
	uint64_t address;
	bool at_entry;
	Dwarf_Die *function; /* that has the frame base */
};
/* Where a variable is, by what its entry says. */
void dwarf_locate(const struct dwarf_context *c, Dwarf_Die *die, struct where *ret);
void where_nowhere(struct where *w, const char *why);
/* One piece of one register. */
void where_register(struct where *w, const char *reg);
/* NULL: there are not so many. */
const char *where_vector(uint16_t machine, unsigned i);

/* --- dwarf_abi.c --- */
/* The place of a function's parameters by the calling convention, one after the other. */
struct dwarf_abi {
	uint16_t machine;
	bool go;
	unsigned n_registers, n_float; /* that were taken */
	uint64_t stack;		       /* bytes that were taken */
	bool lost;		       /* one was of a type whose place is not known */
};
/* `returns`: the function's type, which may take a register for its place. */
void dwarf_abi_start(struct dwarf_abi *a, uint16_t machine, bool go, const struct ctype *returns);
void dwarf_abi_next(struct dwarf_abi *a, const struct ctype *type, struct where *ret);
void dwarf_abi_return(uint16_t machine, const struct ctype *type, struct where *ret);

#endif
